//! A finding as JSON: its sentence, the numbers behind it, the key that mends it. And what limits a test, likewise.

use super::JsonRow;
use crate::derive::{Finding, Limit, Metrics};
use crate::sample::Word;
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

impl JsonRow for Finding {
    type Out<'a> = Advice<'a>;

    fn row<'a>(&'a self, _: &'a Metrics) -> Advice<'a> {
        Advice { id: self.id, text: &self.text, numbers: Numbers(&self.numbers), key: self.key }
    }
}

/// What holds a test back now.
#[derive(Serialize)]
pub(super) struct HeldBack<'a> {
    kind: &'a str,
    sentence: &'a str,
    core: Option<u32>,
    name: Option<&'a str>,
    pid: Option<u32>,
    numbers: Numbers<'a>,
}

impl<'a> HeldBack<'a> {
    pub fn by(limit: &'a Limit) -> Self {
        let Limit { kind, text, core, name, pid, numbers } = limit;
        let name = name.as_deref();
        Self { kind: kind.word(), sentence: text, core: *core, name, pid: *pid, numbers: Numbers(numbers) }
    }
}
