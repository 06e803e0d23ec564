//! Parts of recordings (`vnettop cut`): each replays by itself, and shows what the whole shows there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vnettop::derive::{Derivation, Metrics};
use vnettop::record::{self, Recording, StoredIn};
use vnettop::sample::{Event, Item};

/// Of 80 s, with a pin.
const WHOLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/kunpeng.vnettop.zst");

fn items(path: &Path) -> Vec<Item> {
    let mut recording = Recording::open(path).expect("a recording");
    std::iter::from_fn(|| recording.next_item().expect("good lines")).collect()
}

fn samples_ns(items: &[Item]) -> Vec<u64> {
    items.iter().filter_map(|item| if let Item::Sample(sample) = item { Some(sample.at_ns) } else { None }).collect()
}

fn seconds(text: f64) -> Duration {
    Duration::from_secs_f64(text)
}

/// The part, in a directory that ends with it.
fn cut(from: f64, to: Option<f64>) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("part.zst");
    let missing = record::cut(&WHOLE.into(), seconds(from), to.map(seconds), &path).expect("it lies there");
    assert_eq!(missing, None, "the recording is whole");
    (directory, path)
}

#[test]
fn a_part_has_every_sample_between_its_ends_with_the_facts_of_then() {
    let whole = items(Path::new(WHOLE));
    let first_ns = samples_ns(&whole)[0];
    let (_directory, path) = cut(20.0, Some(30.0));
    let part = items(&path);
    let range = first_ns + 20_000_000_000..=first_ns + 30_000_000_000;
    let expected: Vec<&Item> =
        whole.iter().filter(|item| matches!(item, Item::Sample(sample) if range.contains(&sample.at_ns))).collect();
    assert_eq!(part.iter().collect::<Vec<_>>(), expected, "samples and their facts, to the last bit");
    assert_eq!(expected.len(), 21, "two a second, with both ends");
}

#[test]
fn both_ends_may_be_left_out() {
    let (_directory, path) = cut(0.0, None);
    assert_eq!(items(&path), items(Path::new(WHOLE)));
}

#[test]
fn a_pin_that_stands_where_the_part_begins_stands_in_it() {
    let pins = |items: &[Item]| {
        items.iter().filter(|item| matches!(item, Item::Event(Event::Pinned { .. }))).cloned().collect::<Vec<_>>()
    };
    let (_directory, path) = cut(60.0, None);
    let part = items(&path);
    assert_eq!(pins(&part), pins(&items(Path::new(WHOLE))), "both threads are pinned");
    assert!(matches!(part[0], Item::Event(_)) && matches!(part[2], Item::Sample(_)), "and that comes first");
}

#[test]
fn a_while_after_its_start_a_part_shows_what_the_whole_shows() {
    let last = |path: &Path, until_ns: u64| {
        let (mut derivation, mut last): (Derivation, Option<Metrics>) = (Derivation::default(), None);
        for item in items(path) {
            if matches!(&item, Item::Sample(sample) if sample.at_ns > until_ns) {
                break;
            }
            last = derivation.advance(item).or(last);
        }
        last.expect("samples")
    };
    let (_directory, path) = cut(45.0, Some(75.0));
    let until_ns = samples_ns(&items(&path)).into_iter().max().expect("samples");
    let (part, whole) = (last(&path, until_ns), last(Path::new(WHOLE), until_ns));
    assert_eq!(part.machine.links, whole.machine.links, "rates of links");
    let pinned =
        |metrics: &Metrics| metrics.threads.iter().map(|thread| (thread.sample.id, thread.pinned)).collect::<Vec<_>>();
    assert_eq!(pinned(&part), pinned(&whole), "which threads are pinned");
    assert!(pinned(&part).iter().all(|(_, pinned)| *pinned), "all are");
    assert_eq!(part.subject.jitter, whole.subject.jitter, "how far the rate spreads");
}

#[test]
fn what_cannot_be_cut_is_one_sentence_and_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("part.zst");
    let refused = |recording: &Path, from: f64, to: Option<f64>| {
        let error = record::cut(&recording.into(), seconds(from), to.map(seconds), &path)
            .expect_err("it is refused")
            .to_string();
        assert!(!error.contains('\n') && !path.exists(), "{error}");
        error
    };
    let whole = Path::new(WHOLE);
    assert!(refused(whole, 100.0, None).contains("it ends 1:20 after its start, before 1:40"));
    assert!(refused(whole, 100.0, Some(110.0)).contains("it ends 1:20 after its start"));
    assert!(refused(whole, 10.1, Some(10.2)).contains("no sample lies between 10.1 and 10.2 s"));
    assert!(refused(&directory.path().join("none"), 0.0, None).contains("cannot read recording"));
    let foreign = directory.path().join("foreign");
    fs::write(&foreign, "hello").expect("writable");
    assert!(refused(&foreign, 0.0, None).contains("is not a vnettop recording"));
    fs::write(&foreign, "{\"vnettop_recording\":1,\"vnettop\":\"0\"}\n").expect("writable");
    assert!(refused(&foreign, 0.0, None).contains("it has no samples"));
}

#[test]
fn nothing_is_overwritten_not_even_the_recording_itself() {
    let (_directory, path) = cut(10.0, Some(12.0));
    let before = fs::read(&path).expect("readable");
    let error = record::cut(&StoredIn::from(&path), Duration::ZERO, None, &path).expect_err("it is refused");
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(fs::read(&path).expect("readable"), before);
}

#[test]
fn of_a_damaged_recording_what_stands_before_the_damage_is_cut_and_the_damage_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let (torn, path) = (directory.path().join("torn.zst"), directory.path().join("part.zst"));
    let bytes = fs::read(WHOLE).expect("readable");
    fs::write(&torn, &bytes[..bytes.len() / 2]).expect("writable");
    let missing = record::cut(&StoredIn::from(&torn), Duration::ZERO, None, &path).expect("half of it is there");
    assert!(missing.expect("it is told").contains("is cut off in the middle"));
    assert!(samples_ns(&items(&path)).len() > 40, "and the half is kept");
}

#[test]
fn the_command_says_what_is_wrong_and_a_frame_of_a_damaged_recording_what_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let torn = directory.path().join("torn.zst");
    let bytes = fs::read(WHOLE).expect("readable");
    fs::write(&torn, &bytes[..bytes.len() / 2]).expect("writable");
    let vnettop = |words: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_vnettop"))
            .args(words.split(' '))
            .current_dir(directory.path())
            .output()
            .expect("vnettop runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("text"), String::from_utf8(out.stderr).expect("text"))
    };
    let (code, frame, said) = vnettop("--no-config --replay torn.zst --print 80x24");
    assert_eq!((code, frame.lines().count()), (Some(0), 24), "there is a frame");
    assert!(said.lines().count() == 1 && said.contains("is cut off in the middle"), "{said}");
    let (code, _, said) = vnettop("cut torn.zst --to 5 -o part.zst");
    assert_eq!((code, said.as_str()), (Some(0), ""), "before the damage everything is well");
    let (code, _, said) = vnettop("cut torn.zst -o rest.zst");
    assert!(code == Some(1) && said.contains("is cut off in the middle"), "{said}");
    for (words, expected, sentence) in [
        ("cut part.zst --from 10 --to 5 -o x", 2, "--from is after --to"),
        ("cut part.zst --from 1:99 -o x", 2, "as in 90, 1:30 or 1:02:03"),
        ("cut part.zst", 2, "-o FILE"),
        ("cut part.zst -o part.zst", 1, "exists already"),
        ("cut part.zst --from 60 -o x", 1, "it ends 0:05 after its start, before 1:00"),
        ("cut part.zst --json -o x", 2, "it writes a recording"),
    ] {
        let (code, _, said) = vnettop(words);
        assert!(
            code == Some(expected) && said.lines().count() == 1 && said.contains(sentence),
            "{words}: {code:?} {said}"
        );
    }
}
