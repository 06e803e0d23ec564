//! Values of a type that have everything, made by its own `Deserialize`: no recording in the tree needs to have an optional field for its schema to
//! know it. What is flattened or has its kind within (`flatten`, `tag`) says nothing of its fields and is planted by hand.

use serde::de::value::Error;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

/// No enum has more variants.
const MOST_VARIANTS: usize = 48;
/// No struct is within more others.
const DEEPEST: usize = 7;

/// Values that have every variant of every enum, with every field, and of every struct one without what can be left out.
pub fn filled<T: DeserializeOwned>() -> Vec<T> {
    let fills = (0..MOST_VARIANTS)
        .flat_map(|nth| (0..=DEEPEST).map(move |depth| Fill { nth, full_structs: depth, is_empty: false }));
    fills.map(|fill| T::deserialize(fill).expect("a type that says its fields")).collect()
}

/// What a value is filled with.
#[derive(Clone, Copy)]
struct Fill {
    /// Which variant an enum has.
    nth: usize,
    /// So many structs around a value have every field; those within these have none that can be left out.
    full_structs: usize,
    /// This is within them.
    is_empty: bool,
}

macro_rules! filled_with {
    ($($method:ident $visit:ident $value:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> { visitor.$visit($value(self)) })*
    };
}

fn one<N: From<u8>>(fill: Fill) -> N {
    u8::from(!fill.is_empty).into()
}

impl Fill {
    /// What the fields of a struct are filled with.
    fn within(self) -> Self {
        let left = self.full_structs.checked_sub(1);
        Self { full_structs: left.unwrap_or_default(), is_empty: left.is_none(), ..self }
    }

    fn text(self, wanted: &dyn Expected) -> &'static str {
        match &*wanted.to_string() {
            "IP address" | "IPv4 address" => "192.0.2.1",
            "socket address" => "192.0.2.1:1",
            _ if self.is_empty => "",
            _ => "1",
        }
    }
}

impl<'de> Deserializer<'de> for Fill {
    type Error = Error;

    filled_with! {
        deserialize_bool visit_bool |fill: Self| !fill.is_empty;
        deserialize_i8 visit_i8 |fill: Self| i8::from(!fill.is_empty);
        deserialize_i16 visit_i16 one;
        deserialize_i32 visit_i32 one;
        deserialize_i64 visit_i64 one;
        deserialize_u8 visit_u8 one;
        deserialize_u16 visit_u16 one;
        deserialize_u32 visit_u32 one;
        deserialize_u64 visit_u64 one;
        deserialize_f32 visit_f32 one;
        deserialize_f64 visit_f64 one;
        deserialize_char visit_char |_| 'a';
        deserialize_any visit_str |_| "a";
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.text(&visitor);
        visitor.visit_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_empty { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { fill: self, left: usize::from(!self.is_empty) })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { fill: self, left: length })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { fill: self.within(), left: fields })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        assert!(variants.len() <= MOST_VARIANTS, "{name} has {} variants", variants.len());
        visitor.visit_enum(Variant { fill: self, name: variants[self.nth % variants.len()] })
    }

    serde::forward_to_deserialize_any! { bytes byte_buf unit_struct tuple_struct map identifier ignored_any }
}

struct Items {
    fill: Fill,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.fill).map(Some)
    }
}

struct Fields {
    fill: Fill,
    left: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.left.first().map(|name| seed.deserialize((*name).into_deserializer())).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        self.left = &self.left[1..];
        seed.deserialize(self.fill)
    }
}

struct Variant {
    fill: Fill,
    name: &'static str,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Error> {
        let name: de::value::StrDeserializer<Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.fill)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.fill.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { fill: self.fill.within(), left: fields })
    }
}
