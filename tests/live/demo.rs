//! `vnettop demo` on the real kernel: traffic flows for root and for an ordinary user, and nothing is left behind
//! however it ends.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod held;

use crate::ground::{needs, turn};
use held::{Held, counters, namespace, pids};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_vnettop");
const NOBODY: u32 = 65534;
/// How long anything that should be immediate may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(10);

/// Each demo fills every core it gets, so one at a time.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    turn::take();
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq)]
enum User {
    Root,
    RealtimeRefusal,
}

/// No process, named namespace or link of the demo is left; `namespaces` are those it had.
fn assert_nothing_left(namespaces: &BTreeSet<u64>, how: &str) {
    let inside: Vec<u32> =
        pids().filter(|&pid| namespace(pid).is_some_and(|inode| namespaces.contains(&inode))).collect();
    assert!(inside.is_empty(), "after {how} no process may be left in the demo's namespaces, but {inside:?} are");
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let inode = entry.metadata().map(|file| file.ino()).unwrap_or_default();
        assert!(!namespaces.contains(&inode), "after {how} no namespace may have a name, but {entry:?} is one");
    }
    let links = counters(std::process::id());
    for link in ["demo0", "veth-srv", "veth-cli"] {
        assert!(!links.contains_key(link), "the demo's {link} may not show in the namespace it came from");
    }
}

fn traffic_flows(name: &str, user: User, standin: bool) {
    let _one = one_at_a_time();
    let held = Held::start(user, &[], standin).expect("the demo starts");
    let watched = if standin { "watch standin:" } else { "watch iperf3:" };
    assert!(held.line.starts_with(watched), "the threads worth watching are named: {}", held.line);
    let within = Duration::from_secs(2);
    let veth = held.wait_for_traffic(&["veth-srv", "veth-cli"], 1_000, within);
    println!("{name}: traffic through both veths {veth:?} after the start");
    if held.has_tun() {
        held.wait_for_traffic(&["tun0"], 250_000, within);
    } else {
        let usable = user == User::Root && Path::new("/dev/net/tun").exists();
        assert!(!usable, "root with /dev/net/tun gets a tun0, but: {}", held.line);
        assert!(held.line.contains("/dev/net/tun"), "a missing tun0 is explained: {}", held.line);
    }
    let (received, sent) = counters(held.pid())["veth-cli"];
    assert!(received > sent, "the client's side carries the data: {received} bytes from it, {sent} to it");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn traffic_flows_for_root() {
    traffic_flows("traffic_flows_for_root", User::Root, true);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn traffic_flows_for_an_ordinary_user() {
    traffic_flows("traffic_flows_for_an_ordinary_user", User::RealtimeRefusal, true);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn iperf3_drives_the_demo_where_it_is_installed() {
    let name = "iperf3_drives_the_demo_where_it_is_installed";
    needs(&["iperf3"]);
    traffic_flows(name, User::RealtimeRefusal, false);
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Quit,
    Panic,
    Signal(Signal),
}

/// Ends the demo in one way and checks that all of it is gone.
fn nothing_is_left(user: User, end: End, standin: bool) {
    let options: &[&str] = if end == End::Panic { &["--end", "panic"] } else { &[] };
    let mut held = Held::start(user, options, standin).expect("the demo starts");
    held.wait_for_traffic(&["veth-srv", "veth-cli"], 1_000, PATIENCE);
    let family = held.family();
    let least = if standin { 2 } else { 4 } + usize::from(held.has_tun());
    assert!(family.len() >= least, "a running demo has at least {least} processes, found {}", family.len());
    let mut namespaces: BTreeSet<u64> = family.iter().map(|member| member.namespace).collect();
    namespaces.extend(namespace(held.pid()));
    assert_eq!(namespaces.len(), 3, "the demo has three namespaces: the bridge's, the server's, the client's");
    let own = namespace(std::process::id()).unwrap();
    assert!(!namespaces.contains(&own), "none of them is the one it was started in");

    let status = finish(&mut held.child, end);
    if let End::Signal(signal) = end {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(status.signal(), Some(signal.as_raw()), "the holder has no handler and dies of the signal");
    }
    for member in &family {
        assert!(member.is_gone_within(PATIENCE), "after {end:?} process {} ({}) must end", member.pid, member.command);
    }
    assert_nothing_left(&namespaces, &format!("{end:?}"));
}

fn finish(child: &mut Child, end: End) -> ExitStatus {
    match end {
        End::Quit | End::Panic => drop(child.stdin.take()),
        End::Signal(signal) => kill_process(Pid::from_child(child), signal).unwrap(),
    }
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let left = Timespec::try_from(PATIENCE).unwrap();
    let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)).unwrap();
    assert_eq!(ended, 1, "the demo must end after {end:?}");
    child.wait().unwrap()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_is_left_however_it_ends() {
    let _one = one_at_a_time();
    for end in [
        End::Quit,
        End::Panic,
        End::Signal(Signal::KILL),
        End::Signal(Signal::TERM),
        End::Signal(Signal::HUP),
        End::Signal(Signal::INT),
    ] {
        nothing_is_left(User::Root, end, true);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_is_left_of_an_ordinary_users_demo() {
    let _one = one_at_a_time();
    for end in [End::Quit, End::Panic, End::Signal(Signal::KILL), End::Signal(Signal::TERM)] {
        nothing_is_left(User::RealtimeRefusal, end, true);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_is_left_of_iperf3() {
    let _one = one_at_a_time();
    needs(&["iperf3"]);
    for end in [End::Quit, End::Signal(Signal::KILL), End::Signal(Signal::TERM)] {
        nothing_is_left(User::RealtimeRefusal, end, false);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_children_leave_the_terminal_alone() {
    let _one = one_at_a_time();
    let held = Held::start(User::RealtimeRefusal, &[], true).expect("the demo starts");
    let own_group = rustix::process::getpgid(Some(Pid::from_child(&held.child))).unwrap();
    for member in held.family() {
        let descriptor = |number: u8| fs::read_link(format!("/proc/{}/fd/{number}", member.pid)).unwrap();
        assert_eq!(descriptor(0), Path::new("/dev/null"), "{} reads nothing", member.command);
        assert!(descriptor(1).to_string_lossy().starts_with("pipe:"), "{} writes to vnettop alone", member.command);
        assert_eq!(descriptor(2), Path::new("/dev/null"), "{} complains to nobody", member.command);
        let group = rustix::process::getpgid(Pid::from_raw(i32::try_from(member.pid).unwrap())).unwrap();
        assert_ne!(group, own_group, "Ctrl-C does not reach {}", member.command);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_child_whose_parent_is_gone_does_not_begin() {
    // Process 1 stands for a parent that died: it is not this child's parent.
    let output = Command::new(PROGRAM).args(["demo-child", "tun", "--parent", "1"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "an orphan fails");
    assert!(text.contains("vnettop stopped before its child started"), "and says why: {text}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_refused_namespace_is_one_sentence_with_advice() {
    turn::take();
    // The limits of a user namespace of its own, so that no other process meets them.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_net_namespaces \
                  && echo limited && exec \"$0\" demo-child hold --streams 1";
    let output = Command::new("unshare").args(["-Ur", "sh", "-c", script, PROGRAM]).output();
    let output = output.expect("unshare runs");
    assert!(output.stdout.starts_with(b"limited"), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "a demo that cannot start is an error");
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    assert!(text.starts_with("vnettop: cannot make a private network namespace"), "what failed: {text}");
    assert!(text.contains("sysctl -w user.max_net_namespaces=1000"), "what to do: {text}");
}

/// Thread id → (name, CPU time in ticks).
fn threads(pid: u32) -> BTreeMap<u32, (String, u64)> {
    let thread = |tid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        let (head, tail) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some((tid, (head.split_once('(')?.1.to_owned(), ticks)))
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.filter_map(|entry| thread(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_stand_in_alone_behaves_like_a_threaded_iperf3() {
    let _one = one_at_a_time();
    let parent = std::process::id().to_string();
    let spawn = |role: &str, options: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["demo-child", role, "--name", "bench", "--parent", &parent]).args(options);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut server = spawn("standin-server", &["--bind", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening ").expect("the server tells where it listens");
    let mut client = spawn("standin-client", &["--connect", address, "--streams", "3", "--seconds", "2"]);
    for end in [&server, &client] {
        let began = Instant::now();
        let busy = |threads: &BTreeMap<u32, (String, u64)>| {
            threads.iter().filter(|&(&tid, &(_, ticks))| tid != end.id() && ticks > 0).count()
        };
        let mut seen = threads(end.id());
        while busy(&seen) < 3 && began.elapsed() < Duration::from_millis(1800) {
            std::thread::sleep(Duration::from_millis(10));
            seen = threads(end.id());
        }
        assert_eq!(busy(&seen), 3, "three streams are three busy workers: {seen:?}");
        assert!(seen.values().all(|(name, _)| name == "bench"), "all threads have the one name: {seen:?}");
        assert!(seen[&end.id()].1 <= 1, "the main thread only controls: {seen:?}");
    }
    let mut report = String::new();
    client.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert!(client.wait().unwrap().success(), "a client whose time is up succeeds");
    assert!(report.starts_with("{\"seconds\":2."), "it ran its time and reports it: {report}");
    let deadline = Instant::now() + PATIENCE;
    while threads(server.id()).len() > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(threads(server.id()).len(), 1, "the server's workers end with their streams");
    server.kill().unwrap();
    server.wait().unwrap();
}
