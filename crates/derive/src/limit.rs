//! What holds a test back now, in one line: always one, and always one only. What each tick tells is kept for a second
//! (`window`), put together into a scene of plain figures (`scene`), and judged by a pure function (`judge`).

mod cores;
mod judge;
mod lost;
mod scene;
mod segments;
mod shaped;
mod tick;
mod window;
mod workers;

use super::TestMetrics;
use super::finding::nothing;
use super::flow::FlowTrack;
use super::held_back::GAIN_BITS_PER_S;
pub use super::held_back::{Limit, LimitKind};
use super::ledger::{Ledger, Ticked, TimeSpan};
pub(crate) use cores::{IDLE, words};
use vnettop_sample::{CoreId, Sample};
use window::Window;

/// Time from one judgement to the next, ns: with ticks of half a second every tick, though one may be a little early.
const EVERY_NS: u64 = 450_000_000;
/// Time since the last judgement, ns: from here on one judgement changes the line; below it two must agree, except while the
/// window itself is still shorter.
const WHOLE_NS: u64 = 900_000_000;
/// What a test would gain is the mean of so much time, ns: that of one second is far from what comes.
const GAIN_NS: u64 = 10_000_000_000;

/// What is remembered of a test to judge what holds it back.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitTrack {
    window: Window,
    judged_at_ns: u64,
    /// What is shown, and the kind that the last judgement had instead.
    shown: Option<Limit>,
    instead: Option<LimitKind>,
    gains: Gains,
}

/// What the test would gain without waiting, judgement by judgement, while the same core is what it waits for.
#[derive(Debug, Clone, Default)]
struct Gains {
    core: Option<CoreId>,
    known: Ledger<GainTick>,
}

/// What one judgement told, since the one before.
#[derive(Debug, Clone)]
struct GainTick {
    span: TimeSpan,
    bits_per_s: f64,
}

impl Ticked for GainTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Gains {
    /// Takes that of a judgement into account, and puts the mean in its place.
    fn observe(&mut self, span: TimeSpan, limit: &mut Limit) {
        if limit.core != self.core {
            *self = Self { core: limit.core, ..Self::default() };
        }
        self.known.forget(span.to_ns.saturating_sub(GAIN_NS));
        let Some(gain) = limit.numbers.iter_mut().find(|(name, _)| *name == GAIN_BITS_PER_S) else { return };
        self.known.add(GainTick { span, bits_per_s: gain.1 });
        let mean = TimeSpan::until(span.to_ns, GAIN_NS).mean(&self.known, |tick| Some(tick.bits_per_s));
        gain.1 = mean.unwrap_or(gain.1);
    }
}

impl LimitTrack {
    /// Judges a tick, from everything else derived of it; `None` while no test runs, and before its second sample.
    pub fn observe(
        &mut self,
        previous: Option<&Sample>,
        next: &Sample,
        metrics: &TestMetrics,
        flow: &FlowTrack,
    ) -> Option<Limit> {
        let runs = metrics.flow.bits_per_s.is_some()
            || metrics.flow.connections.iter().any(|one| !one.controls())
            || nothing::waiting(metrics).is_some();
        let Some(previous) = previous.filter(|_| runs && metrics.machine.elapsed_s.is_some()) else {
            *self = Self::default();
            return None;
        };
        self.window.observe(previous, next, metrics);
        let since_ns = metrics.machine.at_ns.saturating_sub(self.judged_at_ns);
        let is_young = self.window.length_ns() < WHOLE_NS;
        if since_ns >= EVERY_NS || is_young {
            let scene = self.window.scene(next, metrics, flow);
            let mut limit = judge::judge(&scene);
            self.gains.observe(TimeSpan::until(metrics.machine.at_ns, since_ns.min(WHOLE_NS)), &mut limit);
            self.settle_on(limit, is_young || since_ns >= WHOLE_NS);
            // What is known of a worker in the next tick is not kept waiting.
            self.judged_at_ns = if lost::is_awaited(&scene) { 0 } else { metrics.machine.at_ns };
        }
        self.shown.clone()
    }

    /// Another kind of limit is shown once it was found twice, so that what stands on an edge does not flicker.
    fn settle_on(&mut self, limit: Limit, is_whole: bool) {
        let goes_on = self.shown.as_ref().is_none_or(|shown| shown.kind == limit.kind);
        if goes_on || is_whole || self.instead == Some(limit.kind) {
            self.instead = None;
            self.shown = Some(limit);
        } else {
            self.instead = Some(limit.kind);
        }
    }
}

#[cfg(test)]
mod tests;
