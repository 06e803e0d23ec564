//! More busy threads than cores, and some of them between the ends: by number they would share cores two by two, whoever they are.
//! Here those that want most CPU time choose first, each the core that is least used by then: a guest's vCPU and its VMM thread
//! end on two cores, and who has little to do shares with whoever.

use super::candidates::Inputs;
use super::fill::Placement;

/// The placement by load instead, where threads share cores and one of them is between the ends.
pub(super) fn spread(inputs: &Inputs<'_>, placement: Placement) -> Placement {
    if !placement.shares || inputs.threads.iter().all(|busy| busy.carries.is_none()) {
        return placement;
    }
    let need = |nth: usize| inputs.recent.thread_need(inputs.threads[nth].thread.sample.id).unwrap_or(0.0).min(1.0);
    let mut order: Vec<usize> = (0..inputs.threads.len()).collect();
    order.sort_by(|&one, &other| need(other).total_cmp(&need(one)));
    let others = |core| inputs.recent.core(core).map_or(0.0, |recent| recent.others);
    let mut used: Vec<f64> = inputs.candidates.iter().map(|core| others(core.core)).collect();
    let mut chosen = placement.chosen.clone();
    for nth in order {
        let least = inputs.allowed(nth).map(|core| core.index).min_by(|&one, &other| used[one].total_cmp(&used[other]));
        let Some(core) = least else { continue };
        used[core] += need(nth);
        chosen[nth] = core;
    }
    Placement { chosen, runner_up: None, ..placement }
}

/// What is said of it.
pub(super) const REASON: &str = "spread by load: each thread's CPU time and wait";
