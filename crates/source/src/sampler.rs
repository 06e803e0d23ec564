//! The sampler thread: owns the kernel descriptors, wakes on an absolute schedule, hands every sample over by value.
//!
//! It may run at real-time priority, because a benchmark fills the cores a monitor needs; in return it keeps a budget and
//! gives the priority back when it exceeds it. Late ticks are counted, and make no rate wrong: the elapsed time is read. While too much
//! waits that nobody has taken, ticks are left out and counted likewise; what ends meanwhile is heard all the same.
//! Between ticks it wakes for pulses while watched processes have connections, and it sits where it disturbs them least.

mod priority;

use super::channel::{FeedCommand, Sender, ring};
use super::live::Live;
pub use super::live::{ReadPolicy, ReadScope};
pub use super::netns::{Choice, SELF};
use super::own_core::OwnCore;
use super::{SourceError, now_ns};
use priority::Priority;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::Duration;
use vnettop_sample::{Item, OwnCost};

/// From pulse to pulse, on the whole tenths of a second of `CLOCK_MONOTONIC`, which are the edges of the bins that rates are
/// computed in. At intervals up to this the ticks themselves are the pulses.
const PULSE_NS: u64 = 100_000_000;

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
    let mut schedule = Schedule::start(settings.interval);
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
            realtime: priority.ordinary.is_none(),
            ordinary: priority.ordinary,
            interval_ns: schedule.interval_ns,
            seat: seat.core,
        };
        let sample = live.sample(own, priority.problem())?;
        seat.choose(&sample);
        let events = live.reports.events().into_iter().chain(live.profile.events()).map(Item::Event);
        for item in events.chain([Item::Sample(Box::new(sample))]) {
            if !feed.send(Ok(item)) {
                return Ok(());
            }
        }
        taken += 1;
        if settings.count.is_some_and(|count| taken >= count) {
            return Ok(());
        }
        loop {
            priority.keep_budget();
            let Some(late) = schedule.wait(&mut live, feed)? else { return Ok(()) };
            late_ticks += late;
            // Nothing is read that nobody could take: moves stay in their rings, every other counter goes on.
            schedule.holds_back = !feed.has_room();
            if !schedule.holds_back {
                break;
            }
            left_out += 1;
            live.flows.leave();
            live.drop_departed();
            live.ovs.receive();
        }
    }
}

/// Ticks at start, start + interval, start + 2 × interval …, whatever the ticks themselves take.
struct Schedule {
    interval_ns: u64,
    /// When the last tick was due, monotonic ns.
    due_ns: u64,
    /// When the next pulse is due, monotonic ns; `None` while there is nothing to read between ticks.
    pulse_ns: Option<u64>,
    /// Ticks are being left out, so nothing would take what pulses read.
    holds_back: bool,
    /// Nothing is read and nothing kept alive until [`FeedCommand::GoOn`].
    rests: bool,
}

impl Schedule {
    fn start(interval: Duration) -> Self {
        let mut schedule = Self { interval_ns: 1, due_ns: 0, pulse_ns: None, holds_back: false, rests: false };
        schedule.set(interval);
        schedule
    }

    fn set(&mut self, interval: Duration) {
        self.interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.due_ns = now_ns();
    }

    /// Sleeps until the next tick is due, and gives how many were late; `None` when the feed asks for an end. Pulses, and applies
    /// notifications and commands that come before the tick.
    fn wait(&mut self, live: &mut Live, feed: &Sender) -> Result<Option<u64>, SourceError> {
        let failed = |error: Errno| SourceError::Sampler { failed: "the sampling timer failed", error: error.into() };
        loop {
            self.plan_pulse(live.flows.has_flows());
            let [commanded, departed, notified] = match self.sleep(live, feed) {
                Err(Errno::INTR) => continue,
                woken => woken.map_err(failed)?,
            };
            if commanded {
                match feed.command() {
                    Some(FeedCommand::Stop) => return Ok(None),
                    // The time that passed meanwhile makes no tick late.
                    Some(FeedCommand::GoOn) if self.rests => {
                        live.spaces.read_mounts();
                        (self.rests, self.due_ns) = (false, now_ns());
                        return Ok(Some(0));
                    }
                    command => self.obey(command.as_ref(), live, feed),
                }
            }
            if self.rests {
                continue;
            }
            // Departures are handled before the tick: asking for their events takes them.
            if departed {
                live.drop_departed();
            }
            let now_ns = now_ns();
            if let Some(late) = self.expired(now_ns) {
                return Ok(Some(late));
            }
            if self.pulse_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                self.pulse_ns = None;
                live.flows.pulse();
            }
            if notified {
                live.links.drain()?;
            }
        }
    }

    /// Plans the next pulse on the next whole tenth of a second, if there is something to read between ticks.
    fn plan_pulse(&mut self, has_flows: bool) {
        let is_wanted = has_flows && !self.holds_back && self.interval_ns > PULSE_NS;
        let next_ns = || (now_ns() / PULSE_NS + 1) * PULSE_NS;
        self.pulse_ns = is_wanted.then(|| self.pulse_ns.unwrap_or_else(next_ns));
    }

    /// Sleeps until a tick or pulse is due, or something is readable: commands, departures of namespaces, links.
    fn sleep(&self, live: &Live, feed: &Sender) -> Result<[bool; 3], Errno> {
        let others = [live.spaces.events(), Some(live.links.notifications())];
        let [departures, links] = others.map(|other| other.filter(|_| !self.rests));
        let mut waits = [Some(feed.commands()), departures, links].map(|readable| match readable {
            Some(readable) => PollFd::from_borrowed_fd(readable, PollFlags::IN),
            None => PollFd::from_borrowed_fd(feed.commands(), PollFlags::empty()),
        });
        let tick_ns = self.due_ns.saturating_add(self.interval_ns);
        let left_ns = self.pulse_ns.map_or(tick_ns, |pulse_ns| pulse_ns.min(tick_ns)).saturating_sub(now_ns());
        let left = Timespec::try_from(Duration::from_nanos(left_ns)).ok().filter(|_| !self.rests);
        poll(&mut waits, left.as_ref())?;
        Ok(waits.map(|wait| !wait.revents().is_empty()))
    }

    fn obey(&mut self, command: Option<&FeedCommand>, live: &mut Live, feed: &Sender) {
        match command {
            Some(&FeedCommand::Interval(interval)) => self.set(interval),
            Some(FeedCommand::Now) => self.due_ns = now_ns().saturating_sub(self.interval_ns),
            Some(&FeedCommand::Watch { pid, with_descendants }) => live.threads.watch(pid, with_descendants),
            Some(&FeedCommand::Want(wanted)) => {
                live.kernel.want(wanted);
                live.profile.want(wanted.profile);
            }
            Some(FeedCommand::LetGo) => {
                live.release_all_namespaces();
                ring(&feed.let_go);
                self.rests = true;
            }
            // Only recordings have a pace.
            None | Some(FeedCommand::Pace(_) | FeedCommand::Agent(_) | FeedCommand::GoOn | FeedCommand::Stop) => {}
        }
    }

    /// How many ticks were late or lost, if one is due: all but the last, and the last too when it comes more than a tenth of
    /// the interval after it was due.
    fn expired(&mut self, now_ns: u64) -> Option<u64> {
        let expirations = now_ns.saturating_sub(self.due_ns) / self.interval_ns;
        let lost = expirations.checked_sub(1)?;
        self.due_ns += self.interval_ns * expirations;
        Some(lost + u64::from(now_ns - self.due_ns > self.interval_ns / 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_due_after_an_interval_and_what_was_lost_is_counted() {
        let mut schedule = Schedule::start(Duration::from_millis(500));
        schedule.due_ns = 1_000;
        let mut expired = |now_ms: u64| schedule.expired(1_000 + now_ms * 1_000_000);
        assert_eq!(expired(499), None, "not yet");
        assert_eq!(expired(500), Some(0), "in time");
        assert_eq!(expired(999), None, "the next one is due an interval after that");
        assert_eq!(expired(1_051), Some(1), "more than a tenth of the interval late");
        assert_eq!(expired(2_500), Some(2), "two were lost, this one is in time");
        assert_eq!(expired(2_999), None, "however late one was, the next is due when it would have been");
    }

    #[test]
    fn a_pulse_comes_on_the_next_whole_tenth_and_only_while_it_is_wanted() {
        let mut schedule = Schedule::start(Duration::from_millis(500));
        let began_ns = now_ns();
        schedule.plan_pulse(true);
        let due_ns = schedule.pulse_ns.expect("it is planned");
        assert!(
            due_ns > began_ns && due_ns <= now_ns() + PULSE_NS && due_ns.is_multiple_of(PULSE_NS),
            "on the next tenth"
        );
        schedule.plan_pulse(true);
        assert_eq!(schedule.pulse_ns, Some(due_ns), "it stays where it is until it came");
        schedule.set(Duration::from_millis(100));
        schedule.plan_pulse(true);
        assert_eq!(schedule.pulse_ns, None, "ticks every 100 ms need no pulses between them");
    }
}
