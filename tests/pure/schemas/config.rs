//! The settings as a schema, of the program's own table of them: what editors of TOML look at.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use vnettop::config::{AllowedValue, example, settings};

fn allowed(of: &AllowedValue) -> Value {
    let one_or_some = |item: Value, more: Value| {
        let mut list = json!({ "type": "array", "items": item });
        list.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({ "anyOf": [item, list] })
    };
    let text = json!({ "type": "string" });
    match of {
        AllowedValue::Flag => json!({ "type": "boolean" }),
        AllowedValue::Number([least, most]) => json!({ "type": "number", "minimum": least, "maximum": most }),
        AllowedValue::Text => text,
        AllowedValue::Texts | AllowedValue::Keys => one_or_some(text, Value::Null),
        AllowedValue::Word(words) => json!({ "enum": words }),
        AllowedValue::Words(words) => {
            one_or_some(json!({ "enum": words }), json!({ "minItems": 1, "uniqueItems": true }))
        }
        AllowedValue::Core => {
            json!({ "anyOf": [{ "type": "string", "pattern": "^(limit|[0-9]+)?$" }, { "type": "integer", "minimum": 0 }] })
        }
    }
}

/// A value of TOML in JSON.
fn in_json(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(is) => (*is.value()).into(),
        toml_edit::Value::Array(all) => all.iter().map(in_json).collect(),
        other => panic!("no setting is a {}", other.type_name()),
    }
}

fn table(table: &dyn toml_edit::TableLike) -> Value {
    let value = |item: &toml_edit::Item| match item.as_table_like() {
        Some(inner) => self::table(inner),
        None => in_json(item.as_value().expect("a value")),
    };
    Value::Object(table.iter().map(|(name, item)| (name.to_owned(), value(item))).collect())
}

/// A file of settings in JSON.
pub fn parsed(text: &str) -> Value {
    let document = toml_edit::Document::parse(text.to_owned()).expect("TOML");
    table(document.as_table())
}

/// The example of the packages with every setting switched on.
pub fn all_on() -> String {
    let mut text = String::new();
    for line in example().lines() {
        let is_setting = line.starts_with('#') && !line.starts_with("# ");
        let _ = writeln!(text, "{}", if is_setting { &line[1..] } else { line });
    }
    text
}

pub fn schema() -> Value {
    let mut whole = Map::new();
    for row in settings() {
        let mut of = allowed(&row.allowed);
        let object = of.as_object_mut().expect("a schema is an object");
        object.insert("description".to_owned(), row.doc.into());
        object.extend(row.default.as_ref().map(|value| ("default".to_owned(), in_json(value))));
        match row.path.split_once('.') {
            None => _ = whole.insert(row.path, of),
            Some((section, name)) => {
                let empty = json!({ "type": "object", "properties": {}, "additionalProperties": false });
                let section = whole.entry(section).or_insert(empty);
                section["properties"][name] = of;
            }
        }
    }
    json!({
        "$schema": super::DRAFT, "$id": "urn:vnettop:schema:config:1", "title": "vnettop's config.toml",
        "type": "object", "properties": whole, "additionalProperties": false,
    })
}
