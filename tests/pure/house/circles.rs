//! No circles: what a folder consists of can be read, tested and taken out part by part.

use super::graph::Graph;
use super::room;
use crate::rooms::sources;
use std::collections::{BTreeMap, BTreeSet};

/// A file and the files below it are one part of the folder it stands in, and no two parts of a folder need each other: what both
/// need belongs into a part of its own. Only its own files below may name what a file defines, as Rust's modules own their types.
#[test]
fn no_two_parts_of_a_folder_need_each_other() {
    let sources = sources();
    let graph = Graph::of(&sources);
    let found = circles(&graph.arrows());
    assert!(found.is_empty(), "these need each other: {found:#?}");
}

/// `derive.rs` is everybody's parent there: what it defined, every part could name, and it names every part.
#[test]
fn nobody_in_derive_names_what_its_root_defines() {
    let sources = sources();
    let graph = Graph::of(&sources);
    let arrows = graph.arrows();
    let wrong: Vec<&&str> = arrows.iter().filter(|(_, there)| there.contains("derive")).map(|(here, _)| here).collect();
    let wrong: Vec<_> = wrong.into_iter().filter(|here| room(here) == "derive").collect();
    assert!(wrong.is_empty(), "a definition of derive.rs belongs into a file of its own: {wrong:?}");
}

#[test]
fn planted_circles_are_seen() {
    let circle_of = |sources: &[(&str, &str)]| {
        let sources = sources.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        let graph = Graph::of(&sources);
        let found = circles(&graph.arrows());
        found.into_iter().map(|(folder, parts)| format!("{folder}: {}", parts.join(" "))).collect::<Vec<_>>()
    };
    let plain =
        [("a.rs", "pub mod b; pub mod c;"), ("a/b.rs", "use super::c::C;\npub struct B;"), ("a/c.rs", "pub struct C;")];
    assert!(circle_of(&plain).is_empty(), "one needs the other");
    let both = [plain[0], plain[1], ("a/c.rs", "use super::b::B;\npub struct C;")];
    assert_eq!(circle_of(&both), ["a: b c"]);
    // Neither b nor c is named by the other: a file below each is.
    let below = [plain[0], ("a/b.rs", "pub mod x; pub mod y;"), ("a/c.rs", "pub mod z;")];
    let below = [
        &below[..],
        &[
            ("a/b/x.rs", "use crate::a::c::z::Z;"),
            ("a/b/y.rs", "pub struct Y;"),
            ("a/c/z.rs", "use crate::a::b::y::Y;\npub struct Z;"),
        ],
    ]
    .concat();
    assert_eq!(circle_of(&below), ["a: b c"], "through what is below");
    let parent = [("a.rs", "mod b;\npub struct A;\nuse b::B;"), ("a/b.rs", "use super::A;\npub struct B(A);")];
    assert!(circle_of(&parent).is_empty(), "a file below names what the one above defines");
}

/// By folder, the parts of it that reach each other.
fn circles<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<(&'a str, Vec<&'a str>)> {
    let folders = |file: &'a str| file.match_indices('/').map(move |(at, _)| &file[..at]);
    let all: BTreeSet<&str> = arrows.keys().flat_map(|file| folders(file)).collect();
    let mut found = BTreeSet::new();
    for folder in all {
        let part = |file: &'a str| file.strip_prefix(folder)?.strip_prefix('/')?.split('/').next();
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (here, there) in arrows.iter().filter_map(|(here, there)| Some((part(here)?, there))) {
            let others = there.iter().filter_map(|file| part(file)).filter(|other| *other != here);
            needs.entry(here).or_default().extend(others);
        }
        let reached = |from: &'a str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(part) = open.pop() {
                open.extend(needs.get(part).into_iter().flatten().copied().filter(|there| seen.insert(*there)));
            }
            seen
        };
        let reached: BTreeMap<&str, BTreeSet<&str>> = needs.keys().map(|part| (*part, reached(part))).collect();
        for (part, there) in &reached {
            let circle: Vec<&str> = there
                .iter()
                .copied()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(part)))
                .collect();
            found.extend((circle.len() > 1).then_some((folder, circle)));
        }
    }
    found
}
