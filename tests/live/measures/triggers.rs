//! What `--on` waits for, planted: each is saved once, says so, and has the time before it; a steady test saves nothing.

use super::saves::{SteadyTest, recordings, saved_for};
use crate::ground::moving::signal;
use crate::ground::{Kept, VNETTOP, await_that, needs, needs_two_cores, turn};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use vnettop::sample::{TriggerKind, Word};
use vnettop::source::now_ns;

const SECOND_NS: u64 = 1_000_000_000;
/// What vnettop needs to know a test, and a limit to have held.
const KNOWN: Duration = Duration::from_secs(7);
/// A steady test is watched so long beyond that.
const STEADY: Duration = Duration::from_secs(30);
/// Everything that can be waited for.
const ALL: [&str; 5] = ["dip", "loss", "latency", "limit-change", "migration-burst"];

/// A vnettop that waits for something and saves into a folder of its own.
struct Waiting {
    home: tempfile::TempDir,
    _vnettop: Kept,
}

impl Waiting {
    fn start(test: &SteadyTest, kinds: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = test.netns.command(VNETTOP);
        command.args([
            "--watch",
            "iperf3",
            "-d",
            "0.1",
            "--json",
            "--on-before",
            "5",
            "--on-after",
            "4",
            "--no-socket",
        ]);
        for kind in kinds {
            command.args(["--on", kind]);
        }
        command.env("XDG_STATE_HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let waiting = Self { home, _vnettop: Kept(child.expect("vnettop starts")) };
        sleep(KNOWN);
        waiting
    }

    fn files(&self) -> Vec<PathBuf> {
        recordings(&self.home.path().join("vnettop"))
    }
}

/// Does it, and looks at what a vnettop saves that waits for it.
fn plant(test: &SteadyTest, kind: TriggerKind, what: impl FnOnce()) {
    let waiting = Waiting::start(test, &[kind.word()]);
    assert!(waiting.files().is_empty(), "nothing was saved before: {:?}", waiting.files());
    let since_ns = now_ns();
    what();
    await_that(&format!("{} is saved", kind.word()), 10, || !waiting.files().is_empty());
    sleep(Duration::from_secs(1));
    let files = waiting.files();
    assert_eq!(files.len(), 1, "once: {files:?}");
    let (trigger, at_ns, first_ns) = saved_for(&files[0]);
    assert_eq!(trigger, Some(kind), "it says why");
    let within = since_ns.saturating_sub(SECOND_NS / 3)..since_ns + 4 * SECOND_NS;
    assert!(within.contains(&at_ns), "{} ns after {since_ns}: {}", at_ns.saturating_sub(since_ns), kind.word());
    assert!(first_ns + 5 * SECOND_NS <= at_ns + SECOND_NS / 5, "the time before is in it");
}

/// Lets a process run on these cores only.
fn pin(cores: &str, pid: u32) {
    let status = Command::new("taskset").args(["-acp", cores, &pid.to_string()]).stdout(Stdio::null()).status();
    assert!(status.expect("taskset runs").success());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_waited_for_is_saved_once_and_a_steady_test_never() {
    needs(&["iperf3", "ip", "nsenter", "taskset", "tc"]);
    needs_two_cores();
    turn::take();
    let test = SteadyTest::new();
    let (server, client) = (test.server.0.id(), test.client.0.id());
    // Where nobody pins them the scheduler moves two ends on two cores often enough for a burst.
    pin("0", server);
    pin("1", client);
    let steady = Waiting::start(&test, &ALL);
    sleep(STEADY);
    assert!(steady.files().is_empty(), "of a steady test: {:?}", steady.files());
    drop(steady);
    plant(&test, TriggerKind::MigrationBurst, || {
        for nth in 0..24 {
            pin(&(nth % 2).to_string(), client);
            sleep(Duration::from_millis(25));
        }
        pin("1", client);
    });
    // A reader that stands still again and again: what has arrived waits in its socket.
    plant(&test, TriggerKind::Latency, || {
        for _ in 0..25 {
            signal("-STOP", &server.to_string());
            sleep(Duration::from_millis(25));
            signal("-CONT", &server.to_string());
            sleep(Duration::from_millis(15));
        }
    });
    plant(&test, TriggerKind::Loss, || {
        test.netns.run("tc qdisc add dev lo root tbf rate 200mbit burst 128k limit 128k");
        sleep(Duration::from_millis(500));
        test.netns.run("tc qdisc del dev lo root");
    });
    plant(&test, TriggerKind::LimitChange, || {
        test.netns.run("tc qdisc add dev lo root tbf rate 200mbit burst 128k limit 128k");
        sleep(Duration::from_secs(3));
    });
}
