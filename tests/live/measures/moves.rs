//! Moves as events, against an ftrace instance of the test's own and against the kernel's own count; what other rights give.

use crate::ground::moving::{
    Moved, OtherTraffic, all_have, as_nobody, assert_same, busy_loops, copy_for_others, migrations, needs_tracing,
    seconds, shown, stop, threads, tids,
};
use crate::ground::{Kept, Netns, VNETTOP, Watching, iperf3_server, needs, pid, veth_pair};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_events_of_iperf3_are_those_of_ftrace() {
    needs_tracing(&["iperf3", "nsenter"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let client = far.keep("iperf3", &["-c", "198.18.0.1", "-t", "600"]);
    let _busy = busy_loops();
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--watch", &pid(&server).to_string(), "--watch", &pid(&client).to_string()]);
    let mut beside = OtherTraffic::start("iperf3", command);
    beside.watch_for(seconds());
    let (ours, theirs) = beside.compare();
    assert!(!theirs.is_empty(), "iperf3 was moved at all");
    assert_eq!(beside.lost, 0, "nothing was lost");
    assert_same(&ours, &theirs, "iperf3");
    stop([&server, &client]);
    (0..3).for_each(|_| {
        beside.next();
    });
    for thread in threads(&beside.last) {
        let tid = u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small");
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
        assert_eq!(thread["moves_evidence"], "traced", "and each of the last interval came as an event");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn threads_born_later_are_traced_from_their_first_move() {
    needs_tracing(&["nsenter"]);
    let netns = Netns::new();
    let stand_in = |more: &[&str]| {
        let mut command = netns.command(VNETTOP);
        command.arg("demo-child").args(more).args(["--name", "moved-standin"]).stdout(Stdio::piped());
        Kept(command.spawn().expect("the stand-in starts"))
    };
    let mut server = stand_in(&["standin-server", "--bind", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
    let _busy = busy_loops();
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--watch", "moved-standin"]);
    let mut beside = OtherTraffic::start("born", command);
    let client = stand_in(&["standin-client", "--connect", &address, "--seconds", "600", "--streams", "4"]);
    beside.watch_for(seconds());
    stop([&server, &client]);
    let (ours, theirs) = beside.compare();
    assert!(beside.tids.len() >= 10, "both mains and four workers each were seen: {:?}", beside.tids);
    assert_eq!(beside.lost, 0, "nothing was lost");
    assert_same(&ours, &theirs, "stand-in");
    for thread in threads(&beside.last) {
        let tid = u32::try_from(thread["tid"].as_u64().expect("a tid")).expect("small");
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
        let events = ours.iter().filter(|one| one.1 == tid).count() as u64;
        let born_later = tid != pid(&server);
        assert!(!born_later || Some(events) == migrations(tid), "thread {tid}: {events} events, {thread}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_rights_moves_are_counted_and_it_says_which_right_would_help() {
    needs(&["setpriv"]);
    let directory = copy_for_others();
    let busy = busy_loops();
    let mut command = as_nobody(&directory, None);
    command.args(["-d", "0.1"]).stderr(Stdio::null());
    for one in &busy {
        command.args(["--watch", &pid(one).to_string()]);
    }
    let mut watching = Watching::start(command);
    let mut objects: Vec<Value> = (0..seconds() * 10).map(|_| watching.next()).collect();
    stop(&busy);
    (0..3).for_each(|_| objects.push(watching.next()));
    assert!(objects.iter().all(|object| all_have(object, "counted")), "the evidence is the kernel's count");
    assert!(objects.iter().all(|object| shown(object).is_empty()), "nothing is claimed to be traced");
    let last = objects.last().expect("there are objects");
    assert!(last["trace"].is_null(), "there is no trace");
    for (thread, tid) in threads(last).iter().zip(tids(last)) {
        assert_eq!(thread["moves"].as_u64(), migrations(tid), "the count is se.nr_migrations");
    }
    let told: Vec<_> =
        last["problems"].as_array().expect("problems").iter().filter(|one| one["source"] == "kernel").collect();
    assert_eq!(told.len(), 1, "it is told once");
    assert!(
        told[0]["text"].as_str().is_some_and(|text| text.contains("CAP_BPF and CAP_PERFMON")),
        "and which right would help"
    );
}

/// The same where the kernel shows no counts: /dev/null lies over each thread's `sched`.
fn without_counts(directory: &tempfile::TempDir, tids: &[u32]) -> Command {
    let cover = |tid: &u32| format!("mount --bind /dev/null /proc/{tid}/task/{tid}/sched; ");
    let covered: String = tids.iter().map(cover).collect();
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let vnettop = directory.path().join("vnettop");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &format!("{covered} exec {nobody} {} \"$@\"", vnettop.display()), "sh"]);
    command
}

/// Sends a thread to a core.
fn taskset(tid: u32, core: u64) {
    let out = Command::new("taskset").args(["-cp", &core.to_string(), &tid.to_string()]).output().expect("it runs");
    assert!(out.status.success(), "taskset: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_counts_moves_are_sampled_and_never_above_the_truth() {
    needs(&["setpriv", "unshare", "taskset"]);
    let directory = copy_for_others();
    let busy = busy_loops();
    let tids: Vec<u32> = busy.iter().map(pid).collect();
    let before: BTreeMap<u32, u64> = tids.iter().map(|&tid| (tid, migrations(tid).expect("counted"))).collect();
    let mut command = without_counts(&directory, &tids);
    command.args(["-d", "0.1"]).stderr(Stdio::null());
    for tid in &tids {
        command.args(["--watch", &tid.to_string()]);
    }
    let mut watching = Watching::start(command);
    let objects: Vec<Value> = (0..seconds() * 10)
        .map(|nth| {
            // The kernel may leave busy threads where they are: one is sent to and fro.
            if nth % 5 == 0 {
                taskset(tids[0], nth / 5 % 2);
            }
            watching.next()
        })
        .collect();
    let last = objects.last().expect("there are objects");
    assert!(objects.iter().all(|object| all_have(object, "sampled")), "the evidence is what was seen: {last}");
    let mut total = 0;
    for (thread, tid) in threads(last).iter().zip(self::tids(last)) {
        let seen = thread["moves"].as_u64().expect("a number");
        let happened = migrations(tid).expect("counted") - before[&tid];
        assert!(seen <= happened, "thread {tid}: {seen} seen, {happened} happened");
        total += seen;
    }
    assert!(total > 0, "some were seen");
    let frame = without_counts(&directory, &tids)
        .args(["-d", "0.1", "-n", "20", "--print", "160x50", "--watch", &tids[0].to_string()])
        .output()
        .expect("vnettop runs");
    let frame = String::from_utf8_lossy(&frame.stdout);
    assert!(frame.contains("≥ sampled"), "the screen marks them as an under-count:\n{frame}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_capabilities_are_enough_for_every_move() {
    needs_tracing(&["setpriv"]);
    let directory = copy_for_others();
    let busy = busy_loops();
    let mut command = as_nobody(&directory, Some("+bpf,+perfmon"));
    command.args(["-d", "0.1"]);
    for one in &busy {
        command.args(["--watch", &pid(one).to_string()]);
    }
    let mut beside = OtherTraffic::start("capabilities", command);
    assert_eq!(beside.last["trace"]["source"], "bpf", "the kernel tells them");
    beside.watch_for(seconds());
    let (ours, theirs) = beside.compare();
    assert_eq!(beside.lost, 0, "nothing was lost");
    assert_same(&ours, &theirs, "capabilities");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn one_capability_is_not_enough_and_it_says_which_is_missing() {
    needs(&["setpriv"]);
    let directory = copy_for_others();
    let busy = busy_loops();
    let mut command = as_nobody(&directory, Some("+perfmon"));
    command.args(["-d", "0.1", "--watch", &pid(&busy[0]).to_string()]).stderr(Stdio::null());
    let mut watching = Watching::start(command);
    let says = |object: &Value| {
        let problems = object["problems"].as_array().expect("problems").iter();
        problems.filter_map(|one| one["text"].as_str()).any(|text| text.contains("CAP_BPF and CAP_PERFMON"))
    };
    let told = (0..100).map(|_| watching.next()).find(says).expect("it is told within ten seconds");
    assert!(told["trace"].is_null() && all_have(&told, "counted"), "moves are counted: {told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_asked_for_and_cannot_be_counted_is_said() {
    needs(&["setpriv"]);
    let directory = copy_for_others();
    let mut command = as_nobody(&directory, None);
    command.args(["-d", "0.1", "--exact-softirqs"]).stderr(Stdio::null());
    let mut watching = Watching::start(command);
    let said = "softirqs are not timed and the cores of hops are not counted: run vnettop as root or with CAP_BPF and \
         CAP_PERFMON";
    let says = |object: &Value| {
        let problems = object["problems"].as_array().expect("problems").iter();
        problems.filter(|one| one["text"] == said).count() == 1
    };
    let told = (0..100).map(|_| watching.next()).find(says).expect("it is told within ten seconds");
    assert!(told["cores"][0]["softirqs_exact"]["NET_RX"].is_null(), "no figure stands for it: {}", told["cores"][0]);
}

/// Makes a child every 50 ms that sends itself from core to core four times and is gone after 40 ms; their numbers on standard
/// output. Two of three are called something else, as a shell's commands are.
const FORKS: &str = "
import os, time
open('/proc/self/comm', 'w').write('forky')
for n in range(60):
    child = os.fork()
    if child == 0:
        if n % 3 == 2: open('/proc/self/comm', 'w').write('other')
        for core in (0, 1, 0, 1):
            os.sched_setaffinity(0, {core})
            time.sleep(0.01)
        os._exit(0)
    if n % 3 != 2: print(child, flush=True)
    time.sleep(0.05)
    os.waitpid(child, 0)
print('end', flush=True)
time.sleep(600)";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn threads_that_live_less_than_a_tick_are_told_to_the_move() {
    needs_tracing(&["python3"]);
    // The trace begins with a thread that is watched all the time.
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "1", "--watch", "forky", "--watch", &std::process::id().to_string()]);
    let mut beside = OtherTraffic::start("short", command);
    let mut forks = Command::new("python3").args(["-c", FORKS]).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(forks.stdout.take().expect("piped")).lines();
    let _forks = Kept(forks);
    let children: Vec<u32> = lines.map_while(|line| line.ok()?.parse().ok()).collect();
    // The objects of the time before wait to be read: how many they are depends on how long the children took.
    beside.watch_for(3);
    let is_child = |one: &Moved| children.contains(&one.1);
    let ours: Vec<Moved> = beside.moves.iter().copied().filter(is_child).collect();
    let theirs: Vec<Moved> = beside.reference.moves().into_iter().filter(is_child).collect();
    assert!(children.len() == 40 && theirs.len() >= 80, "they moved: {} moves", theirs.len());
    assert_same(&ours, &theirs, "short-lived");
    let unseen = theirs.iter().filter(|one| !beside.tids.contains(&one.1));
    let groups = beside.last["short_lives"].as_array().expect("a list");
    let group = groups.iter().find(|group| group["name"] == "forky").expect("a group of their program");
    assert_eq!(group["moves"], unseen.count(), "those without a row: {groups:?}");
    assert!(!groups.iter().any(|group| group["name"] == "other"), "whom nobody watches is not told: {groups:?}");
    assert_eq!(beside.lost, 0, "nothing was lost");
}
