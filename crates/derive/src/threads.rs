//! Thread counters of two samples → CPU share, moves, switches, waiting.

use super::history::History;
use super::moves::{Evidence, MoveClass, MovesByClass, is_traced};
use super::pins::{Pin, Pins};
use super::rate::{per_second, seconds};
use vnettop_sample::{CoreSet, Duty, Sample, ThreadId, ThreadSample, row_of};

const SECOND_NS: u64 = 1_000_000_000;

/// One watched thread: who it is, where it ran, how often it was moved.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadMetrics {
    /// The newer sample of it: identity, name, role, core, masks.
    pub sample: ThreadSample,
    /// CPU time, share of one core.
    pub cpu: Option<f64>,
    /// Moves: since its birth where counted, since it was first seen where sampled.
    pub moves: u64,
    /// Moves a second.
    pub moves_per_s: Option<f64>,
    /// The same over the last ten seconds, where moves are known one by one; else as above.
    pub moves_lately_per_s: Option<f64>,
    /// It was moved within the last second: its time is of more cores than the one that it is on now.
    pub moved: bool,
    /// It was not moved within the last five seconds, or since it was first seen.
    pub settled: bool,
    /// What the figures above rest on.
    pub evidence: Evidence,
    /// Class of the last move seen.
    pub last_class: Option<MoveClass>,
    /// Moves seen by class since the thread was first seen.
    pub by_class: MovesByClass,
    /// Voluntary context switches a second.
    pub voluntary_per_s: Option<f64>,
    /// Involuntary context switches a second.
    pub involuntary_per_s: Option<f64>,
    /// Run-queue wait, share of the time; with `cpu` at most 1. What the kernel books too late for its tick is in the next one.
    pub wait: Option<f64>,
    /// vnettop pinned it, and it still has the mask that the pin gave it.
    pub pinned: bool,
    /// Where it is pinned: the mask that the pin replaced.
    pub before_pin: Option<CoreSet>,
}

/// A thread that was not moved for so long has settled: as long as a rate must be steady to be called so again.
const SETTLED_NS: u64 = 5_000_000_000;

/// Every watched thread of the newer sample, and those of switches, whose moves are counted and never traced. `history` has
/// already observed it.
pub(super) fn between(previous: Option<&Sample>, next: &Sample, history: &History, pins: &Pins) -> Vec<ThreadMetrics> {
    let old = |id: ThreadId| {
        let same_number = row_of(&previous?.threads, &(id.pid, id.tid), |old| (old.id.pid, old.id.tid));
        same_number.filter(|old| old.id == id)
    };
    let stands = |new: &ThreadSample, pin: &Pin| new.allowed.as_ref().is_none_or(|allowed| *allowed == pin.gave);
    let metrics = |new: &ThreadSample| {
        let pin = pins.of(new.id).filter(|pin| stands(new, pin));
        let metrics = metrics(old(new.id), new, history, pin);
        let is_traced = new.duty != Duty::Carrier && is_traced(previous, next, old(new.id), new);
        let evidence = if is_traced { Evidence::Traced } else { metrics.evidence };
        let lately = history.thread(new.id).filter(|_| evidence != Evidence::Counted);
        let moves_lately_per_s =
            lately.map_or(metrics.moves_per_s, |track| metrics.moves_per_s.and(track.moves_lately(new.at_ns)));
        let within =
            |ns: u64| history.thread(new.id).map_or(0, |track| track.moves_in(new.at_ns.saturating_sub(ns), new.at_ns));
        let moved = within(SECOND_NS) > 0 || metrics.moves_per_s.is_some_and(|moves| moves > 0.0);
        let settled = !moved && within(SETTLED_NS) == 0 && metrics.moves_per_s.is_some();
        ThreadMetrics { moves_lately_per_s, moved, settled, evidence, ..metrics }
    };
    next.threads.iter().map(metrics).collect()
}

/// Metrics of a thread as if nothing was traced.
fn metrics(old: Option<&ThreadSample>, new: &ThreadSample, history: &History, pin: Option<&Pin>) -> ThreadMetrics {
    let track = history.thread(new.id);
    let elapsed = old.and_then(|old| seconds(old.at_ns, new.at_ns));
    let rate = |field: fn(&ThreadSample) -> Option<u64>| per_second(field(old?)?, field(new)?, elapsed?);
    // Moves known one by one: every move where the thread is traced.
    let known = || Some(track?.moves_in(old?.at_ns, new.at_ns) as f64 / elapsed?);
    ThreadMetrics {
        cpu: track.and_then(|track| track.cpu),
        moves: new.migrations.unwrap_or_else(|| track.map_or(0, |track| track.seen_moves)),
        moves_per_s: if new.migrations.is_some() { rate(|t| t.migrations) } else { known() },
        moves_lately_per_s: None,
        moved: false,
        settled: false,
        evidence: if new.migrations.is_some() { Evidence::Counted } else { Evidence::Sampled },
        last_class: track.and_then(|track| track.last_class),
        by_class: track.map_or_else(MovesByClass::default, |track| track.by_class),
        voluntary_per_s: rate(|t| t.voluntary),
        involuntary_per_s: rate(|t| t.involuntary),
        wait: track.and_then(|track| track.wait),
        pinned: pin.is_some(),
        before_pin: pin.map(|pin| pin.old.clone()),
        sample: new.clone(),
    }
}
