//! The link that stands for a benchmark whose connections cannot be read: the one with the largest rate over the last
//! seconds while watched threads work. Its bins are the ticks.

use super::Bin;
use crate::busiest_link::{BusiestLink, of_own_namespace};
use crate::links::LinkMetrics;
use vnettop_sample::{Sample, ThreadSample, row_of};

/// A share of a core that watched threads take when they drive something.
const WORK: f64 = 0.01;
/// After work has ended the link still belongs to the benchmark for so long: a stall is to be seen.
const PAUSE_NS: u64 = 1_000_000_000;

/// The choice, and when watched threads worked last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FallbackLink {
    busiest: BusiestLink,
    worked_at_ns: Option<u64>,
}

impl FallbackLink {
    /// The link's name and its newest bin; none while nothing is driven.
    pub fn observe(&mut self, previous: &Sample, next: &Sample, links: &[LinkMetrics]) -> Option<(String, Bin)> {
        if works(previous, next) {
            self.worked_at_ns = Some(next.at_ns);
        }
        let since_ns = next.at_ns.saturating_sub(self.worked_at_ns?);
        if since_ns > PAUSE_NS || next.watched().next().is_none() {
            *self = Self::default();
            return None;
        }
        // Links of other namespaces may be anybody's.
        let (link, bin) = self.busiest.observe(previous, next, of_own_namespace(next, links))?;
        Some((link.facts.name.clone(), bin))
    }
}

/// Whether the watched threads did anything worth the name between two samples.
fn works(previous: &Sample, next: &Sample) -> bool {
    let spent =
        |thread: &ThreadSample| thread.cpu_ns.checked_sub(row_of(&previous.threads, &thread.id, |old| old.id)?.cpu_ns);
    let spent_ns: u64 = next.watched().filter_map(spent).sum();
    spent_ns as f64 > WORK * next.at_ns.saturating_sub(previous.at_ns) as f64
}
