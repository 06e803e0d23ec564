//! What iperf3 says itself with `--json-stream`, read without being asked: where it writes into a file, and where `vnettop
//! run` started it into a pipe. Not every iperf3 has `--json-stream`, so a stand-in says what a real one said.

use crate::ground::{Kept, VNETTOP, Watching, await_that, needs, pid, turn};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TCP: &str = include_str!("../fixtures/iperf3/tcp-client.jsonl");
const UDP: &str = include_str!("../fixtures/iperf3/udp-client.jsonl");

/// The lines of a test that began now.
fn now(text: &str) -> String {
    let stamp = std::time::UNIX_EPOCH.elapsed().expect("a clock").as_millis();
    let (before, after) = text.split_once("\"timesecs\":").expect("a time");
    let after = after.split_once("},").expect("its end").1;
    format!("{before}\"timesecs\":{},\"timemillisecs\":{stamp}}},{after}", stamp / 1000)
}

/// A program named iperf3 that runs a shell script.
fn stand_in(directory: &Path, script: &str) -> PathBuf {
    turn::take();
    let program = directory.join("iperf3");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may be run");
    program
}

/// One that waits for lines, and says each to its own output.
fn echoing(directory: &Path, more: &str, out: Stdio) -> Kept {
    let program = stand_in(directory, &format!("{more}\nwhile read -r line; do printf '%s\\n' \"$line\"; done"));
    let mut command = Command::new(program);
    Kept(command.args(["-c", "h", "--json-stream"]).stdin(Stdio::piped()).stdout(out).spawn().expect("it starts"))
}

fn say(client: &mut Kept, text: &str) {
    client.0.stdin.as_mut().expect("piped").write_all(text.as_bytes()).expect("it listens");
}

fn vnettop_beside(client: &Kept) -> Watching {
    let mut command = Command::new(VNETTOP);
    command.args(["--netns", "self", "-d", "0.2", "--watch", &pid(client).to_string()]);
    Watching::start(command)
}

/// The first object, within some 12 s, whose benchmark of that process is as wanted.
fn benchmark(vnettop: &mut Watching, client: &Kept, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let is_it = |one: &&Value| one["pid"] == pid(client) && is(one);
    let found =
        (0..60).find_map(|_| vnettop.next()["benchmarks"].as_array().expect("a list").iter().find(is_it).cloned());
    found.unwrap_or_else(|| panic!("{what} within sixty samples"))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_iperf3_that_writes_into_a_file_is_read_without_being_asked() {
    needs(&["sh"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("all.json");
    // Somebody else's test stands in it already, and is not taken for this one's.
    fs::write(&file, UDP).expect("writable");
    let append = || fs::OpenOptions::new().append(true).open(&file).expect("it opens");
    let mut client = echoing(directory.path(), "", append().into());
    let mut vnettop = vnettop_beside(&client);
    let one = benchmark(&mut vnettop, &client, "it is recognised", |one| one["json_stream"] == true);
    assert_eq!(
        (&one["reported"], &one["reported_gap"]),
        (&Value::Null, &Value::Null),
        "it has said nothing yet: {one}"
    );
    // The file's name is gone: what the process writes to is still the same.
    fs::remove_file(&file).expect("it is removed");
    let (tcp, last) = (now(TCP), |one: &Value| one["reported"]["at_s"].as_f64().is_some_and(|at_s| at_s > 2.9));
    let (intervals, end) = tcp.split_at(tcp.rfind("{\"event\":\"end\"").expect("an end"));
    say(&mut client, intervals);
    let one = benchmark(&mut vnettop, &client, "its last interval is told", last);
    assert_eq!(one["reported"]["retransmits"], 0, "{one}");
    say(&mut client, end);
    drop(client.0.stdin.take());
    client.0.wait().expect("it ends");
    let whole = (0..60).find_map(|_| {
        let object = vnettop.next();
        let events = object["events"].as_array().expect("a list");
        events.iter().find(|event| event["kind"] == "reported").cloned()
    });
    let whole = whole.expect("what it said at its end is told, though it is gone");
    assert_eq!((&whole["side"], &whole["pid"]), (&"client".into(), &pid(&client).into()), "{whole}");
    assert_eq!(whole["whole"]["received_bits_per_s"], 200_157_655, "{whole}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn its_log_is_read_wherever_it_is() {
    needs(&["python3", "unshare", "mount"]);
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("iperf3");
    // The program itself, not a script that looks for it.
    let python =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("it runs").stdout;
    let python = String::from_utf8(python).expect("text");
    // As iperf 3 opens it, below a directory that is another one outside of its mount namespace.
    let script =
        "import sys\nlog = open(sys.argv[-1], 'a+')\nfor line in sys.stdin:\n    log.write(line); log.flush()\n";
    fs::write(&program, format!("#!{}\n{script}", python.trim())).expect("writable");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let inside = format!(
        "mount -t tmpfs none {0}/x && cd {0}/x && exec {0}/iperf3 -c h --json-stream --logfile ./log",
        directory.path().display()
    );
    fs::create_dir(directory.path().join("x")).expect("writable");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &inside]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut client = Kept(command.spawn().expect("unshare runs"));
    let comm = format!("/proc/{}/comm", pid(&client));
    await_that("it runs", 10, || fs::read_to_string(&comm).is_ok_and(|comm| comm == "iperf3\n"));
    let mut vnettop = vnettop_beside(&client);
    say(&mut client, &now(UDP));
    let one = benchmark(&mut vnettop, &client, "its interval is told", |one| one["reported"].is_object());
    assert_eq!(one["reported"]["at_s"].as_f64().map(f64::round), Some(2.0), "{one}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_no_file_is_not_touched_and_said() {
    needs(&["sh", "mkfifo"]);
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()), "a fifo");
    let open = || fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("it opens");
    let other = directory.path().join("other");
    let cases: [(Stdio, &str); 2] =
        [(open().into(), "pipe: use vnettop run"), (Stdio::null(), "neither to a file nor into a pipe")];
    // Open all the time: what is in a fifo that nobody has open is gone.
    let mut held = open();
    for (out, says) in cases {
        let mut client = echoing(directory.path(), "", out);
        let mut vnettop = vnettop_beside(&client);
        say(&mut client, &now(TCP));
        let gap = |one: &Value| one["reported_gap"].as_str().is_some_and(|gap| gap.contains(says));
        let one = benchmark(&mut vnettop, &client, "the reason is told", gap);
        assert_eq!(one["reported"], Value::Null, "{one}");
        vnettop.was_never_held_up();
    }
    // Nothing was taken out of the fifo.
    let mut first = vec![0; TCP.len()];
    held.read_exact(&mut first).expect("it is all there");
    // One that takes up another file half way is read there.
    let mut client = echoing(directory.path(), &format!("read -r line; exec >'{}'", other.display()), Stdio::null());
    let mut vnettop = vnettop_beside(&client);
    benchmark(&mut vnettop, &client, "the reason is told", |one| one["reported_gap"].is_string());
    say(&mut client, &format!("go on\n{}", now(TCP)));
    let one = benchmark(&mut vnettop, &client, "its interval is told", |one| one["reported"].is_object());
    assert_eq!(one["reported_gap"], Value::Null, "there is no reason any more: {one}");
}

/// `vnettop run` of a command; the options come first.
fn run(options: &[&str], command: &[&str]) -> Command {
    let mut vnettop = Command::new(VNETTOP);
    vnettop.arg("run").args(["--netns", "self"]).args(options).arg("--").args(command).stdin(Stdio::null());
    vnettop
}

/// A stand-in that says a whole test, bytes that are no text, and ends with 5.
fn whole(directory: &Path) -> String {
    fs::write(directory.join("lines"), now(TCP)).expect("writable");
    let lines = directory.join("lines").display().to_string();
    let script = format!("cat '{lines}'; printf 'a\\000\\377b'; [ -t 1 ] && echo terminal; exit 5");
    stand_in(directory, &script).display().to_string()
}

fn card(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a card");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("one object ({error}): {text}"))
}

#[test]
fn what_goes_through_a_pipe_is_read_in_passing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let (program, record, written) = (whole(directory.path()), path("run.jsonl"), path("card.json"));
    let (record, file) = (record.display().to_string(), written.display().to_string());
    let command = [program.as_str(), "-c", "h", "--json-stream"];
    let out = run(&["--format", "json", "--card", &file, "--record", &record], &command).output().expect("it runs");
    assert_eq!(out.status.code(), Some(5), "the exit code is the command's");
    let plain = Command::new(command[0]).args(&command[1..]).output().expect("it runs").stdout;
    assert!(out.stdout == plain && plain.ends_with(b"a\0\xffb"), "every byte goes through: {out:?}");
    let shown = card(&written);
    let told = &shown["reported"];
    assert_eq!(told["gap"], Value::Null, "{told}");
    let [one] = &told["tests"].as_array().expect("a list")[..] else { panic!("one test: {told}") };
    assert_eq!((&one["side"], &one["run"]), (&"client".into(), &0.into()), "{one}");
    assert_eq!(one["whole"]["sent_bits_per_s"], 200_212_947, "what iperf3 said: {one}");
    assert_eq!(one["measured_bits_per_s"], Value::Null, "it sent nothing that could be measured: {one}");
    let again = |format: &str| {
        let again = Command::new(VNETTOP).args(["card", &record, "--format", format]).output().expect("it runs");
        String::from_utf8(again.stdout).expect("text")
    };
    assert_eq!(again("json"), fs::read_to_string(&written).expect("a card"), "the recording tells the same");
    let line = "sent 200 Mbit/s, received 200 Mbit/s, 0 retransmits in 3 s";
    assert!(again("text").contains(&format!("  iperf3    {line}\n")), "{}", again("text"));
    assert!(again("markdown").contains(&format!("- **iperf3** {line}\n")), "{}", again("markdown"));
}

#[test]
fn a_shell_in_between_and_whoever_it_leaves_behind_are_heard() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("card.json");
    let (program, card_file) = (whole(directory.path()), file.display().to_string());
    let script =
        format!("(read -r line <'{0}/gate'; echo late) & '{program}' -c h --json-stream", directory.path().display());
    let gate = directory.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().is_ok_and(|status| status.success()), "a fifo");
    let mut command = run(&["--format", "json", "--card", &card_file], &["sh", "-c", &script]);
    let mut vnettop = Kept(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"));
    let is_there = || fs::read_to_string(&file).is_ok_and(|text| text.ends_with("}\n"));
    await_that("the card is there when the command has ended", 20, is_there);
    assert_eq!(card(&file)["reported"]["tests"][0]["whole"]["length_s"], 3.002, "{}", card(&file));
    fs::write(&gate, "go on\n").expect("it waits");
    let mut seen = Vec::new();
    vnettop.0.stdout.take().expect("piped").read_to_end(&mut seen).expect("readable");
    assert!(seen.ends_with(b"late\n"), "who writes after the command's end is not cut off");
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(5), "and the exit code is the command's");
}

#[test]
fn a_reader_that_is_slow_or_gone_is_one_to_the_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let script =
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo \"$i a line of some length that fills the pipe\"; done";
    let program = stand_in(directory.path(), script).display().to_string();
    let start = || {
        let mut command = run(&["--card", "/dev/null"], &[&program, "-c", "h", "--json-stream"]);
        Kept(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"))
    };
    let child = |vnettop: &Kept| {
        let children = format!("/proc/{0}/task/{0}/children", vnettop.0.id());
        let list = fs::read_to_string(children).unwrap_or_default();
        list.split_whitespace()
            .find(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "iperf3\n"))
            .map(str::to_owned)
    };
    let waits = |vnettop: &Kept| {
        let at = child(vnettop).map(|pid| fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default());
        at.is_some_and(|at| at.contains("pipe_write"))
    };
    let mut vnettop = start();
    await_that("the command waits for a reader that does not read", 20, || waits(&vnettop));
    let mut seen = String::new();
    vnettop.0.stdout.take().expect("piped").read_to_string(&mut seen).expect("text");
    let in_order = seen.lines().enumerate().all(|(nth, line)| line.starts_with(&format!("{} a", nth + 1)));
    assert!(in_order && seen.lines().count() == 20_000, "every line comes, in its order");
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(0));

    let mut vnettop = start();
    await_that("it waits again", 20, || waits(&vnettop));
    drop(vnettop.0.stdout.take());
    assert_eq!(
        vnettop.0.wait().expect("it ends").code(),
        Some(141),
        "the command ends by the broken pipe, as without vnettop"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_terminal_stays_the_commands_own_and_the_card_says_so() {
    needs(&["python3"]);
    let directory = tempfile::tempdir().expect("a directory");
    let (program, file) = (whole(directory.path()), directory.path().join("card.json"));
    let script = format!(
        "import os, pty
pid, terminal = pty.fork()
if pid == 0:
    os.execv({VNETTOP:?}, ['vnettop', 'run', '--netns', 'self', '--format', 'json', '--card', {:?}, '--', {program:?}, '-c', 'h', '--json-stream'])
seen = b''
try:
    while True:
        part = os.read(terminal, 1000)
        if not part: break
        seen += part
except OSError:
    pass
print(seen.count(b'terminal'), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        file.display().to_string()
    );
    let out = Command::new("python3").args(["-c", &script]).output().expect("python runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "1 5", "{}", String::from_utf8_lossy(&out.stderr));
    let told = &card(&file)["reported"];
    let gap = told["gap"].as_str().expect("a reason");
    assert!(gap.contains("iperf3 writes to a terminal") && gap.contains("redirect it to a file"), "{gap}");
    assert_eq!(told["tests"], Value::Array(Vec::new()), "{told}");
}

#[test]
fn an_output_that_is_a_file_is_read_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let (program, file, out) =
        (whole(directory.path()), directory.path().join("card.json"), directory.path().join("out"));
    // It is there long enough to be seen.
    let slow = stand_in(directory.path(), "read -r line; cat \"${0%/*}/lines\"; exit 5").display().to_string();
    assert_eq!(program, slow);
    let mut command = run(
        &["-d", "0.1", "--format", "json", "--card", &file.display().to_string()],
        &[&slow, "-c", "h", "--json-stream"],
    );
    let mut vnettop = Kept(
        command.stdin(Stdio::piped()).stdout(fs::File::create(&out).expect("writable")).spawn().expect("it starts"),
    );
    let is_open = || {
        let held = fs::read_dir(format!("/proc/{}/fd", vnettop.0.id())).expect("it runs");
        let links = held.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| *link == out).count() > 1
    };
    await_that("vnettop follows its own output", 20, is_open);
    drop(vnettop.0.stdin.take());
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(5));
    let told = &card(&file)["reported"];
    assert_eq!(told["tests"][0]["whole"]["retransmits"], 0, "{told}");
    assert!(fs::read_to_string(&out).expect("text").ends_with('\n'), "and nothing else is in it");
}

/// An iperf3 that says that its arguments are three gibibytes long, as any user's program may (`PR_SET_MM_MAP`).
const LONG: &str = "
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.sbrk.restype = ctypes.c_void_p, ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
size = 3 << 30
at = libc.mmap(None, size, 3, 0x4022, -1, 0)
ctypes.memmove(at, b'iperf3\\0-s\\0--json-stream\\0', 24)
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
of = lambda number: int(fields[number - 3])
code, data, heap = (of(26), of(27)), (of(45), of(46)), (of(47), libc.sbrk(0))
all = [*code, *data, *heap, of(28), at, at + size, of(50), of(51), 0, 0xffffffff << 32]
libc.prctl(15, b'iperf3', 0, 0, 0)
done = libc.prctl(35, 14, ctypes.byref((ctypes.c_uint64 * len(all))(*all)), ctypes.c_ulong(8 * len(all)), 0)
print('ready' if done == 0 else f'refused: {ctypes.get_errno()}', flush=True)
signal.pause()";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn arguments_as_long_as_a_program_s_memory_take_none_of_vnettops() {
    needs(&["python3"]);
    let mut command = Command::new("python3");
    let mut long = Kept(command.args(["-c", LONG]).stdout(Stdio::piped()).spawn().expect("python3 starts"));
    let mut line = [0; 6];
    long.0.stdout.as_mut().expect("piped").read_exact(&mut line).expect("it says how it went");
    assert_eq!(&line, b"ready\n", "the kernel takes it (CONFIG_CHECKPOINT_RESTORE)");
    let mut command = Command::new(VNETTOP);
    command.args(["--netns", "self", "-d", "0.2"]);
    let mut vnettop = Watching::start(command);
    let is_watched = |object: &Value| {
        object["threads"].as_array().is_some_and(|all| all.iter().any(|thread| thread["pid"] == pid(&long)))
    };
    assert!((0..30).any(|_| is_watched(&vnettop.next())), "it is found as an iperf3");
    (0..10).for_each(|_| drop(vnettop.next()));
    let status = fs::read_to_string(format!("/proc/{}/status", vnettop.pid())).expect("it runs");
    let resident =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    let resident: u64 = resident.expect("a figure");
    assert!(resident < 150_000, "{resident} KiB");
}
