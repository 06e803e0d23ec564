//! What the kernel counts on request, and what is left where it cannot be asked: exact softirq time against ftrace's own
//! stamps, the cores of a hop against where the sender is bound, every drop of the machine, a kernel without BTF.

use crate::ground::moving::{all_have, needs_tracing, shown};
use crate::ground::{self, Kept, Netns, VNETTOP, Watching, iperf3_server, needs, pid, veth_pair};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An ftrace instance that stamps the beginning and the end of each softirq.
struct Stamps(PathBuf);

impl Stamps {
    fn start() -> Self {
        let instance = PathBuf::from(format!("/sys/kernel/tracing/instances/live-softirqs-{}", std::process::id()));
        fs::create_dir(&instance).expect("an instance can be made");
        let stamps = Self(instance);
        let files = [
            ("trace_clock", "mono"),
            ("buffer_size_kb", "65536"),
            ("events/irq/softirq_entry/enable", "1"),
            ("events/irq/softirq_exit/enable", "1"),
        ];
        for (file, text) in files {
            fs::write(stamps.0.join(file), text).expect("the instance takes it");
        }
        stamps
    }

    /// Seconds in softirqs of each core between two instants, by what `vnettop` calls a kind.
    fn seconds(&self, from_s: f64, to_s: f64) -> BTreeMap<(u64, String), f64> {
        let text = fs::read(self.0.join("trace")).expect("the trace is readable");
        let mut began: BTreeMap<u64, f64> = BTreeMap::new();
        let mut sums = BTreeMap::new();
        // `ksoftirqd/1-23  [001] ..s1. 15664.144058: softirq_entry: vec=3 [action=NET_RX]`
        for line in String::from_utf8_lossy(&text).lines() {
            let Some((head, event)) = line.split_once(": softirq_") else { continue };
            let core = head.rsplit_once('[').and_then(|(_, rest)| rest.get(..3)?.trim().parse().ok()).expect("a core");
            let at_s: f64 = head.rsplit(' ').next().and_then(|time| time.parse().ok()).expect("a time");
            let kind = event.rsplit("action=").next().map_or("", |word| word.trim_end_matches(']')).to_owned();
            if event.starts_with("entry") {
                began.insert(core, at_s);
            } else if let Some(from) = began.remove(&core).filter(|&from| from >= from_s && at_s <= to_s) {
                *sums.entry((core, kind)).or_insert(0.0) += at_s - from;
            }
        }
        sums
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        for event in ["softirq_entry", "softirq_exit"] {
            let _ = fs::write(self.0.join("events/irq").join(event).join("enable"), "0");
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Only these processes: other tests have an iperf3 too.
fn watched(processes: [&Kept; 2]) -> impl Iterator<Item = String> {
    processes.into_iter().flat_map(|process| ["--watch".to_owned(), pid(process).to_string()])
}

fn now_s() -> f64 {
    vnettop::source::now_ns() as f64 / 1e9
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn exact_softirq_time_is_that_between_entry_and_exit() {
    needs_tracing(&["iperf3", "nsenter", "taskset"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let client =
        far.keep("taskset", &["-c", "0", "iperf3", "-u", "-b", "100M", "-l", "200", "-c", "198.18.0.1", "-t", "600"]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5", "--exact-softirqs"]).args(watched([&server, &client]));
    let mut watching = Watching::start(command);
    let is_exact =
        |object: &Value| object["cores"][0]["softirqs_exact"]["NET_RX"].as_f64().is_some_and(|share| share > 0.0);
    (0..40).map(|_| watching.next()).find(is_exact).expect("softirqs are timed within twenty seconds");
    let stamps = Stamps::start();
    watching.next();
    let mut ours = 0.0;
    let from_s = now_s();
    let mut elapsed = 0.0;
    for _ in 0..6 {
        let object = watching.next();
        let seconds = object["elapsed_s"].as_f64().expect("elapsed");
        let cores = object["cores"].as_array().expect("cores").iter();
        ours += cores.map(|core| core["softirqs_exact"]["NET_RX"].as_f64().expect("timed")).sum::<f64>() * seconds;
        elapsed += seconds;
    }
    let theirs = stamps.seconds(from_s, now_s());
    let theirs: f64 = theirs.iter().filter(|((_, kind), _)| kind == "NET_RX").map(|(_, seconds)| seconds).sum();
    eprintln!("NET_RX: {ours:.4} s by vnettop, {theirs:.4} s by ftrace, in {elapsed:.1} s");
    // The two do not begin and end at one instant, and each program at a tracepoint adds to what the other measures.
    assert!(theirs > 0.05 && (ours / theirs - 1.0).abs() < 0.15, "{ours} s and {theirs} s in NET_RX");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_cores_of_a_hop_are_those_that_handle_its_packets() {
    needs(&["iperf3", "nsenter", "taskset"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let client = far.keep("taskset", &["-c", "1", "iperf3", "-u", "-b", "20M", "-c", "198.18.0.1", "-t", "600"]);
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5", "--netns", "all", "--hop-cores"]).args(watched([&server, &client]));
    let mut watching = Watching::start(command);
    let measured = |object: &Value| {
        let flows = object["flows"].as_array().expect("flows").clone().into_iter();
        let udp = flows.filter(|flow| flow["proto"] == "udp" && flow["path"][0]["name"] == "v1");
        udp.filter_map(|flow| flow["path"].as_array().cloned())
            .find(|path| path.len() == 2 && path.iter().all(|hop| hop["softirq_by"] == "measured"))
    };
    let path = (0..40).find_map(|_| measured(&watching.next())).expect("both hops are counted within twenty seconds");
    // The sender's core sends and, as the backlog's, receives.
    let cores: Vec<&Value> = path.iter().map(|hop| &hop["softirq_cores"]).collect();
    assert_eq!(cores, ["1", "1"], "the core that the sender is bound to");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn every_drop_of_the_machine_is_listed_whosever_it_is() {
    needs(&["nft", "nsenter", "python3"]);
    let netns = Netns::new();
    netns.run("nft 'table ip t { chain c { type filter hook input priority 0; udp dport 9 counter drop; }; }'");
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all", "--drops", "--watch", "nobody-watched"]);
    let mut watching = Watching::start(command);
    (0..100).map(|_| watching.next()).find(|object| object["drops"].is_array()).expect("the list comes within 20 s");
    let _sender = netns.keep("python3", &["-c", ground::UDP_SENDER]);
    let inode = ground::line::inode(&netns);
    let row = |object: &Value| {
        let list = object["drops"].as_array().cloned().unwrap_or_default();
        list.into_iter().find(|row| row["netns"].as_u64() == Some(inode) && row["reason"] == "NETFILTER_DROP")
    };
    let found = (0..100).find_map(|_| row(&watching.next()).filter(|row| row["packets"].as_u64() > Some(100)));
    let found = found.expect("a hundred packets are dropped within twenty seconds");
    let (link, means, own) = (&found["link"], &found["means"], &found["of_flows"]);
    assert_eq!((link, means, own), (&"lo".into(), &"refused".into(), &false.into()), "nobody watches it: {found}");
    assert!(found["function"].is_string(), "the function is named: {found}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_btf_moves_are_traced_and_one_sentence_says_what_is_missing() {
    needs_tracing(&["unshare", "taskset"]);
    let busy = Kept(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    let script = format!("mount -t tmpfs none /sys/kernel/btf && exec {VNETTOP} -d 0.1 --watch {} \"$@\"", pid(&busy));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    let mut watching = Watching::start(command);
    let traced = (0..100).map(|_| watching.next()).find(|object| all_have(object, "traced"));
    let traced = traced.expect("the watched thread is traced within ten seconds");
    let told = traced["problems"].as_array().expect("problems").iter().filter(|one| one["source"] == "kernel");
    let told: Vec<&str> = told.filter_map(|one| one["text"].as_str()).collect();
    assert!(told.len() == 1 && told[0].contains("BTF") && !told[0].contains("migrations are only counted"), "{told:?}");
    let mut events = Vec::new();
    for nth in 0..30_u32 {
        let core = (nth % 2).to_string();
        let out = Command::new("taskset").args(["-cp", &core, &pid(&busy).to_string()]).output().expect("it runs");
        assert!(out.status.success(), "taskset: {}", String::from_utf8_lossy(&out.stderr));
        events.extend(shown(&watching.next()));
    }
    (0..3).for_each(|_| events.extend(shown(&watching.next())));
    let bare: Vec<_> = events.iter().map(|&(_, tid, from, to)| (tid, from, to)).collect();
    assert!(bare.len() >= 20, "each move to and fro is an event: {bare:?}");
    let alternates = bare.windows(2).all(|pair| pair[0].2 == pair[1].1);
    assert!(
        alternates && bare.iter().all(|one| one.0 == pid(&busy)),
        "each leaves the core that the last one reached: {bare:?}"
    );
}
