//! What was dropped is gone, and what was kept is a recording.

use super::*;
use crate::Recording;
use std::sync::Arc;
use vnettop_sample::{CoreSet, Event, Host, LinkCounters, Sample, ThreadId, TriggerKind};

const TICK_NS: u64 = 100_000_000;

fn sample(tick: u64) -> Item {
    let mut sample = Sample { at_ns: tick * TICK_NS, ..Sample::default() };
    let noise =
        |seed: u64| (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(seed | 1);
    sample.counters = (0..20)
        .map(|link| LinkCounters {
            rx_bytes: noise(tick * 20 + link),
            tx_bytes: noise(!(tick * 20 + link)),
            ..LinkCounters::default()
        })
        .collect();
    for (link, counters) in sample.counters.iter_mut().enumerate() {
        counters.ifindex.0 = u32::try_from(link).expect("few") + 1;
    }
    // A fact that is gone again must not come back from a piece before.
    let name = if tick < 120 { "before" } else { "" };
    sample.facts_mut().host = Arc::new(Host { name: name.to_owned(), ..Host::default() });
    Item::Sample(Box::new(sample))
}

fn pinned(tick: u64, tid: u32) -> Item {
    let thread = ThreadId { pid: tid, tid, start: 1 };
    let mask = CoreSet::default();
    Item::Event(Event::Pinned { thread, old: mask.clone(), asked: mask.clone(), got: mask, at_ns: tick * TICK_NS })
}

fn read(kept: &KeptRecording) -> Vec<Item> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    kept.write_to(&mut file).expect("writable");
    let mut recording = Recording::open(file.path()).expect("a recording");
    let items = std::iter::from_fn(|| recording.next_item().expect("readable")).collect();
    assert_eq!(recording.truncated(), None);
    items
}

fn ticks(items: &[Item]) -> Vec<u64> {
    let tick = |item: &Item| match item {
        Item::Sample(sample) => Some(sample.at_ns / TICK_NS),
        Item::Event(_) => None,
    };
    items.iter().filter_map(tick).collect()
}

#[test]
fn the_last_time_is_kept_bit_for_bit_with_what_held_before() {
    let mut ring =
        RecordingRing::new(RingBounds { keep_ns: 10_000_000_000, most_bytes: 64 << 20, most_rows_per_s: 10_000 });
    for tick in 1..=600 {
        ring.add(&sample(tick)).expect("memory");
        if tick == 3 {
            ring.add(&pinned(3, 7)).expect("memory");
        }
        if tick == 590 {
            ring.add(&pinned(590, 8)).expect("memory");
        }
    }
    let kept = ring.kept(0).expect("memory").expect("samples");
    let items = read(&kept);
    let all = ticks(&items);
    assert_eq!(all.last(), Some(&600));
    assert!((100..=152).contains(&all.len()), "ten seconds and at most a piece: {}", all.len());
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "every sample once");
    assert!(
        matches!(&items[0], Item::Event(Event::Pinned { thread, .. }) if thread.tid == 7),
        "what holds comes first"
    );
    let pins = items.iter().filter(|item| matches!(item, Item::Event(Event::Pinned { .. }))).count();
    assert_eq!(pins, 2, "each pin once");
    let last = items.last().expect("samples");
    assert!(*last == sample(600), "as it was");
    assert!(!kept.is_shortened());
    let items = read(&kept.because(Some(TriggerKind::Dip), 5));
    let why = Item::Event(Event::Saved { at_ns: 5, trigger: Some(TriggerKind::Dip) });
    assert_eq!(items.iter().position(|item| *item == why), Some(1), "why it is saved, behind what holds");
}

#[test]
fn a_fact_that_is_gone_stays_gone_in_the_middle_of_what_is_kept() {
    let mut ring =
        RecordingRing::new(RingBounds { keep_ns: 60_000_000_000, most_bytes: 64 << 20, most_rows_per_s: 10_000 });
    for tick in 1..=240 {
        ring.add(&sample(tick)).expect("memory");
        // Each look ends a piece; what is kept is the same.
        if tick % 7 == 0 {
            ring.kept(0).expect("memory");
        }
    }
    for item in read(&ring.kept(0).expect("memory").expect("samples")) {
        let Item::Sample(read) = &item else { continue };
        assert!(item == sample(read.at_ns / TICK_NS), "at {}", read.at_ns);
    }
    let since = ring.kept(200 * TICK_NS).expect("memory").expect("samples");
    let all = ticks(&read(&since));
    assert!(all[0] <= 200 && all[0] > 140 && all.last() == Some(&240), "a part: {all:?}");
    let between = ring.kept(203 * TICK_NS + TICK_NS / 2).expect("memory").expect("samples");
    assert!(ticks(&read(&between))[0] <= 203, "since a moment between two pieces");
}

#[test]
fn the_bytes_bound_what_is_kept_and_that_is_known() {
    let most_bytes = 2 << 20;
    let mut ring = RecordingRing::new(RingBounds { keep_ns: 600_000_000_000, most_bytes, most_rows_per_s: 10_000 });
    for tick in 1..=5000 {
        ring.add(&sample(tick)).expect("memory");
        assert!(ring.bytes() <= most_bytes - ENCODER_BYTES, "at {tick}: {}", ring.bytes());
    }
    let kept = ring.kept(0).expect("memory").expect("samples");
    assert!(kept.is_shortened() && kept.len() > (most_bytes - ENCODER_BYTES) / 2, "{}", kept.len());
    let all = ticks(&read(&kept));
    assert!(all.last() == Some(&5000) && all.windows(2).all(|two| two[1] == two[0] + 1));
}

#[test]
fn several_hosts_are_one_recording() {
    let of = |first: u64| {
        let mut ring =
            RecordingRing::new(RingBounds { keep_ns: 60_000_000_000, most_bytes: 64 << 20, most_rows_per_s: 10_000 });
        (first..first + 80).for_each(|tick| ring.add(&sample(tick)).expect("memory"));
        ring.kept(0).expect("memory").expect("samples")
    };
    let hosts = [("a".to_owned(), of(1)), ("b".to_owned(), of(1000))];
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    KeptRecording::write_hosts(&hosts, &mut file).expect("writable");
    for (host, first) in [(0, 1), (1, 1000)] {
        let mut recording = Recording::open(file.path()).expect("a recording").of_host(host);
        let items: Vec<Item> = std::iter::from_fn(|| recording.next_item().expect("readable")).collect();
        assert_eq!(ticks(&items), (first..first + 80).collect::<Vec<_>>());
    }
}

#[test]
fn more_rows_a_second_than_are_worth_their_time_are_not_kept_and_that_is_known() {
    let mut ring =
        RecordingRing::new(RingBounds { keep_ns: 60_000_000_000, most_bytes: 64 << 20, most_rows_per_s: 150 });
    for tick in 1..=20 {
        ring.add(&sample(tick)).expect("memory");
    }
    assert!(ring.is_too_much() && ring.kept(0).expect("memory").is_none(), "20 rows ten times a second");
    ring.add(&pinned(20, 7)).expect("memory");
    for tick in (30..=100).step_by(10) {
        ring.add(&sample(tick)).expect("memory");
    }
    let items = read(&ring.kept(0).expect("memory").expect("samples"));
    assert_eq!((ticks(&items).len(), ring.is_too_much()), (8, false), "once a second");
    assert!(matches!(&items[0], Item::Event(Event::Pinned { .. })), "what holds is known");
}
