//! A finding as JSON: its sentence, the numbers behind it, the key that mends it.

use super::Row;
use crate::derive::{Finding, Metrics};
use serde::{Serialize, Serializer};

/// One sentence of advice.
#[derive(Serialize)]
pub(super) struct Advice<'a> {
    id: &'a str,
    text: &'a str,
    numbers: Numbers<'a>,
    key: Option<char>,
}

struct Numbers<'a>(&'a [(&'static str, f64)]);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Row for Finding {
    type Out<'a> = Advice<'a>;

    fn row<'a>(&'a self, _: &'a Metrics) -> Advice<'a> {
        Advice { id: self.id, text: &self.text, numbers: Numbers(&self.numbers), key: self.key }
    }
}
