//! What is remembered to explain the rate: traced moves, what the watched cores suffered tick by tick, masks. Once a
//! second it asks whether moves are the cause, and what else the rate follows. It writes no sentence; findings do.

mod masks;
mod other_causes;
mod probe;
mod settled;

use super::TestMetrics;
use super::jitter::Jitter;
use super::ledger::{Bin, FlowBasis, Ledger};
use super::migration_cost::{Cause, Crossing, moves_in};
use super::moves::TracedMove;
use super::placement::{self, ProposedPin};
use std::collections::{HashMap, VecDeque};
use vnettop_sample::{CoreSet, Event, Sample, ThreadId};

pub use masks::MaskChange;
pub use other_causes::{CauseCandidate, ComparedCauses, LEAST_TICKS, OtherCause};
pub use probe::RoundTripProbes;

use masks::Masks;
use other_causes::OtherCauses;
use settled::Settled;

/// What is looked at: half a minute, or a minute where bins are long, ns.
const WINDOW_NS: u64 = 30_000_000_000;
const LONG_WINDOW_NS: u64 = 60_000_000_000;
/// Bins longer than this are long, ns.
const LONG_BIN_NS: u64 = 250_000_000;
/// Time from one conclusion to the next, ns: with ticks of a second, every tick, though one may be a little early.
const EVERY_NS: u64 = 900_000_000;
/// What was done to masks shows only after this, ns.
const SETTLING_NS: u64 = 2_000_000_000;
/// Traced moves kept.
const MOST_MOVES: usize = 65_536;

/// Everything the findings need that one tick does not tell.
#[derive(Debug, Clone, Default)]
pub struct RateDiagnosis {
    traced: VecDeque<TracedMove>,
    pub(crate) other_causes: OtherCauses,
    pub(crate) masks: Masks,
    /// Bins before this instant are of a machine that was pinned otherwise, ns.
    since_ns: u64,
    changed: bool,
    concluded_at_ns: Option<u64>,
    cause: Settled<Cause>,
    rival: Settled<CauseCandidate>,
    /// What was found out.
    pub conclusion: Conclusion,
}

/// What was found out about the last half minute.
#[derive(Debug, Clone, Default)]
pub struct Conclusion {
    /// The spread of the bins that were looked at: none of them is from before a pin.
    pub jitter: Option<Jitter>,
    /// Moves lower the rate; none where that is not shown.
    pub cause: Option<Cause>,
    /// What else the rate follows; looked for only where moves are not the cause.
    pub rival: Option<CauseCandidate>,
    /// With what else the rate was compared, where moves are not the cause.
    pub compared: ComparedCauses,
    /// The rate dips because BBR measures the round trip.
    pub probes: Option<RoundTripProbes>,
    /// What the rate is the rate of.
    pub basis: Option<FlowBasis>,
    /// Moves a second, by counts or trace.
    pub moves_per_s: f64,
    /// Moves a second that are known to have gone to another cache, node or socket.
    pub far_per_s: f64,
    /// Moves happened, and the instants of most are not known better than by the tick.
    pub vague: bool,
    /// Cores can be proposed for the busy threads, by a proposal that does not doubt itself.
    pub placement_may_help: bool,
    /// What this proposal would pin.
    pub proposed: Vec<ProposedPin>,
    /// Others use or want half or more of every core that the busy threads may have, whatever is proposed.
    pub others_everywhere: bool,
    /// The threads that this proposal would pin, and that are not bound to that core.
    pub placeable: Vec<ThreadId>,
    /// Connections of each watched process, by their tokens of MPTCP.
    pub connections: HashMap<u32, Vec<Option<u32>>>,
}

impl RateDiagnosis {
    /// Notes what was done to masks.
    pub fn event(&mut self, event: &Event) {
        self.changed |= matches!(event, Event::Pinned { .. } | Event::Restored { .. });
        self.masks.event(event);
    }

    /// Takes a tick into account; the bins are already those of this tick.
    pub fn observe(&mut self, sample: &Sample, metrics: &TestMetrics, bins: &Ledger<Bin>, basis: Option<&FlowBasis>) {
        if std::mem::take(&mut self.changed) {
            self.since_ns = metrics.machine.at_ns + SETTLING_NS;
            // What was found of the other masks is over at once.
            self.concluded_at_ns = None;
            (self.cause, self.rival) = (Settled::default(), Settled::default());
        }
        self.masks.observe(metrics);
        self.other_causes.observe(metrics, bins, LONG_WINDOW_NS);
        self.remember(&metrics.moves, metrics.machine.at_ns);
        if self.concluded_at_ns.is_some_and(|at_ns| metrics.machine.at_ns.saturating_sub(at_ns) < EVERY_NS) {
            return;
        }
        self.concluded_at_ns = Some(metrics.machine.at_ns);
        self.conclude(sample, metrics, bins, basis);
    }

    fn remember(&mut self, moves: &[TracedMove], now_ns: u64) {
        self.traced.extend(moves);
        let old = |moved: &TracedMove| moved.at_ns + LONG_WINDOW_NS + EVERY_NS < now_ns;
        while self.traced.len() > MOST_MOVES || self.traced.front().is_some_and(old) {
            self.traced.pop_front();
        }
    }

    fn conclude(&mut self, sample: &Sample, metrics: &TestMetrics, bins: &Ledger<Bin>, basis: Option<&FlowBasis>) {
        let window = self.window(bins, metrics.machine.at_ns);
        let seconds: f64 = window.iter().map(Bin::length_s).sum();
        let sum = |crossing| window.iter().map(|bin| moves_in(bin, crossing)).sum::<f64>();
        let per_s = |moves: f64| if seconds > 0.0 { moves / seconds } else { 0.0 };
        let vague: f64 = window.iter().map(|bin| bin.unclassed).sum();
        let moves = sum(Crossing::Any);
        let cause =
            self.cause.observe(Cause::of(&window, self.traced.make_contiguous()), |_, _| true, metrics.machine.at_ns);
        let jitter = Jitter::of(&window);
        let unexplained = cause.is_none() && jitter.is_some();
        let from_ns = window.first().map_or(u64::MAX, |first| first.from_ns);
        let (rival, compared) = if unexplained { self.other_causes.rival(from_ns) } else { Default::default() };
        let rival = self.rival.observe(rival, |one, other| one.suspect == other.suspect, metrics.machine.at_ns);
        let proposal = placement::propose(metrics).ok().filter(|proposal| proposal.doubt.is_none());
        self.conclusion = Conclusion {
            jitter,
            cause,
            rival,
            compared,
            probes: if unexplained && sends_by_bbr(sample) { RoundTripProbes::of(&window) } else { None },
            basis: basis.cloned(),
            moves_per_s: per_s(moves),
            far_per_s: per_s(sum(Crossing::Nodes)),
            vague: vague > 0.5 * moves && metrics.machine.own.interval_ns > LONG_BIN_NS,
            placement_may_help: proposal.is_some(),
            proposed: proposal.iter().flat_map(|proposal| &proposal.steps).map(|step| pin(metrics, step)).collect(),
            others_everywhere: placement::no_free_core(metrics).is_some(),
            placeable: proposal.iter().flat_map(|proposal| &proposal.steps).filter_map(moved).collect(),
            connections: HashMap::new(),
        };
        // What waits for anyone is no connection.
        for flow in sample.flows.iter().filter(|flow| flow.remote.port() != 0) {
            self.conclusion.connections.entry(flow.pid).or_default().push(flow.mptcp);
        }
    }

    /// The bins that are looked at: none from before the last pin, and what came after it has settled.
    pub(super) fn window(&self, bins: &Ledger<Bin>, now_ns: u64) -> Vec<Bin> {
        // A single one may be that of a standstill.
        let long = !bins.is_empty() && bins.iter().rev().take(2).all(|bin| bin.length_ns() > LONG_BIN_NS);
        let length = if long { LONG_WINDOW_NS } else { WINDOW_NS };
        let since_ns = if self.changed { now_ns + SETTLING_NS } else { self.since_ns };
        let from_ns = now_ns.saturating_sub(length).max(since_ns);
        bins.since(from_ns).copied().collect()
    }
}

fn pin(metrics: &TestMetrics, step: &placement::Step) -> ProposedPin {
    let thread = metrics.threads.iter().find(|thread| thread.sample.id == step.thread);
    ProposedPin {
        role: thread.map_or("thread", |thread| thread.sample.role()),
        core: step.core,
        stays: thread.is_some_and(|thread| thread.sample.core == step.core),
    }
}

/// The thread of a step that would change its mask.
fn moved(step: &placement::Step) -> Option<ThreadId> {
    (step.old.as_ref() != Some(&CoreSet::single(step.core))).then_some(step.thread)
}

fn sends_by_bbr(sample: &Sample) -> bool {
    let mut names = sample.flows.iter().filter_map(|flow| flow.tcp.as_ref()?.congestion);
    names.any(|name| name.word().starts_with("bbr"))
}

#[cfg(test)]
mod tests;
