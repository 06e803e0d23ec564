//! How many threads of a placement each core, physical core, cluster and cache has.

use super::candidates::{CandidateCore, Inputs};

/// Numbers of threads, by the numbers that candidate cores have.
pub(super) struct Occupancy {
    pub(super) core: Vec<u32>,
    pub(super) physical: Vec<u32>,
    pub(super) cluster: Vec<u32>,
    pub(super) cache: Vec<u32>,
    pub(super) total: u32,
}

impl Occupancy {
    /// No thread on any of the candidate cores.
    pub(super) fn none(inputs: &Inputs<'_>) -> Self {
        let none = || vec![0; inputs.candidates.len()];
        Self { core: none(), physical: none(), cluster: none(), cache: none(), total: 0 }
    }

    /// The threads of a placement.
    pub(super) fn of(chosen: &[usize], inputs: &Inputs<'_>) -> Self {
        let mut occupancy = Self::none(inputs);
        for core in inputs.cores(chosen) {
            occupancy.add(core);
        }
        occupancy
    }

    pub(super) fn add(&mut self, core: &CandidateCore) {
        self.counts(core).into_iter().for_each(|count| *count += 1);
    }

    pub(super) fn remove(&mut self, core: &CandidateCore) {
        self.counts(core).into_iter().for_each(|count| *count -= 1);
    }

    fn counts(&mut self, core: &CandidateCore) -> [&mut u32; 5] {
        [
            &mut self.core[core.index],
            &mut self.physical[core.physical],
            &mut self.cluster[core.cluster],
            &mut self.cache[core.cache],
            &mut self.total,
        ]
    }
}
