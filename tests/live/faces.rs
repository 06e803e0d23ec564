//! Arguments, recordings and missing rights as a user meets them: one sentence, the right exit code, nothing half done.

use crate::ground::{Netns, PANES_CONFIG, UDP_SENDER, VNETTOP, needs, objects, turn};
use std::fs;
use std::process::{Command, Output, Stdio};

fn vnettop(arguments: &[&str]) -> Output {
    turn::take();
    Command::new(VNETTOP).args(arguments).stdin(Stdio::null()).output().expect("vnettop runs")
}

fn assert_refused(arguments: &[&str], code: i32, says: &str) {
    let out = vnettop(arguments);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{arguments:?} ends with {code}: {stderr}");
    assert!(out.stdout.is_empty(), "{arguments:?} prints nothing else");
    assert!(
        stderr.lines().count() == 1 && stderr.contains(says),
        "{arguments:?} says one sentence with {says:?}: {stderr}"
    );
}

#[test]
fn wrong_arguments_are_one_sentence_and_two() {
    let cases: &[(&[&str], &str)] = &[
        (&["--frob"], "--frob"),
        (&["frob"], "unknown command 'frob'"),
        (&["-d", "0"], "between 0.01 and 3600"),
        (&["-d", "fast"], "for example 0.5"),
        (&["-d"], "SECONDS"),
        (&["-n", "0"], "--count"),
        (&["--print", "80"], "80x24"),
        (&["--print", "80x24", "--json"], "--json"),
        (&["--keys", "q"], "--print"),
        (&["--watch", ""], "command name or a pid"),
        (&["--speed", "2"], "vnettop replay FILE"),
        (&["--replay", "a", "--record", "b"], "--record"),
        (&["\u{1b}[31m"], "unknown command '[31m'"),
    ];
    for (arguments, says) in cases {
        assert_refused(arguments, 2, says);
    }
}

#[test]
fn keys_that_do_not_exist_are_named() {
    assert_refused(&["--print", "80x24", "-d", "0.05", "--keys", "<frob>"], 2, "<frob");
}

#[test]
fn recordings_that_cannot_be_read_are_one_sentence_and_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("writable");
        path.display().to_string()
    };
    assert_refused(&["--json", "--replay", "/nowhere/at/all"], 1, "No such file");
    assert_refused(&["--json", "--replay", &path("foreign", "hello\n")], 1, "not a vnettop recording");
    assert_refused(
        &["--json", "--replay", &path("newer", "{\"vnettop_recording\":7,\"vnettop\":\"x\"}\n")],
        1,
        "schema version 7",
    );
    let damaged = path("damaged", "{\"vnettop_recording\":1,\"vnettop\":\"x\"}\n{\"frob\":1}\n{}\n");
    assert_refused(&["--json", "--replay", &damaged], 1, "line 2");
    assert_refused(&["--json", "--record", "/nowhere/at/all"], 1, "cannot write recording");
    assert_refused(&["--json", "--record", &damaged], 1, "exists already");
}

#[test]
fn help_and_version_need_no_terminal() {
    for (argument, says) in [("--help", "vnettop demo"), ("--version", env!("CARGO_PKG_VERSION"))] {
        let out = vnettop(&[argument]);
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains(says), "{argument} says {says}");
    }
}

#[test]
fn a_dumb_terminal_is_told_about_json() {
    // `script` gives the program a terminal; TERM says that it cannot place text.
    let out =
        Command::new("script").args(["-qec", VNETTOP, "/dev/null"]).env("TERM", "dumb").stdin(Stdio::null()).output();
    let out = out.expect("script runs");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("--json") && !said.contains('\u{1b}'), "it suggests --json and draws nothing: {said}");
    assert_eq!(out.status.code(), Some(1), "and ends with 1");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_replay_is_the_live_run_object_by_object_and_frame_by_frame() {
    needs(&["ip", "nsenter", "python3"]);
    let netns = Netns::new();
    netns.run("ip link add br0 type bridge; ip link add p0 type veth peer name p1; ip link set p0 master br0 up; ip link set p1 up");
    let _traffic = netns.keep("python3", &["-c", UDP_SENDER]);
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["run.jsonl", "run.jsonl.zst"] {
        let file = dir.path().join(name).display().to_string();
        let live = netns
            .command(VNETTOP)
            .args(["--json", "-d", "0.1", "-n", "20", "--watch", "python3", "--record", &file])
            .output();
        let live = live.expect("vnettop runs");
        let replayed = vnettop(&["--json", "--replay", &file]);
        assert_eq!(objects(&live).len(), 20, "as many objects as asked for");
        assert_eq!(
            String::from_utf8_lossy(&live.stdout),
            String::from_utf8_lossy(&replayed.stdout),
            "{name}: every object is the same"
        );
    }
    let file = dir.path().join("frame.jsonl").display().to_string();
    let frame = ["--print", "120x40", "-d", "0.1", "-n", "7", "--keys", "<tick><tick>u"];
    let live = netns
        .command(VNETTOP)
        .args(frame)
        .args(["--watch", "python3", "--record", &file])
        .output()
        .expect("vnettop runs");
    let replayed = vnettop(&[&frame[..], &["--watch", "python3", "--replay", &file]].concat());
    let (live, replayed) = (String::from_utf8_lossy(&live.stdout), String::from_utf8_lossy(&replayed.stdout));
    let panes = |frame: &str| frame.lines().skip(1).take(37).map(str::to_owned).collect::<Vec<_>>();
    assert!(live.lines().count() == 40 && live.contains("br0"), "a frame was printed:\n{live}");
    assert_eq!(
        panes(&live),
        panes(&replayed),
        "the frame is the same but for the word 'replay' in its header, its place in the recording and the keys that would change this machine"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn names_full_of_escape_codes_are_only_names() {
    needs(&["ip", "nsenter"]);
    let netns = Netns::new();
    netns.run("ip link add $(printf '\\033[31mred') type ifb; ip link add 网络0 type ifb; ip link add $(printf 'a\\377b') type ifb");
    let out = netns
        .command(VNETTOP)
        .args(["--print", "100x30", "-d", "0.05", "--config", PANES_CONFIG])
        .output()
        .expect("vnettop runs");
    let frame = String::from_utf8(out.stdout).expect("the frame is UTF-8");
    assert!(!frame.contains('\u{1b}'), "no escape code is drawn");
    assert!(
        frame.contains("?[31mred") && frame.contains("网络0") && frame.contains("a?b"),
        "each has its row:\n{frame}"
    );
    let json = netns.command(VNETTOP).args(["--json", "-n", "1", "-d", "0.05"]).output().expect("vnettop runs");
    assert_eq!(objects(&json)[0]["links"].as_array().expect("links").len(), 4, "lo and the three");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_ordinary_user_sees_what_an_ordinary_user_may() {
    needs(&["setpriv"]);
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("vnettop");
    fs::copy(VNETTOP, &copy).expect("copied to where anybody may run it");
    Command::new("chmod").args(["-R", "a+rX", &dir.path().display().to_string()]).status().expect("chmod runs");
    let out = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy)
        .args(["--json", "-n", "1", "-d", "0.1", "--watch", "1"])
        .output()
        .expect("setpriv runs");
    let object = &objects(&out)[0];
    assert!(!object["links"].as_array().expect("links").is_empty(), "links are shown");
    let thread = &object["threads"][0];
    assert_eq!(
        (&thread["pid"], &thread["moves_evidence"]),
        (&1.into(), &"counted".into()),
        "another user's thread, its moves counted"
    );
    assert_eq!(object["own"]["realtime"], false, "without the right there is no real-time priority, and it is said");
}

/// vnettop where no more than so many files may be open.
fn limited(limit: &str, arguments: &str) -> Output {
    turn::take();
    let script = format!("ulimit {limit} && exec {VNETTOP} {arguments}");
    Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().expect("sh runs")
}

#[test]
fn too_low_a_limit_of_open_files_is_one_sentence_with_the_way_out() {
    let told = |out: &Output| String::from_utf8_lossy(&out.stderr).into_owned();
    let live = ["--json -n 1 -d 0.05", "--print 80x24 -d 0.05", "run --pin compare -- echo ran", "demo --json -n 1"];
    for limit in 8..128 {
        for face in live.into_iter().take(if limit % 8 == 0 { live.len() } else { 1 }) {
            let out = limited(&format!("-n {limit}"), face);
            let says = format!("vnettop: vnettop needs 128 open files and may have only {limit}: ulimit -n 128");
            assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0), "{face} with {limit}: {}", told(&out));
            assert!(
                told(&out).starts_with(&says) && told(&out).lines().count() == 1,
                "{face}, {limit}: {}",
                told(&out)
            );
        }
    }
    for face in ["--json -n 1 -d 0.05 --netns self", "run --netns self --card /dev/null -- true"] {
        let out = limited("-n 128", face);
        assert_eq!(out.status.code(), Some(0), "{face} with as many as it says it takes: {}", told(&out));
        assert!(!told(&out).contains("Too many open files"), "{face} misses nothing then: {}", told(&out));
    }
    let out = limited("-S -n 20", "run --netns self --card /dev/null -- sh -c 'ulimit -n'");
    let (printed, told) = (String::from_utf8_lossy(&out.stdout), told(&out));
    assert_eq!(
        (out.status.code(), printed.trim()),
        (Some(0), "20"),
        "a soft limit is raised, but not the command's: {told}"
    );
    let out = limited("-n 8", "undo");
    assert_eq!(out.status.code(), Some(0), "undo takes few: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_sentence_every_half_second_ends_with_its_count_a_signal_and_a_closed_pipe() {
    use std::io::{BufRead, BufReader};
    let words = ["--lines", "0.5", "--no-config", "--netns", "self", "--watch", "no-such-benchmark"];
    // What passes on the machine is said too: here nothing does.
    let quiet = Netns::new();
    let out = quiet.command(VNETTOP).args(words).args(["-n", "2"]).stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(out.status.success() && lines.len() == 2, "{said}");
    assert!(lines[0].ends_with(" UTC no test runs: start no-such-benchmark or vnettop demo"), "{said}");
    assert!(lines[1].ends_with(" UTC no test runs"), "what starts one is said once: {said}");
    let start = || {
        let mut command = quiet.command(VNETTOP);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
    };
    let first_line = |child: &mut std::process::Child| {
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert!(line.contains("no test runs"), "{line}");
        out
    };
    let mut child = start();
    let out = first_line(&mut child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "Ctrl-C ends it");
    drop(out);
    let mut child = start();
    drop(first_line(&mut child));
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success() && ended.stderr.is_empty(), "a closed pipe is no error: {ended:?}");
}
