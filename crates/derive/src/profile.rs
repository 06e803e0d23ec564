//! What a core does, stage by stage of the path: the stacks of the last seconds, each given to the stage of its innermost function
//! that belongs to one. What is not on behalf of the test's threads, of a softirq or of a thread of the kernel is another program's,
//! and no more of it is said than its name and its share.

mod fold;
mod folded;
mod packets;
mod rules;
mod stacks;
mod stage;

pub use folded::folded;
pub use rules::{RulesOnLink, counted as rules_counted};
pub use stacks::{CoreStacks, StackFrame, StackNode, StackSum};
pub use stage::CoreStage;

use super::figure::percent;
use fold::Fold;
use packets::PacketTrack;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use vnettop_sample::{CoreId, CoreProfile, Event, ProfileClock, Sample};

/// Stretches that are looked at together, about a second each: at 499 samples a second a share is good to one percent point.
const STRETCHES: usize = 5;
/// A profile older than this is none of now, ns.
const OLD_NS: u64 = 3_000_000_000;
/// Stages that a sentence names; the rest is one.
const MOST_NAMED: usize = 4;

/// What a core did in the last seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreActivity {
    /// The core.
    pub core: CoreId,
    /// How long it was looked at, s.
    pub over_s: f64,
    /// `CLOCK_MONOTONIC` at the end of that time, ns.
    pub to_ns: u64,
    /// What the samples were taken by.
    pub clock: ProfileClock,
    /// Samples asked for a second.
    pub hz: u32,
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that had no room.
    pub lost: u64,
    /// CPU time of the thread that reads and names the samples, share of a core; it is not on the core that is looked at where
    /// another one is free.
    pub reader: f64,
    /// Packets that the first links of the watched paths counted in the same time, a second; none where no path is known.
    pub packets_per_s: Option<f64>,
    /// Rules of the firewall that packets of the watched paths may meet, a row a namespace; empty where the core goes
    /// through none, and until they are counted.
    pub rules: Vec<RulesOnLink>,
    /// Why functions have no names; none where they have.
    pub unnamed: Option<String>,
    /// The stages, the largest first, the idle time and what is not known last. The shares are those of the core's time and add up to 1.
    pub stages: Vec<StageShare>,
    /// The stretches that it is of, the oldest first.
    pub stretches: Vec<Arc<CoreProfile>>,
    /// The processes of the watched threads, whose functions are told.
    pub own: Arc<BTreeSet<u32>>,
}

/// The part of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageShare {
    /// Which.
    pub stage: CoreStage,
    /// The program, of [`CoreStage::Program`]; none where it ended before it was asked its name.
    pub program: Option<String>,
    /// Of the core's time, 0 to 1.
    pub share: f64,
    /// The innermost functions of its stacks with their shares of the core's time, the largest first; empty for other programs.
    pub functions: Vec<(String, f64)>,
}

impl StageShare {
    /// How many rules it goes through, in brackets behind its name; empty of other stages and where none were counted.
    pub(crate) fn rules_in_words(&self, rules: &[RulesOnLink]) -> String {
        let is_it = self.stage == CoreStage::Nft;
        rules::text(rules).filter(|_| is_it).unwrap_or_default()
    }

    /// The stage by its label, another program by its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.program.as_deref().unwrap_or_else(|| self.stage.label())
    }

    /// Time of it for each packet, ns; none where that is no work on packets, or no packets are known.
    #[must_use]
    pub fn ns_per_packet(&self, packets_per_s: Option<f64>) -> Option<f64> {
        let packets_per_s = packets_per_s.filter(|&per_s| per_s >= 1.0 && self.stage.is_of_packets())?;
        Some(self.share * 1e9 / packets_per_s)
    }
}

impl CoreActivity {
    /// One sentence: "core 1: 31 % nft, conntrack (1,004 rules on r0); 22 % copy; 12 % links; 6 % hog; 9 % in 8 more; 20 % idle".
    #[must_use]
    pub fn text(&self) -> String {
        let rules = |stage: &StageShare| stage.rules_in_words(&self.rules);
        let part = |stage: &StageShare| format!("{} % {}{}", percent(stage.share), stage.name(), rules(stage));
        let (idle, busy): (Vec<_>, Vec<_>) = self.stages.iter().partition(|stage| stage.stage == CoreStage::Idle);
        let named = busy.iter().copied().take(MOST_NAMED).map(part);
        let rest: Vec<f64> = busy.iter().skip(MOST_NAMED).map(|stage| stage.share).collect();
        let more = (!rest.is_empty()).then(|| format!("{} % in {} more", percent(rest.iter().sum()), rest.len()));
        let parts = named.chain(more).chain(idle.into_iter().map(part));
        format!("core {}: {}", self.core, parts.collect::<Vec<_>>().join("; "))
    }
}

/// What is remembered of a core to say what it does.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfileTrack {
    stretches: VecDeque<Arc<CoreProfile>>,
    packets: PacketTrack,
    activity: Option<Arc<CoreActivity>>,
    /// A stretch came since the activity was made.
    is_due: bool,
}

impl ProfileTrack {
    /// Remembers a stretch; one of another core begins anew.
    pub fn event(&mut self, event: &Event) {
        let Event::Profiled(profile) = event else { return };
        if self.stretches.back().is_some_and(|last| last.core != profile.core) {
            self.stretches.clear();
        }
        self.stretches.push_back(Arc::new((**profile).clone()));
        while self.stretches.len() > STRETCHES {
            self.stretches.pop_front();
        }
        self.is_due = true;
    }

    /// What the core did in the last seconds; `own` are the processes of the watched threads. None while nobody looks.
    pub fn observe(
        &mut self,
        next: &Sample,
        own: &BTreeSet<u32>,
        idle: impl Fn(CoreId) -> Option<f64>,
    ) -> Option<Arc<CoreActivity>> {
        let oldest_ns = next.at_ns.saturating_sub(OLD_NS);
        if self.stretches.back().is_none_or(|last| last.to_ns < oldest_ns) {
            *self = Self::default();
            return None;
        }
        self.packets.observe(next);
        if std::mem::take(&mut self.is_due) {
            self.activity = self.judge(own, idle, next).map(Arc::new);
        }
        self.activity.clone()
    }

    fn judge(&self, own: &BTreeSet<u32>, idle: impl Fn(CoreId) -> Option<f64>, next: &Sample) -> Option<CoreActivity> {
        let (first, last) = (self.stretches.front()?, self.stretches.back()?);
        let mut fold = Fold::new(own);
        self.stretches.iter().for_each(|stretch| fold.add(stretch));
        let sum = |of: fn(&CoreProfile) -> u64| self.stretches.iter().map(|one| of(one)).sum::<u64>();
        let over_ns = sum(|one| one.to_ns.saturating_sub(one.from_ns)).max(1) as f64;
        // Cycles stand still while a core is idle: how long it is, its own counters tell.
        let idle = idle(last.core).filter(|_| last.clock == ProfileClock::Cycles);
        Some(CoreActivity {
            core: last.core,
            over_s: over_ns / 1e9,
            to_ns: last.to_ns,
            clock: last.clock,
            hz: last.hz,
            samples: fold.samples(),
            lost: sum(|one| one.lost),
            reader: sum(|one| one.reader_ns) as f64 / over_ns,
            packets_per_s: self.packets.per_s(first.from_ns, last.to_ns),
            rules: rules::of_facts(&next.facts),
            unnamed: last.unnamed.clone(),
            stages: fold.stages(idle),
            stretches: self.stretches.iter().cloned().collect(),
            own: Arc::new(own.clone()),
        })
    }
}

#[cfg(test)]
mod tests;
