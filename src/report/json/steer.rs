//! The settings of links that vnettop has changed as JSON.

use super::JsonObject;
use crate::derive::{StandingSteer, SteerEffect, TestMetrics};
use crate::sample::Word;
use serde::ser::SerializeMap;

/// A changed setting of a link; what became of its packets in a word, and the cores that they are handled on where that is
/// elsewhere.
impl JsonObject for StandingSteer {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (effect, cores) = match &self.effect {
            SteerEffect::Awaited => ("awaited", None),
            SteerEffect::Moved => ("moved", None),
            SteerEffect::Elsewhere(cores) => ("elsewhere", Some(cores)),
            SteerEffect::Uncounted => ("uncounted", None),
            SteerEffect::NoCore => ("no_core", None),
        };
        object.serialize_entry("netns", &self.link.netns)?;
        object.serialize_entry("ifindex", &self.link.ifindex)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("setting", self.setting.word())?;
        object.serialize_entry("old", &self.old)?;
        object.serialize_entry("got", &self.got)?;
        object.serialize_entry("effect", effect)?;
        object.serialize_entry("effect_cores", &cores)?;
        object.serialize_entry("overridden_by", &self.overridden)
    }
}
