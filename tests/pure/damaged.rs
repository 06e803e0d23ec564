//! Damaged recordings: cut off anywhere, or with bytes changed. Whoever reads one gets what stands before the damage and one sentence, or one
//! sentence. The places are the same each time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vnettop::app::run::{Format, card};
use vnettop::derive::Derivation;
use vnettop::record::{self, Recorder, Recording};
use vnettop::sample::Item;

const TIMES: u64 = 1000;
/// What a recording of some kilobytes may take, however it is damaged.
const LONGEST: Duration = Duration::from_secs(10);

/// The first seconds of the shipped recording, which has 128 cores, would take minutes to read so often; this one is of a small machine.
fn small(name: &str) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name);
    let mut recorder = Recorder::create(&path).expect("a new file");
    for item in crate::fixture::load::Load::new(2, 2, 100_000_000).take(12) {
        recorder.write(&item).expect("writable");
    }
    recorder.finish().expect("writable");
    let bytes = fs::read(&path).expect("readable");
    (directory, path, bytes)
}

/// The numbers of a linear congruence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("64 bits") % end
    }
}

/// Reads and derives; what was said of damage.
fn read(path: &Path) -> Option<String> {
    let mut recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => return Some(error.to_string()),
    };
    let mut derivation = Derivation::default();
    loop {
        match recording.next_item() {
            Ok(Some(item)) => drop(derivation.advance(item)),
            Ok(None) => return recording.truncated().map(str::to_owned),
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// Reads, derives, cuts, and makes a card; whether anything was said of damage.
fn use_all(path: &Path, n: u64) -> bool {
    let begin = Instant::now();
    let told = read(path);
    // Every tenth through the rest: it reads with the same reader.
    if n.is_multiple_of(10) {
        let part = path.with_extension("part");
        let cut = record::cut(&path.into(), Duration::ZERO, None, &part);
        let said = match &cut {
            Ok(missing) => missing.clone(),
            Err(error) => Some(error.to_string()),
        };
        assert_eq!(said.is_some(), told.is_some() || !part.exists(), "a cut tells the same: {said:?}, {told:?}");
        let error = card(&path.into(), Format::Text).expect_err("it has no card").to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{error:?} is one sentence");
        let _ = fs::remove_file(part);
    }
    if let Some(sentence) = &told {
        assert!(!sentence.contains('\n') && sentence.contains("recording"), "{sentence:?} is one sentence");
    }
    assert!(begin.elapsed() < LONGEST, "it comes to an end");
    told.is_some()
}

#[test]
fn a_recording_cut_off_anywhere_gives_what_stands_before() {
    for name in ["run.jsonl", "run.zst"] {
        let (_directory, path, bytes) = small(name);
        let (mut random, mut told) = (Random(1), 0);
        for n in 0..TIMES {
            fs::write(&path, &bytes[..random.below(bytes.len())]).expect("writable");
            told += u64::from(use_all(&path, n));
        }
        // A plain one that ends with a line is whole as far as it goes.
        assert!(told > TIMES * 9 / 10, "{name}: {told} of {TIMES} are told");
    }
}

#[test]
fn a_recording_with_changed_bytes_gives_what_stands_before_or_a_sentence() {
    for (name, changes) in [("run.jsonl", 1), ("run.zst", 1), ("run.zst", 1000)] {
        let (_directory, path, bytes) = small(name);
        let (mut random, mut told) = (Random(2), 0);
        for n in 0..TIMES {
            let mut damaged = bytes.clone();
            for _ in 0..changes {
                let at = random.below(damaged.len());
                damaged[at] ^= u8::try_from(1 + random.below(255)).expect("a byte");
            }
            fs::write(&path, damaged).expect("writable");
            told += u64::from(use_all(&path, n));
        }
        // A digit for another one is a number too, where no checksum tells.
        assert!(told > TIMES / 4, "{name}, {changes} bytes changed: {told} of {TIMES} are told");
        if name == "run.zst" {
            assert!(told > TIMES * 98 / 100, "{name}, {changes} bytes changed: {told} of {TIMES} are told");
        }
    }
}

#[test]
fn a_frame_that_asks_for_two_gibibytes_is_refused_in_one_sentence() {
    let directory = tempfile::tempdir().expect("a directory");
    let (plain, path) = (directory.path().join("run.jsonl"), directory.path().join("run.zst"));
    let mut recorder = Recorder::create(&plain).expect("a new file");
    crate::fixture::load::Load::new(2, 2, 100_000_000)
        .take(12)
        .for_each(|item| recorder.write(&item).expect("writable"));
    recorder.finish().expect("writable");
    let text = fs::read(&plain).expect("readable");
    // A frame of one block that is not compressed, with a window of two to the power of so much.
    let frame = |window: u8| {
        let block = u32::try_from(text.len() << 3 | 1).expect("a short text").to_le_bytes();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, (window - 10) << 3][..], &block[..3], &text].concat()
    };
    // What this program writes, and what `zstd -19` does.
    for window in [21, 23] {
        fs::write(&path, frame(window)).expect("writable");
        assert_eq!(read(&path), None, "a window of 2^{window} bytes is read");
    }
    for window in [24, 27, 31] {
        fs::write(&path, frame(window)).expect("writable");
        let said = read(&path).expect("it is refused");
        assert!(
            said.contains("more than 8 MiB of memory") && said.contains("zstd -dc") && !said.contains('\n'),
            "{said}"
        );
        // Behind a good frame it is told as damage is: what stands before is shown.
        fs::write(&path, [frame(21), frame(window)].concat()).expect("writable");
        let said = read(&path).expect("it is told");
        assert!(
            said.contains("more than 8 MiB of memory") && said.contains("everything before that is shown"),
            "{said}"
        );
    }
}

#[test]
fn what_a_killed_writer_has_written_reaches_to_its_last_second() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["run.jsonl", "run.zst"] {
        let path = directory.path().join(name);
        let mut recorder = Recorder::create(&path).expect("a new file");
        let mut written = 0;
        for item in crate::fixture::load::Load::new(4, 4, 100_000_000).take(95) {
            if let Item::Sample(sample) = &item {
                written = sample.at_ns;
            }
            recorder.write(&item).expect("writable");
        }
        // As a kill leaves the file: nothing is ended, nothing more is written.
        let left = directory.path().join(format!("left-{name}"));
        fs::copy(&path, &left).expect("it is there");
        let mut recording = Recording::open(&left).expect("a header");
        let mut last = 0;
        while let Some(item) = recording.next_item().expect("good lines") {
            if let Item::Sample(sample) = item {
                last = sample.at_ns;
            }
        }
        assert!(written - last <= 1_000_000_000, "{name}: {} ms are lost", (written - last) / 1_000_000);
        drop(recorder);
    }
}

#[test]
fn a_minute_at_ten_samples_a_second_of_128_cores_takes_less_than_a_mebibyte() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.zst");
    let mut recorder = Recorder::create(&path).expect("a new file");
    for item in crate::fixture::load::Load::new(20, 128, 100_000_000).take(200) {
        recorder.write(&item).expect("writable");
    }
    recorder.finish().expect("writable");
    let a_minute = path.metadata().expect("it is there").len() * 3;
    assert!(a_minute < 1 << 20, "{} KiB a minute", a_minute / 1024);
}
