//! What is measured of one test, or of everything that is watched, on its machine.

use super::experiment::Card;
use super::flow::FlowMetrics;
use super::jitter::Jitter;
use super::latency::{LatencyGround, TestLatency};
use super::ledger::TimeSpan;
use super::losses::Losses;
use super::machine::MachineMetrics;
use super::moves::TracedMove;
use super::pins::OverriddenPin;
use super::recent_load::RecentLoad;
use super::threads::ThreadMetrics;
use super::timeline::Timeline;
use super::workers::Worker;
use std::sync::Arc;
use vnettop_sample::{Benchmark, Direction, FlowPath, Program, Proto, Side};

/// Flows, threads and losses of one test between two samples; of everything watched, when that counts as one test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestMetrics {
    /// The machine then.
    pub machine: Arc<MachineMetrics>,
    /// The threads that work for it, without those of switches, sorted by (pid, tid).
    pub threads: Arc<Vec<ThreadMetrics>>,
    /// The threads that carry its packets between the ends, in the order of the path; see [`super::workers`].
    pub workers: Arc<Vec<Worker>>,
    /// Their moves since the sample before, as traced; empty where they are not.
    pub moves: Arc<Vec<TracedMove>>,
    /// Their pins that were found undone by something else since the sample before.
    pub undone: Vec<OverriddenPin>,
    /// The paths of its flows; see [`super::paths::of`].
    pub paths: Arc<Vec<FlowPath>>,
    /// Its connections, and how fast their traffic runs.
    pub flow: FlowMetrics,
    /// The benchmark programs among its processes, sorted by pid.
    pub benchmarks: Vec<Benchmark>,
    /// Where packets of its flows were lost since the sample before.
    pub losses: Losses,
    /// The spread of its rate over the last half minute, or since the last pin has settled: the same time as the findings'.
    /// None before there is one.
    pub jitter: Option<Jitter>,
    /// For how many of these last seconds the rate has been steady, however it was before; see [`super::jitter::steady_s`].
    pub steady_s: Option<f64>,
    /// How long its packets and threads wait, stage by stage; none where that is not looked at.
    pub latency: Option<Arc<TestLatency>>,
    /// The last minute of the rate, with what happened in it.
    pub timeline: Arc<Timeline>,
    /// What a pin brought; none before the first pin, and while its windows fill.
    pub card: Option<Card>,
    /// The last seconds of every core and of its threads: what others put on a core is apart from what these threads do.
    pub recent: Arc<RecentLoad>,
}

impl TestMetrics {
    /// The mean rate since the sample before, as the rates of links are, bits/s: what stands beside those must be of the same
    /// time. None where [`FlowMetrics::bits_per_s`] is none.
    #[must_use]
    pub fn rate_now(&self) -> Option<f64> {
        let newest = self.flow.bits_per_s?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds between two samples")]
        let elapsed_ns = self.machine.elapsed_s.map_or(0, |elapsed| (elapsed * 1e9).round() as u64);
        let bins = &self.timeline.bins;
        let span = TimeSpan::until(bins.last().map_or(0, |bin| bin.to_ns), elapsed_ns);
        let first = bins.partition_point(|bin| bin.to_ns <= span.from_ns);
        span.mean(&bins[first..], |bin| bin.bits_per_s).or(Some(newest))
    }

    /// What of it its latency is derived from, and named by.
    #[must_use]
    pub fn latency_ground(&self) -> LatencyGround<'_> {
        let Self { machine, threads, workers, paths, flow, .. } = self;
        LatencyGround { machine, threads, workers, paths, flow }
    }
}

impl TestMetrics {
    /// Payload that the clients were asked for, bits/s; `None` when one of them sends as fast as it can.
    #[must_use]
    pub fn asked_bits_per_s(&self) -> Option<f64> {
        let clients = self.benchmarks.iter().filter(|one| one.side == Side::Client && one.runs());
        let mut all = clients.map(|client| {
            let unasked = match (client.proto?, client.program) {
                (Proto::Udp, Program::Iperf3 | Program::Iperf) => Some(1_000_000),
                (Proto::Tcp, _) => None,
            };
            let rate = client.asked_bits_per_s.or(unasked).filter(|&rate| rate > 0)?;
            let ways = if client.direction == Some(Direction::Both) { 2.0 } else { 1.0 };
            Some(rate as f64 * f64::from(client.streams?) * ways).filter(|asked| *asked > 0.0)
        });
        let first = all.next()??;
        all.try_fold(first, |sum, one| Some(sum + one?))
    }
}

#[cfg(test)]
impl TestMetrics {
    /// The machine, to be changed for this test alone.
    pub(crate) fn machine_mut(&mut self) -> &mut MachineMetrics {
        Arc::make_mut(&mut self.machine)
    }

    /// Its threads, to be changed.
    pub(crate) fn threads_mut(&mut self) -> &mut Vec<ThreadMetrics> {
        Arc::make_mut(&mut self.threads)
    }
}
