//! The criteria by which a core is chosen for a thread, the most important first: what is counted (the less the better),
//! and the words against a core that has more of it than the chosen one. Then the score of a core for a thread and of a whole
//! placement: the values of all criteria, compared in their order. Nothing else in this room compares cores.

use super::busy_threads::BusyThread;
use super::candidates::{CandidateCore, Inputs, NicDistance, Occupancy, physical};
use super::phrases::{label, percent};

/// Step of the rough comparison, tenths of a core's power: smaller differences count less than the network card's node.
const ROUGHLY: u32 = 3;

/// One criterion.
pub(super) struct Criterion {
    /// What speaks against this core for the thread; compared as a number, the less the better.
    pub(super) value: fn(&CoreChoice<'_>, &CandidateCore) -> u32,
    /// The words against a core for which this criterion decided.
    pub(super) against: fn(&Rejection<'_>) -> String,
}

/// The choice of one thread, with the other threads where they are.
pub(super) struct CoreChoice<'a> {
    pub(super) thread: &'a BusyThread<'a>,
    /// The other threads, without this one.
    pub(super) others: &'a Occupancy,
    pub(super) other_end: OtherEnd<'a>,
    /// The node that the thread is on now; `None` if that core is no candidate or its node is unknown.
    pub(super) home: Option<u32>,
    pub(super) stage: PlacingStage<'a>,
}

/// The core of the thread at the other end of the stream.
#[derive(Clone, Copy)]
pub(super) enum OtherEnd<'a> {
    /// There is no such thread among those to be placed.
    None,
    /// The thread has this core.
    On(&'a CandidateCore),
    /// The thread is the next to choose.
    Next,
}

/// How far the placement is.
#[derive(Clone, Copy)]
pub(super) enum PlacingStage<'a> {
    /// A domain is being filled, its caches in this order.
    Filling(&'a CacheOrder),
    /// Domains are compared, each of them filled.
    Filled,
    /// Every thread has a core, and may have any other instead.
    Placed,
}

/// Caches of a domain that is being filled, by their numbers.
pub(super) struct CacheOrder {
    /// Rank by room: the cache with the most cores is filled first.
    pub(super) rank: Vec<u32>,
    /// Physical cores that no thread has yet.
    pub(super) free: Vec<usize>,
    /// There are more than two threads, so that streams spread over the clusters.
    pub(super) spread: bool,
}

/// A core that a thread did not get, beside the one that it got.
pub(super) struct Rejection<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    /// Number of the candidate core of each thread.
    pub(super) chosen: &'a [usize],
    /// Number of the thread.
    pub(super) nth: usize,
    pub(super) own: &'a CandidateCore,
    pub(super) other: &'a CandidateCore,
    pub(super) choice: &'a CoreChoice<'a>,
}

/// Number of the criteria.
const CRITERIA: usize = COARSE.len() + FINE.len();

/// All criteria in the order of importance.
fn criteria() -> impl Iterator<Item = &'static Criterion> + Clone {
    COARSE.iter().chain(&FINE)
}

/// The criteria for which a pinned thread is worth moving.
static COARSE: [Criterion; 8] = [
    // Number of threads that have this very core.
    Criterion { value: |choice, core| choice.others.core[core.index], against: |no| no.shared() },
    // Number of threads that have the physical core, pinned ones among them.
    Criterion { value: |choice, core| choice.others.physical[core.physical] + core.held, against: |no| no.shared() },
    // Other work keeps the core busy. Whether a domain may have such cores is decided before the domain is filled.
    Criterion {
        value: |choice, core| u32::from(core.busy_with_others && matches!(choice.stage, PlacingStage::Placed)),
        against: |no| format!("{} % busy with other work", no.load_of_physical()),
    },
    // The core is off the nodes that the thread's memory may be on.
    Criterion {
        value: |choice, core| u32::from(core.is_off_memory(choice.thread)),
        against: |_| "not on a node that its memory may be on".to_owned(),
    },
    // The other end of the stream is on another cache; or chooses next, and finds no room on this cache.
    Criterion {
        value: |choice, core| match choice.other_end {
            OtherEnd::None => 0,
            OtherEnd::On(other) => u32::from(other.cache != core.cache),
            OtherEnd::Next => {
                u32::from(matches!(choice.stage, PlacingStage::Filling(order) if order.free[core.cache] < 2))
            }
        },
        against: |no| format!("a different cache from its other end{}", no.on_core_of_other_end()),
    },
    // Number of threads on other caches, pinned ones among them. A domain is filled cache by cache.
    Criterion {
        value: |choice, core| match choice.stage {
            PlacingStage::Filling(order) => order.rank[core.cache],
            PlacingStage::Filled | PlacingStage::Placed => {
                choice.others.total - choice.others.cache[core.cache] + core.held_elsewhere
            }
        },
        against: |_| "a different cache from the other threads".to_owned(),
    },
    // Power that the core lacks, roughly.
    Criterion { value: |choice, core| core.shortfall_for(choice.thread) / ROUGHLY, against: |no| no.shortfall() },
    // The core is on another node than the network nic.
    Criterion {
        value: |_, core| u32::from(core.from_nic == NicDistance::OtherNode),
        against: |no| no.farther_from_nic(),
    },
];

/// The criteria that decide between cores which are equal by all of the others.
static FINE: [Criterion; 9] = [
    // The core is in another cluster than the cores that the network card interrupts.
    Criterion { value: |_, core| core.from_nic as u32, against: |no| no.farther_from_nic() },
    // Power that the core lacks, in tenths.
    Criterion { value: |choice, core| core.shortfall_for(choice.thread), against: |no| no.shortfall() },
    // The thread would leave the core that the thread is bound to.
    Criterion {
        value: |choice, core| u32::from(choice.thread.bound_to.is_some_and(|bound| bound != core.core)),
        against: |_| "it is bound to this one already".to_owned(),
    },
    // The thread would leave the node that the thread is on, where its memory is.
    Criterion {
        value: |choice, core| u32::from(choice.home.is_none() || choice.home != core.place.node),
        against: |no| format!("not the node it runs on now{}", no.home()),
    },
    // The other end of the stream is in another cluster.
    Criterion {
        value: |choice, core| u32::from(matches!(choice.other_end, OtherEnd::On(end) if end.cluster != core.cluster)),
        against: |no| format!("a different cluster from its other end{}", no.on_core_of_other_end()),
    },
    // Number of threads of other streams in the cluster.
    Criterion {
        value: |choice, core| match (choice.stage, choice.other_end) {
            // While a domain is being filled, streams spread over the clusters: the first end looks for an empty one.
            (PlacingStage::Filling(order), end) if !order.spread || matches!(end, OtherEnd::On(_)) => 0,
            (_, OtherEnd::On(end)) if end.cluster == core.cluster => {
                choice.others.cluster[core.cluster].saturating_sub(1)
            }
            _ => choice.others.cluster[core.cluster],
        },
        against: |_| "another stream is in that cluster".to_owned(),
    },
    // Other work keeps another core of the cluster busy.
    Criterion {
        value: |_, core| u32::from(core.busy_cluster),
        against: |_| "others keep a core of its cluster busy".to_owned(),
    },
    // The core does the machine's odd jobs, or is beside the core that does them.
    Criterion {
        value: |_, core| core.housekeeping as u32,
        against: |no| match no.other.core {
            0 => "it also runs housekeeping".to_owned(),
            _ => "beside core 0, which also runs housekeeping".to_owned(),
        },
    },
    // The thread would leave the core on which it stays by itself. It is the last one: see `are_alike`.
    Criterion {
        value: |choice, core| u32::from(choice.thread.thread.settled && choice.thread.thread.sample.core != core.core),
        against: |_| "it runs on this one already".to_owned(),
    },
];

impl Rejection<'_> {
    /// The thread that has the core, or its physical core.
    fn shared(&self) -> String {
        let given = self.inputs.cores(self.chosen).zip(&self.inputs.threads).enumerate();
        let mut others = given.filter(|(nth, (core, _))| *nth != self.nth && core.physical == self.other.physical);
        let Some((_, (core, busy))) = others.next() else { return "a pinned thread has it".to_owned() };
        let who = format!("{} {} gets", label(busy.thread), busy.thread.sample.id.tid);
        match core.core {
            core if core == self.other.core => format!("{who} it"),
            core => format!("the SMT sibling of core {core}, which {who}"),
        }
    }

    /// What the core lacks: power, or time that others take.
    fn shortfall(&self) -> String {
        let load = self.inputs.recent.core(self.other.core);
        let (others, interrupts) = load.map_or((0, 0), |load| (percent(load.others), percent(load.others_interrupts)));
        match (self.own.place.capacity, self.other.place.capacity) {
            (Some(own), Some(less)) if less < own => format!("capacity {less} of {own}"),
            _ if interrupts >= 5 => format!("{interrupts} % softirq and interrupts of others"),
            _ if others > 0 => format!("{others} % busy with other work"),
            _ => format!("{} % busy with other work on its SMT sibling", self.load_of_physical()),
        }
    }

    /// Percent that others use of the busiest SMT sibling.
    fn load_of_physical(&self) -> u32 {
        let places = self.inputs.topology.cores.iter();
        let siblings = places.filter(|place| physical(place) == physical(&self.other.place));
        let loads = siblings.filter_map(|place| self.inputs.recent.core(place.core));
        loads.map(|load| percent(load.others)).max().unwrap_or(0)
    }

    fn farther_from_nic(&self) -> String {
        let Some(nic) = &self.inputs.nic else { return String::new() };
        match self.other.from_nic {
            NicDistance::OtherNode => format!("not on node {}, where {} is", nic.node, nic.name),
            NicDistance::SameNode | NicDistance::SameCluster => {
                format!("farther from core {}, which {} interrupts", nic.interrupted, nic.name)
            }
        }
    }

    fn on_core_of_other_end(&self) -> String {
        match self.choice.other_end {
            OtherEnd::On(end) => format!(" on core {}", end.core),
            OtherEnd::None | OtherEnd::Next => String::new(),
        }
    }

    fn home(&self) -> String {
        self.choice.home.map_or_else(String::new, |node| format!(" (node {node})"))
    }
}

impl<'a> CoreChoice<'a> {
    /// The choice of the nth thread: `chosen` are the cores of the threads that have one, `others` counts them without
    /// this thread.
    pub(super) fn of(nth: usize, chosen: &[usize], others: &'a Occupancy, inputs: &'a Inputs<'a>) -> Self {
        let thread = &inputs.threads[nth];
        let mut neighbours = [nth.checked_sub(1), Some(nth + 1)].into_iter().flatten();
        // The other end of a stream stands right before or after it.
        let is_partner = |nth: &usize| inputs.threads.get(*nth).is_some_and(|other| other.is_partner_of(thread));
        let other_end = match neighbours.find(is_partner).map(|nth| chosen.get(nth)) {
            None => OtherEnd::None,
            Some(None) => OtherEnd::Next,
            Some(Some(&at)) => OtherEnd::On(&inputs.candidates[at]),
        };
        let home = inputs.candidate(thread.thread.sample.core).and_then(|core| core.place.node);
        Self { thread, others, other_end, home, stage: PlacingStage::Placed }
    }

    /// The best of these cores, which are sorted by number: each criterion in turn leaves those with the least of it, and
    /// of cores that are equal by all criteria the first is taken.
    pub(super) fn best<'c>(&self, cores: impl Iterator<Item = &'c CandidateCore>) -> Option<&'c CandidateCore> {
        let mut left: Vec<&CandidateCore> = cores.collect();
        for criterion in criteria() {
            if left.len() < 2 {
                break;
            }
            let (mut least, mut kept) = (u32::MAX, 0);
            for at in 0..left.len() {
                let value = (criterion.value)(self, left[at]);
                if value < least {
                    (least, kept) = (value, 0);
                }
                if value == least {
                    left[kept] = left[at];
                    kept += 1;
                }
            }
            left.truncate(kept);
        }
        left.first().copied()
    }

    /// Adds what speaks against this core, criterion by criterion.
    fn add_to(&self, sums: &mut [u32], criteria: impl Iterator<Item = &'static Criterion>, core: &CandidateCore) {
        sums.iter_mut().zip(criteria).for_each(|(sum, criterion)| *sum += (criterion.value)(self, core));
    }

    /// One is as good as the other, wherever the thread runs now.
    pub(super) fn are_alike(&self, one: &CandidateCore, other: &CandidateCore) -> bool {
        criteria().take(CRITERIA - 1).all(|criterion| (criterion.value)(self, one) == (criterion.value)(self, other))
    }

    /// The criterion that decides between two cores, the first by which they differ; `None` if they are equally good.
    pub(super) fn decisive(&self, one: &CandidateCore, other: &CandidateCore) -> Option<&'static Criterion> {
        criteria().find(|criterion| (criterion.value)(self, one) != (criterion.value)(self, other))
    }
}

/// The score of a domain that is filled with the threads: for each criterion the sum over all threads, each as if it were
/// alone there.
pub(super) fn score_of_domain(
    chosen: &[usize],
    nobody: &Occupancy,
    inputs: &Inputs<'_>,
) -> ([u32; CRITERIA], Option<usize>) {
    let mut sums = [0; CRITERIA];
    for (nth, core) in inputs.cores(chosen).enumerate() {
        CoreChoice { stage: PlacingStage::Filled, ..CoreChoice::of(nth, &[], nobody, inputs) }.add_to(
            &mut sums,
            criteria(),
            core,
        );
    }
    (sums, chosen.iter().min().copied())
}

/// The coarse score of a placement: for each criterion for which pinned threads are worth moving the sum over all threads.
pub(super) fn coarse_score(chosen: &[usize], inputs: &Inputs<'_>) -> [u32; COARSE.len()] {
    let mut occupancy = Occupancy::of(chosen, inputs);
    let mut sums = [0; COARSE.len()];
    for (nth, core) in inputs.cores(chosen).enumerate() {
        // A core outside the thread's allowed set, to which something bound it, gets no score.
        if !inputs.threads[nth].allowed.cores.contains(core.core) {
            continue;
        }
        occupancy.remove(core);
        CoreChoice::of(nth, chosen, &occupancy, inputs).add_to(&mut sums, COARSE.iter(), core);
        occupancy.add(core);
    }
    // The sharing of cores and of physical cores is one question here.
    sums[1] += std::mem::take(&mut sums[0]);
    sums
}
