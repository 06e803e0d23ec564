//! Benchmark programs that vnettop does not know by name, under `vnettop run` without `--watch`, between two namespaces: both
//! ends are one test, watched, pinned and put back, and the rate is the program's own.
//! `VNETTOP_LONG` makes each measurement
//! 20 s and asks for 1 %, as the README's figures were made.

use crate::ground::{Kept, Netns, VNETTOP, await_that, has, left_out, needs, needs_two_cores, veth_pair};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// One program: how its server and its client are started, and the rate in what the client prints, bits/s.
struct Program {
    name: &'static str,
    server: &'static [&'static str],
    /// Where its server listens.
    port: u16,
    /// `T` stands for the seconds.
    client: &'static [&'static str],
    rate: fn(&str) -> f64,
}

/// The number before (`step` −1) or behind (+1) the last of these words.
fn number(out: &str, word: &str, step: isize) -> f64 {
    let words: Vec<&str> = out.split_whitespace().collect();
    let at = words.iter().rposition(|one| *one == word).unwrap_or_else(|| panic!("{word}: {out}"));
    let number = words[at.checked_add_signed(step).expect("a number beside it")].replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("a number: {number}: {out}"))
}

/// Each in the unit that it counts in: payload, 10^6 bits (netperf, nuttcp: its MB are 2^20 bytes, its Mbps are not), bytes
/// (qperf), messages of the length asked for (sockperf), 10^3 bits (iperf 2).
const PROGRAMS: [Program; 5] = [
    Program {
        name: "netperf",
        server: &["netserver", "-D", "-4"],
        port: 12865,
        client: &["netperf", "-P", "0", "-H", "198.18.0.2", "-l", "T"],
        rate: |out| out.split_whitespace().last().and_then(|word| word.parse::<f64>().ok()).expect("a rate") * 1e6,
    },
    Program {
        name: "nuttcp",
        server: &["nuttcp", "-S", "--nofork"],
        port: 5000,
        client: &["nuttcp", "-TT", "198.18.0.2"],
        rate: |out| number(out, "Mbps", -1) * 1e6,
    },
    Program {
        name: "qperf",
        server: &["qperf"],
        port: 19765,
        client: &["qperf", "-u", "-t", "T", "198.18.0.2", "tcp_bw"],
        rate: |out| number(out, "=", 1) * 8.0,
    },
    Program {
        name: "sockperf",
        server: &["sockperf", "server", "--tcp", "-i", "198.18.0.2"],
        port: 11111,
        client: &["sockperf", "throughput", "--tcp", "-i", "198.18.0.2", "-m", "1400", "-t", "T"],
        rate: |out| number(out, "[msg/sec]", -1) * 1400.0 * 8.0,
    },
    Program {
        name: "iperf",
        server: &["iperf", "-s"],
        port: 5001,
        client: &["iperf", "-c", "198.18.0.2", "-f", "k", "-t", "T"],
        rate: |out| number(out, "Kbits/sec", -1) * 1e3,
    },
];

/// They take each other's cores: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A program's server in the second of two namespaces.
struct Stage {
    near: Netns,
    far: Netns,
    _server: Kept,
}

impl Program {
    /// None where it is not installed. Debian has netperf among what is not free, so `tests/run` does not install it.
    fn stage(&self, test: &str) -> Option<Stage> {
        if self.name == "netperf" && !has("netserver") {
            left_out(&format!("{test} of netperf"), "it is not installed");
            return None;
        }
        needs(&[self.name, "ip", "nsenter"]);
        let (near, far) = veth_pair();
        let server = far.keep(self.server[0], &self.server[1..]);
        let listens = format!(":{:04X} ", self.port);
        await_that("its server listens", 10, || far.output("cat /proc/net/tcp*").contains(&listens));
        Some(Stage { near, far, _server: server })
    }

    /// `vnettop run` with these options on its client, from outside of both namespaces.
    fn run(&self, stage: &Stage, dir: &Path, options: &[&str], seconds: u32) -> Command {
        let inside = stage.near.pid().to_string();
        let client = self.client.iter().map(|word| match *word {
            "T" => seconds.to_string(),
            "-TT" => format!("-T{seconds}"),
            word => word.to_owned(),
        });
        let mut vnettop = Command::new(VNETTOP);
        vnettop.args(["run", "--format", "json", "--card"]).arg(dir.join("card.json")).args(options);
        vnettop.args(["--", "nsenter", "-t", &inside, "-n"]).args(client);
        vnettop.env("XDG_STATE_HOME", dir).stdin(Stdio::null());
        vnettop
    }
}

fn card(dir: &Path) -> Value {
    let text = fs::read_to_string(dir.join("card.json")).expect("a card");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("the card is an object ({error}): {text}"))
}

/// The threads in a namespace that may run on one core only, by name.
fn pinned(netns: &Netns) -> Vec<String> {
    let own = fs::read_link(format!("/proc/{}/ns/net", netns.pid())).expect("it is there");
    let inside = |path: &Path| fs::read_link(path.join("ns/net")).is_ok_and(|netns| netns == own);
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let threads = list(Path::new("/proc")).filter(|path| inside(path)).flat_map(|path| list(&path.join("task")));
    let name = |thread: &Path| {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let field = |key: &str| Some(status.lines().find_map(|line| line.strip_prefix(key))?.trim().to_owned());
        let cores = field("Cpus_allowed_list:")?;
        cores.parse::<u32>().is_ok().then(|| field("Name:")).flatten()
    };
    threads.filter_map(|thread| name(&thread)).collect()
}

/// Pinned by name in each namespace.
fn are_pinned(stage: &Stage, names: [&str; 2]) -> bool {
    [&stage.near, &stage.far].into_iter().zip(names).all(|(netns, name)| pinned(netns).iter().any(|one| one == name))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn both_ends_are_one_test_pinned_and_put_back() {
    let test = "both_ends_are_one_test_pinned_and_put_back";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    needs_two_cores();
    for program in &PROGRAMS {
        let Some(stage) = program.stage(test) else { continue };
        let dir = tempfile::tempdir().expect("a directory");
        let mut vnettop = program.run(&stage, dir.path(), &["--pin", "compare", "--phase", "1"], 6);
        let vnettop = vnettop.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vnettop starts");
        let mut vnettop = Kept(vnettop);
        let server = program.server[0];
        await_that(&format!("both ends of {} are pinned", program.name), 20, || {
            are_pinned(&stage, [program.name, server])
        });
        assert!(vnettop.0.wait().expect("it ends").success(), "{} ran", program.name);
        let left = [&stage.near, &stage.far].map(pinned).concat();
        assert_eq!(left, Vec::<String>::new(), "{}: every mask is put back", program.name);
        assert!(fs::read_dir(dir.path().join("vnettop")).map_or(0, Iterator::count) == 0, "and no journal is left");
        let card = card(dir.path());
        assert_eq!(card["measured"]["of"], "command", "{}: {card}", program.name);
        assert_eq!(card["basis"]["connections"], 1, "{}: both ends in one: {card}", program.name);
        let pins = card["comparison"]["pins"].as_array().expect("a list");
        let mut pins: Vec<&str> = pins.iter().filter_map(|pin| pin["label"].as_str()?.split(' ').next()).collect();
        pins.sort_unstable();
        assert_eq!(pins, [program.name, server], "one thread of each end: {card}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_rate_is_the_programs_own() {
    let test = "the_rate_is_the_programs_own";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (seconds, most) = if std::env::var_os("VNETTOP_LONG").is_some() { (20, 1.0) } else { (5, 2.0) };
    for program in &PROGRAMS {
        let Some(stage) = program.stage(test) else { continue };
        // What lies before the first and behind the last bin counts for the program, and on a machine that others use it may
        // have run at another rate then.
        let off = (0..5).map(|_| {
            let dir = tempfile::tempdir().expect("a directory");
            let out = program.run(&stage, dir.path(), &["--settle", "0.1"], seconds).output().expect("vnettop runs");
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(out.status.success(), "{} ran: {said}{}", program.name, String::from_utf8_lossy(&out.stderr));
            let (card, theirs) = (card(dir.path()), (program.rate)(&said));
            let watched = card["watched"].as_array().expect("a list").iter();
            let threads: u64 = watched.filter_map(|one| one["threads"].as_u64()).sum();
            assert_eq!(threads, 2, "{}: a thread of each end is busy: {card}", program.name);
            let mean = card["jitter"]["mean_bits_per_s"].as_f64().unwrap_or_else(|| panic!("a rate: {card}"));
            let off = (mean / theirs - 1.0) * 100.0;
            eprintln!("{}: card {mean:.0}, its own report {theirs:.0} bits/s, {off:+.2} %", program.name);
            off
        });
        let mut off = off;
        assert!(off.any(|off| off.abs() < most), "{}: the card's rate is its own within {most} %", program.name);
    }
}
