//! What the recordings in the tree make vnettop write.

use super::shape::Registry;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vnettop::derive::{Derivation, Metrics};
use vnettop::record::Recording;
use vnettop::report::json;

/// Every recording of one host in the tree.
pub fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["assets", "tests/fixtures/latency", "tests/fixtures/recordings", "tests/fixtures/systems"] {
        let files = fs::read_dir(root.join(folder)).expect("it is there").map(|file| file.expect("readable").path());
        all.extend(files.filter(|path| path.to_string_lossy().ends_with(".vnettop.zst")));
    }
    all.sort();
    assert!(all.len() > 20, "the recordings are there: {}", all.len());
    all
}

/// A recording of two hosts with a test between them.
pub fn two_hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hosts/two-hosts.vnettop.zst")
}

fn each_metrics(path: &Path, each: &mut dyn FnMut(&Metrics)) {
    let (mut recording, mut derivation) = (Recording::open(path).expect("a recording"), Derivation::default());
    while let Some(item) = recording.next_item().expect("readable") {
        if let Some(metrics) = derivation.advance(item) {
            each(&metrics);
        }
    }
}

/// Looks at what is written of every recording.
pub fn see(registry: &Registry) {
    for path in recordings() {
        each_metrics(&path, &mut |metrics| _ = registry.see(&json::object(metrics)));
    }
}

/// Each line of `--json` of every recording, with the recording's name.
pub fn each_line(each: &mut dyn FnMut(&str, Value)) {
    for path in recordings() {
        let name = path.display().to_string();
        each_metrics(&path, &mut |metrics| {
            each(&name, serde_json::to_value(json::object(metrics)).expect("an object"));
        });
    }
    let (name, lines) = (two_hosts().display().to_string(), text(&["replay", "--json"], &two_hosts()));
    for line in lines.expect("it runs").lines() {
        each(&name, serde_json::from_str(line).expect("an object"));
    }
}

/// What vnettop says of a recording; nothing where it fails.
fn text(arguments: &[&str], of: &Path) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    let out = command.args(arguments).arg(of).env("XDG_CONFIG_HOME", "/nonexistent").output().expect("it runs");
    out.status.success().then(|| String::from_utf8(out.stdout).expect("UTF-8"))
}

/// The object that it says.
pub fn said(arguments: &[&str], of: &Path) -> Option<Value> {
    text(arguments, of).map(|text| serde_json::from_str(&text).expect("an object"))
}
