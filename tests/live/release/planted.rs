//! A cause that is known because it was planted: a sender that works at half speed for 100 ms after each move it notices,
//! and the same sender whose slow stretches have nothing to do with moves. What vnettop says of both is compared with what
//! the sender wrote down itself.

use crate::ground::tmux::Tmux;
use crate::ground::{self, Kept, Netns, VNETTOP, await_that, needs, pid};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SENDER: &str = include_str!("planted/sender.py");
const RECEIVER: &str = include_str!("planted/receiver.py");
const MOVER: &str = include_str!("planted/mover.py");

/// What a move costs the sender: half of 40 MB/s for 100 ms.
const PLANTED_BYTES: f64 = 2e6;
const BIN_NS: u64 = 100_000_000;
const MOST_TRIES: usize = 3;
/// What vnettop is told to take as its interval.
const TICK_NS: u64 = 2 * BIN_NS;

/// How long the flow is watched before the pin, s; and after it.
fn seconds() -> (u64, u64) {
    let before = std::env::var("VNETTOP_PLANTED_SECONDS").map_or(35, |text| text.parse().expect("a number"));
    (before, before.clamp(14, 20) + 3)
}

/// A receiver that waits, and its port.
fn receiver(netns: &Netns) -> (Kept, String) {
    // Who stays where it is has no moves of its own.
    let mut receiver = netns.command("taskset");
    receiver.args(["-c", "0", "python3", "-c", RECEIVER]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut receiver = Kept(receiver.spawn().expect("it starts"));
    let mut port = String::new();
    let mut out = BufReader::new(receiver.0.stdout.take().expect("piped"));
    out.read_line(&mut port).expect("it prints its port");
    (receiver, port.trim().to_owned())
}

/// The sender with its receiver and its mover, watched by vnettop on a terminal.
struct Plant {
    directory: tempfile::TempDir,
    screen: Tmux,
    sender: Kept,
    _others: [Kept; 2],
    began: Instant,
}

impl Plant {
    fn start(name: &str, plant: &str, manners: &str) -> Self {
        let netns = Netns::new();
        netns.run("ip link set lo up");
        let directory = tempfile::tempdir().expect("a directory");
        let path = |file: &str| directory.path().join(file).display().to_string();
        let (receiver, port) = receiver(&netns);
        let sender = netns.keep("python3", &["-c", SENDER, &port, plant, &path("log")]);
        let tid = pid(&sender).to_string();
        let mover = netns.keep("python3", &["-c", MOVER, &tid, manners]);
        let command = format!(
            "XDG_STATE_HOME={} exec {VNETTOP} -d 0.2 --watch {tid} --record {}",
            path("state"),
            path("run.zst")
        );
        let screen = Tmux::start(name, 120, 40, &command);
        // The two ends stand beside the rate.
        screen.await_shown("the flow's rate is shown", 20, &format!("127.0.0.1:{port}"));
        Self { directory, screen, sender, _others: [receiver, mover], began: Instant::now() }
    }

    /// Lets so many seconds of the flow pass.
    fn watch_until(&self, seconds: u64) {
        await_that("the flow is watched", seconds + 5, || self.began.elapsed() >= Duration::from_secs(seconds));
    }

    fn pin(&self) {
        // The mover holds the thread on one core for 5 ms of 200: a tick that falls into them rightly says that only that
        // core may run it. The next tick knows better.
        for _ in 0..25 {
            self.screen.press("p");
            await_that("p is answered", 5, || self.screen.shows("taskset -cp") || self.screen.shows("No placement"));
            if !self.screen.shows("only core") {
                break;
            }
            self.screen.press("Escape");
            await_that("the answer is closed", 5, || !self.screen.shows("No placement"));
        }
        self.screen.await_shown("a placement is proposed", 5, "taskset -cp");
        self.screen.press("p");
        self.screen.await_shown("it is pinned", 5, "pinned");
    }

    /// Ends the screen; every object of its recording.
    fn objects(&self) -> Vec<Value> {
        let file = self.directory.path().join("run.zst");
        self.screen.press("q");
        await_that("vnettop ends", 10, || self.screen.tmux(&["list-sessions"]).is_empty());
        let out = Command::new(VNETTOP).args(["--json", "--replay"]).arg(file).output().expect("vnettop runs");
        ground::objects(&out)
    }

    fn log(&self) -> Vec<(u64, f64)> {
        log(&self.directory.path().join("log"))
    }
}

/// When the sender sent how many bytes.
fn log(path: &Path) -> Vec<(u64, f64)> {
    let text = fs::read_to_string(path).expect("the sender's log");
    let line = |line: &str| {
        let (at_ns, bytes) = line.split_once(' ')?;
        Some((at_ns.parse().ok()?, bytes.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Mean (bits/s) and coefficient of variation of the log's bins in a window.
fn spread(log: &[(u64, f64)], from_ns: u64, to_ns: u64) -> (f64, f64) {
    let bins = (to_ns - from_ns) / BIN_NS;
    let mut rates = vec![0.0; usize::try_from(bins).expect("few bins")];
    for (at_ns, bytes) in log.iter().filter(|(at_ns, _)| (from_ns..from_ns + bins * BIN_NS).contains(at_ns)) {
        rates[usize::try_from((at_ns - from_ns) / BIN_NS).expect("few bins")] += bytes * 8.0 / 0.1;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
    (mean, variance.sqrt() / mean)
}

fn findings<'a>(objects: &'a [Value], id: &'a str) -> impl Iterator<Item = &'a Value> {
    objects
        .iter()
        .flat_map(|object| object["findings"].as_array().expect("findings"))
        .filter(move |one| one["id"] == id)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn moves_that_cost_are_found_priced_stopped_and_the_card_is_the_senders_own() {
    needs(&["tmux", "python3", "ip"]);
    // A machine that others hold up shifts bytes from one bin to the next, in the log and in the pulses each in its own way.
    let mut off = price_and_stop();
    for _ in 1..MOST_TRIES {
        if off.is_empty() {
            break;
        }
        eprintln!("once more, because the machine may have been held up: {off:?}");
        off = price_and_stop();
    }
    assert!(off.is_empty(), "the card's figures are those of the log: {off:?}");
}

/// Plants, watches, pins and compares: which of the card's figures are not the log's.
fn price_and_stop() -> Vec<String> {
    let plant = Plant::start("planted", "moves", "polite");
    let (before, after) = seconds();
    plant.watch_until(before);
    plant.pin();
    plant.watch_until(before + after);
    let objects = plant.objects();
    let blamed = findings(&objects, "jitter").last().expect("the jitter is explained by moves");
    let cost = blamed["numbers"]["bytes_per_move"].as_f64().expect("what a move costs");
    println!("{} (planted: {PLANTED_BYTES} bytes)", blamed["text"]);
    let mut off = Vec::new();
    // Whoever else works on the machine moves it too, at another cost.
    if (cost / PLANTED_BYTES - 1.0).abs() >= 0.15 {
        off.push(format!("a move costs {PLANTED_BYTES} bytes, not {cost}: {blamed}"));
    }
    let card = &objects.iter().rev().find(|object| !object["card"].is_null()).expect("a card after the pin")["card"];
    println!("{}", card["text"]);
    if card["verdict"] != "steadier and faster" {
        off.push(format!("steadier and faster: {card}"));
    }
    let pinned_ns = card["pinned_t_ns"].as_u64().expect("when it was pinned");
    let figure = |side: &str, name: &str| card[side][name].as_f64().expect("a figure");
    let moves = figure("after", "moves_per_s");
    assert!(moves < 0.2 && figure("before", "moves_per_s") > 4.0, "the pin stopped the moves: {card}");
    let log = plant.log();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a window in ns")]
    let window_ns = |side: &str| (figure(side, "window_s") * 1e9) as u64;
    let pinned_bin_ns = pinned_ns / BIN_NS * BIN_NS;
    // The card's window ends with the tick before the pin.
    let before_ns = (pinned_ns - TICK_NS) / BIN_NS * BIN_NS;
    let windows = [
        ("before", before_ns - window_ns("before"), before_ns),
        ("after", pinned_bin_ns + 2_100_000_000, pinned_bin_ns + 2_100_000_000 + window_ns("after")),
    ];
    for (side, from_ns, to_ns) in windows {
        let (mean, cv) = spread(&log, from_ns, to_ns);
        let (said, said_cv) = (figure(side, "mean_bits_per_s"), figure(side, "cv"));
        println!("{side}: mean {said:.4e} against {mean:.4e} of the log, CV {said_cv:.4} against {cv:.4}");
        if (said / mean - 1.0).abs() >= 0.02 {
            off.push(format!("{side}: mean {said}, of the log {mean}"));
        }
        // The log counts whole pieces, 50 a bin: where the rate stands still, one of them more or fewer is all its spread.
        let allowed = if cv > 0.05 { 0.02 * cv } else { 0.02 };
        if (said_cv - cv).abs() >= allowed {
            off.push(format!("{side}: CV {said_cv}, of the log {cv}"));
        }
    }
    let again =
        Command::new(VNETTOP).args(["card", "--format", "json"]).arg(plant.directory.path().join("run.zst")).output();
    let again: Value = serde_json::from_slice(&again.expect("vnettop runs").stdout).expect("the recording has a card");
    assert_eq!(again["card"]["pinned_t_ns"], card["pinned_t_ns"], "of the same pin: {again}");
    assert_eq!(again["card"]["verdict"], card["verdict"], "and as it was shown: {again}");
    drop(plant.sender);
    off
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_planted_gain_is_found_by_taking_turns() {
    needs(&["python3", "ip"]);
    // Where others take its core the sender does not keep its rate, and then there is no gain.
    let mut card = compared("gain1.3");
    for _ in 1..MOST_TRIES {
        if card["verdict"] == "faster" {
            break;
        }
        eprintln!("once more, because the machine may have been held up: {card}");
        card = compared("gain1.3");
    }
    assert_eq!(card["verdict"], "faster", "{card}");
    let mean = card["unpinned"]["jitter"]["mean_bits_per_s"].as_f64().expect("a mean");
    let gained = card["mean_difference_bits_per_s"]["is"].as_f64().expect("a difference") / mean;
    assert!((gained - 0.3).abs() < 0.1, "three tenths, not {gained}: {card}");
}

/// What a run of the sender with this plant says when it is pinned in turn.
fn compared(plant: &str) -> Value {
    let netns = Netns::new();
    netns.run("ip link set lo up");
    let (_receiver, port) = receiver(&netns);
    let directory = tempfile::tempdir().expect("a directory");
    let mut vnettop = netns.command(VNETTOP);
    vnettop.args(["run", "--watch", "gaining", "--pin", "compare", "--phase", "1", "--format", "json", "--"]);
    vnettop.args(["python3", "-c", SENDER, &port, plant, "/dev/null", "14"]);
    let out = vnettop.env("XDG_STATE_HOME", directory.path()).stdin(Stdio::null()).output().expect("vnettop runs");
    let said = String::from_utf8_lossy(&out.stderr);
    let card = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("a card: {said}"));
    let card: Value = serde_json::from_str(card).expect("an object");
    println!("{} {}", card["comparison"]["text"], card["missing"]);
    card["comparison"].clone()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_helper_that_undoes_the_pin_is_told_and_not_fought() {
    needs(&["tmux", "python3", "ip"]);
    let plant = Plant::start("rude", "moves", "rude");
    plant.watch_until(6);
    plant.pin();
    plant.watch_until(12);
    let objects = plant.objects();
    let undone =
        |object: &Value| object["events"].as_array().expect("events").iter().any(|e| e["kind"] == "pin_undone");
    assert!(objects.iter().any(undone), "that something else undid the pin is an event");
    let told = findings(&objects, "mask_changed").last().expect("and a finding");
    println!("{}", told["text"]);
    drop(plant.sender);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn slow_stretches_that_do_not_follow_moves_are_not_blamed_on_them() {
    needs(&["tmux", "python3", "ip"]);
    let plant = Plant::start("dice", "dice", "polite");
    let (before, _) = seconds();
    plant.watch_until(before);
    let objects = plant.objects();
    let last = objects.last().expect("objects");
    assert!(last["jitter"]["cv"].as_f64().expect("jitter") > 0.1, "it swings: {}", last["jitter"]);
    let mut threads = last["threads"].as_array().expect("a list").iter();
    let sender = threads.find(|thread| thread["pid"] == pid(&plant.sender)).expect("the sender is watched");
    let moves: f64 = sender["moves"].as_f64().expect("moves");
    assert!(moves > 3.0 * before as f64, "and it is moved all the time: {moves}");
    let blamed = findings(&objects, "jitter").count();
    let unexplained = findings(&objects, "jitter_unexplained").last().expect("the jitter is said to be unexplained");
    println!("{}", unexplained["text"]);
    assert!(blamed * 20 <= objects.len(), "moves are blamed in {blamed} of {} objects", objects.len());
    drop(plant.sender);
}
