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
    assert!(first.contains("kp1 (1 of 2) ·") && !first.contains("Hosts"), "{first}");
    assert!(second.contains("kp2 (2 of 2) ·") && second.contains("vethc1"), "{second}");
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

#[test]
fn a_part_and_a_report_have_both_hosts() {
    let folder = tempfile::tempdir().expect("a directory");
    let part = folder.path().join("part.vnettop.zst");
    let run = |arguments: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_vnettop")).args(arguments).output().expect("it runs");
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("text")
    };
    let name = part.to_str().expect("ASCII");
    run(&["cut", RECORDING, "--from", "1", "--to", "3", "-o", name]);
    let objects = run(&["replay", name, "--json"]);
    for host in ["kp1", "kp2"] {
        let own = objects.lines().filter(|line| line.starts_with(&format!("{{\"from\":\"{host}\"")));
        assert!((2..=5).contains(&own.count()), "two seconds of {host}");
    }
    let report = run(&["report", RECORDING, "--format", "markdown"]);
    assert!(report.contains("two-hosts.vnettop.zst, kp1") && report.contains("two-hosts.vnettop.zst, kp2"), "{report}");
    let without = run(&["report", RECORDING, "--format", "markdown", "--anonymise"]);
    assert!(!without.contains("kp1") && !without.contains("kp2"), "{without}");
}

#[test]
fn any_number_of_hosts_fits_every_screen() {
    use vnettop::state::{AllHosts, Settings, State};
    use vnettop::view::{HostRow, prepare_hosts};
    for hosts in 1..=16 {
        let mut states: Vec<State> = (0..hosts).map(|_| State::new(Settings::default())).collect();
        for (at, state) in states.iter_mut().enumerate() {
            state.notice(
                true,
                format!("ssh cannot be started for host {at}: there is no such program, and that is a long sentence"),
            );
        }
        let names: Vec<String> = (0..hosts).map(|at| format!("host-with-a-long-name-{at}.example.org")).collect();
        let rows: Vec<HostRow<'_>> = states.iter().zip(&names).map(|(state, name)| HostRow { name, state }).collect();
        for (width, height) in [(30, 10), (60, 15), (60, 16), (80, 24), (61, 27), (120, 40), (200, 60)] {
            let (view, _) = prepare_hosts(&AllHosts::of(hosts), &rows, &[], (width, height));
            let panes = [&view.links, &view.threads, &view.finding];
            let mut below = 0;
            for pane in panes.into_iter().filter(|pane| pane.area.height > 0) {
                assert!(pane.area.y > below, "{hosts} hosts at {width}x{height}: panes lie one below the other");
                below = pane.area.y + pane.area.height;
            }
            assert!(below < height, "{hosts} hosts at {width}x{height}: {below} rows are used");
        }
    }
}
