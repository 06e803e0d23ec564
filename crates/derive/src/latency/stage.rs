//! The stages of a test: which rows of the kernel's are whose, and in which order they are shown.

use super::{Histogram, LatencyGround, UnknownLatency, is_data};
use crate::Worker;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use vnettop_sample::{
    CoreId, DropFlow, FlowPath, HopWay, Latencies, LatencyOf, LinkKey, PathPoint, PointKind, Proto, ThreadId,
};

/// Where time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Stage {
    /// Between two sends of a thread: the time of the sends themselves is in it.
    SendGap(ThreadId),
    /// In the qdisc of a link.
    Qdisc(LinkKey),
    /// From one link to another: through the backlog of its softirq, a bridge, a guest, a tunnel, whatever lies between.
    Hop {
        /// Sent, or received.
        from: PathPoint,
        /// The next one at which it was seen.
        to: PathPoint,
    },
    /// In the receiver's socket, until its program has read it.
    Socket,
    /// A softirq that receives, on a core: from raised to run. It is in the hop before it.
    Softirq(CoreId),
    /// A thread that could run and did not.
    Wakeup(ThreadId),
    /// Between two reads of a thread.
    ReadGap(ThreadId),
    /// From a thread's read to its next packet: its program's own time, and that of the kernel's calls.
    Answer(ThreadId),
    /// Between two packets at the last link.
    ArrivalGap,
    /// From the first point of the path to its last link.
    Whole,
    /// Packets that cannot be told apart.
    Alike,
}

/// A stage, and of which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageKey {
    /// The answers' path: from who receives more to who sends more.
    pub is_back: bool,
    /// Where.
    pub stage: Stage,
}

impl StageKey {
    /// Of the data's direction.
    #[must_use]
    pub fn of_data(stage: Stage) -> Self {
        Self { is_back: false, stage }
    }

    /// Whose it is, of a thread's, whatever flow that works for.
    #[must_use]
    pub fn thread(&self) -> Option<ThreadId> {
        match self.stage {
            Stage::Wakeup(id) | Stage::SendGap(id) | Stage::ReadGap(id) | Stage::Answer(id) => Some(id),
            _ => None,
        }
    }

    /// A packet waits there, one stage after the other: their means add up.
    #[must_use]
    pub fn is_of_packets(&self) -> bool {
        matches!(self.stage, Stage::Qdisc(_) | Stage::Hop { .. } | Stage::Socket)
    }

    /// It lies between the first link of the path and the last.
    #[must_use]
    pub fn is_link(&self) -> bool {
        matches!(self.stage, Stage::Qdisc(_) | Stage::Hop { .. })
    }

    /// Nothing waits: how far apart things are, or how long somebody works.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        matches!(self.stage, Stage::SendGap(_) | Stage::ReadGap(_) | Stage::Answer(_) | Stage::ArrivalGap)
    }
}

/// What tells a test's rows from others'.
pub(super) struct OfTest<'a> {
    ground: LatencyGround<'a>,
    /// Senders of data, and of answers.
    from: [Vec<(Proto, SocketAddr)>; 2],
}

impl<'a> OfTest<'a> {
    pub fn of(ground: LatencyGround<'a>) -> Self {
        let data = || ground.flow.connections.iter().filter(|one| is_data(one));
        let from = [
            data().map(|one| (one.proto(), one.from.address)).collect(),
            data().map(|one| (one.proto(), one.to.address)).collect(),
        ];
        Self { ground, from }
    }

    /// Periods of each thread's quota, and those in which it was used up.
    pub fn throttled(&self) -> BTreeMap<ThreadId, (u64, u64)> {
        let own = self.ground.threads.iter().map(|one| &one.sample);
        let all = own.chain(self.ground.workers.iter().map(|worker| &worker.thread.sample));
        all.filter_map(|one| one.quota.map(|quota| (one.id, (quota.periods, quota.throttled)))).collect()
    }

    pub fn paths(&self) -> &'a [FlowPath] {
        self.ground.paths
    }

    /// Its threads, at the ends and between them.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> {
        let ends = self.ground.threads.iter().map(|one| one.sample.id);
        ends.chain(self.ground.workers.iter().map(Worker::id))
    }

    pub fn has_thread(&self, thread: ThreadId) -> bool {
        self.threads().any(|id| id == thread)
    }

    /// Which direction a flow is; `None` where it is not the test's.
    fn is_back(&self, flow: &DropFlow) -> Option<bool> {
        let from = (flow.proto, flow.from);
        self.from.iter().position(|senders| senders.contains(&from)).map(|at| at == 1)
    }

    /// The test's stage that a row is of.
    pub fn key(&self, of: &LatencyOf) -> Option<StageKey> {
        let thread = |thread: &ThreadId, stage: fn(ThreadId) -> Stage| {
            self.has_thread(*thread).then(|| StageKey::of_data(stage(*thread)))
        };
        let flow = |flow: &DropFlow, stage: Stage| Some(StageKey { is_back: self.is_back(flow)?, stage });
        match of {
            LatencyOf::Packets { flow: of, from, to } => flow(of, step(*from, *to)?),
            LatencyOf::Whole { flow: of } => flow(of, Stage::Whole),
            LatencyOf::Softirq { flow: of, core } => flow(of, Stage::Softirq(*core)),
            LatencyOf::ArrivalGap { flow: of } => flow(of, Stage::ArrivalGap),
            LatencyOf::Alike { flow: of } => flow(of, Stage::Alike),
            LatencyOf::Wakeup { thread: id } => thread(id, Stage::Wakeup),
            LatencyOf::ReadGap { thread: id } => thread(id, Stage::ReadGap),
            LatencyOf::SendGap { thread: id } => thread(id, Stage::SendGap),
            LatencyOf::Answer { thread: id } => thread(id, Stage::Answer),
        }
    }

    /// What of the packets cannot be measured.
    pub fn unknown(&self, latencies: &Latencies) -> Vec<UnknownLatency> {
        let mut unknown = Vec::new();
        let own = || self.ground.paths.iter().filter(|path| self.from[0].contains(&(path.proto, path.from)));
        if own().next().is_none() {
            unknown.push(UnknownLatency::NoPath);
        } else if own().any(|path| path.gap.is_some()) {
            unknown.push(UnknownLatency::Gap);
        }
        if latencies.left_out > 0 {
            unknown.push(UnknownLatency::LeftOut(latencies.left_out));
        }
        if !latencies.tells_reads {
            unknown.push(UnknownLatency::Reads);
        }
        unknown
    }
}

/// The stage between two points; `None` for what no packet does.
fn step(from: PathPoint, to: PathPoint) -> Option<Stage> {
    match (from.what, to.what) {
        (_, PointKind::Read) => Some(Stage::Socket),
        (PointKind::Queued, PointKind::Sent) if from.link == to.link => Some(Stage::Qdisc(to.link?)),
        // What leaves a qdisc is sent: here that was not seen, and how long it was in it is not known.
        (PointKind::Read | PointKind::Queued, _) => None,
        _ => Some(Stage::Hop { from, to }),
    }
}

/// Leaves out steps that skip a point at which a hundred times as many packets were seen: a program was attached in between.
pub(super) fn leave_out_skips(stages: &mut BTreeMap<StageKey, Histogram>) {
    let hop = |key: &StageKey| match key.stage {
        Stage::Hop { from, .. } => Some((key.is_back, from)),
        _ => None,
    };
    let mut most: BTreeMap<(bool, PathPoint), u64> = BTreeMap::new();
    for (key, times) in stages.iter() {
        if let Some(from) = hop(key) {
            let known = most.entry(from).or_default();
            *known = times.count().max(*known);
        }
    }
    stages.retain(|key, times| {
        hop(key).and_then(|from| most.get(&from)).is_none_or(|most| times.count().saturating_mul(100) > *most)
    });
}

/// Data before answers, stages in the order of the path, threads and gaps behind.
pub(super) fn order(paths: &[FlowPath], key: &StageKey) -> (bool, usize, usize, StageKey) {
    let place = |point: PathPoint| {
        let is_it = |hop: &vnettop_sample::Hop| {
            let way = if point.what == PointKind::Received { HopWay::Received } else { HopWay::Sent };
            Some(hop.link) == point.link && hop.way == way
        };
        paths.iter().find_map(|path| path.hops.iter().position(is_it)).unwrap_or(usize::MAX)
    };
    let (kind, at) = match key.stage {
        Stage::Qdisc(link) => (1, 2 * place(PathPoint { link: Some(link), what: PointKind::Sent }).min(usize::MAX / 4)),
        Stage::Hop { from, .. } => (1, (2 * place(from).min(usize::MAX / 4)) + 1),
        Stage::Socket => (2, 0),
        Stage::Softirq(_) => (3, 0),
        Stage::Wakeup(_) => (4, 0),
        Stage::SendGap(_) => (5, 0),
        Stage::ReadGap(_) => (6, 0),
        Stage::Answer(_) => (7, 0),
        Stage::ArrivalGap | Stage::Whole | Stage::Alike => (8, 0),
    };
    (key.is_back, kind, at, *key)
}
