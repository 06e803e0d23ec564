//! docs/threats.md names tests as proofs: each of them is there.

use crate::rooms::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn list(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            list(&path, ending, into);
        } else if path.extension().is_some_and(|found| found == ending) {
            into.push(path);
        }
    }
}

/// The text of all files below these folders.
fn all(folders: &[&str], ending: &str) -> String {
    let mut files = Vec::new();
    for folder in folders {
        list(&root().join(folder), ending, &mut files);
    }
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("text")).collect()
}

#[test]
fn every_proof_that_is_named_is_a_test() {
    let page = fs::read_to_string(root().join("docs/threats.md")).expect("it is there");
    let code = all(&["crates", "src", "tests"], "rs");
    let names: BTreeSet<&str> =
        page.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 1).collect();
    let tests =
        names.iter().filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    let tests: Vec<&&str> = tests.collect();
    assert!(tests.len() > 40, "the page names its proofs: {}", tests.len());
    let missing: Vec<_> = tests.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "these are no tests: {missing:?}");

    let trials = all(&["tests/release/trials"], "py");
    let quoted: Vec<&str> =
        page.split('“').skip(1).filter_map(|rest| rest.split('”').next()).filter(|name| *name != "quotes").collect();
    assert!(quoted.len() > 8, "trials too: {quoted:?}");
    let missing: Vec<_> = quoted.iter().filter(|name| !trials.contains(&format!("@trial(\"{name}\""))).collect();
    assert!(missing.is_empty(), "these are no trials: {missing:?}");
}

#[test]
fn every_row_of_an_attack_has_a_proof() {
    let page = fs::read_to_string(root().join("docs/threats.md")).expect("it is there");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack"));
    let bare: Vec<&str> =
        rows.filter(|row| row.rsplit('|').nth(1).is_none_or(|proof| !proof.contains(['`', '“']))).collect();
    assert!(bare.is_empty(), "{bare:#?}");
}
