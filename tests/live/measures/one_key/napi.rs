//! The one key where a thread of the kernel receives for a link (threaded NAPI): the kernel makes a new one whenever the link
//! comes up, and auto-pin gives that one the core too.

use super::{Screen, is_one_core, masks, watch};
use crate::ground::threaded::{FAR, PROGRAMS, Threaded};
use crate::ground::{await_that, iperf3_server, needs, needs_two_cores, pid};

/// Both ends and the kernel's thread.
const BUSY: usize = 3;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn auto_pin_keeps_the_place_of_a_links_thread_when_the_link_was_down() {
    needs(&[&PROGRAMS[..], &["tmux", "taskset"]].concat());
    needs_two_cores();
    let link = Threaded::start();
    let first = link.thread().expect("it is there");
    let server = iperf3_server(&link.far, &[]);
    // So much that the link's thread is busy beyond doubt: one that is not gets no core.
    let client = link.near.keep("iperf3", &["-c", FAR, "-t", "120", "-b", "3G"]);
    let screen = Screen::open("napi", &watch(&[pid(&server), pid(&client)]));
    screen.tmux.press("P");
    screen.tmux.await_shown("the header says auto-pin", 5, "auto-pin");
    screen.propose(BUSY);
    screen.tmux.press("p");
    let mask = |tid: u32| masks(&[tid]).remove(&tid).unwrap_or_default();
    await_that("the link's thread has one core", 5, || is_one_core(&mask(first)));
    link.far.run("ip link set nb0 down; ip link set nb0 up");
    let mut second = first;
    await_that("the kernel has made another thread", 10, || {
        second = link.thread().unwrap_or(first);
        second != first
    });
    assert!(!is_one_core(&mask(second)), "the kernel gives it every core");
    await_that("it has one core as well", 20, || is_one_core(&mask(second)));
    screen.tmux.press("U");
    await_that("its mask is as the kernel made it", 5, || !is_one_core(&mask(second)));
}
