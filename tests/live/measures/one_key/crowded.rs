//! The one key where other programs have every core: it says who, proposes nothing, and goes on only for whoever insists.

use super::{Screen, WORKERS, is_one_core, masks, watch};
use crate::ground::{Kept, await_that, iperf3_server, needs, needs_two_cores, pid, veth_pair};
use std::process::{Command, Stdio};

/// A program that never sleeps, on each core that this process may use.
fn hogs() -> Vec<Kept> {
    let cores = rustix::thread::sched_getaffinity(None).expect("the own mask");
    let hog = |core: usize| {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"]);
        Kept(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("taskset starts"))
    };
    (0..1024).filter(|&core| cores.is_set(core)).map(hog).collect()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_others_have_every_core_p_says_so_and_pins_only_for_who_insists() {
    needs(&["tmux", "taskset", "iperf3"]);
    needs_two_cores();
    let (near, far) = veth_pair();
    let _hogs = hogs();
    let server = iperf3_server(&near, &[]);
    let client = far.keep("iperf3", &["-c", "198.18.0.1", "-t", "120"]);
    let pids = [pid(&server), pid(&client)];
    let before = masks(&pids);
    let screen = Screen::open("crowded", &watch(&pids));
    await_that("no core is free", 30, || {
        screen.tmux.press("p");
        await_that("p is answered", 5, || screen.tmux.shows("Esc closes"));
        // Who they are is known a moment later.
        let is_refused = screen.tmux.shows("no free core: others use") && screen.tmux.shows("(sh");
        if !is_refused {
            screen.tmux.press("Escape");
            await_that("Esc is obeyed", 5, || !screen.tmux.shows("Esc closes"));
        }
        is_refused
    });
    let frame = screen.tmux.frame();
    assert!(!frame.contains("taskset -cp"), "nothing is proposed: {frame}");
    assert_eq!(masks(&pids), before, "and nothing was pinned");
    screen.tmux.press("p");
    await_that("whoever asks again sees a proposal", 5, || {
        screen.tmux.frame().matches("taskset -cp").count() == WORKERS
    });
    assert_eq!(masks(&pids), before, "which is not applied yet");
    screen.tmux.press("p");
    let pinned = || masks(&pids).values().filter(|mask| is_one_core(mask)).count();
    await_that("the third press applies it", 10, || pinned() == WORKERS);
    screen.tmux.press("U");
    await_that("every mask is as it was", 5, || masks(&pids) == before);
}
