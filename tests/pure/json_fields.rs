//! docs/json.md names every field that there is, and none that there is not.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The words between backticks.
fn told() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md")).expect("it is there");
    let outside_code = text.split("```").step_by(2);
    let words = outside_code.flat_map(|part| part.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    words.map(|word| word.trim_end_matches("[]").to_owned()).collect()
}

/// Every field of a value; what a finding or a softirq is called is no field.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(name.clone());
                if !["numbers", "softirqs_per_s", "softirqs_exact"].contains(&name.as_str()) {
                    fields(value, into);
                }
            }
        }
        Value::Array(all) => {
            for value in all {
                fields(value, into);
            }
        }
        _ => {}
    }
}

/// The recordings that the project has.
fn recordings() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(root.join("tests/fixtures/systems")).expect("fixtures");
    let files =
        files.map(|file| file.expect("readable").path()).filter(|path| path.extension().is_some_and(|is| is == "zst"));
    files
        .chain([root.join("assets/kunpeng.vnettop.zst"), root.join("tests/fixtures/latency/tbf.vnettop.zst")])
        .collect()
}

#[test]
fn every_field_of_every_recording_is_told() {
    let told = told();
    let mut found = BTreeSet::new();
    for recording in recordings() {
        let out = Command::new(env!("CARGO_BIN_EXE_vnettop"))
            .args(["--json", "--replay"])
            .arg(&recording)
            .output()
            .expect("vnettop runs");
        assert!(out.status.success(), "{}: {}", recording.display(), String::from_utf8_lossy(&out.stderr));
        for line in String::from_utf8(out.stdout).expect("JSON is UTF-8").lines() {
            fields(&serde_json::from_str(line).expect("every line is an object"), &mut found);
        }
    }
    assert!(found.len() > 150, "objects of many kinds: {}", found.len());
    let missing: Vec<&String> = found.difference(&told).collect();
    assert!(missing.is_empty(), "docs/json.md does not tell what these are: {missing:?}");
}

#[test]
fn every_field_that_is_told_is_written_somewhere() {
    let text: String = crate::rooms::sources().into_values().collect();
    let words: BTreeSet<&str> =
        text.split(|at: char| !at.is_ascii_alphanumeric() && at != '_').filter(|word| !word.is_empty()).collect();
    let is_field = |word: &&String| word.chars().all(|at| at.is_ascii_lowercase() || at.is_ascii_digit() || at == '_');
    // A kind of event is written as the name of its variant.
    let variant = |word: &str| -> String {
        let part = |part: &str| part.chars().next().map(|first| first.to_ascii_uppercase().to_string() + &part[1..]);
        word.split('_').filter_map(part).collect()
    };
    let is_known = |word: &str| words.contains(word) || words.contains(variant(word).as_str());
    let told = told();
    let made_up: Vec<&String> =
        told.iter().filter(is_field).filter(|word| !word.starts_with('_') && !is_known(word)).collect();
    assert!(made_up.is_empty(), "no line of code has these: {made_up:?}");
}
