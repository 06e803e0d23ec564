//! What is no agent at the other end.

use super::*;

/// A program in place of vnettop on `kp1`.
fn stand_in(pair: &Pair, script: &str) {
    let file = pair.own(Host::A).join("stand-in");
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    pair.install(Host::A, Some(&file));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_no_agent_is_said_in_one_sentence() {
    needs(PROGRAMS);
    let pair = Pair::new(false);
    let cases = [
        ("head -c 3000000 /dev/urandom", "kp1: "),
        ("echo welcome to kp1; sleep 5", "kp1: it wrote something else first"),
        (
            "echo '{\"vnettop_recording\":0,\"vnettop\":\"0.0.1\"}'; sleep 5",
            "kp1: its vnettop writes schema version 0, this one reads 1",
        ),
        ("echo oops >&2; exit 3", "the agent on kp1 has exited with code 3 (oops)"),
        ("echo \"error: unrecognized subcommand 'agent'\" >&2; exit 2", "the vnettop on kp1 knows no agent"),
        (
            "echo '{\"vnettop_recording\":1,\"vnettop\":\"0.2.0\"}'; yes '{\"event\":{\"kind\":\"mark\",\"at_ns\":1}}'",
            "kp1 sends events and no samples",
        ),
        ("yes x | tr -d '\\n' | head -c 100000000", "kp1: "),
    ];
    for (script, sentence) in cases {
        stand_in(&pair, script);
        let out = pair.vnettop(&[&["--json", "-n", "3", "-d", "0.25"], &BOTH[..]].concat()).output().expect("it runs");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.lines().any(|line| line.contains(sentence) && line.contains("next try in")), "{script}: {said}");
        assert_eq!(out.status.code(), Some(1), "one that is missing is an error: {script}");
        let all: Vec<Value> = String::from_utf8_lossy(&out.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect();
        assert_eq!(all.iter().filter(|object| object["from"] == "kp2").count(), 3, "the other host goes on: {script}");
    }
    pair.install(Host::A, None);
    let out = pair.vnettop(&["--json", "-n", "1", "--host", "kp1", "--remote-command", "vnettop-is-not-here"]).output();
    let said = String::from_utf8_lossy(&out.expect("it runs").stderr).into_owned();
    assert!(said.contains("kp1 has no vnettop: scp ") && said.contains("no sample came from kp1"), "{said}");
}
