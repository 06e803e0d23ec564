//! The one key, as a user presses it: `p p` pins the workers that do the work, taskset reads it back, `U` and
//! `vnettop undo` put the exact masks back. With iperf3 itself and with a stand-in that has iperf3 ≥ 3.16's threads.

mod crowded;
mod guest;
mod napi;

use crate::ground::tmux::Tmux;
use crate::ground::{Kept, Netns, VNETTOP, await_that, iperf3_server, needs, pid, veth_pair};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Affinity list by tid, as taskset tells it, of every thread of these processes.
fn masks(pids: &[u32]) -> BTreeMap<u32, String> {
    let of = |pid: &u32| {
        let out = Command::new("taskset").args(["-acp", &pid.to_string()]).output().expect("taskset runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let line = |line: &str| {
        // "pid 39081's current affinity list: 0-1"
        let tid = line.split(['\'', ' ']).nth(1)?.parse().ok()?;
        Some((tid, line.rsplit(": ").next()?.to_owned()))
    };
    pids.iter().map(of).flat_map(|text| text.lines().filter_map(line).collect::<Vec<_>>()).collect()
}

/// By pid: other tests run iperf3 at the same time.
fn watch(pids: &[u32]) -> String {
    pids.iter().fold(String::new(), |words, pid| words + &format!("--watch {pid} "))
}

/// One at each end.
const WORKERS: usize = 2;

fn is_one_core(mask: &str) -> bool {
    mask.parse::<u32>().is_ok()
}

/// The process has ended.
fn is_gone(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
        || !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// vnettop on a terminal of its own, with a journal of its own.
struct Screen {
    tmux: Tmux,
    state: tempfile::TempDir,
}

impl Screen {
    fn open(name: &str, arguments: &str) -> Self {
        let state = tempfile::tempdir().expect("a directory");
        let tmux = Tmux::start(
            name,
            120,
            40,
            &format!("XDG_STATE_HOME={} exec {VNETTOP} -d 0.2 {arguments}", state.path().display()),
        );
        Self { tmux, state }
    }

    /// Waits until the busy threads have been seen long enough, then asks for a proposal and applies it.
    fn pin(&self, threads: usize) {
        self.pin_so_many(threads, WORKERS);
    }

    fn pin_so_many(&self, threads: usize, workers: usize) {
        let (of_a_pane, of_a_line) = (format!("{threads} threads"), format!("Threads {threads} of"));
        await_that("the threads are shown", 10, || self.tmux.shows(&of_a_pane) || self.tmux.shows(&of_a_line));
        self.propose(workers);
        self.tmux.press("p");
    }

    /// Asks for a proposal until it has so many threads.
    fn propose(&self, workers: usize) {
        let overlay = || self.tmux.shows("Esc closes");
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            self.tmux.press("p");
            await_that("p is answered", 5, overlay);
            let frame = self.tmux.frame();
            if frame.matches("taskset -cp").count() == workers {
                return;
            }
            assert!(Instant::now() < end, "a placement of {workers} threads is proposed within 20 s:\n{frame}");
            // Too early to tell who is busy. Escape and a key at once would be Alt and that key.
            self.tmux.press("Escape");
            await_that("Esc is obeyed", 5, || !overlay());
        }
    }

    fn pid(&self) -> String {
        self.tmux.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned()
    }

    fn undo(&self) -> String {
        let out = Command::new(VNETTOP).arg("undo").env("XDG_STATE_HOME", self.state.path()).output().expect("it runs");
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    }
}

/// The stand-in: an idle main thread and workers, all named iperf3, like iperf3 3.16 and later.
struct StandIn {
    server: Kept,
    client: Kept,
    address: String,
    netns: Netns,
}

impl StandIn {
    fn start(streams: u32) -> Self {
        let netns = Netns::new();
        let mut command = netns.command(VNETTOP);
        command.args(["demo-child", "standin-server", "--bind", "127.0.0.1:0", "--name", "iperf3"]);
        let mut server = Kept(command.stdout(Stdio::piped()).spawn().expect("the server starts"));
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
        let client = client(&netns, &address, streams);
        Self { server, client, address, netns }
    }

    /// The same once more; whoever replaces the first by it ends the first.
    fn another_client(&self) -> Kept {
        client(&self.netns, &self.address, 1)
    }

    fn pids(&self) -> [u32; 2] {
        [pid(&self.server), pid(&self.client)]
    }
}

fn client(netns: &Netns, address: &str, streams: u32) -> Kept {
    let mut command = netns.command(VNETTOP);
    command.args(["demo-child", "standin-client", "--connect", address, "--name", "iperf3", "--seconds", "120"]);
    command.args(["--streams", &streams.to_string()]);
    Kept(command.stdout(Stdio::null()).spawn().expect("the client starts"))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn p_p_pins_the_workers_and_not_the_main_threads() {
    needs(&["tmux", "taskset", "nsenter"]);
    let stand_in = StandIn::start(1);
    let pids = stand_in.pids();
    await_that("both have a worker", 10, || masks(&pids).len() >= 4);
    let before = masks(&pids);
    let screen = Screen::open("workers", &watch(&pids));
    screen.pin(before.len());
    let pinned =
        || masks(&pids).into_iter().filter(|(_, mask)| is_one_core(mask)).map(|(tid, _)| tid).collect::<Vec<u32>>();
    await_that("two workers sit on one core each", 10, || pinned().len() == 2);
    assert!(pids.iter().all(|main| !pinned().contains(main)), "the idle main threads are left alone: {:?}", pinned());
    let said = screen.undo();
    assert!(said.contains("press U"), "undo leaves a running vnettop its pins: {said}");
    screen.tmux.press("U");
    await_that("every mask is exactly as it was", 5, || masks(&pids) == before);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn undo_repairs_what_a_killed_vnettop_left() {
    needs(&["tmux", "taskset", "iperf3"]);
    let (near, far) = veth_pair();
    let server = iperf3_server(&near, &[]);
    let client = Kept(
        far.command("iperf3")
            .args(["-c", "198.18.0.1", "-t", "120"])
            .stdout(Stdio::null())
            .spawn()
            .expect("iperf3 starts"),
    );
    let pids = [pid(&server), pid(&client)];
    let before = masks(&pids);
    let screen = Screen::open("killed", &watch(&pids));
    let vnettop = screen.pid();
    screen.pin(2);
    await_that("both ends sit on one core each", 5, || masks(&pids).values().all(|mask| is_one_core(mask)));
    assert_eq!(masks(&pids).values().collect::<std::collections::HashSet<_>>().len(), 2, "each on its own");
    Command::new("kill").args(["-KILL", &vnettop]).status().expect("kill runs");
    await_that("vnettop is gone", 5, || is_gone(&vnettop));
    assert!(masks(&pids).values().all(|mask| is_one_core(mask)), "the pins outlive it");
    let said = screen.undo();
    assert_eq!(masks(&pids), before, "undo puts the exact masks back: {said}");
    assert!(screen.undo().contains("nothing"), "a second undo finds nothing to do");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn sticky_pins_the_next_worker_and_what_something_else_sets_is_told_and_left() {
    needs(&["tmux", "taskset", "nsenter"]);
    let mut stand_in = StandIn::start(1);
    let pids = stand_in.pids();
    await_that("both have a worker", 10, || masks(&pids).len() >= 4);
    let server = pids[0];
    let screen = Screen::open("sticky", &watch(&[server]));
    screen.tmux.press("P");
    screen.tmux.await_shown("the header says auto-pin", 5, "auto-pin");
    screen.pin_so_many(2, 1);
    let workers = || masks(&[server]).into_iter().filter(|(tid, _)| *tid != server).collect::<Vec<(u32, String)>>();
    await_that("the worker is pinned", 5, || workers().iter().all(|(_, mask)| is_one_core(mask)));
    let first = workers();
    stand_in.client = stand_in.another_client();
    await_that("the server has a new worker, and it is pinned as well", 20, || {
        let now = workers();
        now.iter().any(|worker| !first.iter().any(|old| old.0 == worker.0) && is_one_core(&worker.1))
    });
    let (tid, mask) = workers().into_iter().find(|(tid, _)| !first.iter().any(|old| old.0 == *tid)).expect("it lives");
    let other = if mask == "0" { "1" } else { "0" };
    Command::new("taskset").args(["-cp", other, &tid.to_string()]).output().expect("taskset runs");
    screen.tmux.await_shown("the screen tells it", 10, "another process changed its pin");
    screen.tmux.press("U");
    screen.tmux.await_shown("U tells that it left it alone", 5, "set by another program");
    assert_eq!(workers().iter().find(|worker| worker.0 == tid).expect("it lives").1, other, "their mask stands");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn readonly_pins_nothing() {
    needs(&["tmux", "taskset", "nsenter"]);
    let stand_in = StandIn::start(1);
    let pids = stand_in.pids();
    await_that("both have a worker", 10, || masks(&pids).len() >= 4);
    let before = masks(&pids);
    let screen = Screen::open("readonly", &format!("--readonly {}", watch(&pids)));
    screen.pin(before.len());
    screen.tmux.await_shown("it says why not", 5, "readonly");
    assert_eq!(masks(&pids), before, "no mask is touched");
}
