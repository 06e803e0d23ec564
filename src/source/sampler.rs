//! The sampler thread: owns the kernel descriptors, wakes on an absolute schedule, hands every sample over by value.
//!
//! It may run at real-time priority, because a benchmark fills the cores a monitor needs; in return it keeps a budget and
//! gives the priority back when it exceeds it. Late ticks are counted, and make no rate wrong: the elapsed time is read. While too much
//! waits that nobody has taken, ticks are left out and counted likewise; what ends meanwhile is heard all the same.
//! Between ticks it wakes for pulses while watched processes have connections, and it sits where it disturbs them least.

mod priority;

use super::channel::{Command, Sender};
use super::live::Live;
pub use super::live::{ReadPolicy, ReadScope};
pub use super::netns::{Choice, SELF};
use super::own_core::OwnCore;
use super::tick_timer::{self, TickTimer};
use super::{SourceError, now_ns};
use crate::sample::{Item, OwnCost};
use priority::Priority;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What the sampler is asked to do.
#[derive(Debug, Clone)]
pub struct SamplerSettings {
    /// What is read.
    pub scope: ReadScope,
    /// Time from tick to tick.
    pub interval: Duration,
    /// Ask for real-time priority.
    pub realtime: bool,
    /// Samples to take; none means until told to stop.
    pub count: Option<u64>,
}

/// Samples until told to stop, until the count is reached or until nobody listens. Everything that happens, errors too,
/// goes through the feed.
pub(super) fn run(settings: &SamplerSettings, feed: &Sender) {
    if let Err(error) = sample_until_stopped(settings, feed) {
        feed.send(Err(error));
    }
}

fn sample_until_stopped(settings: &SamplerSettings, feed: &Sender) -> Result<(), SourceError> {
    let mut live = Live::open(&settings.scope)?;
    let mut schedule = Schedule::start(settings.interval)?;
    let mut priority = Priority::take(settings.realtime);
    let mut seat = OwnCore::default();
    let mut taken = 0;
    let (mut late_ticks, mut left_out) = (0, 0);
    loop {
        let own = OwnCost {
            cpu_ns: 0,
            late_ticks,
            left_out,
            behind_ns: None,
            realtime: priority.ordinary().is_none(),
            ordinary: priority.ordinary(),
            interval_ns: u64::try_from(schedule.interval.as_nanos()).unwrap_or(u64::MAX),
            seat: seat.core(),
        };
        let sample = live.sample(own, priority.problem())?;
        seat.choose(&sample);
        for event in live.events() {
            if !feed.send(Ok(Item::Event(event))) {
                return Ok(());
            }
        }
        if !feed.send(Ok(Item::Sample(Box::new(sample)))) {
            return Ok(());
        }
        taken += 1;
        if settings.count.is_some_and(|count| taken >= count) {
            return Ok(());
        }
        loop {
            priority.keep_budget();
            match schedule.wait(&mut live, feed)? {
                Wake::Stop => return Ok(()),
                Wake::Tick { late } => late_ticks += late,
            }
            // Nothing is read that nobody could take: moves stay in their rings, every other counter goes on.
            schedule.holds_back = !feed.has_room();
            if !schedule.holds_back {
                break;
            }
            left_out += 1;
            live.pass_over();
        }
    }
}

enum Wake {
    Tick { late: u64 },
    Stop,
}

/// Ticks at start, start + interval, start + 2 × interval …, whatever the ticks themselves take.
struct Schedule {
    timer: OwnedFd,
    pulse: TickTimer,
    interval: Duration,
    /// When the last tick was due, monotonic ns.
    due_ns: u64,
    /// Ticks are being left out, so what pulses would read lies nowhere.
    holds_back: bool,
}

/// What became of a command.
enum Obeyed {
    Done,
    /// Nothing is kept alive any more; the next one decides.
    LetGo,
    GoOn,
    Stop,
}

impl Schedule {
    fn start(interval: Duration) -> Result<Self, SourceError> {
        let failed = |error: Errno| SourceError::Timer { error: error.into() };
        let timer =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
                .map_err(failed)?;
        let mut schedule = Self { timer, pulse: TickTimer::new()?, interval, due_ns: 0, holds_back: false };
        schedule.set(interval).map_err(failed)?;
        Ok(schedule)
    }

    fn set(&mut self, interval: Duration) -> Result<(), Errno> {
        let it_interval = Timespec {
            tv_sec: i64::try_from(interval.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(interval.subsec_nanos()),
        };
        let timer = Itimerspec { it_interval, it_value: it_interval };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        (self.interval, self.due_ns) = (interval, now_ns());
        Ok(())
    }

    /// Sleeps until the next tick is due; pulses, and applies notifications and commands that come before it.
    fn wait(&mut self, live: &mut Live, feed: &Sender) -> Result<Wake, SourceError> {
        let failed = |error: Errno| SourceError::Timer { error: error.into() };
        loop {
            self.pulse.run(live.has_flows() && !self.holds_back, self.interval, now_ns())?;
            let [timer, pulsed, notified, commanded, departed, spoken] = {
                let ovs = live.ovs_news();
                let mut waits = [
                    PollFd::from_borrowed_fd(self.timer.as_fd(), PollFlags::IN),
                    PollFd::from_borrowed_fd(self.pulse.as_fd(), PollFlags::IN),
                    PollFd::from_borrowed_fd(live.notifications(), PollFlags::IN),
                    PollFd::from_borrowed_fd(feed.commands(), PollFlags::IN),
                    // Where no namespace but the own one is looked for there is nothing to wait for.
                    match live.departures() {
                        Some(departures) => PollFd::from_borrowed_fd(departures, PollFlags::IN),
                        None => PollFd::from_borrowed_fd(self.timer.as_fd(), PollFlags::empty()),
                    },
                    // The last one is left out where nothing is to be waited for.
                    PollFd::from_borrowed_fd(ovs.unwrap_or(self.timer.as_fd()), PollFlags::IN),
                ];
                let waited = waits.len() - usize::from(ovs.is_none());
                match poll(&mut waits[..waited], None) {
                    Ok(_) => waits.map(|wait| !wait.revents().is_empty()),
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(failed(error)),
                }
            };
            if commanded {
                match self.obey(feed.command(), live, feed)? {
                    Obeyed::Done | Obeyed::GoOn => {}
                    Obeyed::LetGo if self.rest(live, feed)? => return Ok(Wake::Tick { late: 0 }),
                    Obeyed::LetGo | Obeyed::Stop => return Ok(Wake::Stop),
                }
            }
            // Before the tick: who asks for these events takes them.
            if departed {
                live.leave();
            }
            if timer && let Some(late) = self.expired()? {
                return Ok(Wake::Tick { late });
            }
            if pulsed && self.pulse.is_due()? {
                live.pulse();
            }
            if notified {
                live.drain()?;
            }
            if spoken {
                live.receive();
            }
        }
    }

    fn obey(&mut self, command: Option<Command>, live: &mut Live, feed: &Sender) -> Result<Obeyed, SourceError> {
        match command {
            // A pace is a recording's.
            None | Some(Command::Pace(_)) => {}
            Some(Command::Interval(interval)) => {
                self.set(interval).map_err(|error| SourceError::Timer { error: error.into() })?;
            }
            Some(Command::Watch { pid, kin }) => live.watch(pid, kin),
            Some(Command::Want(wanted)) => live.want(wanted),
            Some(Command::LetGo) => {
                live.let_go();
                feed.has_let_go();
                return Ok(Obeyed::LetGo);
            }
            Some(Command::GoOn) => return Ok(Obeyed::GoOn),
            Some(Command::Stop) => return Ok(Obeyed::Stop),
        }
        Ok(Obeyed::Done)
    }

    /// Reads nothing and keeps nothing alive until it is told to go on; false when it is told to stop. The time that passes meanwhile makes
    /// no tick late.
    fn rest(&mut self, live: &mut Live, feed: &Sender) -> Result<bool, SourceError> {
        loop {
            let _ = poll(&mut [PollFd::from_borrowed_fd(feed.commands(), PollFlags::IN)], None);
            match self.obey(feed.command(), live, feed)? {
                Obeyed::Done | Obeyed::LetGo => {}
                Obeyed::Stop => return Ok(false),
                Obeyed::GoOn => break,
            }
        }
        live.take_up();
        self.set(self.interval).map_err(|error| SourceError::Timer { error: error.into() })?;
        Ok(true)
    }

    /// How many ticks were late or lost, if the timer has expired: all but the last, and the last too when it comes
    /// more than a tenth of the interval after it was due.
    fn expired(&mut self) -> Result<Option<u64>, SourceError> {
        let expirations = tick_timer::expirations(&self.timer)?;
        if expirations == 0 {
            return Ok(None);
        }
        let interval_ns = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        self.due_ns += interval_ns.saturating_mul(expirations);
        let late = now_ns().saturating_sub(self.due_ns) > interval_ns / 10;
        Ok(Some(expirations - 1 + u64::from(late)))
    }
}
