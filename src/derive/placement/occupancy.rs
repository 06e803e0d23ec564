//! How many threads of a placement each core, physical core, cluster and cache has.

use super::candidates::CandidateCore;

/// Numbers of threads, by the numbers that candidate cores have.
pub(super) struct Occupancy {
    pub(super) core: Vec<u32>,
    pub(super) physical: Vec<u32>,
    pub(super) cluster: Vec<u32>,
    pub(super) cache: Vec<u32>,
    pub(super) total: u32,
}

impl Occupancy {
    /// Nobody on any of so many candidate cores.
    pub(super) fn none(candidates: usize) -> Self {
        let none = || vec![0; candidates];
        Self { core: none(), physical: none(), cluster: none(), cache: none(), total: 0 }
    }

    /// The threads of a placement, each on the candidate core with its number.
    pub(super) fn of(chosen: &[usize], candidates: &[CandidateCore]) -> Self {
        let mut occupancy = Self::none(candidates.len());
        for &at in chosen {
            occupancy.add(&candidates[at]);
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
