//! How long the packets of a test take, stage by stage of their path, and how long its threads wait for a core: of the last second,
//! and since it was looked at first. What is absolute in the samples ([`vnettop_sample::Latencies`]) is told apart by test here.

mod cause;
mod ground;
mod histogram;
mod place;
mod remedy;
mod stage;

pub use cause::LatencyCause;
pub use ground::LatencyGround;
pub use histogram::{Histogram, Spread};
pub use stage::{Stage, StageKey};

use super::flow::Connection;
use super::losses::qdiscs;
use cause::LatencyScene;
use compact_str::CompactString;
use stage::{OfTest, order};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use vnettop_sample::{HopWay, Latencies, LinkKey, PointKind, Sample, ThreadId, WaitedFor};

/// The time whose figures are of now, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// A tick may be so much early or late, ns.
const SLACK_NS: u64 = 50_000_000;
/// Of many packets some are looked at now and then: so long must that be for figures, and so far back they may be, ns.
const LEAST_LOOKED_NS: u64 = 100_000_000;
const LONGEST_WINDOW_NS: u64 = 10_000_000_000;
/// What was measured is told for so long after that, ns.
const REMEMBERED_NS: u64 = 60_000_000_000;
/// Seconds of the strip that are kept.
pub const KEPT_SECONDS: usize = 600;
/// A quota that is used up in this share of its periods makes its threads wait.
const THROTTLED: f64 = 0.2;
/// From this share on packets that cannot be told apart are too many.
const MOST_ALIKE: f64 = 0.05;

/// The latency of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestLatency {
    /// Stages in the order of the data's path, then what is beside it, then those of the other direction.
    pub stages: Vec<StageLatency>,
    /// From the first point of the path to the last link: of the data.
    pub whole: Option<StageLatency>,
    /// Over how long the figures of now are, s: the last second, or as long as it takes to have looked at packets for a while.
    pub over_s: f64,
    /// The share of that time in which packets were looked at; `None` after one sample.
    pub packets_looked: Option<f64>,
    /// How long ago that was, s, where it is looked at no longer.
    pub measured_ago_s: Option<f64>,
    /// For whom its threads waited for 0.5 ms and longer in that time, the longest first.
    pub waited_for: Vec<WaitedFor>,
    /// What holds its packets longest, where that is worth a sentence.
    pub cause: Option<LatencyCause>,
    /// Second by second, the newest last: when it ended, and the whole path's figures in it.
    pub seconds: Arc<VecDeque<LatencySecond>>,
    /// What is not measured, and why.
    pub unknown: Vec<UnknownLatency>,
    /// Root qdiscs of the links on its paths, by their kinds.
    pub qdiscs: Vec<(LinkKey, CompactString)>,
}

/// Figures of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageLatency {
    /// Which.
    pub key: StageKey,
    /// Of now; `None` where nothing passed it.
    pub now: Option<Spread>,
    /// The same in full.
    pub recent: Histogram,
    /// Since it was looked at first.
    pub so_far: Histogram,
}

/// One second of the strip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencySecond {
    /// Its end, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// How long, ns.
    pub for_ns: u64,
    /// Over the whole path; `None` where no packet was seen at both ends.
    pub whole: Option<Spread>,
    /// The 99th percentile of the data's slowest stage, s.
    pub slowest_s: Option<f64>,
}

/// Why something is not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum UnknownLatency {
    /// No path.
    #[error("packets are not followed: no path of this test is known")]
    NoPath,
    /// The path ends early.
    #[error("packets are followed to the last known link only: the receiver is not found")]
    Gap,
    /// The kernel is old.
    #[error("reads and sends are not measured: that needs Linux 6.3")]
    Reads,
    /// There are too many flows.
    #[error("{0} flows of all tests are not followed: there are too many")]
    LeftOut(u32),
    /// Packets are alike.
    #[error("packets with equal content look alike: latencies read too low")]
    Alike,
    /// There was no packet yet.
    #[error("no packet with payload was followed between two points of the path yet")]
    NoPacket,
}

/// What was counted at one reading, of one test.
#[derive(Debug, Clone, Default)]
struct Reading {
    at_ns: u64,
    packets_for_ns: u64,
    threads_for_ns: u64,
    stages: BTreeMap<StageKey, Histogram>,
    waited_for: BTreeMap<(ThreadId, u32), WaitedFor>,
    /// Periods of each thread's quota, and those in which it was used up.
    throttled: BTreeMap<ThreadId, (u64, u64)>,
}

/// The readings of a test.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyTrack {
    /// Of threads, what was counted before they were the test's.
    base: BTreeMap<StageKey, Histogram>,
    /// Threads of the test, as of the last reading.
    threads: BTreeSet<ThreadId>,
    /// Of the last second and the one before that.
    readings: VecDeque<Reading>,
    /// What the last second of the strip ended with.
    second: Option<Reading>,
    seconds: Arc<VecDeque<LatencySecond>>,
    /// What was told last, and when, ns.
    last: Option<(u64, Arc<TestLatency>)>,
}

impl LatencyTrack {
    /// Takes a sample; `None` where latency is not looked at, and was not for a while.
    pub fn observe(&mut self, next: &Sample, ground: LatencyGround<'_>) -> Option<Arc<TestLatency>> {
        let Some(latencies) = next.kernel.as_deref().and_then(|kernel| kernel.latency.as_ref()) else {
            // What was counted so far goes on when it is looked at again.
            self.second = None;
            self.readings.clear();
            return self.remembered(next.at_ns);
        };
        let of_test = OfTest::of(ground);
        let reading = of_test.reading(latencies);
        self.forget(&reading);
        self.follow_threads(&of_test, &reading);
        let start = self.readings.front();
        let now = start.map(|start| between(&reading.stages, &start.stages)).unwrap_or_default();
        let so_far = so_far(&reading.stages, &self.base);
        let looked = start.and_then(|start| share(&reading, start));
        let waited_for = start.map(|start| cause::longest(&reading.waited_for, &start.waited_for)).unwrap_or_default();
        let seconds =
            |of: fn(&Reading) -> u64| start.map_or(0.0, |start| of(&reading).saturating_sub(of(start)) as f64 / 1e9);
        let (over_s, threads_for_s) = (seconds(|one| one.at_ns), seconds(|one| one.threads_for_ns));
        let throttled = start.map(|start| risen(&reading.throttled, &start.throttled)).unwrap_or_default();
        self.add_second(&reading);
        let mut latency = of_test.latency(latencies, (now, so_far), looked);
        latency.qdiscs = roots(next);
        (latency.waited_for, latency.seconds) = (waited_for, Arc::clone(&self.seconds));
        latency.cause = cause::of(&LatencyScene { ground, latency: &latency, throttled, threads_for_s });
        latency.over_s = over_s;
        self.readings.push_back(reading);
        let latency = Arc::new(latency);
        self.last = Some((next.at_ns, Arc::clone(&latency)));
        Some(latency)
    }

    /// Notes what threads had waited before they were the test's: they may have worked for others.
    fn follow_threads(&mut self, of_test: &OfTest<'_>, reading: &Reading) {
        for (key, now) in &reading.stages {
            let Some(thread) = key.thread() else { continue };
            let before = if self.threads.contains(&thread) { Histogram::default() } else { now.clone() };
            let base = self.base.entry(*key).or_insert(before);
            // Counted anew.
            if now.since(base).is_none() {
                *base = Histogram::default();
            }
        }
        self.threads = of_test.threads().collect();
    }

    /// What was told last, for some time.
    fn remembered(&mut self, now_ns: u64) -> Option<Arc<TestLatency>> {
        let (at_ns, last) = self.last.as_ref()?;
        let ago_ns = now_ns.saturating_sub(*at_ns);
        if ago_ns > REMEMBERED_NS {
            self.last = None;
            return None;
        }
        Some(Arc::new(TestLatency { measured_ago_s: Some(ago_ns as f64 / 1e9), ..TestLatency::clone(last) }))
    }

    /// Keeps of the readings as many as a window needs that ends with this one: a second, or until packets were looked at for
    /// long enough in it.
    fn forget(&mut self, reading: &Reading) {
        let from_ns = reading.at_ns.saturating_sub(WINDOW_NS).saturating_add(SLACK_NS);
        let longest_ns = reading.at_ns.saturating_sub(LONGEST_WINDOW_NS);
        while self.readings.get(1).is_some_and(|second| {
            let looked_ns = reading.packets_for_ns.saturating_sub(second.packets_for_ns);
            second.at_ns <= from_ns && (looked_ns >= LEAST_LOOKED_NS || second.at_ns <= longest_ns)
        }) {
            self.readings.pop_front();
        }
    }

    fn add_second(&mut self, reading: &Reading) {
        let Some(second) = &self.second else {
            self.second = Some(reading.clone());
            return;
        };
        let for_ns = reading.at_ns.saturating_sub(second.at_ns);
        if for_ns < WINDOW_NS {
            return;
        }
        let stages = between(&reading.stages, &second.stages);
        let whole = stages.get(&StageKey::of_data(Stage::Whole)).and_then(Histogram::spread);
        let of_data = stages.iter().filter(|(key, _)| key.is_of_packets() && !key.is_back);
        let slowest_s = of_data.filter_map(|(_, times)| Some(times.spread()?.p99_s)).reduce(f64::max);
        let seconds = Arc::make_mut(&mut self.seconds);
        if seconds.len() == KEPT_SECONDS {
            seconds.pop_front();
        }
        seconds.push_back(LatencySecond { at_ns: reading.at_ns, for_ns, whole, slowest_s });
        self.second = Some(reading.clone());
    }
}

fn roots(next: &Sample) -> Vec<(LinkKey, CompactString)> {
    let links = next.qdiscs.chunk_by(|one, other| one.link == other.link).filter_map(|of_link| of_link.first());
    links.filter_map(|one| Some((one.link, qdiscs::root(next, one.link)?.kind.clone()))).collect()
}

/// Threads whose quota was used up in many of its periods between two readings.
fn risen(now: &BTreeMap<ThreadId, (u64, u64)>, before: &BTreeMap<ThreadId, (u64, u64)>) -> BTreeSet<ThreadId> {
    let is_often = |(id, now): &(&ThreadId, &(u64, u64))| {
        let Some(before) = before.get(id) else { return false };
        let (periods, throttled) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        throttled as f64 >= THROTTLED * periods.max(1) as f64
    };
    now.iter().filter(is_often).map(|(id, _)| *id).collect()
}

/// What came between two readings; of what was counted anew meanwhile that is not known.
fn between(
    now: &BTreeMap<StageKey, Histogram>,
    before: &BTreeMap<StageKey, Histogram>,
) -> BTreeMap<StageKey, Histogram> {
    let more = |(key, now): (&StageKey, &Histogram)| {
        let more = before.get(key).map_or_else(|| Some(now.clone()), |before| now.since(before))?;
        (more.count() > 0).then_some((*key, more))
    };
    now.iter().filter_map(more).collect()
}

/// What was counted since the base; all of it where that was counted anew meanwhile.
fn so_far(now: &BTreeMap<StageKey, Histogram>, base: &BTreeMap<StageKey, Histogram>) -> BTreeMap<StageKey, Histogram> {
    let more = |(key, now): (&StageKey, &Histogram)| {
        let more = base.get(key).and_then(|base| now.since(base)).unwrap_or_else(|| now.clone());
        (more.count() > 0).then_some((*key, more))
    };
    now.iter().filter_map(more).collect()
}

/// The share of the time between two readings in which packets were looked at.
fn share(now: &Reading, before: &Reading) -> Option<f64> {
    let (all, looked) = (now.at_ns.checked_sub(before.at_ns)?, now.packets_for_ns.checked_sub(before.packets_for_ns)?);
    (all > 0).then(|| (looked as f64 / all as f64).min(1.0))
}

impl OfTest<'_> {
    /// What of a reading is the test's.
    fn reading(&self, latencies: &Latencies) -> Reading {
        let mut stages: BTreeMap<StageKey, Histogram> = BTreeMap::new();
        for row in &latencies.rows {
            if let Some(key) = self.key(&row.of) {
                stages.entry(key).or_default().add(row);
            }
        }
        let own = latencies.waited_for.iter().filter(|one| self.has_thread(one.thread));
        let waited_for = own.map(|one| ((one.thread, one.by), one.clone())).collect();
        let (at_ns, packets_for_ns) = (latencies.at_ns, latencies.packets_for_ns);
        let threads_for_ns = latencies.threads_for_ns;
        Reading { at_ns, packets_for_ns, threads_for_ns, stages, waited_for, throttled: self.throttled() }
    }

    fn latency(
        &self,
        latencies: &Latencies,
        (now, mut so_far): (BTreeMap<StageKey, Histogram>, BTreeMap<StageKey, Histogram>),
        packets_looked: Option<f64>,
    ) -> TestLatency {
        let stage = |key: StageKey, so_far: Histogram| StageLatency {
            key,
            now: now.get(&key).and_then(Histogram::spread),
            recent: now.get(&key).cloned().unwrap_or_default(),
            so_far,
        };
        stage::leave_out_skips(&mut so_far);
        let whole = StageKey::of_data(Stage::Whole);
        let whole = so_far.remove(&whole).map(|histogram| stage(whole, histogram));
        let alike = so_far.remove(&StageKey::of_data(Stage::Alike)).map_or(0, |alike| alike.count());
        so_far.retain(|key, _| !matches!(key.stage, Stage::Whole | Stage::Alike));
        let mut stages: Vec<StageLatency> = so_far.into_iter().map(|(key, so_far)| stage(key, so_far)).collect();
        stages.sort_by_key(|one| order(self.paths(), &one.key));
        let mut unknown = self.unknown(latencies);
        let steps = || stages.iter().filter(|one| one.key.is_of_packets()).map(|one| one.so_far.count());
        if steps().next().is_none() {
            unknown.push(UnknownLatency::NoPacket);
        }
        let first = steps().max().unwrap_or(0);
        if first > 0 && alike as f64 / first as f64 > MOST_ALIKE {
            unknown.push(UnknownLatency::Alike);
        }
        unknown.sort_unstable();
        TestLatency { stages, whole, packets_looked, unknown, ..TestLatency::default() }
    }
}

impl TestLatency {
    /// A stage of the data's direction.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> Option<&StageLatency> {
        self.stages.iter().find(|one| one.key == StageKey::of_data(stage))
    }

    /// Stages of the data that end at a link, in that direction: its qdisc, and the hop to it.
    pub fn until(&self, link: LinkKey, way: HopWay) -> impl Iterator<Item = &StageLatency> {
        let is_there = move |one: &&StageLatency| match one.key.stage {
            Stage::Qdisc(key) => key == link && way == HopWay::Sent,
            Stage::Hop { to, .. } => {
                to.link == Some(link) && (to.what == PointKind::Received) == (way == HopWay::Received)
            }
            _ => false,
        };
        self.stages.iter().filter(|one| !one.key.is_back).filter(is_there)
    }
}

/// Its packets are the test's data, or the answers to them.
fn is_data(connection: &Connection) -> bool {
    !connection.controls()
}

#[cfg(test)]
mod tests;
