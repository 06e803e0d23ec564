//! The other ends of a run: hosts over ssh, whose threads are pinned and unpinned in the same phases as those of this machine. Each
//! is derived by itself; only its masks follow the phases.

use super::super::signals::wait;
use super::passed_signals::PassedSignals;
use crate::derive::end_to_end::other_end;
use crate::derive::{Derivation, Metrics, TestMetrics, placement, plural};
use crate::sample::{AgentCommand, HostState};
use crate::source::feed::{Feed, FeedCommand, HostNews, Next};
use crate::update::requests;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How long a host is waited for that may be asked for a password elsewhere, or sleeps.
const ARRIVAL: Duration = Duration::from_secs(40);
/// How long what comes from one host may keep everything else waiting.
const LONGEST_TAKEN: Duration = Duration::from_millis(100);
/// How long an answer is waited for at the end.
const ANSWER: Duration = Duration::from_secs(2);

/// A host at the other end.
pub struct FarEnd {
    /// As ssh knows it.
    pub name: String,
    /// What comes from it, and takes what is asked of it.
    pub feed: Feed,
}

/// All of them.
pub(super) struct FarEnds(Vec<FarHost>);

struct FarHost {
    end: FarEnd,
    derivation: Derivation,
    metrics: Option<Metrics>,
    /// Why it is not there.
    lost: Option<String>,
    /// Its threads are pinned, or about to be.
    pinned: bool,
    /// How often they were.
    times: u32,
    /// So many answers are due.
    asked: usize,
}

impl FarEnds {
    pub fn new(ends: Vec<FarEnd>) -> Self {
        let host = |end| {
            let (derivation, metrics, lost) = (Derivation::default(), None, None);
            FarHost { end, derivation, metrics, lost, pinned: false, times: 0, asked: 0 }
        };
        Self(ends.into_iter().map(host).collect())
    }

    /// What is readable when there is something to take.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|host| host.end.feed.ready())
    }

    /// Takes what waits; sentences that are to be said.
    pub fn take_waiting(&mut self) -> Vec<String> {
        self.0.iter_mut().flat_map(FarHost::take_waiting).collect()
    }

    /// Waits until each has given a sample, or a signal asks for an end; the sentence of one that cannot be reached.
    pub fn arrive(&mut self, signals: &mut PassedSignals) -> Result<(), String> {
        let began = Instant::now();
        loop {
            self.take_waiting();
            if let Some(why) = self.0.iter().find_map(|host| host.lost.clone()) {
                return Err(why);
            }
            let Some(missing) = self.0.iter().find(|host| host.metrics.is_none()) else { return Ok(()) };
            let left = ARRIVAL.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(format!("{} has sent no samples", missing.end.name));
            }
            if signals.hand_on(None) {
                return Err("a signal came before the other end".to_owned());
            }
            wait(&self.fds().chain([signals.fd()]).collect::<Vec<_>>(), Some(left));
        }
    }

    /// Pins the busy threads at the other end of these flows; sentences of what is not.
    pub fn pin(&mut self, own: &TestMetrics) -> Vec<String> {
        self.0.iter_mut().filter_map(|host| host.pin(own).err()).collect()
    }

    /// Has every mask restored that was replaced.
    pub fn restore(&mut self) {
        for host in self.0.iter_mut().filter(|host| host.pinned) {
            host.ask(AgentCommand::Restore);
            host.pinned = false;
        }
    }

    /// The last answers; sentences that are to be said.
    pub fn finish(&mut self) -> Vec<String> {
        self.restore();
        let (began, mut said) = (Instant::now(), Vec::new());
        loop {
            said.extend(self.take_waiting());
            let left = ANSWER.saturating_sub(began.elapsed());
            let Some(host) = self.0.iter().find(|host| host.asked > 0 && host.lost.is_none()) else {
                said.extend(self.0.iter().filter(|host| host.times > 0).map(FarHost::summary));
                return said;
            };
            if left.is_zero() {
                said.push(format!("{} has not said whether its masks are restored", host.end.name));
                return said;
            }
            wait(&[host.end.feed.ready()], Some(left));
        }
    }
}

impl Drop for FarEnds {
    /// All end side by side.
    fn drop(&mut self) {
        self.0.iter().for_each(|host| host.end.feed.stop());
    }
}

impl FarHost {
    fn take_waiting(&mut self) -> Vec<String> {
        let (mut said, begin) = (Vec::new(), Instant::now());
        while begin.elapsed() < LONGEST_TAKEN {
            match self.end.feed.next() {
                Ok(Next::Item(item)) => self.metrics = self.derivation.advance(item).or(self.metrics.take()),
                Ok(Next::Waiting) => match self.end.feed.news() {
                    Some(news) => said.extend(self.hear(news)),
                    None => return said,
                },
                Ok(Next::End) | Err(_) => return said,
            }
        }
        said
    }

    fn hear(&mut self, news: HostNews) -> Vec<String> {
        match news {
            HostNews::State(HostState::Lost { why, .. }) => {
                let left = if std::mem::take(&mut self.pinned) {
                    format!("; its agent restores its masks, else: ssh {} vnettop undo", self.end.name)
                } else {
                    String::new()
                };
                (self.lost, self.metrics, self.asked) = (Some(why.clone()), None, 0);
                vec![format!("{why}{left}")]
            }
            HostNews::State(state) => {
                if matches!(state, HostState::Live(_)) {
                    self.lost = None;
                }
                Vec::new()
            }
            HostNews::Reply(reply) => {
                self.asked = self.asked.saturating_sub(1);
                let warnings = reply.lines.into_iter().filter(|line| line.warning);
                warnings.map(|line| format!("{}: {}", self.end.name, line.text)).collect()
            }
        }
    }

    fn pin(&mut self, own: &TestMetrics) -> Result<(), String> {
        let name = &self.end.name;
        let there = self.metrics.as_ref().and_then(|metrics| other_end(own, metrics));
        let there = there.ok_or_else(|| format!("{name} has no end of this test, so nothing is pinned there"))?;
        let proposal = placement::propose(&there).map_err(|why| format!("{name}: nothing is pinned: {why}"))?;
        self.ask(AgentCommand::Pin(requests(&proposal)));
        (self.pinned, self.times) = (true, self.times + 1);
        Ok(())
    }

    fn summary(&self) -> String {
        format!("{} was pinned in the same phases as this machine: {}", self.end.name, plural(self.times, "time"))
    }

    fn ask(&mut self, command: AgentCommand) {
        self.end.feed.command(FeedCommand::Agent(command));
        self.asked += 1;
    }
}
