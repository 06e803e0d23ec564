//! A core that is full with datagrams and both their ends while another one idles: found, listed by `p` and not marked, put there by
//! Space and `p`, silent then, and back by `U`. It needs a machine on which nothing else runs.

use crate::ground::tmux::Tmux;
use crate::ground::{PANES_CONFIG, VNETTOP, Watching, await_that, listening, needs, needs_two_cores, pid, veth_pair};
use crate::measures::faults::finding;
use std::process::Command;

const FULL: &[&str] = &["-c", "0", "iperf3"];

#[test]
#[ignore = "on the real kernel: tests/run"]
fn packets_beside_both_ends_on_a_full_core_are_put_onto_the_idle_one() {
    needs(&["iperf3", "ip", "nsenter", "taskset"]);
    needs_two_cores();
    let (near, far) = veth_pair();
    near.run("ip link set v0 down; ip link set v0 name spare0; ip link set spare0 up");
    let mut command = near.command("taskset");
    command.args(FULL);
    let server = listening(command, &[]);
    let small = ["-c", "198.18.0.1", "-u", "-b", "0", "-l", "18", "-t", "600"];
    let client = far.keep("taskset", &[FULL, &small].concat());
    let watched = ["--watch".to_owned(), pid(&server).to_string(), "--watch".to_owned(), pid(&client).to_string()];
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5"]).args(&watched);
    let mut watching = Watching::start(command);
    let mut last = None;
    await_that("the full core is found", 20, || {
        last = finding(&watching.next(), "spare_core");
        last.is_some()
    });
    let text = last.expect("it was found");
    assert!(text.starts_with("core 0 is full ("), "{text}");
    assert!(text.contains("the test's packets and both of its ends; core 1 is idle"), "{text}");

    let state = tempfile::tempdir().expect("a directory");
    let (state_home, watched) = (state.path().display(), watched.join(" "));
    // A test's first lines have room for one finding.
    let command = format!("XDG_STATE_HOME={state_home} exec {VNETTOP} --config {PANES_CONFIG} -d 0.5 {watched}");
    let screen = Tmux::start("spare_core", 140, 45, &command);
    screen.await_shown("the finding is there", 30, "core 0 is full");
    screen.press("p");
    screen.await_shown("the line is listed and off", 5, "[ ] rps_cpus of spare0");
    screen.await_shown("why no pin is", 5, "only core 0 may run the busy threads");
    screen.press("Space");
    screen.await_shown("Space takes it", 5, "[x] rps_cpus of spare0");
    screen.press("p");
    screen.await_shown("the packets went there", 10, "packets that come to spare0 are handled on core 1 now");
    await_that("nothing is said of what is steered", 10, || finding(&watching.next(), "spare_core").is_none());
    screen.press("U");
    screen.await_shown("it is undone", 10, "rps_cpus of spare0 is back to 0");
    await_that("it is said again", 20, || finding(&watching.next(), "spare_core").is_some());
}
