//! What one core does, stage by stage; and its stacks, as tools for flame graphs read them.

use super::{InJson, JsonObject};
use crate::derive::TestMetrics;
use crate::derive::profile::{CoreActivity, RulesOnLink, StageShare, folded};
use crate::sample::{CoreProfile, Word};
use serde::ser::SerializeMap;

impl JsonObject for CoreActivity {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("core", &self.core)?;
        object.serialize_entry("over_s", &self.over_s)?;
        object.serialize_entry("to_t_ns", &self.to_ns)?;
        object.serialize_entry("clock", self.clock.word())?;
        object.serialize_entry("hz", &self.hz)?;
        object.serialize_entry("samples", &self.samples)?;
        object.serialize_entry("lost", &self.lost)?;
        object.serialize_entry("reader", &self.reader)?;
        object.serialize_entry("packets_per_s", &self.packets_per_s)?;
        object.serialize_entry("text", &self.text())?;
        let rules: Vec<_> = self.rules.iter().map(|one| InJson(one, metrics)).collect();
        object.serialize_entry("rules", &rules)?;
        object.serialize_entry("unnamed", &self.unnamed)?;
        let stages: Vec<_> = self.stages.iter().map(|stage| StageOfCore(stage, self.packets_per_s)).collect();
        let stages: Vec<_> = stages.iter().map(|stage| InJson(stage, metrics)).collect();
        object.serialize_entry("stages", &stages)
    }
}

impl JsonObject for RulesOnLink {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("netns", &self.counted.link.netns)?;
        object.serialize_entry("ifindex", &self.counted.link.ifindex)?;
        object.serialize_entry("link", &self.name)?;
        object.serialize_entry("rules", &self.counted.rules)?;
        object.serialize_entry("gap", &self.counted.gap)
    }
}

/// A stage, with the packets that its time is divided by.
struct StageOfCore<'a>(&'a StageShare, Option<f64>);

impl JsonObject for StageOfCore<'_> {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let Self(stage, packets_per_s) = self;
        object.serialize_entry("stage", stage.stage.word())?;
        object.serialize_entry("program", &stage.program)?;
        object.serialize_entry("share", &stage.share)?;
        object.serialize_entry("ns_per_packet", &stage.ns_per_packet(*packets_per_s))?;
        let functions: Vec<_> = stage.functions.iter().map(|one| InJson(one, metrics)).collect();
        object.serialize_entry("functions", &functions)
    }
}

impl JsonObject for (String, f64) {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("name", &self.0)?;
        object.serialize_entry("share", &self.1)
    }
}

/// An event: the stacks of about a second.
pub(super) fn stacks<M: SerializeMap>(object: &mut M, profile: &CoreProfile) -> Result<(), M::Error> {
    object.serialize_entry("kind", "profiled")?;
    object.serialize_entry("from_t_ns", &profile.from_ns)?;
    object.serialize_entry("t_ns", &profile.to_ns)?;
    object.serialize_entry("core", &profile.core)?;
    object.serialize_entry("folded", &folded(profile))
}
