//! The search for the best placement: what it finds of a cost that is known because it was planted, and the masks afterwards.

use super::*;
use crate::ground::{needs, needs_two_cores};

const PLACED: &str = include_str!("../../../release/planted/placed.py");
/// A machine that others hold up differs from itself.
const MOST_TRIES: usize = 3;

/// What a search says of a sender with this plan that runs for so many seconds, and the journals' directory; its recording is made
/// into the same card again.
fn searched(dir: &Path, plan: &str, seconds: &str) -> Value {
    let netns = Netns::new();
    netns.run("ip link set lo up");
    let (record, card) = (dir.join("run.zst"), dir.join("card.json"));
    let mut vnettop = netns.command(VNETTOP);
    vnettop.args(["run", "--pin", "search", "--phase", "0.5", "--format", "json"]);
    vnettop.arg("--card").arg(&card).arg("--record").arg(&record);
    vnettop.args(["--", "python3", "-c", PLACED, plan, seconds]).env("XDG_STATE_HOME", dir).stdin(Stdio::null());
    turn::take();
    let (code, _, err) = output(vnettop);
    assert_eq!(code, Some(0), "the command's own code: {err}");
    let printed = fs::read_to_string(&card).expect("a card");
    assert_eq!(made_again(&record), printed, "the recording gives the same card");
    let left = fs::read_dir(dir.join("vnettop")).expect("there was a journal");
    let pins =
        left.filter(|entry| entry.as_ref().is_ok_and(|one| one.file_name().display().to_string().starts_with("pins-")));
    assert_eq!(pins.count(), 0, "every mask is back, and no journal is left");
    json(&printed)["search"].clone()
}

fn classes(search: &Value) -> Vec<&str> {
    search["ranking"].as_array().into_iter().flatten().filter_map(|one| one["class"].as_str()).collect()
}

/// Tries again where the machine was held up.
fn until(search: impl Fn() -> Value, is_right: impl Fn(&Value) -> bool) -> Value {
    let mut found = search();
    for _ in 1..MOST_TRIES {
        if is_right(&found) {
            break;
        }
        eprintln!("once more, because the machine may have been held up: {found}");
        found = search();
    }
    found
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_planted_cost_comes_last_and_the_best_is_proposed_from_then_on() {
    needs(&["python3", "ip"]);
    needs_two_cores();
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let is_right = |search: &Value| {
        let order = classes(search);
        order.last() == Some(&"same core") && order.first() != Some(&"unpinned") && !search["found"].is_null()
    };
    let search = until(|| searched(dir.path(), "same=0.5,wide=0.7", "14"), is_right);
    let order = classes(&search);
    assert_eq!((order.last(), order.len()), (Some(&"same core"), 3), "it works slower on one core: {search}");
    let best = order[0];
    assert_ne!(best, "unpinned", "which is slower too: {search}");
    let last = &search["ranking"][2];
    assert_eq!((&last["standing"], &search["found"]), (&"worse".into(), &best.into()), "surely: {search}");
    let behind = last["against_best"]["is"].as_f64().expect("a figure");
    assert!((behind + 0.5).abs() < 0.1, "half of the best: {last}");
    let taskset = search["ranking"][0]["taskset"].as_array().expect("by hand");
    assert!(taskset.iter().all(|line| line.as_str().is_some_and(|line| line.starts_with("taskset -cp "))), "{search}");

    // Another vnettop, later, beside a test of the same kind.
    let netns = Netns::new();
    netns.run("ip link set lo up");
    let sender = netns.keep("python3", &["-c", PLACED, "", "60"]);
    let mut vnettop = netns.command(VNETTOP);
    let watch = sender.0.id().to_string();
    let keys = "<tick>".repeat(12) + "p";
    vnettop.args(["-d", "0.25", "--watch", &watch, "--watch", "taker", "--print", "120x40", "--keys", &keys]);
    let (_, frame, err) = output({
        vnettop.env("XDG_STATE_HOME", dir.path()).stdin(Stdio::null());
        vnettop
    });
    assert!(frame.contains(&format!("measured: {best}, ")), "and why, in {frame}{err}");
    assert!(frame.contains("faster than unpinned (vnettop run --pin search, 20"), "with its figure and day: {frame}");

    // And a comparison of the two, which pins what was found.
    let mut vnettop = netns.command(VNETTOP);
    vnettop.args(["run", "--pin", "compare", "--phase", "1", "--card", "/dev/null"]);
    vnettop.args(["--", "python3", "-c", PLACED, "", "5"]).env("XDG_STATE_HOME", dir.path()).stdin(Stdio::null());
    drop(sender);
    let (code, _, err) = output(vnettop);
    let said = err.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_found = format!(": {best}");
    assert!(code == Some(0) && said.contains("pinned as vnettop run --pin search found best on 20"), "{code:?}: {err}");
    assert!(said.contains(&of_found), "{best}: {err}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn placements_that_do_not_differ_are_said_not_to_only_where_that_is_sure() {
    needs(&["python3", "ip"]);
    needs_two_cores();
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let search = until(|| searched(dir.path(), "", "14"), |search| search["differs"] != true);
    assert_eq!((search["differs"] == true, &search["found"]), (false, &Value::Null), "{search}");
    let text = search["text"].as_str().expect("rounds enough");
    let against = search["ranking"].as_array().expect("a list").iter().map(|one| &one["against_best"]);
    let ends: Vec<[f64; 2]> = against
        .filter(|of| !of.is_null())
        .map(|of| ["from", "to"].map(|end| of[end].as_f64().expect("an end of an interval")))
        .collect();
    let are_near = ends.iter().all(|[from, to]| *from >= -0.03 && *to <= 0.03);
    // How much a machine that does other work shows is its own affair; what is said of it is not.
    let is_so = if are_near { !text.starts_with("best") } else { text.starts_with("inconclusive: ") };
    assert!(is_so && !ends.is_empty(), "{text} beside {ends:?}");
    assert!(ends.iter().all(|[from, _]| *from >= -1.0), "no rate falls by more than all of it: {search}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_command_that_is_over_too_soon_says_how_long_it_should_be() {
    needs(&["python3", "ip"]);
    needs_two_cores();
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let mut vnettop = run(&["--pin", "search", "--phase", "2"], &["python3", "-c", PLACED, "", "6"]);
    vnettop.env("XDG_STATE_HOME", dir.path());
    let (code, _, err) = output(vnettop);
    assert_eq!(code, Some(0), "the command went well: {err}");
    let err = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        err.contains("placements were not ranked: the command was too short") && err.contains("24 s or longer"),
        "{err}"
    );
}

/// A search that places `vnt-busy` for ever.
fn searching(state: &Path) -> Command {
    let mut vnettop = run(&["--watch", "vnt-busy", "--pin", "search", "--phase", "0.5"], &["sleep", "120"]);
    vnettop.env("XDG_STATE_HOME", state);
    vnettop
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn masks_are_as_before_after_a_signal_in_a_search_and_after_undo_where_it_was_killed() {
    needs_two_cores();
    for name in ["-TERM", "-INT", "-KILL"] {
        let dir = tempfile::tempdir().expect("a directory");
        let spinner = busy(dir.path(), "0-1");
        await_that("the spinner spins", 10, || masks(spinner.0.id()) == ["Cpus_allowed_list:\t0-1"]);
        let mut vnettop = kept(searching(dir.path()));
        await_that("it is pinned", 20, || masks(spinner.0.id()) != ["Cpus_allowed_list:\t0-1"]);
        assert_eq!(journals(dir.path()), 1, "the journal is written before the mask");
        let command = pins::child_of(vnettop.0.id()).expect("the command runs");
        signal(vnettop.0.id(), name);
        let code = vnettop.0.wait().expect("it ends").code();
        if name == "-KILL" {
            signal(command, "-KILL");
            let mut undo = Command::new(VNETTOP);
            undo.arg("undo").env("XDG_STATE_HOME", dir.path());
            let (code, _, err) = output(undo);
            assert_eq!(code, Some(0), "{err}");
        } else {
            assert!(code.is_some_and(|code| code > 128), "the command was ended by {name}: {code:?}");
        }
        assert_eq!(masks(spinner.0.id()), ["Cpus_allowed_list:\t0-1"], "{name}: the exact old mask is back");
        assert_eq!(journals(dir.path()), 0, "{name}: nothing is left behind");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_searches_do_not_place_the_same_threads() {
    needs_two_cores();
    let dir = tempfile::tempdir().expect("a directory");
    let spinner = busy(dir.path(), "0-1");
    await_that("the spinner spins", 10, || masks(spinner.0.id()) == ["Cpus_allowed_list:\t0-1"]);
    let _first = kept(searching(dir.path()));
    await_that("it is pinned", 20, || masks(spinner.0.id()) != ["Cpus_allowed_list:\t0-1"]);
    let (code, _, err) = output(searching(dir.path()));
    assert_eq!(code, Some(1), "the second one is refused: {err}");
    assert!(err.contains("the command was not started") && err.contains("another vnettop"), "and says why: {err}");
}
