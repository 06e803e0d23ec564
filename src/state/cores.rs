//! In which order cores are listed, and which one is looked at.

use super::selection::Selection;
use crate::action::{CoreSort, Motion};
use crate::derive::{CoreMetrics, Metrics};
use crate::sample::CoreId;

/// From this many cores on, Up and Down go from node to node.
const MANY: usize = 32;

/// No core does much where the busiest is busy for less than this share of the time; and then those are alike that differ by no more
/// than this share.
const QUIET: f64 = 0.1;
const ALIKE: f64 = 0.05;

/// What a core is sorted by: the larger, the earlier.
fn sort_key(sort: CoreSort, core: &CoreMetrics) -> f64 {
    let shares = core.shares();
    match sort {
        CoreSort::Number => Some(-f64::from(core.place.core)),
        CoreSort::Softirq => shares.map(|shares| shares.softirq),
        CoreSort::Busy => shares.map(|shares| shares.busy()),
    }
    .unwrap_or(-1.0)
}

/// How cores are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct CoreChoices {
    pub sort: CoreSort,
    pub reversed: bool,
}

/// The cores as listed.
#[derive(Debug, Default)]
pub struct CoreList {
    pub(crate) chosen: CoreChoices,
    pub(crate) selection: Selection<CoreId>,
    rows: Vec<usize>,
    busiest: Option<usize>,
}

impl CoreList {
    /// Indices into `Metrics::cores`, top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Index of the core whose details are shown: the selected one, else the busiest one.
    #[must_use]
    pub fn looked_at(&self) -> Option<usize> {
        self.selection.row().map(|row| self.rows[row]).or(self.busiest)
    }

    /// The row a motion leads to.
    #[must_use]
    pub(crate) fn target(&self, metrics: &Metrics, motion: Motion) -> Option<usize> {
        let by_node =
            self.chosen.sort == CoreSort::Number && self.rows.len() > MANY && metrics.machine.facts.topology.nodes > 1;
        match (motion, self.selection.row()) {
            (Motion::Up | Motion::Down, Some(row)) if by_node => {
                let forward = (motion == Motion::Down) != self.chosen.reversed;
                let core = neighbour(&metrics.machine.cores, self.rows[row], forward)?;
                self.rows.iter().position(|&index| index == core)
            }
            _ => self.selection.target(motion, self.rows.len()),
        }
    }

    pub(super) fn arrange(&mut self, metrics: &Metrics) {
        let cores = &metrics.machine.cores;
        self.rows = (0..cores.len()).collect();
        if self.chosen.sort != CoreSort::Number {
            let keys: Vec<f64> = cores.iter().map(|core| sort_key(self.chosen.sort, core)).collect();
            self.rows.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]));
        }
        if self.chosen.reversed {
            self.rows.reverse();
        }
        self.busiest = busiest(cores);
        let row =
            self.selection.id().and_then(|core| self.rows.iter().position(|&index| cores[index].place.core == core));
        self.selection.settle(row.is_some(), row, self.rows.len());
    }
}

/// The busiest core. Where none does much each is that at times, and what is shown would change places with every sample: then it
/// is the first one that does as much as the busiest but for a little.
fn busiest(cores: &[CoreMetrics]) -> Option<usize> {
    let busy = |&index: &usize| sort_key(CoreSort::Busy, &cores[index]);
    let most = (0..cores.len()).rev().max_by(|a, b| busy(a).total_cmp(&busy(b)))?;
    let quiet = Some(busy(&most)).filter(|most| (0.0..QUIET).contains(most));
    quiet.and_then(|most| (0..cores.len()).find(|index| busy(index) >= most - ALIKE)).or(Some(most))
}

/// The core that has the same place in the next node, or in the one before; the core itself in the last one.
fn neighbour(cores: &[CoreMetrics], from: usize, forward: bool) -> Option<usize> {
    let node = cores[from].place.node;
    let place = cores[..from].iter().filter(|core| core.place.node == node).count();
    let beyond: Box<dyn Iterator<Item = &CoreMetrics>> =
        if forward { Box::new(cores[from..].iter()) } else { Box::new(cores[..from].iter().rev()) };
    let Some(other) = beyond.map(|core| core.place.node).find(|other| *other != node) else { return Some(from) };
    let there: Vec<usize> = (0..cores.len()).filter(|&index| cores[index].place.node == other).collect();
    there.get(place).or(there.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::cores::{CoreLoad, Shares};
    use crate::sample::CorePlace;

    #[test]
    fn cores_that_do_hardly_anything_do_not_take_turns_in_being_the_busiest() {
        let of = |busy: &[f64]| {
            let core = |(core, &user): (u32, &f64)| {
                let shares = Some(Shares { user, idle: 1.0 - user, ..Shares::default() });
                let load = Some(CoreLoad { shares, ..CoreLoad::default() });
                CoreMetrics { place: CorePlace { core, online: true, ..CorePlace::default() }, load }
            };
            busiest(&(0..).zip(busy).map(core).collect::<Vec<_>>())
        };
        assert_eq!([of(&[0.02, 0.03]), of(&[0.03, 0.02]), of(&[0.0, 0.0])], [Some(0); 3], "as good as the same");
        assert_eq!([of(&[0.0, 0.08]), of(&[0.09, 0.12])], [Some(1); 2], "one does more");
        assert_eq!([of(&[0.97, 1.0, 1.0]), of(&[])], [Some(1), None]);
    }
}
