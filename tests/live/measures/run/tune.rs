//! `run --tune` on a veth pair: what it tries, what it says, and that nothing of it stays, whatever ends it.

use super::*;
use crate::ground::{listening, needs, needs_two_cores};

/// Everything that a tuning may touch in both namespaces and of the machine, but for masks.
fn settings(ends: &(Netns, Netns)) -> String {
    let look = "mount -t sysfs sysfs /sys && for link in /sys/class/net/*; do
        grep -H . $link/queues/*/rps_cpus $link/queues/*/rps_flow_cnt $link/threaded || :
        ethtool -k ${link##*/}; tc qdisc show dev ${link##*/}; done";
    let of = |netns: &Netns| {
        let out = netns.command("unshare").args(["-m", "sh", "-c", look]).output().expect("unshare runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let backlog = fs::read_to_string("/proc/sys/net/core/netdev_max_backlog").expect("the machine has one");
    of(&ends.0) + &of(&ends.1) + &backlog
}

fn tuning(dir: &Path, ends: &(Netns, Netns), seconds: &str) -> Command {
    let enters = format!("--net=/proc/{}/ns/net", ends.1.pid());
    let card = dir.join("card.json");
    let card = card.to_str().expect("plain");
    let client = ["nsenter", &enters, "iperf3", "-c", "198.18.0.1", "-t", seconds];
    let mut command = run(&["--tune", "--phase", "0.5", "--format", "json", "--card", card], &client);
    command.env("XDG_STATE_HOME", dir);
    command
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tuning_ranks_pins_cores_and_settings_and_leaves_nothing() {
    needs(&["iperf3", "ip", "nsenter", "unshare", "ethtool", "tc"]);
    needs_two_cores();
    let (dir, ends) = (tempfile::tempdir().expect("a directory"), veth_pair());
    ends.1.run("ethtool -K v1 tso off");
    let _server = listening(ends.0.command("iperf3"), &[]);
    let before = settings(&ends);
    let (code, _, err) = output(tuning(dir.path(), &ends, "24"));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(settings(&ends), before, "every setting is as it was");
    let files = fs::read_dir(dir.path().join("vnettop")).into_iter().flatten().flatten();
    let journals: Vec<_> =
        files.map(|file| file.file_name()).filter(|name| name != vnettop::effect::FOUND_FILE).collect();
    assert!(journals.is_empty(), "and nothing is journalled any more: {journals:?}");
    let text = fs::read_to_string(dir.path().join("card.json")).expect("a card");
    let search = &json(&text)["search"];
    let ranking = search["ranking"].as_array().expect("a ranking");
    let tried: Vec<&str> = ranking
        .iter()
        .filter_map(|one| one["steers"].as_array())
        .flatten()
        .filter_map(|one| one["setting"].as_str())
        .collect();
    for setting in ["rps_cpus", "gro", "tso", "qdisc"] {
        assert!(tried.contains(&setting), "{setting} was tried: {text}");
    }
    assert!(
        ranking.iter().any(|one| one["class"] == "unpinned" && one["steers"] == Value::Array(Vec::new())),
        "{text}"
    );
    assert!(ranking.iter().any(|one| one["pins"].as_array().is_some_and(|pins| pins.len() == 2)), "{text}");
    let left_out = search["left_out"].as_array().expect("sentences");
    for what in ["MTU", "busy polling", "netdev_max_backlog"] {
        let says = |one: &Value| one.as_str().is_some_and(|one| one.starts_with(&format!("not tried: {what}")));
        assert!(left_out.iter().any(says), "why {what} was not tried: {text}");
    }
    let line = |setting: &str| {
        let of = ranking.iter().find(|one| one["steers"][0]["setting"] == setting).expect("tried");
        of["lasting"][0].as_str().expect("a line").to_owned()
    };
    assert!(line("gro").starts_with("# udev does not see v0"), "{}", line("gro"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tuning_that_is_killed_is_undone() {
    needs(&["iperf3", "ip", "nsenter", "unshare", "ethtool", "tc"]);
    needs_two_cores();
    let (dir, ends) = (tempfile::tempdir().expect("a directory"), veth_pair());
    let _server = listening(ends.0.command("iperf3"), &[]);
    let before = settings(&ends);
    for wanted in ["rps_cpus", "\"gro\"", "\"qdisc\""] {
        let mut vnettop = kept(tuning(dir.path(), &ends, "600"));
        let folder = dir.path().join("vnettop");
        let text = || {
            let files = fs::read_dir(&folder).into_iter().flatten().flatten();
            files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect::<String>()
        };
        // The newest line of the journal is the setting that is tried now.
        await_that("it is tried", 60, || text().lines().last().is_some_and(|line| line.contains(wanted)));
        let command = pins::child_of(vnettop.0.id());
        vnettop.0.kill().expect("it is killed");
        vnettop.0.wait().expect("it is gone");
        signal(command.expect("the command runs on"), "-KILL");
        let mut undo = Command::new(VNETTOP);
        undo.arg("undo").env("XDG_STATE_HOME", dir.path());
        let (code, out, err) = output(undo);
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(settings(&ends), before, "killed while {wanted} was tried: {out}{err}");
    }
}
