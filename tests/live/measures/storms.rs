//! The screen beside a storm of links in another namespace.

use crate::ground::tmux::Tmux;
use crate::ground::{Netns, VNETTOP, needs};
use std::time::{Duration, Instant};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn keys_are_answered_while_another_namespace_storms() {
    needs(&["tmux", "ip", "nsenter"]);
    let storm = Netns::new();
    let _storm =
        storm.keep("sh", &["-c", "while :; do ip link add st0 type veth peer name st1; ip link del st0; done"]);
    let tmux = Tmux::start("storm", 120, 40, &format!("{VNETTOP} -d 0.1"));
    tmux.await_shown("the screen is there", 10, "Links");
    let mut times = Vec::new();
    for round in 0..20 {
        let begin = Instant::now();
        tmux.press(if round % 2 == 0 { "?" } else { "q" });
        // Opened in even rounds, closed in odd ones.
        while tmux.shows("PgUp PgDn") != (round % 2 == 0) {
            assert!(begin.elapsed() < Duration::from_secs(5), "the help answers its key: {}", tmux.frame());
        }
        times.push(begin.elapsed());
    }
    let median = median(times.clone());
    eprintln!("key to frame, with tmux's own time in it: median {median:?}, all {times:?}");
    assert!(median < Duration::from_millis(50), "keys are answered within 50 ms, not {median:?}");
}
