//! The score of a core for a thread and of a whole placement: the values of all criteria, compared in their order.

use super::candidates::{CandidateCore, Inputs, Occupancy};
use super::criteria::{COARSE, CRITERIA, CoreChoice, Criterion, OtherEnd, PlacingStage, criteria};

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

    /// The criterion that decides between two cores, the first by which they differ; `None` if they are equally good.
    pub(super) fn decisive(&self, one: &CandidateCore, other: &CandidateCore) -> Option<&'static Criterion> {
        criteria().find(|criterion| (criterion.value)(self, one) != (criterion.value)(self, other))
    }
}

/// The score of a circle that is filled with the threads: for each criterion the sum over all threads, each as if it were
/// alone there.
pub(super) fn score_of_circle(
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
        // Nothing is held against a core that the thread was bound to although its owner did not allow it.
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
