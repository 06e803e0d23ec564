//! What was found, as JSON: a finding with its sentence, the numbers behind it and the key that mends it; what limits a test,
//! likewise; and what a pin brought (rates in bits/s, shares 0..1).

use super::JsonObject;
use crate::derive::experiment::{Difference, LatencyChange, QuantileChange};
use crate::derive::{Card, Finding, Limit, TestMetrics};
use crate::report::pair;
use crate::sample::Word;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The numbers by their names.
pub(crate) struct Numbers<'a>(pub &'a [(&'static str, f64)]);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl JsonObject for Finding {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("id", self.id.word())?;
        object.serialize_entry("text", &self.text)?;
        let known = |part: &'_ str| (!part.is_empty()).then(|| part.to_owned());
        object.serialize_entry("cost", &known(&self.parts.cost))?;
        object.serialize_entry("fix", &known(&self.parts.fix))?;
        object.serialize_entry("numbers", &Numbers(&self.numbers))?;
        object.serialize_entry("key", &self.key)
    }
}

impl JsonObject for Limit {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("kind", self.kind.word())?;
        object.serialize_entry("sentence", &self.text)?;
        object.serialize_entry("core", &self.core)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("pid", &self.pid)?;
        object.serialize_entry("tid", &self.tid)?;
        object.serialize_entry("key", &self.key)?;
        object.serialize_entry("numbers", &Numbers(&self.numbers))
    }
}

/// The object `card`.
impl JsonObject for Card {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("pinned_t_ns", &self.pinned_at_ns)?;
        object.serialize_entry("verdict", self.verdict.word())?;
        object.serialize_entry("text", &self.sentence())?;
        object.serialize_entry("method", &self.method(0.0))?;
        object.serialize_entry("pairs", &self.pairs())?;
        object.serialize_entry("phases", &pair::phases_json(self))?;
        object.serialize_entry("before", &self.before)?;
        object.serialize_entry("after", &self.after)?;
        object.serialize_entry("mean_difference_bits_per_s", &self.mean)?;
        object.serialize_entry("cv_difference", &self.cv)?;
        object.serialize_entry("latency", &self.latency.map(OverPath))
    }
}

/// How long packets took, on both sides.
struct OverPath(LatencyChange);

impl Serialize for OverPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(2))?;
        object.serialize_entry("p50", &Quantile(self.0.p50))?;
        object.serialize_entry("p99", &Quantile(self.0.p99))?;
        object.end()
    }
}

/// Microseconds.
struct Quantile(QuantileChange);

impl Serialize for Quantile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let in_us = |of: Difference| Difference { estimate: of.estimate * 1e6, from: of.from * 1e6, to: of.to * 1e6 };
        let mut object = serializer.serialize_map(Some(3))?;
        object.serialize_entry("before_us", &(self.0.before_s * 1e6))?;
        object.serialize_entry("after_us", &(self.0.after_s * 1e6))?;
        object.serialize_entry("difference_us", &self.0.change.map(in_us))?;
        object.end()
    }
}
