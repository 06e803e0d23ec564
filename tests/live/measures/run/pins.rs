//! Pins in turn and the masks afterwards, however a run ends.

use super::*;
use crate::ground::{self, needs, needs_two_cores};

/// A command that tells its pid and which signals it gets, until it gets one it ends by.
const TELLS: &str = "
import os, signal, sys
def tell(number, frame):
    print('got', number, flush=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
    signal.signal(number, tell)
print('pid', os.getpid(), flush=True)
for line in sys.stdin:
    pass
sys.exit(5)";

#[test]
fn signals_are_handed_on_and_waited_for() {
    use std::io::{BufRead, BufReader};
    let mut command = run(&["--card", "/dev/null"], &["python3", "-c", TELLS]);
    let mut vnettop = Kept(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("vnettop starts"));
    let mut lines = BufReader::new(vnettop.0.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    assert!(lines.next().is_some_and(|line| line.starts_with("pid ")), "the command runs");
    let signals = [
        ("-TERM", 15),
        ("-INT", 2),
        ("-HUP", 1),
        ("-QUIT", 3),
        ("-TERM", 15),
        ("-USR1", 10),
        ("-USR2", 12),
        ("-ALRM", 14),
    ];
    for (name, number) in signals {
        signal(vnettop.0.id(), name);
        assert_eq!(lines.next(), Some(format!("got {number}")), "{name} reaches the command, also a second time");
    }
    drop(vnettop.0.stdin.take());
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(5), "vnettop waits for the end the command chooses");
    assert_eq!(lines.next(), None, "and no signal came twice");

    let mut vnettop = kept(run(&[], &["sleep", "60"]));
    await_that("the command runs", 10, || child_of(vnettop.0.id()).is_some());
    signal(vnettop.0.id(), "-TERM");
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(143), "ended by TERM like the command");
}

pub(super) fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn ctrl_c_reaches_the_command_once() {
    needs(&["python3"]);
    // Python gives vnettop a terminal of its own and types Ctrl-C into it.
    let script = format!(
        "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv({VNETTOP:?}, ['vnettop', 'run', '--card', '/dev/null', '--', sys.executable, '-c', {TELLS:?}])
seen = b''
def until(words):
    global seen
    while words not in seen:
        seen += os.read(terminal, 1000)
until(b'pid')
os.write(terminal, b'\\x03')
until(b'got 2')
os.write(terminal, b'\\x04')
try:
    while True:
        part = os.read(terminal, 1000)
        if not part: break
        seen += part
except OSError:
    pass
print(seen.count(b'got 2'), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    );
    let out = Command::new("python3").args(["-c", &script]).output().expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(
        said.trim(),
        "1 5",
        "Ctrl-C comes once, and the exit code too: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn masks_are_as_before_after_a_signal_in_a_pinned_stretch() {
    needs_two_cores();
    for name in ["-TERM", "-INT", "-HUP", "-USR1", "-ALRM"] {
        let dir = tempfile::tempdir().expect("a directory");
        let spinner = busy(dir.path(), "0-1");
        await_that("the spinner spins", 10, || masks(spinner.0.id()) == ["Cpus_allowed_list:\t0-1"]);
        let mut vnettop = kept(pinning(dir.path()));
        await_that("it is pinned", 20, || masks(spinner.0.id()) != ["Cpus_allowed_list:\t0-1"]);
        assert_eq!(journals(dir.path()), 1, "the journal is written before the mask");
        signal(vnettop.0.id(), name);
        let code = vnettop.0.wait().expect("it ends").code();
        assert!(code.is_some_and(|code| code > 128), "the command was ended by {name}: {code:?}");
        assert_eq!(masks(spinner.0.id()), ["Cpus_allowed_list:\t0-1"], "{name}: the exact old mask is back");
        assert_eq!(journals(dir.path()), 0, "{name}: nothing is left behind");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn killed_in_a_pinned_stretch_it_is_undone() {
    needs_two_cores();
    let dir = tempfile::tempdir().expect("a directory");
    let spinner = busy(dir.path(), "0-1");
    let mut vnettop = kept(pinning(dir.path()));
    await_that("it is pinned", 20, || {
        let masks = masks(spinner.0.id());
        masks == ["Cpus_allowed_list:\t0"] || masks == ["Cpus_allowed_list:\t1"]
    });
    let command = child_of(vnettop.0.id());
    vnettop.0.kill().expect("it is killed");
    vnettop.0.wait().expect("it is gone");
    signal(command.expect("the command runs on"), "-KILL");
    let mut undo = Command::new(VNETTOP);
    undo.arg("undo").env("XDG_STATE_HOME", dir.path());
    let (code, _, err) = output(undo);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(masks(spinner.0.id()), ["Cpus_allowed_list:\t0-1"], "the exact old mask is back");
    assert_eq!(journals(dir.path()), 0, "nothing is left behind");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn turns_are_taken_and_the_command_is_found_anew_in_every_run() {
    needs_two_cores();
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("run.jsonl");
    // Watched by its pid alone: the command itself is busy for two seconds.
    let script = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done";
    let paths = ["--record", record.to_str().expect("text"), "--card", "/dev/null"];
    let options = [&["--watch", "nobody", "--pin", "compare", "--repeat", "4"][..], &paths].concat();
    let mut vnettop = run(&options, &["sh", "-c", script]);
    vnettop.env("XDG_STATE_HOME", dir.path());
    let (code, _, err) = output(vnettop);
    // The command sends nothing, so there is no rate to compare; everything else goes as asked.
    let told: Vec<&str> = err.lines().filter(|line| !line.contains("were not compared: ")).collect();
    assert_eq!((code, told), (Some(0), vec![]), "nothing else went otherwise than asked");
    let events = events(&record);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "run_started").count(), 4, "it ran four times: {kinds:?}");
    let pids = |kind: &str, key: &dyn Fn(&Value) -> Value| -> Vec<Value> {
        events.iter().filter(|event| event["kind"] == kind).map(key).collect()
    };
    let started = pids("run_started", &|event| event["pid"].clone());
    let pinned = pids("pinned", &|event| event["thread"]["pid"].clone());
    assert_eq!(
        pinned,
        [started[1].clone(), started[2].clone()],
        "U P P U: half of them were pinned, as the processes they were"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn iperf3_is_compared_and_its_card_made_again_from_the_recording() {
    needs(&["iperf3", "zstd"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let (code, printed, record, _netns) = iperf3(dir.path(), &["--pin", "compare"], "18");
    assert_eq!(code, Some(0), "the command's own code");
    assert_eq!(made_again(&record), printed, "the recording gives the same card");
    let card = json(&printed);
    assert!(card["runs"][0]["seconds"].as_f64().is_some_and(|seconds| (16.0..25.0).contains(&seconds)), "{card}");
    assert!(card["busy_s"].as_f64().is_some_and(|busy| busy > 10.0), "iperf3 was busy: {card}");
    let roles: Vec<&str> =
        card["watched"].as_array().into_iter().flatten().filter_map(|of| of["role"].as_str()).collect();
    assert_eq!(roles, ["client", "server"], "the client and the server of this machine: {card}");
    let plain = dir.path().join("run.jsonl");
    let unpacked = Command::new("zstd").args(["-q", "-d"]).arg(&record).arg("-o").arg(&plain).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "the recording is whole");
    let turns: Vec<Value> = events(&plain)
        .into_iter()
        .filter(|event| event["kind"] == "stretch")
        .map(|event| event["side"].clone())
        .collect();
    let sides: Vec<&str> = turns.iter().filter_map(Value::as_str).collect();
    let (u, p) = ("unpinned", "pinned");
    // On a busy machine a phase lasts longer, and there are fewer.
    let order = [u, p, p, u, p, u, u, p, p, u, u, p];
    assert!(sides.len() >= 4 && order.starts_with(&sides), "turns are taken: {turns:?}: {card}");
    let both = &card["comparison"];
    assert!(both["pairs"].as_u64().is_some_and(|pairs| pairs >= 2), "neighbours are compared: {card}");
    assert!(both["pinned"]["other_cores"].is_f64() && both["unpinned"]["other_cores"].is_f64(), "beside what: {card}");
    assert!(both["verdict"].is_string() && card["missing"] == Value::Array(Vec::new()), "{card}");
    assert_eq!(card["basis"]["of"], "connections", "root reads the connections: {card}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_comparison_in_which_nothing_was_worth_pinning_says_why() {
    needs(&["iperf3", "taskset"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let (netns, dir) = (Netns::new(), tempfile::tempdir().expect("a directory"));
    let server = || {
        let mut command = netns.command("taskset");
        command.args(["-c", "0", "iperf3"]);
        ground::listening(command, &["-1"])
    };
    // 1 Mbit/s is little work, but starting and ending iperf3 may be 5 % of a slow core for part of a phase.
    let cases = [
        ("5G", vec!["only core 0 may run the busy threads"]),
        (
            "1M",
            vec![
                "no watched thread used more than 5 % of a core",
                "the watched threads were busy for only 0.",
                "only core 0 may run the busy threads",
            ],
        ),
    ];
    for (rate, why) in cases {
        let server = server();
        let mut vnettop = netns.command(VNETTOP);
        vnettop.args(["run", "--watch", &server.0.id().to_string(), "--pin", "compare", "--phase", "1"]);
        vnettop.args([
            "--card",
            "/dev/null",
            "--",
            "taskset",
            "-c",
            "0",
            "iperf3",
            "-c",
            "127.0.0.1",
            "-t",
            "5",
            "-b",
            rate,
        ]);
        vnettop.env("XDG_STATE_HOME", dir.path()).stdin(Stdio::null());
        let (code, _, err) = output(vnettop);
        assert_eq!(code, Some(0), "iperf3 ran: {err}");
        let told =
            |why: &&str| err.contains(&format!("unpinned and pinned were not compared: nothing was pinned: {why}"));
        assert_eq!(why.iter().filter(|why| told(why)).count(), 1, "the true reason, once: {err}");
        assert_eq!(err.matches("nothing was pinned").count(), 1, "and nothing beside it: {err}");
        assert_eq!(journals(dir.path()), 0, "and no journal is left");
    }
}
