//! The whole placement: threads of the first one are moved to better cores one by one.

use super::candidates::Inputs;
use super::criteria::Choice;
use super::fill::fill;
use super::occupancy::Occupancy;

/// Rounds of moving threads: a thread may find a better core when another has left it, but not for ever.
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
    let filled = fill(inputs);
    let chosen = improve(filled.chosen, inputs);
    let occupancy = Occupancy::of(&chosen, &inputs.candidates);
    let any =
        |is: &dyn Fn(&super::candidates::CandidateCore) -> bool| chosen.iter().any(|&at| is(&inputs.candidates[at]));
    let shares = any(&|core| occupancy.physical[core.physical] + core.held > 1);
    let taken = any(&|core| core.taken);
    Placement { shares, taken, runner_up: filled.runner_up, chosen }
}

/// Moves single threads to better cores as long as there are any, but not for ever.
fn improve(mut chosen: Vec<usize>, inputs: &Inputs<'_>) -> Vec<usize> {
    let mut occupancy = Occupancy::of(&chosen, &inputs.candidates);
    for _ in 0..ROUNDS {
        let before = chosen.clone();
        for nth in 0..chosen.len() {
            let own = &inputs.candidates[chosen[nth]];
            occupancy.remove(own);
            let choice = Choice::of(nth, &chosen, &occupancy, inputs);
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
