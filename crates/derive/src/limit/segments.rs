//! Segments of TCP over the last five seconds: how many were sent, and how many of them again.

use super::tick::carrying;
use crate::TestMetrics;
use crate::flow::Connection;
use crate::ledger::{Ledger, Ticked, TimeSpan};
use crate::share::share;

/// As long as a lost segment counts, ns: a connection that waits for its timer sends next to nothing for a second and more.
pub(super) const KEPT_NS: u64 = 5_000_000_000;

/// What was sent, tick by tick.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments {
    ticks: Ledger<SegmentTick>,
}

#[derive(Debug, Clone, Copy)]
struct SegmentTick {
    span: TimeSpan,
    sent: f64,
    again: f64,
    /// The kernel was asked for each packet that it dropped.
    asked: bool,
    /// Both ends are on this machine, so that nothing is lost elsewhere.
    both_here: bool,
}

impl Ticked for SegmentTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Segments {
    /// Takes a tick into account.
    pub fn observe(&mut self, metrics: &TestMetrics) {
        let Some((seconds, from_ns)) = metrics.machine.elapsed_s.zip(metrics.machine.began_ns()) else { return };
        let span = TimeSpan { from_ns, to_ns: metrics.machine.at_ns };
        self.ticks.forget(span.to_ns.saturating_sub(KEPT_NS));
        let tcp = || carrying(metrics).filter(|one| one.tcp().is_some());
        let rates =
            tcp().filter_map(Connection::tcp).filter_map(|one| Some((one.segments_per_s?[0], one.retransmits_per_s?)));
        let known = rates.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1));
        let known = known.map(|(sent, again)| (sent * seconds, again * seconds));
        // When the kernel does not count a connection's segments, those of its namespace count.
        let Some((sent, again)) = known.or(metrics.losses.sent.zip(metrics.losses.retransmits)) else { return };
        let both_here = tcp().all(|one| one.from.pid.is_some() && one.to.pid.is_some());
        // The tick in which drops were first asked for has some already.
        let asked = metrics.machine.asks_kernel() || metrics.losses.places.iter().any(|loss| loss.function.is_some());
        self.ticks.add(SegmentTick { span, sent, again, asked, both_here });
    }

    /// Share of the segments that were sent again while nothing could tell whether and where they were lost; `None` when
    /// nothing was sent.
    pub fn untold(&self) -> Option<f64> {
        let reported = |tick: &&SegmentTick| tick.asked && tick.both_here;
        let untold: f64 = self.ticks.iter().filter(|tick| !reported(tick)).map(|tick| tick.again).sum();
        let sent: f64 = self.ticks.iter().map(|tick| tick.sent).sum();
        share(untold, sent).filter(|_| sent > 0.0)
    }
}
