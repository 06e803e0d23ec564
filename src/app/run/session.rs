//! One `vnettop run` from its first start to its card: items in, pins and events out, the command waited for. Whatever
//! fails here, the command goes on and its exit code counts.

mod phases;

use super::super::signals::wait;
use super::far_ends::{FarEnd, FarEnds};
use super::output::{Output, Rest};
use super::passed_signals::PassedSignals;
use super::{Observed, Plan};
use crate::app::phase_schedule::{LOOK_NS, PhaseSchedule, Rule};
use crate::app::{BlackBox, Stream};
use crate::derive::Metrics;
use crate::derive::experiment::side_of;
use crate::derive::run::Run;
use crate::effect::PinController;
use crate::sample::{Event, Item, PinMode, Report, RunAsked, Side, SteerMode, StretchSide};
use crate::sched;
use crate::source::feed::{Feed, FeedCommand, Next};
use crate::source::now_ns;
use crate::term;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A last tick soon, however long the interval is.
const AT_ONCE: Duration = Duration::from_millis(50);
/// Ticks in a phase of a search.
const TICKS_OF_PHASE: u64 = 5;
/// How long the reader of a command's output is waited for after a signal has asked for an end.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct RunSession<'a> {
    plan: &'a Plan,
    stream: Stream,
    /// None once nothing more comes.
    feed: Option<Feed>,
    far: FarEnds,
    run: Run,
    /// The command's process.
    command: Option<u32>,
    controller: PinController,
    signals: PassedSignals,
    schedule: PhaseSchedule<'a>,
    output: Output,
    rest: Rest,
    /// The masks were put back because of a signal.
    stopped: bool,
    /// Another vnettop has some of the threads: nothing is compared any more, and to start the command again would show nothing.
    pub(super) taken: bool,
    /// Why nobody could be pinned, as it was last.
    refused: Option<String>,
    /// Each sentence once.
    notes: Vec<String>,
    /// The recording could not be written.
    unrecorded: bool,
}

impl<'a> RunSession<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        stream: Stream,
        (feed, far): (Feed, Vec<FarEnd>),
        controller: PinController,
        signals: PassedSignals,
    ) -> Self {
        let controller = if plan.asked.takes_turns() { controller.comparing() } else { controller };
        // A process of the command's whose parent ends becomes vnettop's child, and so stays known for one of its.
        let _where_it_can = set_child_subreaper(Some(getpid()));
        Self {
            plan,
            stream,
            feed: Some(feed),
            far: FarEnds::new(far),
            run: Run::default(),
            command: None,
            controller,
            signals,
            schedule: PhaseSchedule::new(Rule::Never, &[]),
            output: Output::Own(None),
            rest: Rest::default(),
            stopped: false,
            taken: false,
            refused: None,
            notes: Vec::new(),
            unrecorded: false,
        }
    }

    /// Takes a sample from before the command: what is dropped from its first moment on is told by that. Returns why the
    /// comparison that is asked for would be worth nothing, if that can be told already: where who counts was named. Who else
    /// runs may have nothing to do with the command.
    pub(super) fn look(&mut self) -> Option<String> {
        if let Err(why) = self.far.arrive(&mut self.signals) {
            return Some(format!("the command was not started: {why}"));
        }
        let metrics = self.sample_after(0)?;
        if !self.plan.asked.takes_turns() || !self.plan.named {
            return None;
        }
        let taken = self.controller.taken(metrics.subject.threads.iter().map(|thread| thread.sample.id))?;
        Some(format!("the command was not started: {taken}"))
    }

    /// Starts the command, watches it until it ends, and puts every mask back; its exit code.
    ///
    /// # Errors
    /// It could not be started.
    pub(super) fn run_once(&mut self, nth: u32) -> io::Result<u8> {
        // Descriptors of ours are closed on exec, the standard library gives the child an empty signal mask, and it may use
        // the cores that vnettop was started with, not the one that it sits on.
        let mut command = Command::new(&self.plan.command[0]);
        self.output = Output::of(&self.plan.command, &mut command, &mut self.rest)?;
        let child = sched::unseated(command.args(&self.plan.command[1..])).spawn();
        drop(command);
        let mut child = child?;
        self.command = Some(child.id());
        self.report(Event::RunStarted { at_ns: now_ns(), pid: child.id() });
        self.announce(nth);
        if let Some(unread) = self.output.unread() {
            self.reported(child.id(), None, Report::Unread(unread));
        }
        let rule = self.rule(nth);
        self.schedule = PhaseSchedule::new(rule, &self.plan.found).ends_only(self.plan.asked.ends_only);
        if !matches!(rule, Rule::Pinned(_)) {
            self.stretch(Some(StretchSide::Unpinned));
        }
        if let Some(feed) = &self.feed {
            feed.command(FeedCommand::Watch { pid: child.id(), with_descendants: !self.plan.named });
            feed.command(FeedCommand::Interval(self.interval()));
        }
        let status = self.wait(&mut child)?;
        let (at_ns, code) = (now_ns(), code(status));
        self.restore();
        self.pass_on(child.id());
        // What happened up to the end is in the next sample.
        self.sample_after(at_ns);
        self.report(Event::RunEnded { at_ns, code: i32::from(code) });
        Ok(code)
    }

    /// A signal asked for an end: the command is not started again.
    pub(super) fn was_asked_to_end(&self) -> bool {
        self.signals.asked
    }

    /// Takes an event in, as a replay will.
    pub(super) fn report(&mut self, event: Event) {
        self.take(Item::Event(event));
    }

    /// The end of a run without a command.
    pub(super) fn refused(self, code: u8, sentence: String) -> Observed {
        let mut observed = self.close(code);
        (observed.card, observed.notes) = (None, vec![sentence]);
        observed
    }

    /// Closes the recording and makes the card.
    pub(super) fn close(mut self, code: u8) -> Observed {
        self.signals.end();
        self.controller.finish();
        self.far.finish().into_iter().for_each(|sentence| self.note(sentence));
        let _where_it_could = set_child_subreaper(None);
        let card = self.run.card();
        if let Some(why) = self.refused.take() {
            self.note(why);
        }
        // What the card says need not be said beside it.
        let missing = card.as_ref().map_or(&[][..], |card| &card.missing);
        self.notes.retain(|note| !missing.contains(&Event::nothing_was_pinned(note)));
        let mut stream = std::mem::take(&mut self.stream);
        let mut black_box = stream.black_box.take();
        for news in black_box.as_mut().map(BlackBox::finish).unwrap_or_default() {
            self.note(news.text);
        }
        if let Err(error) = stream.finish()
            && !std::mem::replace(&mut self.unrecorded, true)
        {
            self.note(error.to_string());
        }
        if self.was_asked_to_end() {
            self.rest.leave();
        }
        Observed { code, card, notes: self.notes, unrecorded: self.unrecorded, black_box, rest: self.rest }
    }

    /// Says on a terminal, once, what goes on while only the command's own output is to be seen.
    fn announce(&self, nth: u32) {
        let RunAsked { pin, repeat, stretch_ns, .. } = self.plan.asked;
        if nth > 0 || !self.plan.asked.takes_turns() || !io::stderr().is_terminal() {
            return;
        }
        let phases = format!("phases of {} s", stretch_ns as f64 / 1e9);
        let turns = match pin {
            _ if self.plan.asked.tune => format!("{phases}, pins, cores for packets and settings in random order"),
            _ if self.plan.asked.steer != SteerMode::Never => {
                format!("{phases}, packets steered or untouched, in random order")
            }
            PinMode::Search => format!("{phases}, one placement of each class in random order"),
            _ if repeat > 1 => format!("{repeat} runs, unpinned and pinned in turn"),
            _ => format!("{phases}, unpinned and pinned in turn"),
        };
        term::say(format!("{turns}; the card follows the command's output"));
    }

    /// Time from tick to tick: short enough that a phase of a search ends when it is over.
    fn interval(&self) -> Duration {
        let of_phase = Duration::from_nanos(self.plan.asked.stretch_ns / TICKS_OF_PHASE);
        let is_search = self.plan.asked.is_search();
        if is_search { self.plan.interval.min(of_phase.max(AT_ONCE)) } else { self.plan.interval }
    }

    /// How turns are taken in this start of the command.
    fn rule(&self, nth: u32) -> Rule<'a> {
        let asked: &'a RunAsked = &self.plan.asked;
        let search = Rule::Search(asked);
        match asked.pin {
            _ if asked.steer != SteerMode::Never => search,
            PinMode::Compare if asked.repeat <= 1 => Rule::Turns(asked.stretch_ns),
            PinMode::Compare if side_of(nth) == StretchSide::Pinned => Rule::Pinned(LOOK_NS),
            PinMode::Search => search,
            PinMode::Compare | PinMode::Never | PinMode::Propose => Rule::Never,
        }
    }

    /// Until the command has ended: hands on signals, takes samples.
    fn wait(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        loop {
            self.signals.hand_on(Some(child));
            self.reap_children();
            self.receive(child.id());
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.was_asked_to_end() && !std::mem::replace(&mut self.stopped, true) {
                self.schedule.stop();
                self.restore();
            }
            self.hear_far_ends();
            if let Some(metrics) = self.next() {
                self.turn(&metrics);
            } else {
                self.wait_for_news();
            }
        }
    }

    fn wait_for_news(&self) {
        let ready = self.feed.as_ref().map(Feed::ready);
        let own = ready.into_iter().chain(self.output.fd()).chain([self.signals.fd()]);
        wait(&own.chain(self.far.fds()).collect::<Vec<_>>(), None);
    }

    /// Takes in what the hosts at the other end say.
    fn hear_far_ends(&mut self) {
        self.far.take_waiting().into_iter().for_each(|sentence| self.note(sentence));
    }

    /// Takes in what the command says in passing; whether all of it has passed.
    fn receive(&mut self, pid: u32) -> bool {
        let (stated, caught_up) = self.output.received();
        for (side, report) in stated {
            self.reported(pid, side, report);
        }
        caught_up
    }

    fn reported(&mut self, pid: u32, side: Option<Side>, report: Report) {
        self.report(Event::Reported { at_ns: now_ns(), pid, side, report });
    }

    /// What the command wrote before it ended is passed on, however slow the reader is; a signal gives that up, and where one has ended
    /// the command, a reader that takes nothing for a while is given up too.
    fn pass_on(&mut self, pid: u32) {
        self.output.end();
        let began = Instant::now();
        if let Some(feed) = self.feed.as_ref().filter(|_| self.was_asked_to_end()) {
            feed.command(FeedCommand::Interval(AT_ONCE));
        }
        while !self.receive(pid) && !self.signals.hand_on(None) {
            if self.was_asked_to_end() && began.elapsed() >= PATIENCE {
                break;
            }
            if self.next().is_none() {
                self.wait_for_news();
            }
        }
    }

    /// Takes the next item, if one waits; what was derived from it, if it was a sample.
    fn next(&mut self) -> Option<Metrics> {
        match self.feed.as_ref()?.next() {
            Ok(Next::Item(item)) => self.take(item),
            Ok(Next::Waiting) => None,
            Ok(Next::End) => self.blind(&"the sampler has stopped"),
            Err(error) => self.blind(&error),
        }
    }

    /// Waits for a sample that was begun after an instant; none where the source gives none any more.
    fn sample_after(&mut self, at_ns: u64) -> Option<Metrics> {
        if let Some(feed) = &self.feed {
            feed.command(FeedCommand::Interval(AT_ONCE));
        }
        while let Some(feed) = &self.feed {
            wait(&[feed.ready()], None);
            if let Some(metrics) = self.next().filter(|metrics| metrics.machine.at_ns >= at_ns) {
                return Some(metrics);
            }
        }
        None
    }

    /// Nothing is seen any more, so nothing is pinned any more.
    fn blind<T>(&mut self, error: &impl ToString) -> Option<T> {
        self.note(format!("{}; the command continued without being measured", error.to_string()));
        self.feed = None;
        self.schedule.stop();
        self.restore();
        None
    }

    fn take(&mut self, item: Item) -> Option<Metrics> {
        if let Some(why) = self.stream.record(&item) {
            self.unrecorded = true;
            self.note(format!("{why}; the run continued without it"));
        }
        if let Item::Sample(sample) = &item {
            self.reap(sample.facts.family.as_ref().map_or(&[], |family| family));
        }
        let metrics = self.run.item(item)?;
        if let Some(news) = self.stream.watch(&metrics) {
            self.note(news.text);
        }
        Some(metrics)
    }

    /// Lets go of orphans that have ended: nobody else waits for them. The command itself is waited for elsewhere; whoever
    /// is no child of vnettop's is not concerned.
    fn reap(&self, family: &[u32]) {
        for &pid in family.iter().filter(|&&pid| Some(pid) != self.command) {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
        }
    }

    /// Lets go of children that have ended before any sample met them.
    fn reap_children(&self) {
        let children = format!("/proc/self/task/{}/children", std::process::id());
        let pids = std::fs::read_to_string(children).unwrap_or_default();
        self.reap(&pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>());
    }

    fn note(&mut self, sentence: String) {
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }
}

/// As shells tell it: the exit code, or 128 and the signal.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
