//! The object `card`: what a pin brought. Rates in bits/s, shares 0..1.

use super::JsonObject;
use crate::derive::{Card, Metrics};
use crate::report::pair;
use crate::sample::Word;
use serde::ser::SerializeMap;

impl JsonObject for Card {
    fn fields<M: SerializeMap>(&self, _: &Metrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("pinned_t_ns", &self.pinned_at_ns)?;
        object.serialize_entry("verdict", self.verdict.word())?;
        object.serialize_entry("text", &self.sentence())?;
        object.serialize_entry("method", &self.method(0.0))?;
        object.serialize_entry("pairs", &self.pairs())?;
        object.serialize_entry("phases", &pair::phases_json(self))?;
        object.serialize_entry("before", &self.before)?;
        object.serialize_entry("after", &self.after)?;
        object.serialize_entry("mean_difference_bits_per_s", &self.mean)?;
        object.serialize_entry("cv_difference", &self.cv)
    }
}
