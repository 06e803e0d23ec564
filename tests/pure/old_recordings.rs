//! Recordings of every older form are read for ever, and give the figures that they gave.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use vnettop::derive::Derivation;
use vnettop::record::Recording;
use vnettop::report::json;

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings");
    let files = fs::read_dir(folder).expect("fixtures").map(|file| file.expect("readable").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|is| is == "zst")).collect();
    files.sort();
    files
}

/// The last object of JSON, and how many samples there are.
fn last(path: &Path) -> (Value, usize) {
    let mut recording = Recording::open(path).unwrap_or_else(|error| panic!("{error}"));
    let (mut derivation, mut last, mut samples) = (Derivation::default(), None, 0);
    while let Some(item) = recording.next_item().unwrap_or_else(|error| panic!("{error}")) {
        if let Some(metrics) = derivation.advance(item) {
            (last, samples) = (Some(metrics), samples + 1);
        }
    }
    assert_eq!(recording.truncated(), None, "{} is whole", path.display());
    let mut text = Vec::new();
    json::write(&mut text, &last.expect("samples")).expect("memory");
    (serde_json::from_slice(&text).expect("an object"), samples)
}

/// Every value that is expected is there; fields that came later are not asked for.
fn holds(expected: &Value, found: &Value, at: &str) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                let there = found.get(name).unwrap_or_else(|| panic!("{at}.{name} is gone"));
                holds(value, there, &format!("{at}.{name}"));
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            assert_eq!(expected.len(), found.len(), "rows of {at}");
            for (nth, (expected, found)) in expected.iter().zip(found).enumerate() {
                holds(expected, found, &format!("{at}[{nth}]"));
            }
        }
        _ => assert_eq!(expected, found, "{at}"),
    }
}

#[test]
fn every_older_form_gives_the_figures_that_it_gave() {
    let fixtures = fixtures();
    assert_eq!(fixtures.len(), 3, "one of each form");
    for path in fixtures {
        let figures = path.with_extension("").with_extension("json");
        let (found, samples) = last(&path);
        assert!(samples > 10, "{} has {samples} samples", path.display());
        if !figures.exists() && std::env::var_os("VNETTOP_WRITE_FIGURES").is_some() {
            fs::write(&figures, format!("{found}\n")).expect("writable");
        }
        let expected = fs::read(&figures).unwrap_or_else(|error| panic!("{}: {error}", figures.display()));
        // Sentences may be worded better.
        let mut expected: Value = serde_json::from_slice(&expected).expect("an object");
        for worded in ["findings", "problems", "tests", "card"] {
            expected.as_object_mut().expect("an object").remove(worded);
        }
        holds(&expected, &found, &path.display().to_string());
    }
}
