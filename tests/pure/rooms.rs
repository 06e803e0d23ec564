//! The code of the whole program by rooms: those below `src`, and each crate below `crates`, which is a room with walls.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that live in another one's crate, beside what the crate is named after.
const NEIGHBOURS: &[(&str, &[&str])] = &[("sample", &["text"]), ("source", &["bpf", "clock", "mounts", "sched"])];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Each crate with its folder of sources; that of the program is named `""`.
fn crates() -> Vec<(String, PathBuf)> {
    let names = fs::read_dir(root().join("crates")).expect("there are crates");
    let names = names.map(|entry| entry.expect("readable").file_name().into_string().expect("a plain name"));
    let mut all: Vec<_> = names.map(|name| (name.clone(), root().join("crates").join(name).join("src"))).collect();
    all.sort();
    all.push((String::new(), root().join("src")));
    all
}

/// Every file by its place, with a path in the tree: `derive/links.rs` is `crates/derive/src/links.rs`, `derive.rs` its front page.
pub fn files() -> BTreeMap<String, PathBuf> {
    let mut all = BTreeMap::new();
    for (name, folder) in crates() {
        let neighbours = neighbours(&name);
        let place = |below: &str| match below.split(['/', '.']).next() {
            Some(first) if name.is_empty() || neighbours.contains(&first) => below.to_owned(),
            Some("lib") => format!("{name}.rs"),
            _ => format!("{name}/{below}"),
        };
        let mut found = Vec::new();
        list(&folder, &mut found);
        let below = |path: &Path| path.strip_prefix(&folder).expect("below it").to_string_lossy().into_owned();
        all.extend(found.into_iter().map(|path| (place(&below(&path)), path)));
    }
    all
}

fn neighbours(of: &str) -> &'static [&'static str] {
    NEIGHBOURS.iter().find(|(name, _)| *name == of).map_or(&[], |(_, rooms)| rooms)
}

/// Every file's text by its place, with paths as in one crate: whatever leads into the room `derive` begins with `crate::derive::`.
pub fn sources() -> BTreeMap<String, String> {
    let is_of = |place: &str, room: &str| place.strip_prefix(room).is_some_and(|rest| rest.starts_with(['/', '.']));
    let crates = crates();
    let text = |place: &str, path: &Path| {
        let mut text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let named = || crates.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty());
        let own = |name: &&str| is_of(place, name) || neighbours(name).iter().any(|room| is_of(place, room));
        if let Some(own) = named().find(own) {
            text = text.replace("crate::", &format!("crate::{own}::"));
        }
        for name in named() {
            text = text.replace(&format!("vnettop_{name}::"), &format!("crate::{name}::"));
            for room in neighbours(name) {
                text = text.replace(&format!("crate::{name}::{room}"), &format!("crate::{room}"));
            }
        }
        text
    };
    files().iter().map(|(place, path)| (place.clone(), text(place, path))).collect()
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn a_crate_is_a_room() {
    let sources = sources();
    for file in ["derive.rs", "derive/links.rs", "bpf.rs", "source/links.rs", "text.rs", "main.rs", "view.rs"] {
        assert!(sources.contains_key(file), "{file} is there");
    }
    let says = |file: &str, what: &str| assert!(sources[file].contains(what), "{file} names {what}");
    says("bpf/object.rs", "use crate::mounts");
    says("sched.rs", "crate::sample::");
    says("source/links.rs", "crate::source::");
    says("derive/links.rs", "crate::sample::");
}
