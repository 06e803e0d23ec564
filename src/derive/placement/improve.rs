//! The whole placement: threads of the first one are moved to better cores one by one.

use super::candidates::Inputs;
use super::criteria::CoreChoice;
use super::fill::fill;
use super::occupancy::Occupancy;

/// Most rounds of moving threads: in each, a thread may find a better core that another thread has left.
const ROUNDS: usize = 2;

/// A core for each thread.
pub(super) struct Placement {
    /// Number of the candidate core of each thread.
    pub(super) chosen: Vec<usize>,
    /// There were not enough physical cores: threads share one, as siblings or in turns.
    pub(super) shares: bool,
    /// Some of the cores are kept busy by others.
    pub(super) taken: bool,
    /// The cores of the next best circle of the same kind.
    pub(super) runner_up: Option<Vec<usize>>,
}

/// The best placement found: there always is one, if only by sharing.
pub(super) fn placement(inputs: &Inputs<'_>) -> Placement {
    let (first, runner_up) = fill(inputs);
    let chosen = improve(first, inputs);
    let occupancy = Occupancy::of(&chosen, inputs);
    let shares = inputs.cores(&chosen).any(|core| occupancy.physical[core.physical] + core.held > 1);
    let taken = inputs.cores(&chosen).any(|core| core.taken);
    Placement { chosen, shares, taken, runner_up }
}

/// Moves single threads to better cores as long as there are any, in a few rounds at most.
fn improve(mut chosen: Vec<usize>, inputs: &Inputs<'_>) -> Vec<usize> {
    let mut occupancy = Occupancy::of(&chosen, inputs);
    for _ in 0..ROUNDS {
        let before = chosen.clone();
        for nth in 0..chosen.len() {
            let own = &inputs.candidates[chosen[nth]];
            occupancy.remove(own);
            let choice = CoreChoice::of(nth, &chosen, &occupancy, inputs);
            let best = choice.best(inputs.allowed(nth)).unwrap_or(own);
            occupancy.add(best);
            chosen[nth] = best.index;
        }
        if chosen == before {
            break;
        }
    }
    chosen
}
