//! A proposed placement, as it is shown, written and applied.

use crate::recent_load::{CoreRecent, RecentLoad};
use std::collections::BTreeSet;
use vnettop_sample::{CoreId, CoreSet, ProposalPart, SteerRequest, ThreadId, Topology};

/// A placement of the busy watched threads, to be shown first and applied on a second press.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposal {
    /// One step a thread, in the order they are applied.
    pub steps: Vec<Step>,
    /// Settings of links beside them, in the order in which they are made.
    pub steers: Vec<ProposedSteer>,
    /// Why the placement will probably not help; it may be applied all the same.
    pub doubt: Option<String>,
    /// Sentences on the whole: which domain was chosen and why; what was left out.
    pub reasons: Vec<String>,
    /// The cores that the proposal touches, before and after.
    pub cores: Vec<CoreChange>,
}

/// One thread and the core it should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The thread.
    pub thread: ThreadId,
    /// The thread's name and role, for people.
    pub label: String,
    /// The thread's mask now; `None` if unknown.
    pub old: Option<CoreSet>,
    /// The core that the thread was seen on last.
    pub on: CoreId,
    /// The core that the thread should have.
    pub core: CoreId,
    /// Why this core.
    pub reason: String,
    /// Cores that would do as well.
    pub as_good: CoreSet,
    /// The core that would have been next; `None` if every other core is as good.
    pub runner_up: Option<RunnerUp>,
}

/// In short: a thread and the core that is proposed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedPin {
    /// What the thread does, as in `client`.
    pub role: &'static str,
    /// The core.
    pub core: CoreId,
    /// It is on that core already.
    pub stays: bool,
}

impl Step {
    /// The cores that were not chosen, in one sentence: those that would do as well, and the next best with its reason.
    #[must_use]
    pub fn others(&self) -> Option<String> {
        let as_good = match self.as_good.len() {
            0 => None,
            1 => Some(format!("core {} is as good", self.as_good)),
            _ => Some(format!("cores {} are as good", self.as_good)),
        };
        let next = self.runner_up.as_ref().map(|next| format!("core {} next best: {}", next.core, next.why));
        Some([as_good, next].into_iter().flatten().collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }
}

/// A setting of a link that a proposal has beside its pins.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedSteer {
    /// What would be set.
    pub request: SteerRequest,
    /// What each of its queues has now, as sysfs takes it.
    pub now: String,
    /// The namespace's name, where it has one and is not vnettop's own.
    pub space: Option<String>,
    /// The same by hand.
    pub shell_line: String,
    /// Why.
    pub reason: String,
    /// It is done unless it is taken off: its packets were seen to overtake each other, or the pins beside it would make them.
    pub is_on: bool,
}

impl ProposedSteer {
    /// Which line of a proposal it is.
    #[must_use]
    pub fn part(&self) -> ProposalPart {
        ProposalPart::Steer(self.request.link, self.request.setting)
    }
}

/// The second best core for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerUp {
    /// The core.
    pub core: CoreId,
    /// Where the core is, seen from the chosen one, and what decided against it.
    pub why: String,
}

/// One core before and after a proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreChange {
    /// The core.
    pub core: CoreId,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// What it does now; none where that is not known.
    pub load: Option<CoreRecent>,
    /// Threads of the proposal that were seen there last, by tid.
    pub now: Vec<u32>,
    /// Threads of the proposal that would be there, by tid.
    pub then: Vec<u32>,
}

impl Proposal {
    /// Every line that can be taken off, in the order in which they are shown.
    #[must_use]
    pub fn parts(&self) -> Vec<ProposalPart> {
        let threads = self.steps.iter().map(|step| ProposalPart::Thread(step.thread));
        threads.chain(self.steers.iter().map(ProposedSteer::part)).collect()
    }

    /// The lines that are off until somebody takes them.
    #[must_use]
    pub fn off_at_first(&self) -> BTreeSet<ProposalPart> {
        self.steers.iter().filter(|steer| !steer.is_on).map(ProposedSteer::part).collect()
    }

    /// The proposal without these lines: each of the other threads keeps the core it was given.
    #[must_use]
    pub fn without(&self, off: &BTreeSet<ProposalPart>) -> Self {
        let mut rest = self.clone();
        rest.steps.retain(|step| !off.contains(&ProposalPart::Thread(step.thread)));
        rest.steers.retain(|steer| !off.contains(&steer.part()));
        let stays = |tid: &u32| rest.steps.iter().any(|step| step.thread.tid == *tid);
        for core in &mut rest.cores {
            core.now.retain(stays);
            core.then.retain(stays);
        }
        rest.cores.retain(|core| !core.now.is_empty() || !core.then.is_empty());
        rest
    }

    /// The pins by hand: one `taskset -cp CORE TID` a step.
    #[must_use]
    pub fn taskset_lines(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("taskset -cp {} {}", step.core, step.thread.tid)).collect()
    }

    /// All of it by hand: one `taskset -cp CORE TID` a step, and a line for each setting.
    #[must_use]
    pub fn shell_lines(&self) -> Vec<String> {
        self.taskset_lines().into_iter().chain(self.steers.iter().map(|steer| steer.shell_line.clone())).collect()
    }
}

/// The cores that a proposal touches, before and after: those its threads are on now and those they would get.
pub(super) fn changes(steps: &[Step], topology: &Topology, recent: &RecentLoad) -> Vec<CoreChange> {
    let touched: BTreeSet<CoreId> = steps.iter().flat_map(|step| [step.on, step.core]).collect();
    let tids = |is: &dyn Fn(&&Step) -> bool| steps.iter().filter(is).map(|step| step.thread.tid).collect();
    let change = |core: CoreId| CoreChange {
        core,
        node: topology.place(core).and_then(|place| place.node),
        load: recent.core(core),
        now: tids(&|step| step.on == core),
        then: tids(&|step| step.core == core),
    };
    touched.into_iter().map(change).collect()
}
