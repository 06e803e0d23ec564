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
use vnettop_sample::{CoreId, Sample};
use window::Window;

/// What it is that holds a test back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LimitKind {
    /// A core that is full, most of it with the test's own threads.
    OwnThread,
    /// A core that is full, most of it with the softirqs of the test's packets.
    OwnSoftirq,
    /// A core that others use, so that a thread of the test waits for it.
    Others,
    /// A thread that carries the packets between the ends and has no core of its own, or not enough of one.
    Worker,
    /// The hypervisor, which gives a core of the test to others.
    Steal,
    /// A core that is full, and whose clock is held below what it could do.
    Frequency,
    /// The CPU quota of a cgroup.
    Quota,
    /// A qdisc that holds packets back or drops them.
    Qdisc,
    /// Another place where packets are lost.
    Loss,
    /// The receiver's window.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The congestion window.
    CongestionWindow,
    /// A rate at which the sender is paced.
    Pacing,
    /// The sending program has no more to send, or was asked for no more.
    Application,
    /// The speed of a link, where it is a real one.
    Claim,
    /// Nothing that is seen from here.
    Nothing,
}

/// What holds a test back.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// What kind of thing.
    pub kind: LimitKind,
    /// One sentence, with its figures.
    pub text: String,
    /// The core that is full.
    pub core: Option<CoreId>,
    /// What it is called: the program that fills the core, the qdisc and its link, the link, the place of the loss.
    pub name: Option<String>,
    /// That program's process.
    pub pid: Option<u32>,
    /// The thread, where it is one.
    pub tid: Option<u32>,
    /// The key that proposes another core for that thread, where one can be proposed.
    pub key: Option<char>,
    /// The figures, by name with unit; shares are of 1.
    pub numbers: Vec<(&'static str, f64)>,
}

impl Limit {
    fn new(kind: LimitKind, text: String, numbers: Vec<(&'static str, f64)>) -> Self {
        Self { kind, text, core: None, name: None, pid: None, tid: None, key: None, numbers }
    }

    fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }
}

impl Limit {
    /// Why the rate swings, in a few words, when the limit makes any rate unsteady; LIMIT says more.
    pub(super) fn makes_unsteady(&self) -> Option<String> {
        Some(match (self.kind, self.core) {
            (LimitKind::Others, Some(core)) => format!("other programs fill core {core}"),
            (LimitKind::Others, None) => "other programs fill a core".to_owned(),
            (LimitKind::Worker, _) => "a thread between the ends lacks CPU time".to_owned(),
            (LimitKind::Loss, _) => "packets are lost".to_owned(),
            (LimitKind::Quota, _) => "a CPU quota is used up".to_owned(),
            _ => return None,
        })
    }
}

/// Time from one judgement to the next, ns: with ticks of half a second every tick, though one may be a little early.
const EVERY_NS: u64 = 450_000_000;
/// Time since the last judgement, ns: from here on one judgement changes the line; below it two must agree, except while the
/// window itself is still shorter.
const WHOLE_NS: u64 = 900_000_000;

/// What is remembered of a test to judge what holds it back.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitTrack {
    window: Window,
    judged_at_ns: u64,
    /// What is shown, and the kind that the last judgement had instead.
    shown: Option<Limit>,
    instead: Option<LimitKind>,
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
            self.settle_on(judge::judge(&scene), is_young || since_ns >= WHOLE_NS);
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
