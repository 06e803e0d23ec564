//! The shape of what is written, by Rust type: a serializer that keeps no value, only which types a field may have. That a value may be
//! null, and what is in an empty list, is read from the type's name (`Option<f64>`), so it holds whatever the recordings have.

use super::types::{RustType, plain};
use serde::ser::{
    self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    Serializer,
};
use std::any::type_name;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Any JSON.
const UNTYPED: &str = "serde_json::value::Value";

/// How the key of an object begins that is a variant around what is in it.
pub const VARIANT: char = '{';

/// What a value may be; all of it at once, where it has been several.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// `null`, `boolean`, `integer`, `number`, `string`.
    pub plain: BTreeSet<&'static str>,
    /// What is in a list.
    pub items: Option<Box<Shape>>,
    /// What an object has.
    pub object: Option<ObjectShape>,
    /// The Rust types that it may be besides, by name.
    pub of: BTreeSet<String>,
}

/// The fields of an object, by the word of its field `kind` where that says which fields there are, and by the variant where an enum has it
/// around what is in it.
#[derive(Debug, Clone, Default)]
pub struct ObjectShape(pub BTreeMap<String, FieldShapes>);

/// Fields in the order in which they are written.
#[derive(Debug, Clone, Default)]
pub struct FieldShapes {
    /// How many objects were looked at.
    pub objects: usize,
    /// Name, in how many objects, and what it may be.
    pub fields: Vec<(String, usize, Shape)>,
}

impl Shape {
    fn plain(word: &'static str) -> Self {
        Self { plain: BTreeSet::from([word]), ..Self::default() }
    }

    /// One of a type, by its name.
    pub fn named(name: &str) -> Self {
        Self { of: BTreeSet::from([name.to_owned()]), ..Self::default() }
    }

    /// This, or that.
    pub fn merge(&mut self, other: Self) {
        self.plain.extend(other.plain);
        self.of.extend(other.of);
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
        for (kind, of) in other.object.into_iter().flat_map(|object| object.0) {
            let known = self.object.get_or_insert_default().0.entry(kind).or_default();
            known.objects += of.objects;
            for (name, times, shape) in of.fields {
                if let Some(field) = known.fields.iter_mut().find(|field| field.0 == name) {
                    field.1 += times;
                    field.2.merge(shape);
                } else {
                    known.fields.push((name, times, shape));
                }
            }
        }
    }
}

/// The shape of each Rust type, by its name.
#[derive(Debug, Default)]
pub struct Registry(pub RefCell<BTreeMap<String, Shape>>);

impl Registry {
    /// Looks at a value, and at all that is in it.
    pub fn see<T: Serialize + ?Sized>(&self, value: &T) -> Shape {
        let name = plain(type_name::<T>());
        let shape = value.serialize(Walker { registry: self, name: &name }).expect("a shape has no errors");
        // What serde_json made of something else is only what it is here, and so is a list of it.
        if name == UNTYPED || matches!(RustType::of(&name), RustType::List(inner) if inner == UNTYPED) {
            return shape;
        }
        self.0.borrow_mut().entry(name.clone()).or_default().merge(shape);
        Shape::named(&name)
    }
}

/// Looks at one value of the type of this name.
#[derive(Clone, Copy)]
struct Walker<'a> {
    registry: &'a Registry,
    name: &'a str,
}

/// No value can be without a shape.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(String);

impl ser::Error for ShapeError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Seen = Result<Shape, ShapeError>;

macro_rules! plainly {
    ($($method:ident $of:ty, $word:literal;)*) => { $(fn $method(self, _: $of) -> Seen { Ok(Shape::plain($word)) })* };
}

impl<'a> Serializer for Walker<'a> {
    type Ok = Shape;
    type Error = ShapeError;
    type SerializeSeq = ListWalker<'a>;
    type SerializeTuple = ListWalker<'a>;
    type SerializeTupleStruct = Impossible<Shape, ShapeError>;
    type SerializeTupleVariant = Impossible<Shape, ShapeError>;
    type SerializeMap = FieldWalker<'a>;
    type SerializeStruct = FieldWalker<'a>;
    type SerializeStructVariant = FieldWalker<'a>;

    plainly! {
        serialize_bool bool, "boolean";
        serialize_i8 i8, "integer";
        serialize_i16 i16, "integer";
        serialize_i32 i32, "integer";
        serialize_i64 i64, "integer";
        serialize_u8 u8, "integer";
        serialize_u16 u16, "integer";
        serialize_u32 u32, "integer";
        serialize_u64 u64, "integer";
        serialize_f32 f32, "number";
        serialize_f64 f64, "number";
        serialize_char char, "string";
        serialize_str &str, "string";
        serialize_bytes &[u8], "string";
        serialize_unit_struct &'static str, "null";
    }

    fn serialize_unit(self) -> Seen {
        Ok(Shape::plain("null"))
    }

    fn serialize_none(self) -> Seen {
        let mut shape = Shape::plain("null");
        if let RustType::Option(inner) = RustType::of(self.name) {
            shape.of.insert(inner);
        }
        Ok(shape)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Seen {
        let mut shape = self.registry.see(value);
        shape.plain.insert("null");
        Ok(shape)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Seen {
        Ok(Shape::plain("string"))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Seen {
        Ok(self.registry.see(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Seen {
        let mut fields = FieldWalker::new(self, None);
        fields.field(variant, value);
        fields.kind = format!("{VARIANT}{variant}");
        Ok(fields.shape())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ListWalker<'a>, ShapeError> {
        let mut items = Shape::default();
        // Of values without a type those that are there tell what is in the list.
        if let RustType::List(inner) = RustType::of(self.name)
            && inner != UNTYPED
        {
            items.of.insert(inner);
        }
        Ok(ListWalker { registry: self.registry, items })
    }

    fn serialize_tuple(self, _: usize) -> Result<ListWalker<'a>, ShapeError> {
        Ok(ListWalker { registry: self.registry, items: Shape::default() })
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, ShapeError> {
        Err(ser::Error::custom(format_args!("nothing is written as a tuple struct so far: {}", self.name)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ShapeError> {
        Err(ser::Error::custom(format_args!("nothing is written as a tuple variant so far: {}", self.name)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<FieldWalker<'a>, ShapeError> {
        Ok(FieldWalker::new(self, None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<FieldWalker<'a>, ShapeError> {
        Ok(FieldWalker::new(self, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<FieldWalker<'a>, ShapeError> {
        Ok(FieldWalker::new(self, Some(variant)))
    }
}

/// A list.
pub struct ListWalker<'a> {
    registry: &'a Registry,
    items: Shape,
}

impl SerializeSeq for ListWalker<'_> {
    type Ok = Shape;
    type Error = ShapeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ShapeError> {
        self.items.merge(self.registry.see(value));
        Ok(())
    }

    fn end(self) -> Seen {
        Ok(Shape { items: Some(Box::new(self.items)), ..Shape::default() })
    }
}

impl SerializeTuple for ListWalker<'_> {
    type Ok = Shape;
    type Error = ShapeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ShapeError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Seen {
        SerializeSeq::end(self)
    }
}

/// An object.
pub struct FieldWalker<'a> {
    registry: &'a Registry,
    /// Its fields say which there are.
    kind: String,
    is_told_by_kind: bool,
    fields: FieldShapes,
    key: Option<String>,
    /// The one field of an object around it.
    variant: Option<&'static str>,
}

impl<'a> FieldWalker<'a> {
    fn new(of: Walker<'a>, variant: Option<&'static str>) -> Self {
        let is_told_by_kind = super::types::is_told_by_kind(of.name);
        let fields = FieldShapes { objects: 1, fields: Vec::new() };
        Self { registry: of.registry, kind: String::new(), is_told_by_kind, fields, key: None, variant }
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.is_told_by_kind && name == "kind" {
            let word = serde_json::to_value(value).expect("a word");
            word.as_str().expect("a kind is a word").clone_into(&mut self.kind);
        }
        self.fields.fields.push((name.to_owned(), 1, self.registry.see(value)));
    }

    fn shape(self) -> Shape {
        let object =
            |kind, fields| Shape { object: Some(ObjectShape(BTreeMap::from([(kind, fields)]))), ..Shape::default() };
        let inner = object(self.kind, self.fields);
        let Some(variant) = self.variant else { return inner };
        let fields = vec![(variant.to_owned(), 1, inner)];
        object(format!("{VARIANT}{variant}"), FieldShapes { objects: 1, fields })
    }
}

impl SerializeMap for FieldWalker<'_> {
    type Ok = Shape;
    type Error = ShapeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ShapeError> {
        let key = serde_json::to_value(key).expect("a key");
        self.key = Some(key.as_str().map_or_else(|| key.to_string(), str::to_owned));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ShapeError> {
        let key = self.key.take().expect("a key comes first");
        self.field(&key, value);
        Ok(())
    }

    fn end(self) -> Seen {
        Ok(self.shape())
    }
}

impl SerializeStruct for FieldWalker<'_> {
    type Ok = Shape;
    type Error = ShapeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ShapeError> {
        self.field(name, value);
        Ok(())
    }

    fn end(self) -> Seen {
        Ok(self.shape())
    }
}

impl SerializeStructVariant for FieldWalker<'_> {
    type Ok = Shape;
    type Error = ShapeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ShapeError> {
        self.field(name, value);
        Ok(())
    }

    fn end(self) -> Seen {
        Ok(self.shape())
    }
}
