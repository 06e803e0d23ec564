//! The one key where a guest carries the packets: its busy thread is proposed, pinned and put back with both ends.

use super::{Screen, is_one_core, masks, watch};
use crate::ground::forwarder::{FAR, Forwarder, PROGRAMS};
use crate::ground::{Kept, await_that, iperf3_server, needs, needs_two_cores, pid};
use std::collections::BTreeMap;
use std::process::Command;

/// Both ends and the thread of the guest that copies.
const BUSY: usize = 3;

/// A test through a guest, and a screen beside it.
struct Through {
    guest: Forwarder,
    ends: [Kept; 2],
    screen: Screen,
}

impl Through {
    fn open(name: &str) -> Self {
        needs(&[&PROGRAMS[..], &["tmux"]].concat());
        needs_two_cores();
        let guest = Forwarder::start(&[]);
        let server = iperf3_server(&guest.far, &[]);
        // Short writes and reads keep both ends busy at the rate of the guest; with long ones they hardly are.
        let client = guest.near.keep("iperf3", &["-c", FAR, "-t", "120", "-l", "256"]);
        let screen = Screen::open(name, &watch(&[pid(&server), pid(&client)]));
        Self { guest, ends: [server, client], screen }
    }

    /// The masks of every thread that may be pinned.
    fn masks(&self) -> BTreeMap<u32, String> {
        masks(&[pid(&self.ends[0]), pid(&self.ends[1]), self.guest.pid()])
    }

    /// `p` proposes it, and `p` again does it.
    fn pin(&self) {
        let busy = format!("taskset -cp {{}} {}", self.guest.copying());
        let cores = ["0", "1"].map(|core| busy.replace("{}", core));
        self.screen.propose(BUSY);
        let frame = self.screen.tmux.frame();
        assert!(cores.iter().any(|line| frame.contains(line)), "the busy thread of the guest is proposed:\n{frame}");
        self.screen.tmux.press("p");
        let pinned = || self.masks().into_iter().filter(|(_, mask)| is_one_core(mask)).map(|(tid, _)| tid);
        await_that("the busy threads have one core each", 5, || pinned().count() == BUSY);
        assert!(pinned().any(|tid| tid == self.guest.copying()), "so has the guest's: {:?}", self.masks());
        assert!(!pinned().any(|tid| tid == self.guest.pid()), "its main thread is idle: {:?}", self.masks());
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn p_p_pins_the_busy_thread_of_a_guest_too_and_restores_it() {
    let through = Through::open("guest");
    let before = through.masks();
    through.pin();
    through.screen.tmux.press("U");
    await_that("every mask is exactly as it was", 5, || through.masks() == before);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn undo_repairs_the_pin_of_a_guests_thread_that_a_killed_vnettop_left() {
    let through = Through::open("guest-killed");
    let before = through.masks();
    through.pin();
    let vnettop = through.screen.pid();
    Command::new("kill").args(["-KILL", &vnettop]).status().expect("kill runs");
    await_that("vnettop is gone", 5, || super::is_gone(&vnettop));
    assert!(is_one_core(&through.masks()[&through.guest.copying()]), "the pin outlives it");
    let said = through.screen.undo();
    assert_eq!(through.masks(), before, "undo puts the exact masks back: {said}");
    assert!(through.screen.undo().contains("nothing"), "a second undo finds nothing to do");
}
