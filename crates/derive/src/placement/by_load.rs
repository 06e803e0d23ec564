//! More busy threads than cores, and some of them between the ends: by number they would share cores two by two, whoever they are.
//! Here those that want most CPU time choose first, each the core that is least used by then: a guest's vCPU and its VMM thread
//! end on two cores, and who has little to do shares with whoever.

use super::candidates::{CandidateCore, Inputs};
use super::fill::Placement;

/// The placement by load instead, where threads share cores and one of them is between the ends.
pub(super) fn spread(inputs: &Inputs<'_>, placement: Placement) -> Placement {
    if !placement.shares || inputs.threads.iter().all(|busy| busy.carries.is_none()) {
        return placement;
    }
    // In tenths: noise of a few percent moves nobody.
    let need = |nth: usize| {
        let need = inputs.recent.thread_need(inputs.threads[nth].thread.sample.id).unwrap_or(0.0);
        (need.min(1.0) * 10.0).round() / 10.0
    };
    let mut order: Vec<usize> = (0..inputs.threads.len()).collect();
    order.sort_by(|&one, &other| need(other).total_cmp(&need(one)));
    let others = |core| inputs.recent.core(core).map_or(0.0, |recent| recent.others);
    // By core, and by physical core, of which siblings are one.
    let mut used: Vec<f64> = inputs.candidates.iter().map(|core| others(core.core)).collect();
    let mut shared = vec![0.0_f64; inputs.candidates.len()];
    for core in &inputs.candidates {
        shared[core.physical] = shared[core.physical].max(used[core.index]);
    }
    let mut chosen = placement.chosen.clone();
    for nth in order {
        let bound = inputs.threads[nth].bound_to;
        let rank = |core: &CandidateCore| {
            let off_memory = core.is_off_memory(&inputs.threads[nth]);
            (off_memory, shared[core.physical], used[core.index], bound != Some(core.core))
        };
        let least = inputs.allowed(nth).min_by(|one, other| {
            let (one, other) = (rank(one), rank(other));
            let load = one.1.total_cmp(&other.1).then(one.2.total_cmp(&other.2));
            one.0.cmp(&other.0).then(load).then(one.3.cmp(&other.3))
        });
        let Some(core) = least.map(|core| (core.index, core.physical)) else { continue };
        used[core.0] += need(nth);
        shared[core.1] += need(nth);
        chosen[nth] = core.0;
    }
    Placement { chosen, runner_up: None, ..placement }
}

/// What is said of it.
pub(super) const REASON: &str = "spread by load: each thread's CPU time and wait";
