//! What a stage is called: in the list of stages, and in sentences.

use super::stage::{Stage, StageKey};
use super::{LatencyGround, TestLatency};
use vnettop_sample::{FlowPath, LinkKey, PathPoint, PointKind, ThreadId};

impl TestLatency {
    /// Where time passes, in a few words.
    #[must_use]
    pub fn place(&self, ground: LatencyGround<'_>, key: &StageKey) -> String {
        match key.stage {
            Stage::SendGap(id) => format!("between sends of {}", name(ground, id)),
            Stage::ReadGap(id) => format!("between reads of {}", name(ground, id)),
            Stage::Answer(id) => format!("{} has read, until it sends", name(ground, id)),
            Stage::ArrivalGap => "between arrivals".to_owned(),
            Stage::Qdisc(key) => format!("{} of {}", self.qdisc(key), link(ground, key)),
            Stage::Hop { from, to } => hop(ground, from, to),
            Stage::Socket => "in the receiver's socket".to_owned(),
            Stage::Softirq(core) => format!("softirq of core {core} starts"),
            Stage::Wakeup(id) => format!("wake-up of {}", self.thread(ground, id)),
            Stage::Whole => "from first to last link".to_owned(),
            Stage::Alike => "packets with equal content".to_owned(),
        }
    }

    /// Kind of the root qdisc of a link.
    pub(super) fn qdisc(&self, key: LinkKey) -> &str {
        self.qdiscs.iter().find(|one| one.0 == key).map_or("qdisc", |one| one.1.as_str())
    }

    /// It reads more than it sends.
    pub(super) fn reads(&self, id: ThreadId) -> bool {
        let count = |stage| self.stage(stage).map_or(0, |one| one.so_far.count());
        count(Stage::ReadGap(id)) >= count(Stage::SendGap(id))
    }

    /// A thread by what it does for the test.
    pub(super) fn thread(&self, ground: LatencyGround<'_>, id: ThreadId) -> String {
        if let Some(worker) = ground.workers.iter().find(|worker| worker.id() == id) {
            return format!("{} {} of {}", worker.noun(), id.tid, worker.carrier);
        }
        let is_known = [Stage::ReadGap(id), Stage::SendGap(id)].map(|stage| self.stage(stage).is_some()) != [false; 2];
        let role = match (is_known, self.reads(id)) {
            (false, _) => "thread",
            (_, true) => "reader",
            (_, false) => "sender",
        };
        format!("{role} {}", name(ground, id))
    }
}

fn name(ground: LatencyGround<'_>, id: ThreadId) -> String {
    let name = ground.threads.iter().find(|one| one.sample.id == id).map(|one| one.sample.name.as_str());
    format!("{} {}", name.unwrap_or("thread"), id.tid)
}

/// A link with its namespace's name, where that has one.
pub(super) fn link(ground: LatencyGround<'_>, key: LinkKey) -> String {
    let name = ground.machine.link(key).map_or("a link that is gone", |link| link.facts.name.as_str());
    ground.machine.space_name(key.netns).map_or_else(|| name.to_owned(), |space| format!("{name} ({space})"))
}

fn hop(ground: LatencyGround<'_>, from: PathPoint, to: PathPoint) -> String {
    let end = |point: PathPoint| point.link.map_or_else(|| "socket".to_owned(), |key| link(ground, key));
    if from.link == to.link && to.what == PointKind::Sent {
        return format!("{} sends", end(to));
    }
    match carrier(ground, from, to) {
        Some((path, at)) => format!("{} → {} → {}", end(from), path.carriers[at].name, end(to)),
        None => format!("{} → {}", end(from), end(to)),
    }
}

/// The program between two points of a path, by its number among the path's.
pub(super) fn carrier(ground: LatencyGround<'_>, from: PathPoint, to: PathPoint) -> Option<(&FlowPath, usize)> {
    let find = |path: &FlowPath| {
        let at = |point: PathPoint| path.hops.iter().position(|hop| Some(hop.link) == point.link);
        let (first, last) = (at(from)?, at(to)?);
        path.carriers.iter().position(|carrier| carrier.at > first && carrier.at <= last)
    };
    ground.paths.iter().find_map(|path| Some((path, find(path)?)))
}
