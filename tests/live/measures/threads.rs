//! Threads and cores against taskset, /proc and mpstat.

use crate::ground::{Kept, VNETTOP, Watching, await_that, iperf3_server, needs, pid, veth_pair};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

fn thread(object: &Value, tid: u32) -> Option<&Value> {
    object["threads"].as_array()?.iter().find(|thread| thread["tid"] == tid)
}

fn taskset(arguments: &[&str]) -> String {
    let out = Command::new("taskset").args(arguments).output().expect("taskset runs");
    assert!(out.status.success(), "taskset {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

fn migrations(pid: u32) -> u64 {
    let sched = fs::read_to_string(format!("/proc/{pid}/task/{pid}/sched")).expect("sched is readable");
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations")).expect("it counts migrations");
    line.rsplit(':').next().expect("a value").trim().parse().expect("a number")
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn moves_rise_by_exactly_what_the_kernel_counted() {
    needs(&["taskset"]);
    let busy = Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    let tid = pid(&busy);
    taskset(&["-cp", "0", &tid.to_string()]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.1", "--watch", &tid.to_string()]);
    let mut watching = Watching::start(command);
    let settled = |object: &Value| thread(object, tid).is_some_and(|thread| thread["core"] == 0);
    let before = std::iter::repeat_with(|| watching.next()).find(settled).expect("the thread is seen on core 0");
    let from = migrations(tid);
    assert_eq!(thread(&before, tid).expect("seen")["moves"], from, "moves are se.nr_migrations");
    for round in 0..50 {
        taskset(&["-cp", if round % 2 == 0 { "1" } else { "0" }, &tid.to_string()]);
    }
    let to = migrations(tid);
    assert!(to > from, "the loop moved the thread: {from} to {to}");
    // Objects from before the loop's end still wait in the pipe; the last of them is followed by the whole count, and the
    // thread sits on one core now, so the count stands still from there on.
    let moves = |object: &Value| thread(object, tid).expect("still there")["moves"].as_u64().expect("a count");
    let arrived =
        (0..200).map(|_| watching.next()).find(|object| moves(object) >= to).expect("the whole count arrives");
    assert_eq!(moves(&arrived), to, "moves rose by exactly what se.nr_migrations rose");
    let after = watching.next();
    let shown = thread(&after, tid).expect("still there");
    assert_eq!(shown["moves"], to, "moves rose by exactly what se.nr_migrations rose");
    let evidence = shown["moves_evidence"].as_str().expect("a word");
    assert!(["counted", "traced"].contains(&evidence), "the evidence is the kernel's count or its trace: {evidence}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn pinned_ends_agree_with_taskset_proc_and_mpstat() {
    needs(&["taskset", "mpstat", "iperf3"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    taskset(&["-acp", "1", &pid(&server).to_string()]);
    let client = Kept(
        far.command("taskset")
            .args(["-c", "0", "iperf3", "-c", "198.18.0.1", "-t", "30"])
            .stdout(Stdio::null())
            .spawn()
            .expect("iperf3 starts"),
    );
    let mut command = near.command(VNETTOP);
    command.args(["-d", "8", "-n", "1"]);
    let busy = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") R "));
    await_that("the client sends", 10, || busy(pid(&client)));
    // Both read /proc/stat over the same eight seconds.
    let watching = Watching::start(command);
    let mpstat = Command::new("mpstat").args(["-P", "ALL", "-o", "JSON", "8", "1"]).output().expect("mpstat runs");
    let mut watching = watching;
    let object = watching.next();
    for (kept, core) in [(&server, 1), (&client, 0)] {
        let shown = thread(&object, pid(kept)).expect("both ends are shown");
        let allowed = taskset(&["-cp", &pid(kept).to_string()]);
        assert!(
            allowed.ends_with(&format!(": {}", shown["allowed"].as_str().expect("a list"))),
            "{allowed} against {shown}"
        );
        assert_eq!(shown["core"], core, "it runs where it is pinned");
        assert_eq!(shown["role"], if core == 1 { "server" } else { "client" }, "the role is told");
    }
    let mpstat: Value = serde_json::from_slice(&mpstat.stdout).expect("mpstat prints JSON");
    let rows = mpstat["sysstat"]["hosts"][0]["statistics"][0]["cpu-load"].as_array().expect("rows");
    for core in object["cores"].as_array().expect("cores") {
        let row = rows
            .iter()
            .find(|row| row["cpu"].as_str().and_then(|cpu| cpu.parse::<u64>().ok()) == core["core"].as_u64())
            .expect("mpstat has the core");
        for (ours, theirs) in [("softirq", "soft"), ("system", "sys"), ("user", "usr"), ("idle", "idle")] {
            let nice = if ours == "user" { row["nice"].as_f64().expect("a share") } else { 0.0 };
            let (ours_is, theirs_is) =
                (core[ours].as_f64().expect("a share") * 100.0, row[theirs].as_f64().expect("a share") + nice);
            assert!(
                (ours_is - theirs_is).abs() < 2.0,
                "core {} {ours}: {ours_is:.2} % against mpstat's {theirs_is:.2} %",
                core["core"]
            );
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn threads_that_come_and_go_are_seen_within_one_tick() {
    needs(&[]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.3", "--watch", "sleep"]);
    let mut watching = Watching::start(command);
    watching.next();
    let mut short = Kept(Command::new("sleep").arg("3600").spawn().expect("sleep starts"));
    let tid = pid(&short);
    watching.next();
    let next = watching.next();
    assert!(thread(&next, tid).is_some(), "a thread born in one interval is in the sample at its end");
    short.0.kill().expect("it can be ended");
    short.0.wait().expect("it ends");
    watching.next();
    assert!(thread(&watching.next(), tid).is_none(), "a thread that ended is gone from the next sample");
}
