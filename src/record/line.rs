//! One line of a recording: a sample, an event, or a fact by its name.

use crate::sample::{FactVisitor, Facts, Item};
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The sample or event of a line; none where it is a fact, which is among `facts` then.
pub(super) fn read(line: &[u8], facts: &mut Facts) -> serde_json::Result<Option<Item>> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let item = LineReader(facts).deserialize(&mut json)?;
    json.end()?;
    Ok(item)
}

struct LineReader<'a>(&'a mut Facts);

impl<'de> DeserializeSeed<'de> for LineReader<'_> {
    type Value = Option<Item>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_enum("Line", &[], self)
    }
}

impl<'de> Visitor<'de> for LineReader<'_> {
    type Value = Option<Item>;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a sample, an event or a fact")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, json: A) -> Result<Self::Value, A::Error> {
        let (name, value) = json.variant::<String>()?;
        match &*name {
            "sample" => value.newtype_variant().map(|sample| Some(Item::Sample(sample))),
            "event" => value.newtype_variant().map(|event| Some(Item::Event(event))),
            name => {
                let (mut fact, same) = (FactReader { name, value: Some(value), lifetime: PhantomData }, self.0.clone());
                self.0.visit(&same, &mut fact)?;
                if fact.value.is_some() {
                    return Err(Error::custom(format_args!("no line is named `{name}`")));
                }
                Ok(None)
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
