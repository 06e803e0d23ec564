//! The house keeps its own rules: arrows go one way, each outside package stays in its room, `unsafe` has a room of its
//! own, no two parts need each other, a type's name has one meaning. It reads the source as text, so a turned arrow fails without a build.

mod circles;
mod graph;
mod waits;

use crate::rooms::{files, root, sources};
use graph::Graph;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Room → the rooms it may import. A room is the first name below `src/`, or a crate (`rooms.rs`).
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("sample", &[]),
    ("clock", &[]),
    ("sched", &["sample"]),
    ("mounts", &[]),
    ("bpf", &["mounts"]),
    ("record", &["sample", "text"]),
    ("source", &["sample", "clock", "sched", "mounts", "bpf", "record", "text"]),
    ("derive", &["sample"]),
    ("convert", &["sample", "derive"]),
    ("report", &["sample", "derive", "text"]),
    ("effect", &["sample", "clock", "sched", "source", "trust"]),
    ("action", &["sample"]),
    ("input", &["action"]),
    ("state", &["sample", "derive", "effect", "action", "text"]),
    ("update", &["sample", "derive", "effect", "action", "state"]),
    ("view", &["sample", "derive", "effect", "action", "state", "text"]),
    ("ui", &["view"]),
    ("text", &[]),
    ("trust", &[]),
    ("rights", &[]),
    ("config", &["sample", "action", "state", "ui", "text", "trust"]),
    ("term", &["text"]),
    ("cli", &["sample", "derive", "convert", "report", "action", "config", "export"]),
    ("networks", &[]),
    ("export", &[]),
    ("prometheus", &["text"]),
    ("demo", &["source", "networks"]),
    (
        "app",
        &[
            "sample", "clock", "sched", "record", "source", "derive", "report", "effect", "action", "input", "state",
            "update", "view", "ui", "term", "text", "config", "networks", "export", "convert",
        ],
    ),
    (
        "main",
        &[
            "app",
            "cli",
            "config",
            "convert",
            "demo",
            "networks",
            "derive",
            "effect",
            "export",
            "prometheus",
            "record",
            "report",
            "rights",
            "sample",
            "source",
            "state",
            "term",
            "ui",
        ],
    ),
];

/// Outside package → the only places that may name it (places, as `rooms.rs` says them).
const CONFINED: &[(&str, &[&str])] = &[
    ("netlink_packet_core", &["source/netlink", "source/links", "source/flows"]),
    ("netlink_packet_route", &["source/netlink", "source/links", "source/flows"]),
    ("netlink_sys", &["source/netlink", "source/links", "source/flows"]),
    ("procfs", &["source"]),
    ("sysinfo", &["source"]),
    ("crossterm", &["term", "input", "app/screen"]),
    ("ratatui", &["ui", "app", "term"]),
    ("clap", &["cli"]),
    ("zstd", &["record"]),
    ("aya", &["bpf"]),
    (
        "serde_json",
        &[
            "record",
            "report",
            "effect",
            "prometheus",
            "source/benchmarks",
            "source/ovs",
            "source/slow",
            "source/owners",
            // Only what `ip -j` said of captured links is read there.
            "source/links/tests",
            "source/paths/kernel/tests",
        ],
    ),
    ("maud", &["report/document/html", "report/plot"]),
    ("plotters", &["report/plot"]),
    ("httparse", &["source/slow"]),
    // BPF has a file of this name.
    ("object", &["source/profile", "bpf"]),
    ("prometheus_client", &["report/exposition"]),
    ("hyper", &["export"]),
    ("hyper_util", &["export"]),
    ("http_body_util", &["export"]),
    ("tokio", &["export"]),
    ("tokio_rustls", &["export"]),
    ("rustls", &["export"]),
    ("bcrypt", &["export"]),
    ("base64", &["export", "prometheus"]),
    ("percent_encoding", &["prometheus"]),
    ("subtle", &["export"]),
    ("serde_saphyr", &["export"]),
    ("ureq", &["prometheus"]),
    ("toml_edit", &["config"]),
    ("strsim", &["config"]),
    ("jiff", &["report", "effect"]),
    ("signal_hook", &["app"]),
];

fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or(file)
}

/// The code of a file without its comments and without its unit tests.
fn code(text: &str) -> String {
    let is_of_tests = |at: usize| text[at..].lines().nth(1).is_some_and(|next| next.ends_with("mod tests {"));
    let tests = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at).find(|at| is_of_tests(*at));
    let text = &text[..tests.unwrap_or(text.len())];
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Every room named after `crate::` or `vnettop::`, also inside `use crate::{a::x, b}`.
fn imported_rooms(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for prefix in ["crate::", "vnettop::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                None => rooms.push(first_word(rest)),
                Some(list) => rooms.extend(top_level_names(list)),
            }
        }
    }
    rooms.retain(|room| MAY_IMPORT.iter().any(|(known, _)| known == room));
    rooms
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn top_level_names(list: &str) -> Vec<String> {
    let (mut depth, mut names, mut name) = (0, Vec::new(), String::new());
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(first_word(std::mem::take(&mut name).trim())),
            _ if depth == 0 => name.push(c),
            _ => {}
        }
    }
    names.push(first_word(name.trim()));
    names
}

#[test]
fn no_arrow_runs_backwards() {
    let mut wrong = Vec::new();
    // The front page shows every room.
    for (file, text) in sources().into_iter().filter(|(file, _)| file != "lib.rs") {
        let here = room(&file).to_owned();
        let (_, allowed) = MAY_IMPORT
            .iter()
            .find(|(known, _)| *known == here)
            .unwrap_or_else(|| panic!("{file} opens a room that MAY_IMPORT and ARCHITECTURE.md do not know"));
        for there in imported_rooms(&code(&text)) {
            if there != here && !allowed.contains(&there.as_str()) {
                wrong.push(format!("{file} imports {there}, which {here} may not"));
            }
        }
    }
    assert!(wrong.is_empty(), "the flow of ARCHITECTURE.md goes one way:\n{}", wrong.join("\n"));
}

#[test]
fn the_flow_test_sees_a_turned_arrow() {
    let seen = imported_rooms("use crate::{sample::{Item, Sample}, view};\nlet x = crate::ui::paint();");
    assert_eq!(seen, ["sample", "view", "ui"], "imports are found in lists and in paths");
}

#[test]
fn outside_packages_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let code = code(&text);
        for (package, places) in CONFINED {
            let named = code.contains(&format!("{package}::"));
            if named && !places.iter().any(|place| file.starts_with(place)) {
                wrong.push(format!("{file} names {package}, which belongs to {places:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_lives_alone() {
    for (file, text) in sources() {
        let code = code(&text);
        let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
        let blocks: usize = words.iter().map(|word| code.matches(word).count()).sum();
        if blocks == 0 {
            continue;
        }
        assert!(code.contains("#![allow(unsafe_code"), "{file} says at its top why it needs unsafe");
        assert!(code.lines().count() <= 150, "{file} does nothing but its unsafe calls, so it is short");
        let reasons = text.matches("// SAFETY:").count();
        assert!(
            reasons >= blocks,
            "{file} gives a SAFETY reason for each of its {blocks} unsafe blocks, not for {reasons}"
        );
    }
}

#[test]
fn every_file_says_what_it_owns() {
    for (file, text) in sources() {
        assert!(text.starts_with("//!"), "{file} begins with what it owns and refuses");
    }
}

/// What is longer has two jobs.
const MOST_LINES: usize = 400;

#[test]
fn no_file_is_longer_than_a_reader_keeps_in_mind() {
    let (mut open, mut longer) =
        (["src", "crates", "tests", "benches", "packaging"].map(|name| root().join(name)).to_vec(), Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("readable").path()) {
            // What cargo makes of packages, and links to what is looked at elsewhere.
            if entry.is_symlink() || entry.ends_with("target") {
                continue;
            }
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let lines = fs::read_to_string(&entry).expect("text").lines().count();
                longer.extend((lines > MOST_LINES).then(|| format!("{}: {lines}", entry.display())));
            }
        }
    }
    assert!(longer.is_empty(), "more than {MOST_LINES} lines: {longer:#?}");
}

#[test]
fn every_folder_of_fixtures_says_where_they_are_from() {
    let folders = fs::read_dir(root().join("tests/fixtures")).expect("there are some");
    let folders = folders.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir());
    let without: Vec<_> = folders.filter(|folder| !folder.join("README.md").is_file()).collect();
    assert!(without.is_empty(), "a README says how it was captured: {without:?}");
}

/// Openings that lean on the comment above: they say nothing in a hover, and something else once an item is moved.
const LEANING: [&str; 6] = ["And ", "Nor ", "But ", "Those ", "Of it ", "Likewise"];

fn leaning(text: &str) -> Vec<(usize, &str)> {
    let comment = |line: &'_ str| line.trim_start().starts_with("///");
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: usize| comment(lines[at]) && !(at > 0 && comment(lines[at - 1]));
    let opening = |at: usize| lines[at].trim_start().trim_start_matches('/').trim_start();
    let leans = |at: &usize| begins(*at) && LEANING.iter().any(|word| opening(*at).starts_with(word));
    (0..lines.len()).filter(leans).map(|at| (at + 1, opening(at))).collect()
}

#[test]
fn no_comment_of_an_item_leans_on_the_one_above() {
    for (file, text) in sources() {
        assert_eq!(leaning(&text), [], "{file}: the noun first, so that it can be read alone");
    }
    let planted = "/// A reader.\nfn a() {}\n/// And its\n/// source.\nfn b() {}\n";
    assert_eq!(leaning(planted), [(3, "And its")], "one that leans is seen, and only where a comment begins");
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there")
}

#[test]
fn every_room_is_in_the_architecture_with_what_it_imports() {
    let architecture = architecture();
    let (_, rooms) = architecture.split_once("## The rooms\n").expect("there is a table of the rooms");
    for (room, allowed) in MAY_IMPORT {
        let row = rooms.lines().find(|line| line.starts_with(&format!("| `{room}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has a row of the room `{room}`"));
        let imports = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> =
            imports.split(' ').map(|name| name.trim_matches('`')).filter(|name| *name != "–").collect();
        assert_eq!(named, *allowed, "the last column of `{room}` is what this test lets it import");
    }
}

/// Files that the prose names, each by its place in the tree or in its room, are there.
#[test]
fn every_file_that_the_architecture_names_is_there() {
    let files = files();
    let architecture = architecture();
    let names = architecture.split('`').skip(1).step_by(2).filter(|name| name.contains('/') && name.contains(".rs"));
    let missing: Vec<&str> = names.filter(|name| !files.contains_key(*name) && !root().join(name).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that are not there: {missing:?}");
}

/// The derivation knows the time of a sample and nothing of its own: no clock, file, environment or number by chance.
#[test]
fn what_derives_reads_nothing_but_samples() {
    const WORLD: &[&str] = &[
        "Instant",
        "SystemTime",
        "std::fs",
        "std::env",
        "std::io",
        "UdpSocket",
        "TcpStream",
        "rustix",
        "libc",
        "thread::",
    ];
    let mut wrong = Vec::new();
    let derives = |file: &str| file.starts_with("derive") || file.starts_with("sample");
    for (file, text) in sources().iter().filter(|(file, _)| derives(file) && !file.ends_with("tests.rs")) {
        let code = code(text);
        wrong.extend(WORLD.iter().filter(|word| code.contains(*word)).map(|word| format!("{file} says {word}")));
    }
    assert!(wrong.is_empty(), "samples in, metrics out:\n{}", wrong.join("\n"));
}

/// The tables of ARCHITECTURE.md name every room inside these two once, each below all that it uses.
#[test]
fn the_rooms_inside_source_and_derive_stand_in_the_order_of_their_arrows() {
    let (sources, architecture) = (sources(), architecture());
    let graph = Graph::of(&sources);
    for room in ["source", "derive"] {
        let table =
            architecture.split(&format!("## Inside `{room}`\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
        let rows = table.expect("there is a table").lines().filter_map(|line| line.strip_prefix("| `"));
        let names = rows.flat_map(|row| row.split(" |").next().unwrap_or_default().split(", "));
        let order: Vec<&str> = names.map(|name| name.trim_matches('`')).collect();
        let are: BTreeSet<&str> =
            sources.keys().filter_map(|file| inner(file, room)).filter(|&name| name != "tests").collect();
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), are, "each room inside `{room}` has its row");
        assert_eq!(order.len(), are.len(), "and one row only: {order:?}");
        let place = |name: &str| order.iter().position(|known| *known == name).expect("it has a row");
        let mut wrong = BTreeSet::new();
        for (here, there) in graph.arrows().into_iter().filter(|(here, _)| !here.ends_with("/tests")) {
            let Some(here) = inner(here, room) else { continue };
            let used =
                there.into_iter().filter_map(|there| inner(there, room)).filter(|used| place(used) > place(here));
            wrong.extend(used.map(|used| format!("{here} uses {used}, which stands below it")));
        }
        assert!(wrong.is_empty(), "inside `{room}`: {wrong:#?}");
    }
}

/// The room inside this one that a file belongs to.
fn inner<'a>(file: &'a str, room: &str) -> Option<&'a str> {
    let own = file.strip_prefix(room)?.strip_prefix('/')?;
    own.split('/').next().map(|name| name.trim_end_matches(".rs"))
}

/// A reader who looks a type up finds one. What only a unit test defines does not count, nor does a trait's `type`.
#[test]
fn the_name_of_a_type_has_one_meaning() {
    let sources = sources();
    let graph = Graph::of(&sources);
    let types = graph.types();
    let found: BTreeMap<_, _> = types.into_iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(found.is_empty(), "one name for several types: say which each is: {found:#?}");
}
