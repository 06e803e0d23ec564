//! What each core did over the time of a recording: its whole, and column by column.

use super::columns::{column, halve};
use crate::cores::CoreMetrics;
use crate::{Mean, Metrics};
use vnettop_sample::{CorePlace, SoftirqKind};

/// One core in one column of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreColumn {
    /// Seconds.
    busy: f32,
    softirq: f32,
    known: f32,
}

impl CoreColumn {
    /// Share of its time that it was busy; none where that is not known.
    #[must_use]
    pub fn busy(self) -> Option<f64> {
        self.share(self.busy)
    }

    /// Share of its time in softirqs.
    #[must_use]
    pub fn softirq(self) -> Option<f64> {
        self.share(self.softirq)
    }

    fn share(self, of_s: f32) -> Option<f64> {
        (self.known > 0.0).then(|| f64::from(of_s / self.known))
    }
}

/// One core over a whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreSummary {
    /// Where it sits, as of the last sample.
    pub place: CorePlace,
    /// Of the whole time.
    pub whole: CoreFigures,
    /// Of the samples that lie within a test.
    pub in_tests: CoreFigures,
    /// By column of time; shorter where nothing is known of the last ones.
    pub columns: Vec<CoreColumn>,
}

/// What a core did in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreFigures {
    /// Mean share of its time that it was busy; none where that is not known.
    pub busy: Option<f64>,
    /// Mean share in softirqs.
    pub softirq: Option<f64>,
    /// `NET_RX` softirqs a second.
    pub net_rx_per_s: Option<f64>,
    /// Packets that its full backlog dropped.
    pub backlog_drops: f64,
    /// Times that a softirq ran out of budget.
    pub squeezes: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct CoreSums {
    busy: Mean,
    softirq: Mean,
    net_rx: Mean,
    backlog_drops: f64,
    squeezes: f64,
}

impl CoreSums {
    fn add(&mut self, core: &CoreMetrics, elapsed_s: f64) {
        if let Some(load) = core.load {
            self.net_rx.add(load.softirqs_per_s[SoftirqKind::NetRx as usize], elapsed_s);
            self.backlog_drops += load.softnet_dropped_per_s.unwrap_or(0.0) * elapsed_s;
            self.squeezes += load.softnet_squeezed_per_s.unwrap_or(0.0) * elapsed_s;
        }
        self.busy.add(core.shares().map(|shares| shares.busy()), elapsed_s);
        self.softirq.add(core.shares().map(|shares| shares.softirq), elapsed_s);
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            busy: self.busy.value(),
            softirq: self.softirq.value(),
            net_rx_per_s: self.net_rx.value(),
            backlog_drops: self.backlog_drops,
            squeezes: self.squeezes,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct CoreTrack {
    whole: CoreSums,
    in_tests: CoreSums,
    columns: Vec<CoreColumn>,
}

/// Every core that there was.
#[derive(Debug, Clone, Default)]
pub(super) struct CoresTrack {
    places: Vec<CorePlace>,
    /// By place in the list.
    cores: Vec<CoreTrack>,
}

impl CoresTrack {
    pub fn observe(&mut self, metrics: &Metrics, spans: &[(usize, f64)], is_in_test: bool) {
        if self.places.len() != metrics.machine.cores.len() {
            // Cores were plugged in or taken out, which moves every other one: those of before count no longer.
            self.cores = vec![CoreTrack::default(); metrics.machine.cores.len()];
        }
        self.places = metrics.machine.cores.iter().map(|core| core.place).collect();
        let elapsed_s = metrics.machine.elapsed_s.unwrap_or(0.0);
        for (track, core) in self.cores.iter_mut().zip(&metrics.machine.cores) {
            track.whole.add(core, elapsed_s);
            if is_in_test {
                track.in_tests.add(core, elapsed_s);
            }
            let Some(shares) = core.shares() else { continue };
            for &(at, seconds) in spans {
                let column = column(&mut track.columns, at);
                #[allow(clippy::cast_possible_truncation, reason = "seconds of one column, for a picture")]
                let part = |share: f64| (share * seconds) as f32;
                column.busy += part(shares.busy());
                column.softirq += part(shares.softirq);
                column.known += part(1.0);
            }
        }
    }

    pub fn halve(&mut self) {
        for track in &mut self.cores {
            halve(&mut track.columns, |one, other| {
                one.busy += other.busy;
                one.softirq += other.softirq;
                one.known += other.known;
            });
        }
    }

    pub fn summaries(&self) -> Vec<CoreSummary> {
        let summary = |(place, track): (&CorePlace, &CoreTrack)| CoreSummary {
            place: *place,
            whole: track.whole.figures(),
            in_tests: track.in_tests.figures(),
            columns: track.columns.clone(),
        };
        self.places.iter().zip(&self.cores).map(summary).collect()
    }
}
