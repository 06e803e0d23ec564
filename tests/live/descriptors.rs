//! More network namespaces than vnettop may open files for: whoever is watched comes first, and what is left out is told.

use crate::ground::{Netns, VNETTOP, needs, objects};
use std::process::{Command, Output};

#[test]
#[ignore = "on the real kernel: tests/run"]
fn many_namespaces_leave_descriptors_for_watched_threads_and_for_the_command() {
    needs(&["unshare", "bash"]);
    let namespaces: Vec<Netns> = (0..30).map(|_| Netns::new()).collect();
    // The sleeping process of each namespace is one of those watched.
    let pids: Vec<String> = namespaces.iter().map(|netns| format!("--watch {}", netns.pid())).collect();
    for (limit, taken) in [(128, 0), (128, 20), (228, 100)] {
        let out = limited(limit, taken, &format!("--json -d 0.2 -n 5 {}", pids.join(" ")));
        for object in objects(&out).iter().skip(1) {
            let watched = object["threads"].as_array().expect("a list").len();
            let problems = object["problems"].to_string();
            assert_eq!(
                watched,
                namespaces.len(),
                "every watched thread is there, {taken} of {limit} taken: {problems}"
            );
            assert!(problems.contains(&format!("limit of {limit} open files")), "what is left out is told: {problems}");
            assert!(!problems.contains("refused the BPF programs"), "there is room for the programs: {problems}");
        }
    }
    let out = limited(128, 28, "--json -n 1");
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "too many are taken: {wrong}");
    assert!(wrong.contains("needs 156 open files and may have only 128"), "and that is said: {wrong}");
    let card = tempfile::NamedTempFile::new().expect("a file");
    let out = limited(128, 0, &format!("run --card {} -- sh -c 'ulimit -n; sleep 1'", card.path().display()));
    let (said, wrong) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!((out.status.code(), said.trim()), (Some(0), "128"), "the command runs, with its own limit: {wrong}");
}

/// vnettop under a limit of open files of which it inherits so many, those with the highest numbers, as some shells and harnesses have it.
fn limited(limit: usize, taken: usize, arguments: &str) -> Output {
    let script = format!(
        "for fd in /proc/self/fd/*; do fd=${{fd##*/}}; [ $fd -le 2 ] || eval \"exec $fd>&-\"; done
        ulimit -n {limit}
        for ((fd = {limit} - {taken}; fd < {limit}; fd++)); do eval \"exec $fd</dev/null\"; done
        exec {VNETTOP} {arguments}"
    );
    Command::new("bash").args(["-c", &script]).output().expect("bash runs")
}
