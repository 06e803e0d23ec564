//! Where a test's packets and threads wait, as JSON: a stage an object, in the order of the data's path.

use super::{Each, InJson, JsonObject};
use crate::derive::TestMetrics;
use crate::derive::latency::{LatencyCause, Spread, Stage, StageLatency, TestLatency};
use crate::sample::{LinkKey, PathPoint, WaitedFor, Word};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

impl JsonObject for TestLatency {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let unknown: Vec<String> = self.unknown.iter().map(ToString::to_string).collect();
        object.serialize_entry("recent_s", &self.over_s)?;
        object.serialize_entry("packets_looked_at", &self.packets_looked)?;
        object.serialize_entry("whole", &self.whole.as_ref().map(|whole| InJson(whole, metrics)))?;
        object.serialize_entry("stages", &Each(&self.stages, metrics))?;
        object.serialize_entry("waited_for", &Each(&self.waited_for, metrics))?;
        object.serialize_entry("cause", &self.cause.as_ref().map(|cause| InJson(cause, metrics)))?;
        object.serialize_entry("unknown", &unknown)
    }
}

/// One stage: of the last second, and since it was looked at first.
impl JsonObject for StageLatency {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (from, to) = ends(self.key.stage);
        let (tid, core) = match self.key.stage {
            Stage::Wakeup(id) | Stage::SendGap(id) | Stage::ReadGap(id) | Stage::Answer(id) => (Some(id.tid), None),
            Stage::Softirq(core) => (None, Some(core)),
            _ => (None, None),
        };
        let place = |point: Option<PathPoint>| point.map(|point| PointPlace { point, metrics });
        object.serialize_entry("stage", self.key.stage.word())?;
        object.serialize_entry("of_answers", &self.key.is_back)?;
        object.serialize_entry("from", &place(from))?;
        object.serialize_entry("to", &place(to))?;
        object.serialize_entry("tid", &tid)?;
        object.serialize_entry("core", &core)?;
        object.serialize_entry("recent", &self.now.map(Figures))?;
        object.serialize_entry("so_far", &self.so_far.spread().map(Figures))?;
        // Each bucket by its end, us, and how many.
        let buckets = self.so_far.powers_of_two();
        let buckets: Vec<(f64, u64)> = buckets.into_iter().map(|(to_s, count)| (to_s * 1e6, count)).collect();
        object.serialize_entry("buckets", &buckets)
    }
}

/// Where it begins and ends, of what is between two points.
fn ends(stage: Stage) -> (Option<PathPoint>, Option<PathPoint>) {
    match stage {
        Stage::Hop { from, to } => (Some(from), Some(to)),
        Stage::Qdisc(link) => {
            let at = |what| Some(PathPoint { link: Some(link), what });
            (at(crate::sample::PointKind::Queued), at(crate::sample::PointKind::Sent))
        }
        _ => (None, None),
    }
}

/// A point of the path, by its link.
struct PointPlace<'a> {
    point: PathPoint,
    metrics: &'a TestMetrics,
}

impl Serialize for PointPlace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let link: Option<LinkKey> = self.point.link;
        let name = link.and_then(|link| self.metrics.machine.link(link)).map(|link| &link.facts.name);
        let mut object = serializer.serialize_map(Some(4))?;
        object.serialize_entry("netns", &link.map(|link| link.netns))?;
        object.serialize_entry("ifindex", &link.map(|link| link.ifindex))?;
        object.serialize_entry("name", &name)?;
        object.serialize_entry("at", self.point.what.word())?;
        object.end()
    }
}

/// Microseconds.
struct Figures(Spread);

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(5))?;
        object.serialize_entry("count", &self.0.count)?;
        object.serialize_entry("mean_us", &(self.0.mean_s * 1e6))?;
        object.serialize_entry("p50_us", &(self.0.p50_s * 1e6))?;
        object.serialize_entry("p99_us", &(self.0.p99_s * 1e6))?;
        object.serialize_entry("max_us", &(self.0.max_s * 1e6))?;
        object.end()
    }
}

impl JsonObject for WaitedFor {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("tid", &self.thread.tid)?;
        object.serialize_entry("by_tid", &(self.by != 0).then_some(self.by))?;
        object.serialize_entry("by_pid", &(self.by != 0).then_some(self.pid))?;
        object.serialize_entry("by_name", &(self.by != 0).then_some(&*self.name))?;
        object.serialize_entry("by_priority", &(self.real_time != 0).then_some(self.real_time))?;
        object.serialize_entry("core", &self.core)?;
        object.serialize_entry("us", &(self.ns as f64 / 1e3))?;
        object.serialize_entry("count", &self.count)
    }
}

impl JsonObject for LatencyCause {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("stage", self.key.stage.word())?;
        object.serialize_entry("by", &self.by.map(|by| by.stage.word()))?;
        let by = self.waited.as_ref().and_then(|(_, by)| by.as_ref()).filter(|by| by.by != 0);
        object.serialize_entry("tid", &self.waited.as_ref().map(|(thread, _)| thread.tid))?;
        object.serialize_entry("waits_for_tid", &by.map(|by| by.by))?;
        object.serialize_entry("waits_for_pid", &by.map(|by| by.pid))?;
        object.serialize_entry("waits_for_name", &by.map(|by| &*by.name))?;
        object.serialize_entry("core", &by.map(|by| by.core))?;
        object.serialize_entry("text", &self.text)?;
        object.serialize_entry("remedy", &self.remedy)
    }
}
