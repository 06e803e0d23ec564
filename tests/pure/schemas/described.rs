//! What is written without a Rust type of its own, from `described.txt` into the same registry: a line there is a field.

use super::shape::{FieldShapes, ObjectShape, Registry, Shape};
use std::collections::BTreeMap;

const DESCRIBED: &str = include_str!("described.txt");

/// Name → fields, each with its type and what it is.
pub fn descriptions() -> BTreeMap<&'static str, Vec<[&'static str; 3]>> {
    let mut all: BTreeMap<&str, Vec<[&str; 3]>> = BTreeMap::new();
    let mut of = "";
    for line in DESCRIBED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(field) = line.strip_prefix("  ") else {
            of = line;
            assert!(all.insert(of, Vec::new()).is_none(), "{of} is described twice");
            continue;
        };
        let (typed, told) = field.split_once(" · ").unwrap_or((field, ""));
        let (name, kind) = typed.split_once(' ').expect("a name and a type");
        all.get_mut(of).expect("a name stands above").push([name, kind, told]);
    }
    all
}

/// A type as it is noted there; what has a capital is that of `types` whose name ends so.
fn shape(noted: &str, types: &BTreeMap<String, Shape>) -> Shape {
    if let Some(known) = noted.strip_suffix('?') {
        let mut shape = shape(known, types);
        shape.plain.insert("null");
        return shape;
    }
    if let Some(items) = noted.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Shape { items: Some(Box::new(shape(items, types))), ..Shape::default() };
    }
    let plain = ["boolean", "integer", "number", "string"].into_iter().find(|word| *word == noted);
    if let Some(word) = plain {
        return Shape { plain: [word].into(), ..Shape::default() };
    }
    match noted {
        "version" => Shape::named("u32"),
        "{number}" => Shape::named("Numbers"),
        _ => {
            let of_rust = types.keys().find(|name| super::types::short(name) == noted && !name.contains('<'));
            Shape::named(of_rust.map_or(noted, String::as_str))
        }
    }
}

/// Adds them. What they name of Rust must have been seen.
pub fn describe(registry: &Registry) {
    let descriptions = descriptions();
    // One that is described here is meant, whatever Rust type is called so.
    let types: BTreeMap<String, Shape> = registry
        .0
        .borrow()
        .iter()
        .filter(|(name, _)| !descriptions.contains_key(&*super::types::short(name)))
        .map(|(name, shape)| (name.clone(), shape.clone()))
        .collect();
    let any = FieldShapes { objects: 1, fields: vec![(String::new(), 1, Shape::named("f64"))] };
    let numbers = Shape { object: Some(ObjectShape(BTreeMap::from([(String::new(), any)]))), ..Shape::default() };
    registry.0.borrow_mut().insert("Numbers".to_owned(), numbers);
    for (name, fields) in descriptions {
        let fields = fields.iter().map(|[name, kind, _]| ((*name).to_owned(), 1, shape(kind, &types))).collect();
        let object = ObjectShape(BTreeMap::from([(String::new(), FieldShapes { objects: 1, fields })]));
        registry.0.borrow_mut().insert(name.to_owned(), Shape { object: Some(object), ..Shape::default() });
    }
}
