//! The recording in `assets/`: what it is made of, and the story that it tells frame by frame.
//!
//! `cargo test --test pure -- --ignored story::write` writes it anew.

use crate::world::stage::Stage;
use crate::world::story::{self, PINNED_FROM_S};
use crate::world::{World, scenes};
use std::path::{Path, PathBuf};
use std::process::Command;
use vnettop::action::parse_keys;
use vnettop::derive::Metrics;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{Event, Item, Sample};
use vnettop::state::{Mode, Settings};

fn asset() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/kunpeng.vnettop.zst")
}

#[test]
#[ignore = "writes the recording anew"]
fn write() {
    let path = asset();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    let _ = std::fs::remove_file(&path);
    let mut recorder = Recorder::create(&path).expect("a new file");
    for item in story::items() {
        recorder.write(&item).expect("it is written");
    }
    recorder.finish().expect("it is closed");
}

fn recorded() -> Vec<Item> {
    let mut recording = Recording::open(&asset()).expect("the recording is there");
    std::iter::from_fn(|| recording.next_item().expect("it is whole")).collect()
}

fn samples<'a>(items: &'a [Item]) -> Vec<&'a Sample> {
    let sample = |item: &'a Item| match item {
        Item::Sample(sample) => Some(&**sample),
        Item::Event(_) => None,
    };
    items.iter().filter_map(sample).collect()
}

/// A replay of so many seconds.
pub fn played(seconds: usize) -> Stage {
    let settings = Settings { mode: Mode::Replay, ..Settings::default() };
    let mut stage = Stage::new(World::small(), settings);
    let mut left = seconds * 2 + 1;
    for item in recorded() {
        left -= usize::from(matches!(item, Item::Sample(_)));
        if let Some(metrics) = stage.derivation.advance(item) {
            stage.state.receive(metrics);
        }
        if left == 0 {
            break;
        }
    }
    stage
}

/// A replay to its end; `see` is called after each sample from so many seconds on.
pub fn seen_from(seconds: usize, mut see: impl FnMut(&Stage)) {
    let settings = Settings { mode: Mode::Replay, ..Settings::default() };
    let mut stage = Stage::new(World::small(), settings);
    let mut samples = 0;
    for item in recorded() {
        let Some(metrics) = stage.derivation.advance(item) else { continue };
        stage.state.receive(metrics);
        samples += 1;
        if samples > seconds * 2 {
            see(&stage);
        }
    }
}

fn freeze(chapter: &str, stage: &Stage) {
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!(chapter, stage.frame(120, 40));
    });
}

#[test]
fn the_recording_is_what_its_generator_writes_and_small() {
    assert!(recorded() == story::items(), "assets/ holds what tests/world/story.rs makes; write it anew");
    let size = asset().metadata().expect("it is there").len();
    assert!(size < 300 * 1024, "{size} bytes are under 300 KiB");
}

#[test]
fn every_second_has_its_published_rate() {
    let items = recorded();
    let samples = samples(&items);
    let pulses: Vec<_> = samples.iter().flat_map(|sample| &sample.flows[1].pulses).collect();
    assert_eq!(pulses.len(), story::seconds().len() * 10 + 1, "a pulse every 100 ms, and one at the beginning");
    for (second, published) in story::seconds().iter().enumerate() {
        let (from, to) = (pulses[second * 10], pulses[second * 10 + 10]);
        assert_eq!(to.at_ns - from.at_ns, 1_000_000_000, "ten pulses are a second");
        let gigabits = (to.acked - from.acked) as f64 * 8.0 / 1e9;
        assert!((gigabits - published).abs() < 1e-6, "second {second} moves {published} Gbit, not {gigabits}");
    }
    for sample in &samples {
        assert_eq!(sample.flows[0].pulses.last().map(|p| p.received), sample.flows[1].pulses.last().map(|p| p.acked));
    }
}

#[test]
fn its_traced_moves_lead_from_core_to_core_and_are_as_many_as_counted() {
    let items = recorded();
    let samples = samples(&items);
    let mut cores = [4, 6];
    let mut moves = [0, 0];
    for pair in samples.windows(2) {
        for step in &pair[1].trace.as_ref().expect("traced").moves {
            let end = usize::from(step.tid == 39_082);
            assert_eq!(step.from, cores[end], "a move begins where the one before ended");
            assert!(pair[0].at_ns <= step.at_ns && step.at_ns < pair[1].at_ns, "within its tick");
            cores[end] = step.to;
            moves[end] += 1;
        }
        for (end, thread) in pair[1].threads.iter().enumerate() {
            assert_eq!((thread.core, thread.migrations), (cores[end], Some(moves[end])), "trace and counter agree");
        }
    }
    assert_eq!(cores, [0, 1], "at the end both are where they were pinned");
}

#[test]
fn the_story_is_told() {
    let start = played(4);
    freeze("start", &start);
    assert!(start.text(120, 40).contains("recording: rebuilt from"), "what it is stands in the lower border");
    let mut whole = played(4);
    whole.press("F");
    assert!(whole.text(120, 40).contains("illustrative"), "what is not measured is said on the screen");
    freeze("jitter", &played(16));
    freeze("cause", &played(33));
    let mut proposal = played(37);
    assert_eq!(proposal.press("p"), [], "a proposal is only shown");
    freeze("proposal", &proposal);
    assert_eq!(proposal.press("p"), [], "and a recording's threads cannot be pinned");
    let pinned = played(PINNED_FROM_S + 2);
    freeze("pinned", &pinned);
    assert!(
        pinned.text(120, 40).contains("iperf3 server pinned to core 0, iperf3 client pinned to core 1"),
        "the pin of the recording is told"
    );
    let mut proof = played(PINNED_FROM_S + 34);
    proof.press("c");
    freeze("proof", &proof);
    assert_eq!(proof.press("U"), [], "nothing can be put back either");
    freeze("end", &proof);
}

#[test]
fn what_moves_where_and_how_fast_does_not_depend_on_the_way_it_is_told() {
    let moves_per_s = |metrics: &Metrics| metrics.threads.iter().filter_map(|t| t.moves_per_s).sum::<f64>();
    let (calm, slow) = (played(5), played(13));
    let (calm, slow) = (calm.state.metrics().expect("metrics"), slow.state.metrics().expect("metrics"));
    assert!(moves_per_s(calm) <= 4.0 && moves_per_s(slow) >= 4.0, "slow seconds are those with moves");
    let end = played(story::seconds().len());
    let end = end.state.metrics().expect("metrics");
    assert!(end.threads.iter().all(|thread| thread.pinned), "at the end both are pinned");
    let pins = recorded().iter().filter(|item| matches!(item, Item::Event(Event::Pinned { .. }))).count();
    assert_eq!(pins, 2, "one pin a thread");
    let veth = slow.machine.links.iter().find(|link| link.facts.name == "vethe61f5c0").and_then(|link| link.rates);
    let rate = veth.and_then(|rates| rates.rx_bits_per_s).expect("a rate");
    assert!((14e9..17e9).contains(&rate), "second 13 was published with {} Gbit/s: {rate}", scenes::SWINGS[12]);
}

#[test]
fn keys_on_the_replay_change_nothing_on_this_machine() {
    let home = tempfile::tempdir().expect("a directory");
    let keys = "pp<tick>pU<tick>";
    assert!(parse_keys(keys).is_ok());
    let output = Command::new(env!("CARGO_BIN_EXE_vnettop"))
        .args(["--replay", &asset().display().to_string(), "--keys", keys, "--print", "120x40", "-n", "70"])
        .env("XDG_STATE_HOME", home.path())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("vnettop runs");
    let frame = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(frame.contains("pinning is not possible in a replay"), "it says why not:\n{frame}");
    let journals = std::fs::read_dir(home.path()).expect("readable").count();
    assert_eq!(journals, 0, "no journal was begun, so no mask was touched");
}

#[test]
fn the_card_of_the_pin_is_saved_on_a_key_and_printed_again_from_the_recording() {
    let vnettop = || Command::new(env!("CARGO_BIN_EXE_vnettop"));
    let folder = tempfile::tempdir().expect("a folder");
    let keys = "<tick>".repeat(185) + "cs";
    let mut shown = vnettop();
    shown.env("XDG_STATE_HOME", folder.path()).args(["--keys", &keys, "--print", "120x40", "--replay"]).arg(asset());
    let shown = shown.output().expect("vnettop runs");
    let kept = folder.path().join("vnettop");
    let told = format!("card written to {}/vnettop-card-", kept.display());
    assert!(String::from_utf8_lossy(&shown.stdout).contains(&told), "it says where to");
    let saved = |ending: &str| {
        let mut files = std::fs::read_dir(&kept).expect("a folder").map(|file| file.expect("a file").path());
        let of_ending = files.find(|path| path.extension().is_some_and(|is| is == ending));
        std::fs::read_to_string(of_ending.expect(ending)).expect("text")
    };
    let figures = |text: &str| -> Vec<String> {
        let lines =
            text.lines().filter(|line| ["mean", "CV", "verdict", "phases"].iter().any(|name| line.contains(name)));
        lines.map(str::to_owned).collect()
    };
    for (ending, format) in [("txt", "text"), ("md", "markdown")] {
        let again = vnettop().args(["card", "--format", format]).arg(asset()).output().expect("vnettop runs");
        let (saved, again) = (figures(&saved(ending)), figures(&String::from_utf8_lossy(&again.stdout)));
        assert!(saved.len() >= 4 && saved == again, "the same card as {format}: {saved:?} {again:?}");
        assert!(saved.iter().any(|line| line.contains("26.0 Gbit/s") && line.contains("34.9 Gbit/s")), "{saved:?}");
    }
    let json: serde_json::Value = serde_json::from_str(&saved("json")).expect("one object");
    assert_eq!((&json["test"], &json["card"]["verdict"]), (&1.into(), &"steadier and faster".into()), "{json}");
}

#[test]
fn what_a_key_writes_is_kept_where_nobody_else_can_lay_a_link_and_is_ones_own() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let (state, here) = (folder.path().join("state"), folder.path().join("here"));
    std::fs::create_dir(&here).expect("writable");
    let press = |keys: &str| {
        let mut vnettop = Command::new(env!("CARGO_BIN_EXE_vnettop"));
        vnettop
            .current_dir(&here)
            .env("XDG_STATE_HOME", &state)
            .args(["--keys", keys, "--print", "160x40", "--replay"]);
        String::from_utf8(vnettop.arg(asset()).output().expect("vnettop runs").stdout).expect("text")
    };
    let files = |at: &std::path::Path| -> Vec<_> {
        let mut all: Vec<_> =
            std::fs::read_dir(at).expect("a folder").map(|file| file.expect("a file").path()).collect();
        all.sort();
        all
    };
    let shown = press("<tick><tick>wR");
    let kept = files(&state.join("vnettop"));
    let [recording, report] = kept.as_slice() else { panic!("a recording and a report: {kept:?}\n{shown}") };
    assert!(shown.contains(&format!("recording to {}", recording.display())), "the whole path is told:\n{shown}");
    assert!(report.extension().is_some_and(|ending| ending == "html"), "the report is a page: {kept:?}");
    let page = std::fs::read_to_string(report).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("as far as it was played"), "{page}");
    for file in [recording, report] {
        let mode = std::fs::metadata(file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{} is for nobody else", file.display());
    }
    assert_eq!(files(&here), [] as [std::path::PathBuf; 0], "nothing is written where it was started");
    // The same moment again, where somebody has laid links: nothing is written through them.
    let target = folder.path().join("target");
    for file in [recording, report] {
        std::fs::remove_file(file).expect("removable");
        symlink(&target, file).expect("a link in the way");
    }
    for (key, told) in [("R", "cannot write recording"), ("w", "cannot write report")] {
        let shown = press(&format!("<tick><tick>{key}"));
        assert!(shown.contains(told), "{key} says what failed:\n{shown}");
    }
    assert!(!target.exists(), "no link is followed");
}
