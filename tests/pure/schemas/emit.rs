//! Shapes as JSON Schema: a definition for each type that is an object, closed, so that a field too many is as wrong as one too few.

use super::shape::{FieldShapes, ObjectShape, Shape, VARIANT};
use super::told::Page;
use super::types::{RustType, is_map, short};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The definitions of a schema, as they are asked for.
pub struct Definitions<'a> {
    types: BTreeMap<String, Shape>,
    page: &'a Page,
    made: BTreeMap<String, Value>,
    /// Types of which there was no value, with where they are asked for.
    unseen: BTreeSet<String>,
}

/// A shape whose types were looked up.
#[derive(Default)]
struct Resolved {
    plain: BTreeSet<&'static str>,
    items: Option<Shape>,
    objects: Vec<ObjectShape>,
    definitions: BTreeSet<String>,
}

impl<'a> Definitions<'a> {
    pub fn new(types: BTreeMap<String, Shape>, page: &'a Page) -> Self {
        Self { types, page, made: BTreeMap::new(), unseen: BTreeSet::new() }
    }

    /// The definitions that were needed.
    ///
    /// # Panics
    /// There was no value of a type that is asked for.
    pub fn into_values(self) -> BTreeMap<String, Value> {
        assert!(self.unseen.is_empty(), "no recording has these, and none was planted: {:#?}", self.unseen);
        self.made
    }

    /// What a shape is called or what it is; `at` says where it stands.
    pub fn schema(&mut self, shape: &Shape, at: &str) -> Value {
        let mut resolved = Resolved::default();
        self.resolve(shape, at, &mut resolved);
        let Resolved { mut plain, items, objects, definitions } = resolved;
        if plain.contains("number") {
            plain.remove("integer");
        }
        let is_null = plain.remove("null");
        let mut choices: Vec<Value> = definitions.iter().map(|name| self.reference(name)).collect();
        choices.extend(objects.iter().map(|object| self.object(object, at, false)));
        let mut types: Vec<&str> = plain.into_iter().collect();
        types.extend(items.is_some().then_some("array"));
        types.extend(is_null.then_some("null"));
        if !types.is_empty() {
            let types = if let [one] = types[..] { json!(one) } else { json!(types) };
            let mut of = Map::from_iter([("type".to_owned(), types)]);
            if let Some(items) = items {
                of.insert("items".to_owned(), self.schema(&items, at));
            }
            choices.push(of.into());
        }
        if choices.len() == 1 { choices.swap_remove(0) } else { json!({ "anyOf": choices }) }
    }

    fn resolve(&mut self, shape: &Shape, at: &str, into: &mut Resolved) {
        into.plain.extend(&shape.plain);
        into.objects.extend(shape.object.clone());
        if let Some(items) = &shape.items {
            into.items.get_or_insert_default().merge((**items).clone());
        }
        for name in &shape.of {
            match RustType::of(name) {
                RustType::Option(inner) => {
                    into.plain.insert("null");
                    self.resolve(&Shape::named(&inner), at, into);
                }
                RustType::List(inner) => into.items.get_or_insert_default().merge(Shape::named(&inner)),
                RustType::Plain(word) => {
                    into.plain.insert(word);
                }
                RustType::Other => match self.types.get(name).cloned() {
                    None if name.starts_with('(') => {
                        let parts = name.trim_matches(['(', ')']).split(", ");
                        parts.for_each(|part| into.items.get_or_insert_default().merge(Shape::named(part)));
                    }
                    // No value of it was seen, but it is described.
                    None if self.types.contains_key(&short(name)) => {
                        into.definitions.insert(short(name));
                    }
                    None => {
                        self.unseen.insert(format!("{at}: {name}"));
                    }
                    // Variants without anything are words.
                    Some(Shape { object: Some(_), plain, .. }) => {
                        into.definitions.insert(name.clone());
                        into.plain.extend(plain);
                    }
                    Some(shape) => self.resolve(&shape, at, into),
                },
            }
        }
    }

    /// A reference to the definition of a type, which is made if it is not there.
    fn reference(&mut self, name: &str) -> Value {
        let called = short(name);
        if !self.made.contains_key(&called) {
            self.made.insert(called.clone(), Value::Null);
            let object = self.types[name].object.clone().expect("a definition is of an object");
            let made = self.object(&object, &called, is_map(name));
            self.made.insert(called.clone(), made);
        }
        json!({ "$ref": format!("#/$defs/{called}") })
    }

    fn object(&mut self, object: &ObjectShape, at: &str, is_map: bool) -> Value {
        if is_map {
            let mut value = Shape::default();
            object.0.values().flat_map(|of| &of.fields).for_each(|field| value.merge(field.2.clone()));
            return json!({ "type": "object", "additionalProperties": self.schema(&value, at) });
        }
        let mut kinds: Vec<Value> = object.0.iter().map(|(kind, fields)| self.fields(kind, fields, at)).collect();
        if kinds.len() == 1 { kinds.swap_remove(0) } else { json!({ "anyOf": kinds }) }
    }

    fn fields(&mut self, kind: &str, of: &FieldShapes, at: &str) -> Value {
        let mut properties = Map::new();
        for (name, _, shape) in &of.fields {
            let mut schema = match &**name {
                "schema_version" => json!({ "const": 1 }),
                "kind" if !kind.is_empty() && !kind.starts_with(VARIANT) => json!({ "const": kind }),
                _ => self.schema(shape, &format!("{at}.{name}")),
            };
            if let (Some(told), Value::Object(schema)) = (self.page.told(at, name), &mut schema) {
                schema.insert("description".to_owned(), told.into());
            }
            properties.insert(name.clone(), schema);
        }
        let required: Vec<&String> =
            of.fields.iter().filter(|field| field.1 == of.objects).map(|field| &field.0).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}

/// JSON with what fits in a line in one.
pub fn readable(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text + "\n"
}

fn write(value: &Value, depth: usize, text: &mut String) {
    let line = value.to_string();
    let is_short = line.len() + depth * 2 <= 118;
    let each = |text: &mut String, nth: usize| {
        text.push_str(if nth > 0 { ",\n" } else { "\n" });
        text.push_str(&"  ".repeat(depth + 1));
    };
    let end = format!("\n{}", "  ".repeat(depth));
    match value {
        Value::Object(object) if !is_short => {
            text.push('{');
            for (nth, (name, value)) in object.iter().enumerate() {
                each(text, nth);
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(": ");
                write(value, depth + 1, text);
            }
            text.push_str(&(end + "}"));
        }
        Value::Array(list) if !is_short && list.iter().any(Value::is_object) => {
            text.push('[');
            for (nth, value) in list.iter().enumerate() {
                each(text, nth);
                write(value, depth + 1, text);
            }
            text.push_str(&(end + "]"));
        }
        _ => text.push_str(&line),
    }
}
