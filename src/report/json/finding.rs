//! A finding as JSON: its sentence, the numbers behind it, the key that mends it. And what limits a test, likewise.

use super::JsonObject;
use crate::derive::{Finding, Limit, Metrics};
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
    fn fields<M: SerializeMap>(&self, _: &Metrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("id", self.id.word())?;
        object.serialize_entry("text", &self.text)?;
        object.serialize_entry("numbers", &Numbers(&self.numbers))?;
        object.serialize_entry("key", &self.key)
    }
}

impl JsonObject for Limit {
    fn fields<M: SerializeMap>(&self, _: &Metrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("kind", self.kind.word())?;
        object.serialize_entry("sentence", &self.text)?;
        object.serialize_entry("core", &self.core)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("pid", &self.pid)?;
        object.serialize_entry("numbers", &Numbers(&self.numbers))
    }
}
