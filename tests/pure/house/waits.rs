//! The tick waits for nobody: what others can make wait is read aside, and what runs on every tick names nothing slow.

use super::code;
use super::graph::Graph;
use crate::rooms::sources;

/// Words of code → the only files that may say them. What they read of another user's process can be made to wait by him
/// (or is the list and the names of his descriptors, which cannot): it is read by `source/untrusted_reader`, or handed to it, or by `source/slow`.
const OF_STRANGERS: &[(&str, &[&str])] = &[
    ("\"cmdline\"", &["source/untrusted_reader.rs"]),
    (".cmdline()", &["source/benchmarks/stream/place.rs"]),
    ("\"environ\"", &[]),
    (".environ()", &[]),
    ("fdinfo", &["source/benchmarks/stream/place.rs", "source/slow/device_holders/fd_scan.rs"]),
    // Of vnettop itself in proc_file.rs.
    ("/fd/", &["source/benchmarks/stream/tail.rs", "source/proc_file.rs"]),
    ("fd/{number}", &["source/benchmarks/stream/place.rs", "source/proc_file.rs"]),
    ("/fd\"", &["source/flows/socket_process.rs", "source/proc_file.rs"]),
    (
        "\"fd\"",
        &["source/slow/device_holders/fd_scan.rs", "source/slow/socket_holders.rs", "source/flows/process_sockets.rs"],
    ),
    ("pidfd_getfd", &["source/slow/device_holders/device.rs"]),
    ("/root", &[]),
    ("\"root\"", &[]),
];

/// What waits for others, and the only folder of `source` that may say it: what it hands out is a `Slow` answer, or a conversation
/// whose messages are taken without waiting.
const WAITS: &[&str] = &["UnixStream", "set_read_timeout", "set_socket_timeout", "ioctl_fionbio", "Slow::start("];
const MAY_WAIT: &str = "source/slow";

/// Rooms that ask programs, read every process or walk sysfs, and the readers of counters, which may not depend on them.
const MAY_BLOCK: &[&str] = &["source/owners", "source/ovs", "source/slow", "source/steering"];
const MUST_NOT_BLOCK: &[&str] = &[
    "source/benchmarks",
    "source/cores",
    "source/flows",
    "source/kernel",
    "source/links",
    "source/losses",
    "source/moves",
    "source/netns",
    "source/threads",
];

#[test]
fn what_other_users_can_make_wait_is_read_aside() {
    let mut wrong = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| file.starts_with("source/") && !file.ends_with("tests.rs"))
    {
        let code = code(text);
        for (word, places) in OF_STRANGERS {
            if code.contains(word) && !places.contains(&file.as_str()) {
                wrong.push(format!("{file} says {word}, which belongs to {places:?}"));
            }
        }
        let waits_itself = file.starts_with(MAY_WAIT);
        let hands_over = !waits_itself && ["fdinfo", ".cmdline()"].iter().any(|word| code.contains(word));
        if hands_over && !code.contains("untrusted_reader::ask(") {
            wrong.push(format!(
                "{file} reads of another user's process and does not hand that to untrusted_reader::ask"
            ));
        }
    }
    assert!(wrong.is_empty(), "the sampler's thread waits for nobody:\n{}", wrong.join("\n"));
}

#[test]
fn the_tick_says_nothing_that_waits() {
    let mut wrong = Vec::new();
    let ticks = |file: &str| file.starts_with("source/") && !file.starts_with(MAY_WAIT) && !file.ends_with("tests.rs");
    for (file, text) in sources().iter().filter(|(file, _)| ticks(file)) {
        let code = code(text);
        wrong.extend(WAITS.iter().filter(|word| code.contains(*word)).map(|word| format!("{file} says {word}")));
    }
    assert!(wrong.is_empty(), "who waits for others does so in {MAY_WAIT}:\n{}", wrong.join("\n"));
}

#[test]
fn what_runs_on_every_tick_names_nothing_slow() {
    let sources = sources();
    let graph = Graph::of(&sources);
    let is_in = |file: &str, folders: &[&str]| {
        folders
            .iter()
            .any(|folder| file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    let mut wrong = Vec::new();
    for (here, there) in graph.arrows().iter().filter(|(here, _)| is_in(here, MUST_NOT_BLOCK)) {
        wrong.extend(there.iter().filter(|there| is_in(there, MAY_BLOCK)).map(|there| format!("{here} names {there}")));
    }
    assert!(wrong.is_empty(), "a tick waits for nobody:\n{}", wrong.join("\n"));
    for folder in MAY_BLOCK.iter().chain(MUST_NOT_BLOCK) {
        assert!(sources.contains_key(&format!("{folder}.rs")), "{folder}.rs is there");
    }
}
