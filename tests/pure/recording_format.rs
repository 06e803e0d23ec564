//! docs/recordings.md names every line and field of a recording, and none that there is not.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Deserializer, Value};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{FactVisitor, Facts};

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("it is there")
}

/// First words between backticks of the rows of tables below a heading.
fn rows(below: &str) -> BTreeSet<String> {
    let text = file("docs/recordings.md");
    let part = text.split(below).nth(1).expect("the heading");
    let part = part.split("\n## ").next().expect("a part");
    let named = part.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned));
    named.collect()
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl FactVisitor for Names {
    type Error = Infallible;

    fn fact<T>(&mut self, name: &str, _was: &mut T, _is: &T, _bytes: usize) -> Result<(), Infallible>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned,
    {
        self.0.insert(name.to_owned());
        Ok(())
    }
}

fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            into.extend(object.keys().cloned());
            object.values().for_each(|value| fields(value, into));
        }
        Value::Array(all) => all.iter().for_each(|value| fields(value, into)),
        _ => {}
    }
}

#[test]
fn every_fact_has_its_row_and_every_row_its_fact() {
    let mut names = Names::default();
    let Ok(()) = Facts::default().visit(&Facts::default(), &mut names);
    assert_eq!(rows("## Facts"), names.0);
}

#[test]
fn every_field_of_every_recording_is_named() {
    let text = file("docs/recordings.md");
    let named: BTreeSet<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let mut found = BTreeSet::new();
    let directory = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let systems =
        fs::read_dir(root.join("tests/fixtures/systems")).expect("fixtures").map(|file| file.expect("readable").path());
    let recordings = systems
        .chain([root.join("assets/kunpeng.vnettop.zst"), root.join("tests/fixtures/latency/tbf.vnettop.zst")])
        .filter(|path| path.extension().is_some_and(|is| is == "zst"));
    for (nth, path) in recordings.enumerate() {
        // As this program writes them.
        let plain = directory.path().join(format!("{nth}.jsonl"));
        let (mut recording, mut recorder) =
            (Recording::open(&path).expect("a recording"), Recorder::create(&plain).expect("a new file"));
        while let Some(item) = recording.next_item().expect("good lines") {
            recorder.write(&item).expect("writable");
        }
        recorder.finish().expect("writable");
        let text = fs::read_to_string(&plain).expect("readable");
        // The header is shown in the text.
        for line in text.lines().skip(1) {
            let value = Deserializer::from_str(line).into_iter().next().expect("a line").expect("JSON");
            fields(&value, &mut found);
        }
    }
    for line in ["sample", "event", "kind"] {
        assert!(found.remove(line), "{line} is there");
    }
    let missing: Vec<&String> = found.iter().filter(|name| !named.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/recordings.md does not name {missing:?}");
}

#[test]
fn every_field_that_is_named_is_in_the_code() {
    let of_sample = |place: &String| place.starts_with("sample.") || place.starts_with("sample/");
    let code: String =
        crate::rooms::sources().into_iter().filter(|(place, _)| of_sample(place)).map(|(_, text)| text).collect();
    let is_there = |name: &str| {
        let of_event: String = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        code.contains(&format!("pub {name}:"))
            || code.contains(&format!("rename = \"{name}\""))
            || code.contains(&format!("    {of_event}"))
    };
    let gone: Vec<String> = rows("## Samples and events").into_iter().filter(|name| !is_there(name)).collect();
    assert!(gone.is_empty(), "docs/recordings.md names {gone:?}, which the code does not have");
}
