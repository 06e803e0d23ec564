//! Links that come, go and change their names by the hundred while vnettop watches at 10 Hz.

use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, link, needs};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates 500 links, renames them, deletes them, again and again, in batches that `ip` applies one by one.
const CHURN: &str = "
for i in $(seq 500); do echo \"link add c$i type ifb\"; done > $DIR/add
for i in $(seq 500); do echo \"link set c$i name d$i\"; done > $DIR/rename
for i in $(seq 500); do echo \"link del d$i\"; done > $DIR/del
while :; do ip -batch $DIR/add; ip -batch $DIR/rename; ip -batch $DIR/del; done";

/// 2 MB/s at the most, paced by the sender itself: nothing vnettop shows may be above it. What it could not send in time,
/// because others had the cores, it does not send later.
const SENDER: &str = "
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin, sent = time.monotonic(), 0
while True:
    out.sendto(b'x' * 1000, ('127.0.0.1', 9)); sent += 1
    ahead = sent / 2000 - (time.monotonic() - begin)
    if ahead > 0: time.sleep(ahead)
    if ahead < -0.02: begin -= ahead";

/// 2,000 packets of 1,042 bytes a second, and twice as much for what was 20 ms late and for the answers.
const MOST_BITS_PER_S: f64 = 2_000.0 * 1_042.0 * 8.0 * 3.0;

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
    line.split_whitespace().nth(1).expect("a figure").parse().expect("a number")
}

/// Open descriptors, but for those of other processes' files: these come and go with whatever else the machine runs.
fn descriptors(pid: u32) -> usize {
    let others =
        |target: &Path| target.strip_prefix("/proc").is_ok_and(|below| below.to_string_lossy().contains("/task/"));
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it runs")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.filter(|target| !others(target)).count()
}

fn names(object: &Value) -> HashSet<String> {
    let links = object["links"].as_array().expect("links");
    links.iter().map(|link| link["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_storm_of_links_makes_no_rate_wrong_and_leaves_nothing_behind() {
    needs(&["ip", "nsenter", "python3"]);
    let netns = Netns::new();
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = netns.command(VNETTOP);
    // Each thread of an iperf3 elsewhere on the machine would take descriptors too.
    command.args(["-d", "0.1", "--watch", "nobody-else"]);
    let mut watching = Watching::start(command);
    let pid = watching.pid();
    watching.next();
    let _sender = netns.keep("python3", &["-c", SENDER]);
    let churn = Kept(
        netns
            .command("setsid")
            .args(["sh", "-c", CHURN])
            .env("DIR", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts"),
    );
    let seconds: usize = std::env::var("VNETTOP_CHURN_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut most_links = 0;
    let mut warm = (0, 0);
    for tick in 0..seconds * 10 {
        let object = watching.next();
        for link in object["links"].as_array().expect("links") {
            for field in ["rx_bits_per_s", "tx_bits_per_s"] {
                let rate = link[field].as_f64().unwrap_or(0.0);
                let most = if link["name"] == "lo" { MOST_BITS_PER_S } else { 100_000.0 };
                assert!(rate <= most, "tick {tick}: {} {field} {rate} is above what was sent", link["name"]);
            }
        }
        most_links = most_links.max(object["links"].as_array().expect("links").len());
        if tick == seconds * 3 {
            warm = (resident_kib(pid), descriptors(pid));
        }
    }
    assert!(most_links > 100, "the storm was seen: {most_links} links at once");
    let (now_kib, now_descriptors) = (resident_kib(pid), descriptors(pid));
    assert_eq!(now_descriptors, warm.1, "no descriptor is left open");
    assert!(now_kib < warm.0 + 1024, "memory does not grow: {} KiB then, {now_kib} KiB now", warm.0);
    eprintln!(
        "{seconds} s: most links {most_links}, resident {} then {now_kib} KiB, descriptors {now_descriptors}",
        warm.0
    );
    let group = format!("-{}", churn.0.id());
    Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill runs");
    drop(churn);
    let left: HashSet<String> = netns
        .output("ls /proc/thread-self/net/dev >/dev/null; ip -o link | awk -F': ' '{print $2}' | cut -d@ -f1")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    watching.next();
    assert_eq!(names(&watching.next()), left, "one tick after the storm the rows are the links");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_link_is_right_one_tick_after_every_change() {
    needs(&["ip", "nsenter"]);
    let (netns, other) = (Netns::new(), Netns::new());
    let mut command = netns.command(VNETTOP);
    command.args(["-d", "0.2"]);
    let mut watching = Watching::start(command);
    watching.next();
    let mut after = |script: &str| {
        netns.run(script);
        watching.next();
        watching.next()
    };
    let made = after("ip link add la type veth peer name lb");
    assert_eq!(link(&made, "la").expect("it is there")["peer"]["name"], "lb", "a veth names its peer");
    let renamed = after("ip link set la name aa");
    assert!(link(&renamed, "la").is_none() && link(&renamed, "aa").is_some(), "it has its new name only");
    assert_eq!(link(&renamed, "lb").expect("still there")["peer"]["name"], "aa", "and the peer knows it");
    let index = link(&renamed, "aa").expect("there")["ifindex"].as_u64().expect("an index");
    let again = after(&format!("ip link del aa; ip link add aa index {index} type ifb"));
    let link_again = link(&again, "aa").expect("the new one is there");
    assert_eq!(
        (&link_again["kind"], &link_again["ifindex"]),
        (&"ifb".into(), &index.into()),
        "same name, same index, another link"
    );
    assert!(link(&again, "lb").is_none(), "the old peer is gone");
    let moved = after(&format!("ip link set aa netns {}", other.pid()));
    assert!(link(&moved, "aa").is_none(), "a link moved to another namespace is gone");
    await_that("it is in the other namespace", 5, || other.output("ip -o link").contains("aa"));
}
