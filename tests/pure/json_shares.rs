//! Whatever a recording holds and however long its intervals are, a share in the JSON is null or 0 to 1.

use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::{fs, iter};
use vnettop::derive::Derivation;
use vnettop::record::Recording;
use vnettop::report::json;
use vnettop::sample::{Item, Sample};

/// The fields that are shares, wherever they stand. vnettop's own `cpu` is that of several threads.
const SHARES: &[&str] = &[
    "user",
    "system",
    "irq",
    "softirq",
    "steal",
    "idle",
    "ksoftirqd",
    "cpu",
    "wait",
    "busy",
    "rwnd_limited",
    "sndbuf_limited",
    "app_limited",
    "lost_share",
    "share",
    "throttled",
    "waits",
    "nothing_to_send",
];

/// The shares in a value that are none, with where they stand.
fn wrong(value: &Value, place: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter().filter(|(name, _)| *name != "own") {
                let is_share = SHARES.contains(&name.as_str()) || place.ends_with("softirqs_exact");
                let place = format!("{place}.{name}");
                match value.as_f64().filter(|_| is_share) {
                    // The sum of a few shares of a whole may be a rounding above it.
                    Some(share) if !(0.0..=1.0 + 1e-9).contains(&share) => into.push(format!("{place} is {share}")),
                    _ => wrong(value, &place, into),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| wrong(value, place, into)),
        _ => {}
    }
}

fn samples(path: &Path) -> Vec<Sample> {
    let mut recording = Recording::open(path).expect("it is one");
    let items = iter::from_fn(|| recording.next_item().expect("readable"));
    items.filter_map(|item| if let Item::Sample(sample) = item { Some(*sample) } else { None }).collect()
}

/// What is wrong in the objects that are written of these samples.
fn all_wrong(samples: impl IntoIterator<Item = Sample>) -> Vec<String> {
    let (mut derivation, mut found) = (Derivation::default(), Vec::new());
    for sample in samples {
        let Some(metrics) = derivation.advance(Item::Sample(Box::new(sample))) else { continue };
        let mut line = Vec::new();
        json::write(&mut line, &metrics).expect("memory takes it");
        wrong(&serde_json::from_slice(&line).expect("an object"), "", &mut found);
    }
    found
}

#[test]
fn every_share_of_every_recording_is_null_or_0_to_1() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for directory in ["tests/fixtures/systems", "tests/fixtures/recordings", "assets"] {
        let files = fs::read_dir(root.join(directory)).expect("it is there").map(|file| file.expect("readable").path());
        for file in files.filter(|path| path.extension().is_some_and(|is| is == "zst")) {
            let found = all_wrong(samples(&file));
            assert!(found.is_empty(), "{}: {found:?}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen} recordings");
}

/// Threads whose time is booked late, and the counters of a connection and of namespaces, moved about.
fn moved(sample: &mut Sample, by: u64) {
    for thread in &mut sample.threads {
        thread.wait_ns = thread.wait_ns.map(|ns| ns.saturating_add(by.saturating_mul(7_000_000)));
        thread.cpu_ns = thread.cpu_ns.saturating_add(by.saturating_mul(3_000_000));
    }
    for protocols in &mut sample.protocols {
        protocols.udp_in_datagrams = protocols.udp_in_datagrams.saturating_add(by.saturating_mul(13));
        protocols.udp_rcvbuf_errors = protocols.udp_rcvbuf_errors.saturating_add(by.saturating_mul(11));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_share_is_null_or_0_to_1_over_intervals_of_any_length(
        which in any::<prop::sample::Index>(),
        left_out in proptest::collection::vec(0_usize..6, 1..40),
        by in proptest::collection::vec(0_u64..2_000, 1..40),
    ) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = fs::read_dir(root.join("tests/fixtures/systems")).expect("it is there");
        let files = files.map(|file| file.expect("readable").path());
        let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|is| is == "zst")).collect();
        files.push(root.join("assets/kunpeng.vnettop.zst"));
        files.sort();
        let mut all = samples(&files[which.index(files.len())]).into_iter();
        let (mut kept, mut sum) = (Vec::new(), 0);
        for (left_out, by) in left_out.iter().cycle().zip(by.iter().cycle()).take(200) {
            let Some(mut sample) = all.nth(*left_out) else { break };
            sum += by;
            moved(&mut sample, sum);
            kept.push(sample);
        }
        let found = all_wrong(kept);
        prop_assert!(found.is_empty(), "{found:?}");
    }
}
