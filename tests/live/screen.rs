//! The screen in a real terminal (tmux): moving rates at once, keys obeyed, the terminal given back.

use crate::ground::tmux::Tmux;
use crate::ground::{Kept, Netns, VNETTOP, await_that, needs};
use std::process::Command;
use std::time::Instant;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/kunpeng.vnettop.zst");

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_demo_shows_moving_rates_within_two_ticks_and_leaves_the_terminal_as_it_was() {
    needs(&["tmux"]);
    let tmux = Tmux::start("demo", 120, 40, "sh");
    await_that("the shell is there", 5, || !tmux.frame().trim().is_empty());
    let stty = |file: &str| tmux.press(&format!("stty -a > {file}"));
    let dir = tempfile::tempdir().expect("a directory");
    let (before, after) =
        (dir.path().join("before").display().to_string(), dir.path().join("after").display().to_string());
    stty(&before);
    tmux.press("Enter");
    tmux.press(&format!("{VNETTOP} demo"));
    tmux.press("Enter");
    tmux.await_shown("the screen is there", 10, "Links");
    let bridge_moves =
        || tmux.frame().lines().any(|line| line.contains("demo0") && (line.contains('G') || line.contains('M')));
    await_that("the bridge moves", 5, bridge_moves);
    tmux.tmux(&["resize-window", "-x", "60", "-y", "15"]);
    await_that("it fits 60×15", 5, || tmux.shows("demo0") || tmux.shows("Links"));
    tmux.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    tmux.await_shown("too small a terminal says so", 5, "60×15");
    tmux.tmux(&["resize-window", "-x", "200", "-y", "60"]);
    tmux.await_shown("it is back", 5, "Links");
    tmux.press("q");
    await_that("the shell is back", 5, || !tmux.shows("Links"));
    stty(&after);
    tmux.press("Enter");
    await_that("stty ran", 5, || {
        std::fs::read_to_string(&after).is_ok_and(|text| text.contains("echoke") || text.contains("iutf8"))
    });
    // The window was resized in between, which stty tells too.
    let modes =
        |file: &str| std::fs::read_to_string(file).expect("written").lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(modes(&before), modes(&after), "the terminal's modes are as they were");
    let cursor = tmux.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}"]);
    assert_eq!(cursor.trim(), "1 0 0", "cursor, screen and mouse are given back");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_terminal_with_a_light_background_gets_dark_letters_and_no_key_is_made_of_its_answer() {
    needs(&["tmux"]);
    for (name, background, color) in [("light", "#ffffff", "38;5;240"), ("dark", "#002b36", "38;5;247")] {
        let tmux = Tmux::start(name, 100, 40, "sh");
        await_that("the shell is there", 5, || !tmux.frame().trim().is_empty());
        tmux.tmux(&["set-option", "-w", "window-style", &format!("bg={background}")]);
        tmux.press(&format!("TERM=xterm-256color {VNETTOP} replay {RECORDING}"));
        tmux.press("Enter");
        let colored = || tmux.tmux(&["capture-pane", "-e", "-p"]);
        await_that("muted text has the grey for it", 10, || colored().contains(color));
        tmux.await_shown("no box lies over the screen", 10, "Test ─");
        tmux.press("?");
        tmux.await_shown("the next key is a key", 5, "PgUp PgDn");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_first_key_after_a_resize_is_obeyed_at_once() {
    needs(&["tmux"]);
    // A tick far away, so that nothing but the key can wake it.
    let tmux = Tmux::start("resize", 80, 24, &format!("{VNETTOP} -d 60"));
    tmux.await_shown("the screen is there", 10, "Links");
    for round in 0..10 {
        let (width, height) = if round % 2 == 0 { (200, 60) } else { (80, 24) };
        tmux.press("?");
        tmux.await_shown("the help opens", 5, "Esc closes");
        let size = [width, height].map(|cells| cells.to_string());
        tmux.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
        let fits = || tmux.frame().lines().nth(1).is_some_and(|line| line.chars().count() == width);
        await_that("the frame fits the new size", 5, fits);
        tmux.press("Escape");
        await_that("the help closes", 5, || !tmux.shows("Esc closes"));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_signal_gives_the_terminal_back() {
    needs(&["tmux", "pkill"]);
    for signal in ["TERM", "HUP", "QUIT", "USR1", "ALRM"] {
        let tmux = Tmux::start(&format!("signal-{signal}"), 100, 30, "sh");
        let dir = tempfile::tempdir().expect("a directory");
        let pid = dir.path().join("pid").display().to_string();
        // The shell writes the pid that exec then keeps.
        tmux.press(&format!("sh -c 'echo $$ > {pid}; exec {VNETTOP}'; echo ended with $?"));
        tmux.press("Enter");
        tmux.await_shown("the screen is there", 10, "Links");
        let pid = std::fs::read_to_string(&pid).expect("written").trim().to_owned();
        Command::new("kill").args([&format!("-{signal}"), &pid]).status().expect("kill runs");
        tmux.await_shown("it ends and says with what", 5, "ended with 1");
        let state = tmux.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}"]);
        assert_eq!(state.trim(), "1 0 0", "after SIG{signal} cursor, screen and mouse are given back");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_recording_that_may_grow_no_more_is_told_and_the_screen_stays() {
    needs(&["tmux"]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("x.jsonl").display().to_string();
    let tmux = Tmux::start("full", 120, 30, &format!("sh -c 'ulimit -f 16; exec {VNETTOP} -d 0.05 --record {file}'"));
    tmux.await_shown("it says what happened", 20, "cannot write recording");
    tmux.press("?");
    tmux.await_shown("and goes on", 5, "propose cores");
    assert!(std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 0), "what was recorded before is there");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_terminal_that_goes_away_ends_it() {
    needs(&["tmux"]);
    for shell in ["", "exec "] {
        let tmux = Tmux::start("gone", 100, 30, "sh");
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid").display().to_string();
        // In a shell of its own vnettop leads no session, so no hang-up signal comes.
        tmux.press(&format!("{shell}sh -c 'echo $$ > {file}; exec {VNETTOP}'"));
        tmux.press("Enter");
        tmux.await_shown("the screen is there", 10, "Links");
        let pid = std::fs::read_to_string(&file).expect("written").trim().to_owned();
        drop(tmux);
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        let ended = || stat().map_or(true, |stat| stat.contains(") Z "));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !ended() {
            let waits = std::fs::read_to_string(format!("/proc/{pid}/wchan"));
            assert!(std::time::Instant::now() < end, "it ends with its terminal: {:?}, waits in {waits:?}", stat());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn stopped_and_continued_it_has_its_screen_again() {
    needs(&["tmux", "bash"]);
    let tmux = Tmux::start("stop", 100, 30, "bash --norc");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("pid").display().to_string();
    tmux.press(&format!("bash -c 'echo $$ > {file}; exec {VNETTOP}'"));
    tmux.press("Enter");
    tmux.await_shown("the screen is there", 10, "Links");
    let pid = std::fs::read_to_string(&file).expect("written").trim().to_owned();
    Command::new("kill").args(["-TSTP", &pid]).status().expect("kill runs");
    tmux.await_shown("the shell has its screen", 5, "Stopped");
    let state = || tmux.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}"]);
    assert_eq!(state().trim(), "1 0 0", "the terminal is given back while it is stopped");
    tmux.press("fg");
    tmux.press("Enter");
    await_that("the screen is whole again", 5, || tmux.shows("Links") && tmux.shows("quit"));
    tmux.press("q");
    await_that("a single key is obeyed", 5, || state().trim() == "1 0 0" && !tmux.shows("Links"));
}

/// Named namespaces, each at the other end of a pair of links of `near`; gone with the value.
struct Many(Vec<String>);

impl Many {
    fn beside(near: &Netns) -> Self {
        let many = Self((0..20).map(|nth| format!("kq{nth}-{}", std::process::id())).collect());
        for (nth, name) in many.0.iter().enumerate() {
            near.run(&format!("ip netns add {name}; ip link add kq{nth} type veth peer name eth0 netns {name}"));
        }
        many
    }

    fn delete(&self) {
        for name in &self.0 {
            let _gone_already = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

impl Drop for Many {
    fn drop(&mut self) {
        self.delete();
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn stopped_by_ctrl_z_it_keeps_no_namespace_alive_and_fg_brings_all_of_it_back() {
    needs(&["tmux", "bash", "ip"]);
    for face in ["", "--json > /dev/null"] {
        let near = Netns::new();
        let many = Many::beside(&near);
        let tmux = Tmux::start("ctrl-z", 120, 30, "bash --norc");
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid").display().to_string();
        tmux.press(&format!("bash -c 'echo $$ > {file}; exec {VNETTOP} -d 0.2 --netns all {face}'"));
        tmux.press("Enter");
        await_that("it runs", 10, || std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 0));
        let pid = std::fs::read_to_string(&file).expect("written").trim().to_owned();
        let holds = || {
            let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
            links.filter(|link| link.to_string_lossy().contains("/run/netns/kq")).count()
        };
        await_that("it holds them open", 10, || holds() >= 20);
        if face.is_empty() {
            tmux.await_shown("the screen is there", 10, "Links");
        }
        tmux.press("C-z");
        tmux.await_shown("the shell has its terminal", 5, "Stopped");
        let state = || tmux.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}"]);
        assert_eq!(state().trim(), "1 0 0", "it is given back");
        assert_eq!(holds(), 0, "none of them is open while it is stopped");
        many.delete();
        let begin = Instant::now();
        await_that("the deleted ones are gone", 5, || !near.output("ip -o link").contains("kq"));
        eprintln!("20 namespaces deleted while it was stopped were gone after {:?}", begin.elapsed());
        let again = Many::beside(&near);
        tmux.press("fg");
        tmux.press("Enter");
        await_that("new ones are found", 10, || holds() >= 20);
        if face.is_empty() {
            await_that("the screen is whole again", 5, || tmux.shows("Links") && tmux.shows("quit"));
            assert!(!tmux.shows("late "), "the time of the stop makes no tick late:\n{}", tmux.frame());
            tmux.press("q");
        } else {
            tmux.press("C-c");
        }
        await_that("it ends", 5, || std::fs::read_dir(format!("/proc/{pid}")).is_err());
        drop(again);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn priority_given_back_is_taken_again_and_the_reason_is_told() {
    needs(&["tmux", "python3"]);
    let threads = "import threading, time
for _ in range(800): threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
time.sleep(1000)";
    let many = Kept(Command::new("python3").args(["-c", threads]).spawn().expect("python runs"));
    let tasks = format!("/proc/{}/task", many.0.id());
    await_that("its threads run", 10, || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 800));
    let vnettop = format!("{VNETTOP} -d 0.01 --netns self --watch {}", many.0.id());
    let tmux = Tmux::start("priority", 200, 40, &vnettop);
    tmux.await_shown("more than a quarter of a core is too much", 20, "no real-time");
    tmux.await_shown("which is told", 10, "until it takes less for 10 s");
    drop(many);
    // From 10 ms to 200.
    tmux.press("-");
    tmux.press("-");
    await_that("after ten quiet seconds it goes first again", 40, || {
        tmux.shows("own CPU") && !tmux.shows("no real-time")
    });
}
