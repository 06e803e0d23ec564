//! The screen of several hosts, from a recording of two: a test from a container of the one to a container of the other, behind
//! address translation on both sides, with a shaper on the receiver's.

use std::process::Command;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hosts/two-hosts.vnettop.zst");

fn said(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    let out = command.args(["replay", RECORDING, "--no-config"]).args(arguments).output().expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("a frame is UTF-8")
}

fn freeze(case: &str, size: &str, keys: &str) {
    insta::with_settings!({snapshot_suffix => size, omit_expression => true}, {
        insta::assert_snapshot!(case, said(&["-n", "9", "--print", size, "--keys", keys]));
    });
}

#[test]
fn both_ends_at_every_size() {
    for size in ["60x15", "80x24", "120x40", "200x60"] {
        freeze("both_ends", size, "");
    }
}

#[test]
fn a_host_opens_and_closes() {
    let frame = |keys: &str| said(&["-n", "9", "--print", "120x40", "--keys", keys]);
    let (all, first, second) = (frame(""), frame("h"), frame("hh"));
    assert!(first.contains("kp1 ·") && !first.contains("Hosts"), "{first}");
    assert!(second.contains("kp2 ·") && second.contains("vethc1"), "{second}");
    assert_eq!(frame("hhhk"), all, "after the last host all of them");
    assert_eq!(frame("j<enter>"), second, "Enter opens the selected one");
    assert!(frame("?").contains("next host, then all"), "the help has the keys of hosts");
}

#[test]
fn each_object_names_its_host_and_both_have_the_test_between_them() {
    let objects: Vec<serde_json::Value> =
        said(&["--json"]).lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    for host in ["kp1", "kp2"] {
        let own: Vec<_> = objects.iter().filter(|object| object["from"] == host).collect();
        assert!(own.len() >= 9 && own.iter().all(|object| object["host"]["name"] == host), "all objects of {host}");
    }
    let last = objects.last().expect("objects");
    let test = &last["end_to_end"][0];
    assert_eq!((&test["sender"]["from"], &test["receiver"]["from"]), (&"kp1".into(), &"kp2".into()));
    let places: Vec<_> =
        test["losses"].as_array().expect("a list").iter().map(|loss| (&loss["from"], &loss["place"])).collect();
    assert_eq!(places, [(&"kp2".into(), &"qdisc".into())], "what the shaper drops is at its host");
    let path = test["path"].as_array().expect("a path");
    assert_eq!(path.iter().filter(|hop| hop["from"] == "kp1").count(), 4, "{path:?}");
    assert_eq!(path.iter().filter(|hop| hop["from"] == "kp2").count(), 4, "{path:?}");
}
