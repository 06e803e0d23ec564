//! The moments of a recording that somebody wants to jump to: pins, marks, losses, migrations, and where the rate falls.

use super::jitter::DIP;
use super::ledger::Bin;
use super::placement::BUSY;
use super::timeline::IncidentKind;
use super::{Metrics, Timeline};
use std::collections::VecDeque;

/// One highlight of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Highlight {
    /// When it was, monotonic ns.
    pub at_ns: u64,
    /// The first sample that shows it, monotonic ns.
    pub seen_ns: u64,
    /// What it is.
    pub kind: HighlightKind,
}

/// What a highlight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum HighlightKind {
    /// Something that vnettop or its user did.
    #[strum(transparent)]
    Done(IncidentKind),
    /// The rate falls.
    Dip,
    /// Packets were lost, after a time without.
    Loss,
    /// A busy thread of a benchmark migrated, after a time without, or still does.
    Migration,
}

/// A dip here is a second whose mean is below [`DIP`] of the minute's median; it ends above this share.
const DIP_OVER: f64 = 0.85;
/// Bins of that second, and the fewest that have a median.
const SECOND: usize = 10;
const LEAST_BINS: usize = 3 * SECOND;
/// Losses closer to each other are one highlight, ns.
const LOSS_GAP_NS: u64 = 2_000_000_000;
/// Migrations closer to each other than the first gap are one highlight, ns; while they go on, there is one more after every
/// second gap: an unpinned thread may migrate all the time.
const MIGRATION_GAP_NS: u64 = 2_000_000_000;
const MIGRATIONS_EVERY_NS: u64 = 10_000_000_000;

/// Finds them in the metrics of a run, in their order.
#[derive(Debug, Default)]
pub struct Highlights {
    /// Ends of what was looked at already, monotonic ns.
    bins_ns: u64,
    losses_ns: u64,
    done_ns: u64,
    /// The last migration, and the last that is a highlight, monotonic ns.
    migrated_ns: Option<u64>,
    migration_reported_ns: u64,
    /// The last second of the rate.
    second: VecDeque<Bin>,
    is_low: bool,
}

impl Highlights {
    /// What this sample shows for the first time.
    pub fn observe(&mut self, metrics: &Metrics) -> Vec<Highlight> {
        let timeline = &*metrics.subject.timeline;
        let mut found = Vec::new();
        let mut add = |at_ns, kind| found.push(Highlight { at_ns, seen_ns: metrics.machine.at_ns, kind });
        for done in timeline.incidents.iter().filter(|done| done.at_ns > self.done_ns) {
            add(done.at_ns, HighlightKind::Done(done.kind));
        }
        self.done_ns = timeline.incidents.last().map_or(self.done_ns, |last| last.at_ns.max(self.done_ns));
        for lost in timeline.losses.iter().filter(|lost| lost.to_ns > self.losses_ns) {
            if self.losses_ns == 0 || lost.from_ns.saturating_sub(self.losses_ns) > LOSS_GAP_NS {
                add(lost.to_ns, HighlightKind::Loss);
            }
        }
        self.losses_ns = timeline.losses.last().map_or(self.losses_ns, |last| last.to_ns.max(self.losses_ns));
        if let Some(at_ns) = self.migration(metrics) {
            add(at_ns, HighlightKind::Migration);
        }
        if let Some(at_ns) = self.dip(timeline) {
            add(at_ns, HighlightKind::Dip);
        }
        found.sort_by_key(|highlight| highlight.at_ns);
        found
    }

    /// When a migration was that is one to jump to.
    fn migration(&mut self, metrics: &Metrics) -> Option<u64> {
        let began_ns = metrics.machine.began_ns()?;
        // What takes next to no time migrates whenever it is woken, and nothing follows from it.
        let busy = metrics.subject.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > BUSY));
        let migrated = busy.filter(|thread| thread.moves_per_s.is_some_and(|moves| moves > 0.0));
        let times = migrated.map(|thread| {
            let traced = || metrics.moves.iter().filter(|one| one.thread == thread.sample.id).map(|one| one.at_ns);
            // The instant of a move that is only counted is not known.
            traced().min().zip(traced().max()).unwrap_or((began_ns, metrics.machine.at_ns))
        });
        let (first_ns, last_ns) = times.reduce(|(first, last), (from, to)| (from.min(first), to.max(last)))?;
        let before_ns = self.migrated_ns.replace(last_ns);
        let goes_on = before_ns.is_some_and(|before| first_ns.saturating_sub(before) <= MIGRATION_GAP_NS);
        if goes_on && first_ns.saturating_sub(self.migration_reported_ns) < MIGRATIONS_EVERY_NS {
            return None;
        }
        self.migration_reported_ns = first_ns;
        Some(first_ns)
    }

    /// When the dip began that is seen for the first time.
    fn dip(&mut self, timeline: &Timeline) -> Option<u64> {
        let median = median(&timeline.bins)?;
        let mut began = None;
        let new = timeline.bins.partition_point(|bin| bin.from_ns < self.bins_ns);
        for bin in &timeline.bins[new..] {
            // A gap, or another test.
            if bin.bits_per_s.is_none() || self.second.back().is_some_and(|last| last.to_ns != bin.from_ns) {
                self.second.clear();
                self.is_low = false;
            }
            self.bins_ns = bin.to_ns;
            if bin.bits_per_s.is_none() {
                continue;
            }
            self.second.push_back(*bin);
            if self.second.len() <= SECOND {
                continue;
            }
            self.second.pop_front();
            let rates = || self.second.iter().filter_map(|bin| bin.bits_per_s);
            let mean = rates().sum::<f64>() / SECOND as f64;
            if self.is_low {
                self.is_low = mean < DIP_OVER * median;
            } else if mean < DIP * median {
                self.is_low = true;
                let first = self.second.iter().find(|bin| bin.bits_per_s.is_some_and(|rate| rate < DIP * median));
                began = began.or(first.map(|bin| bin.from_ns));
            }
        }
        began
    }
}

/// The median of the known rates; none where there are few, or where nothing moves.
fn median(bins: &[Bin]) -> Option<f64> {
    let mut rates: Vec<f64> = bins.iter().filter_map(|bin| bin.bits_per_s).collect();
    if rates.len() < LEAST_BINS {
        return None;
    }
    let middle = rates.len() / 2;
    let (_, median, _) = rates.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median).filter(|median| *median > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::moves::MovesByClass;
    use crate::timeline::{Incident, LostTime};
    use crate::{MachineMetrics, TestMetrics};
    use std::sync::Arc;
    use vnettop_sample::Word;

    fn metrics(rates: &[f64], losses: &[u64], pins: &[u64]) -> Metrics {
        let bin = |(n, &rate): (usize, &f64)| Bin {
            from_ns: n as u64 * BIN_NS,
            to_ns: (n as u64 + 1) * BIN_NS,
            bits_per_s: Some(rate),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        let lost = |&second: &u64| LostTime {
            from_ns: (second - 1) * 1_000_000_000,
            to_ns: second * 1_000_000_000,
            packets: 1.0,
            part: None,
            place: Arc::from(""),
        };
        let pin = |&second: &u64| Incident { at_ns: second * 1_000_000_000, kind: IncidentKind::Pin, count: 1 };
        let timeline = Timeline {
            bins: rates.iter().enumerate().map(bin).collect(),
            losses: losses.iter().map(lost).collect(),
            incidents: pins.iter().map(pin).collect(),
        };
        let machine = MachineMetrics { at_ns: rates.len() as u64 * BIN_NS, ..MachineMetrics::default() };
        let subject =
            TestMetrics { machine: Arc::new(machine), timeline: Arc::new(timeline), ..TestMetrics::default() };
        Metrics::of_everything(subject)
    }

    /// Each highlight once, whatever the length of a tick.
    #[test]
    fn a_dip_a_loss_and_a_pin_are_found_once_and_in_their_order() {
        let rates: Vec<f64> = (0..200).map(|bin| if (80..120).contains(&bin) { 10.0 } else { 35.0 }).collect();
        for tick in [1, 5, 10] {
            let (mut track, mut found) = (Highlights::default(), Vec::new());
            for end in (tick..=rates.len()).step_by(tick) {
                let second = end as u64 / 10;
                let losses: Vec<u64> = [4, 5, 6, 15].into_iter().filter(|at| *at <= second).collect();
                let pins: Vec<u64> = [17].into_iter().filter(|at| *at <= second).collect();
                found.extend(track.observe(&metrics(&rates[..end], &losses, &pins)));
            }
            let reported: Vec<(&str, u64)> =
                found.iter().map(|one| (one.kind.word(), one.at_ns / 1_000_000_000)).collect();
            assert_eq!(reported, [("loss", 4), ("dip", 8), ("loss", 15), ("pin", 17)], "ticks of {tick} bins");
            assert!(found.iter().all(|one| one.seen_ns >= one.at_ns), "nothing is seen before it was");
        }
    }
}
