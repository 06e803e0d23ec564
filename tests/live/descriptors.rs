//! More network namespaces than vnettop may open files for: whoever is watched comes first, and what is left out is told.

use crate::ground::{Netns, VNETTOP, needs, objects};
use std::process::Command;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn many_namespaces_leave_descriptors_for_watched_threads_and_for_the_command() {
    needs(&["unshare", "sh"]);
    let namespaces: Vec<Netns> = (0..30).map(|_| Netns::new()).collect();
    let limited = |arguments: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n 128; exec {VNETTOP} {arguments}")]);
        command.output().expect("sh runs")
    };
    // The sleeping process of each namespace is one of those watched.
    let pids: Vec<String> = namespaces.iter().map(|netns| format!("--watch {}", netns.pid())).collect();
    let out = limited(&format!("--json -d 0.2 -n 5 {}", pids.join(" ")));
    for object in objects(&out).iter().skip(1) {
        let watched = object["threads"].as_array().expect("a list").len();
        assert_eq!(watched, namespaces.len(), "every watched thread is there");
        let problems = object["problems"].to_string();
        assert!(problems.contains("limit of 128 open files"), "what is left out is told: {problems}");
        assert!(!problems.contains("refused the BPF programs"), "there is room for the programs: {problems}");
    }
    let card = tempfile::NamedTempFile::new().expect("a file");
    let out = limited(&format!("run --card {} -- sh -c 'ulimit -n; sleep 1'", card.path().display()));
    let (said, wrong) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!((out.status.code(), said.trim()), (Some(0), "128"), "the command runs, with its own limit: {wrong}");
}
