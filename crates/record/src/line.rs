//! One line of a recording: a sample, an event, a fact by its name; of which host the lines after it are; or an agent's answer.

use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use vnettop_sample::{AgentReply, FactVisitor, Facts, Item, within_memory};

/// What a line is.
pub(super) enum RecordLine {
    /// A sample or an event.
    Item(Item),
    /// A fact, which is among the facts now.
    Fact,
    /// What an agent answers.
    Reply(AgentReply),
    /// The lines after it are this host's.
    From(String),
}

/// Reads a line; a fact goes among `facts`.
pub(super) fn read(line: &[u8], facts: &mut Facts) -> serde_json::Result<RecordLine> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let line = within_memory(|| LineSeed(facts).deserialize(&mut json))?;
    json.end()?;
    Ok(line)
}

struct LineSeed<'a>(&'a mut Facts);

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = RecordLine;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_enum("RecordLine", &[], self)
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = RecordLine;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a sample, an event or a fact")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, json: A) -> Result<Self::Value, A::Error> {
        let (name, value) = json.variant::<String>()?;
        match &*name {
            "sample" => value.newtype_variant().map(|sample| RecordLine::Item(Item::Sample(sample))),
            "event" => value.newtype_variant().map(|event| RecordLine::Item(Item::Event(event))),
            "reply" => value.newtype_variant().map(RecordLine::Reply),
            "from" => value.newtype_variant().map(RecordLine::From),
            name => {
                let (mut fact, same) = (FactReader { name, value: Some(value), lifetime: PhantomData }, self.0.clone());
                self.0.visit(&same, &mut fact)?;
                if fact.value.is_some() {
                    return Err(Error::custom(format_args!("no line is named `{name}`")));
                }
                Ok(RecordLine::Fact)
            }
        }
    }
}

/// Reads the fact of this name; its value is left where there is none.
struct FactReader<'n, 'de, A> {
    name: &'n str,
    value: Option<A>,
    lifetime: PhantomData<&'de ()>,
}

impl<'de, A: VariantAccess<'de>> FactVisitor for FactReader<'_, 'de, A> {
    type Error = A::Error;

    fn fact<T>(&mut self, name: &str, was: &mut T, _is: &T, _bytes: usize) -> Result<(), A::Error>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned,
    {
        if name == self.name
            && let Some(value) = self.value.take()
        {
            *was = value.newtype_variant()?;
        }
        Ok(())
    }
}
