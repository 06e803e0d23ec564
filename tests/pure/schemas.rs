//! The JSON Schemas of what vnettop writes and of its settings (`schemas/`): made of the code that writes and reads them, and true of every
//! recording in the tree. `INSTA_UPDATE=always cargo test --test pure schemas::` writes the files anew.

mod config;
mod described;
mod emit;
mod filled;
mod outputs;
mod planted;
mod recordings;
mod shape;
mod told;
mod types;

use emit::{Definitions, readable};
use jsonschema::Validator;
use serde_json::{Value, json};
use shape::{Registry, Shape};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use told::Page;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// All types, as every recording and what is planted show them.
fn registry() -> &'static Known {
    static SEEN: OnceLock<Known> = OnceLock::new();
    SEEN.get_or_init(|| {
        let registry = Registry::default();
        outputs::see(&registry);
        planted::see(&registry);
        described::describe(&registry);
        Known(registry.0.into_inner())
    })
}

/// What was seen, for several threads.
struct Known(std::collections::BTreeMap<String, Shape>);

/// The schema of objects of one of these types.
fn schema(name: &str, title: &str, of: &[&str]) -> Value {
    let page = Page::of_json();
    let mut definitions = Definitions::new(registry().0.clone(), &page);
    let mut any: Vec<Value> = of.iter().map(|name| definitions.schema(&Shape::named(name), "")).collect();
    let mut whole = if any.len() == 1 { any.swap_remove(0) } else { json!({ "anyOf": any }) };
    let more = json!({
        "$schema": DRAFT, "$id": format!("urn:vnettop:schema:{name}:1"), "title": title,
        "$defs": definitions.into_values(),
    });
    whole.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    whole
}

fn of_json() -> Value {
    schema("json", "A line of vnettop --json", &[planted::of_one_host(), "vnettop::report::json::end_to_end::OfHost"])
}

fn of_card() -> Value {
    schema("card", "The card of vnettop run --format json, or of a pin", &["RunCard", "PinCard"])
}

fn of_report() -> Value {
    schema("report", "vnettop report --format json", &["Report"])
}

/// Compares a schema with its file, or writes that.
fn keep(name: &str, schema: &Value) {
    let (text, path) = (readable(schema), format!("schemas/{name}.schema.json"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        return fs::write(file, text).expect("writable");
    }
    let kept = fs::read_to_string(file).unwrap_or_default();
    let changed = text.lines().zip(kept.lines().chain(std::iter::repeat(""))).find(|(is, was)| is != was);
    assert!(
        text == kept,
        "{path} is not what the code writes, first at {changed:?}: if that is meant, \
         INSTA_UPDATE=always cargo test --test pure schemas::, and if a field went or means something else, a new schema_version"
    );
}

#[test]
fn the_files_are_what_the_code_says() {
    keep("json", &of_json());
    keep("card", &of_card());
    keep("report", &of_report());
    keep("config", &config::schema());
    keep("recording", &recordings::of_recording());
    keep("agent", &recordings::of_agent());
}

/// The schema as it is kept.
fn kept(name: &str) -> Validator {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.schema.json"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(file).expect("the schema")).expect("JSON");
    jsonschema::meta::validate(&schema).expect("a schema");
    jsonschema::validator_for(&schema).expect("a schema that can be used")
}

/// What is wrong with a value, where there is something.
fn wrong(schema: &Validator, value: &Value) -> Option<String> {
    let wrong = schema.iter_errors(value).map(|error| format!("{}: {:.300}", error.instance_path(), error.to_string()));
    let all: Vec<String> = wrong.take(3).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

#[test]
fn json_of_every_recording_is_as_its_schema_says() {
    let (schema, mut lines) = (kept("json"), 0);
    outputs::each_line(&mut |path, line| {
        lines += 1;
        assert_eq!(wrong(&schema, &line), None, "{path}");
    });
    assert!(lines > 500, "{lines} lines");
}

#[test]
fn reports_and_cards_of_every_recording_are_as_their_schemas_say() {
    let (of_report, of_card, mut cards) = (kept("report"), kept("card"), 0);
    for path in outputs::recordings().into_iter().chain([outputs::two_hosts()]) {
        let report = outputs::said(&["report", "--format", "json"], &path).expect("a report");
        assert_eq!(wrong(&of_report, &report), None, "{}", path.display());
        if let Some(card) = outputs::said(&["card", "--format", "json"], &path) {
            assert_eq!(wrong(&of_card, &card), None, "{}", path.display());
            cards += 1;
        }
    }
    assert!(cards > 0, "a recording has a pin");
}

#[test]
fn settings_are_as_their_schema_says() {
    let schema = kept("config");
    assert_eq!(wrong(&schema, &config::parsed(&config::all_on())), None);
    for (text, is_right) in [
        ("interval = 0.5\nwatch = \"qemu\"\n[links]\nsort = \"rx\"\n[keys]\nquit = [\"q\", \"F10\"]\n", true),
        ("profile = 3\n", true),
        ("intervall = 0.5\n", false),
        ("interval = 0.001\n", false),
        ("[links]\nsort = \"speed\"\n", false),
        ("[layout]\npanes = []\n", false),
        ("[keys]\nquitt = \"q\"\n", false),
    ] {
        assert_eq!(wrong(&schema, &config::parsed(text)).is_none(), is_right, "{text}");
    }
}

/// A field more, less, of another name or of another type is found.
#[test]
fn a_field_renamed_by_hand_is_found() {
    let (schema, mut line) = (kept("json"), None);
    outputs::each_line(&mut |_, value| {
        if line.is_none() && value["links"].get(0).is_some() {
            line = Some(value);
        }
    });
    let line = line.expect("a line with a link");
    assert_eq!(wrong(&schema, &line), None);
    let alterations: [fn(&mut serde_json::Map<String, Value>); 3] = [
        |link| _ = link.remove("mtu").and_then(|mtu| link.insert("mtu_bytes".to_owned(), mtu)),
        |link| _ = link.remove("rx_bits_per_s"),
        |link| _ = link.insert("ifindex".to_owned(), "2".into()),
    ];
    for alter in alterations {
        let mut other = line.clone();
        alter(other["links"][0].as_object_mut().expect("an object"));
        assert!(wrong(&schema, &other).is_some(), "{other}");
    }
}
