//! The object of `vnettop doctor --json`.

use super::nobody;
use std::fs;
use std::path::Path;
use vnettop::derive::doctor::judge;
use vnettop::report::doctor;

#[test]
fn the_object_has_the_checks_of_the_text_and_json_md_names_its_fields() {
    let facts = nobody();
    let diagnosis = judge(&facts);
    let line = doctor::json(&facts, &diagnosis);
    assert_eq!(line.matches('\n').count(), 1, "one object on one line");
    let object: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    let checks = object["checks"].as_array().expect("a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    let same: Vec<&str> = diagnosis.checks().map(|(_, check)| check.name).collect();
    assert_eq!(names, same, "the same checks in the same order");
    assert_eq!((&object["works"], &object["ts"]), (&true.into(), &"2026-01-02T03:04:05.678Z".into()));
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md")).expect("it is there");
    let part = page.split("## The object of `vnettop doctor --json`").nth(1).expect("it has a part of its own");
    let fields = object.as_object().expect("an object").keys().chain(checks[0].as_object().expect("one").keys());
    for field in fields {
        assert!(
            part.contains(&format!("`{field}`")) || part.contains(&format!("`{field}[]`")),
            "docs/json.md tells what {field} is"
        );
    }
}
