//! Real-time priority, held as long as the budget is kept: a thread that goes before all others must not take much. What was given
//! back is asked for again once the sampler has been quiet for a while.

use crate::sched;
use crate::{clock_ns, now_ns};
use rustix::thread::{CapabilitySet, capabilities};
use rustix::time::ClockId;
use vnettop_sample::{Problem, ProblemSource, RealtimeRefusal};

/// `SCHED_RR` at the lowest real-time priority: above every ordinary thread, below every other real-time one.
const PRIORITY: u8 = 1;
/// The sampler's own budget at real-time priority, share of one core, over [`BUDGET_TICKS`] ticks.
const BUDGET_SHARE: f64 = 0.25;
const BUDGET_TICKS: u32 = 10;
/// Real-time priority is asked for again after this time below half of the CPU budget, ns.
const QUIET_NS: u64 = 10_000_000_000;

/// Whether the calling thread has real-time priority, and why not.
#[derive(Debug)]
pub(super) struct Priority {
    /// Why the sampler has no real-time priority; none while it has.
    pub ordinary: Option<RealtimeRefusal>,
    problem: Option<Problem>,
    ticks: u32,
    /// CPU time of this thread, and when it was looked at, ns.
    spent_ns: u64,
    since_ns: u64,
    /// How long the sampler has used little CPU time, ns.
    quiet_ns: u64,
}

/// What follows from a look at the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PriorityDecision {
    GoesOn,
    GiveBack,
    AskAgain,
}

impl Priority {
    /// Asks for real-time priority, if it is wanted.
    pub fn take(wanted: bool) -> Self {
        let mut priority = Self {
            ordinary: Some(RealtimeRefusal::NotAsked),
            problem: None,
            ticks: 0,
            spent_ns: clock_ns(ClockId::ThreadCPUTime),
            since_ns: now_ns(),
            quiet_ns: 0,
        };
        if wanted {
            priority.ask();
        }
        priority
    }

    /// The problem that real-time priority was given back, while it is.
    pub fn problem(&self) -> &[Problem] {
        self.problem.as_slice()
    }

    fn ask(&mut self) {
        let may = || capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_NICE));
        self.ordinary = sched::set_realtime(PRIORITY)
            .is_err()
            .then(|| if may() { RealtimeRefusal::Refused } else { RealtimeRefusal::NoRight });
        self.problem = None;
    }

    /// Looks every few ticks at what this thread has spent; over budget it becomes an ordinary thread, for a while.
    pub fn keep_budget(&mut self) {
        self.ticks += 1;
        if self.ticks < BUDGET_TICKS || !matches!(self.ordinary, None | Some(RealtimeRefusal::GivenBack)) {
            return;
        }
        let spent_ns = clock_ns(ClockId::ThreadCPUTime);
        // The share is of the time that has passed: when ticks are late, that is longer than their intervals.
        let now_ns = now_ns();
        let elapsed_ns = now_ns.saturating_sub(self.since_ns).max(1);
        let share = spent_ns.saturating_sub(self.spent_ns) as f64 / elapsed_ns as f64;
        (self.ticks, self.spent_ns, self.since_ns) = (0, spent_ns, now_ns);
        match self.judge(share, elapsed_ns) {
            PriorityDecision::AskAgain => self.ask(),
            PriorityDecision::GiveBack if sched::set_normal().is_ok() => {
                self.ordinary = Some(RealtimeRefusal::GivenBack);
                self.problem = Some(given_back(share));
            }
            PriorityDecision::GiveBack | PriorityDecision::GoesOn => {}
        }
    }

    fn judge(&mut self, share: f64, elapsed_ns: u64) -> PriorityDecision {
        if self.ordinary.is_none() {
            self.quiet_ns = 0;
            return if share > BUDGET_SHARE { PriorityDecision::GiveBack } else { PriorityDecision::GoesOn };
        }
        self.quiet_ns = if share < BUDGET_SHARE / 2.0 { self.quiet_ns + elapsed_ns } else { 0 };
        if self.quiet_ns < QUIET_NS {
            return PriorityDecision::GoesOn;
        }
        self.quiet_ns = 0;
        PriorityDecision::AskAgain
    }
}

fn given_back(share: f64) -> Problem {
    Problem {
        source: ProblemSource::Sampler,
        text: format!(
            "sampling took {:.0} % of a core: no real-time priority until it takes less for 10 s; use a longer interval (-d)",
            share * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::clock::SECOND_NS;

    #[test]
    fn priority_that_was_given_back_is_asked_for_again_after_ten_quiet_seconds() {
        let mut priority = Priority::take(false);
        priority.ordinary = None;
        assert_eq!(priority.judge(0.2, SECOND_NS), PriorityDecision::GoesOn, "below the budget it is kept");
        assert_eq!(priority.judge(0.3, SECOND_NS), PriorityDecision::GiveBack, "above it is given back");
        priority.ordinary = Some(RealtimeRefusal::GivenBack);
        let mut wait = |share, seconds: u64| (0..seconds).map(|_| priority.judge(share, SECOND_NS)).collect::<Vec<_>>();
        assert_eq!(wait(0.05, 9), [PriorityDecision::GoesOn; 9], "nine quiet seconds are too few");
        assert_eq!(wait(0.2, 1), [PriorityDecision::GoesOn], "and one that is not begins them anew");
        assert_eq!(wait(0.05, 9), [PriorityDecision::GoesOn; 9], "nine again");
        assert_eq!(
            wait(0.05, 2),
            [PriorityDecision::AskAgain, PriorityDecision::GoesOn],
            "after the tenth it asks, once"
        );
    }

    #[test]
    fn who_did_not_ask_never_asks() {
        let mut priority = Priority::take(false);
        for _ in 0..200 {
            priority.keep_budget();
        }
        assert_eq!(priority.ordinary, Some(RealtimeRefusal::NotAsked), "--no-realtime is for the whole run");
    }
}
