//! What `vnettop convert` writes, read back: every migration ends a slice and begins one, every bin is a value, times rise; a part
//! holds nothing of before; files are not written over, and of a failed one nothing is left.

mod picture;
mod trace_reader;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trace_reader::{ReadSlice, ReadTrack, read};
use vnettop::app::convert::{AskedFile, convert};
use vnettop::convert::{Conversion, ConvertedTo, StartedAt, TableKind};
use vnettop::derive::{Derivation, Evidence, Metrics};
use vnettop::record::{Recording, StoredIn};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/kunpeng.vnettop.zst");

/// The metrics of the built-in recording, sample by sample.
fn shipped() -> Vec<Metrics> {
    let mut recording = Recording::open_stored(&StoredIn::Program).expect("it is in the program");
    let (mut derivation, mut all) = (Derivation::default(), Vec::new());
    while let Some(item) = recording.next_item().expect("it is whole") {
        all.extend(derivation.advance(item));
    }
    all
}

fn trace_of(all: &[Metrics]) -> BTreeMap<u64, ReadTrack> {
    let mut trace = Vec::new();
    let mut conversion =
        Conversion::new(ConvertedTo::Perfetto, StartedAt::default(), &mut trace).expect("memory takes it");
    all.iter().try_for_each(|metrics| conversion.observe(metrics)).expect("memory takes it");
    conversion.finish(&[]).expect("memory takes it");
    read(&trace)
}

fn asked(format: ConvertedTo, output: &Path) -> AskedFile<'_> {
    static RECORDING: StoredIn = StoredIn::Program;
    let to = None;
    AskedFile { recording: &RECORDING, host: None, from: Duration::ZERO, to, format, output: Some(output) }
}

#[test]
fn each_migration_ends_a_slice_and_begins_the_next() {
    let all = shipped();
    let tracks = trace_of(&all);
    let mut migrations = 0;
    for metrics in &all[1..] {
        for one in metrics.machine.moves.iter() {
            let thread = tracks.values().find(|track| track.thread == Some((one.thread.pid, one.thread.tid)));
            let (number, thread) = thread.map(|track| (track.number, track)).expect("every watched thread has a track");
            let traced = metrics.machine.threads.iter().find(|known| known.sample.id == one.thread);
            if traced.is_some_and(|known| known.evidence == Evidence::Traced) {
                let to = format!("core {}", one.to);
                assert!(
                    thread.slices.iter().any(|slice| (slice.from_ns, &*slice.name) == (one.at_ns, &*to)),
                    "{one:?}"
                );
            }
            let own = tracks.values().filter(|track| track.below == Some(number)).flat_map(|track| &track.instants);
            let text = format!("core {} to {}", one.from, one.to);
            assert_eq!(own.filter(|(at_ns, name)| (*at_ns, name) == (one.at_ns, &text)).count(), 1, "{one:?}");
            migrations += 1;
        }
    }
    assert!(migrations > 50, "{migrations} were compared");
}

#[test]
fn each_bin_is_a_value_from_its_begin_on() {
    let tracks = trace_of(&shipped());
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("bins.csv");
    convert(&asked(ConvertedTo::Table(TableKind::Bins), &output)).expect("it is written");
    let table = std::fs::read_to_string(&output).expect("readable");
    let mut rows = table.lines();
    let head: Vec<&str> = rows.next().expect("a head").split(',').collect();
    let column = |name: &str| head.iter().position(|known| *known == name).expect("a column");
    let (from, rate) = (column("from_ns"), column("rate_bits_per_s"));
    let rates: Vec<&ReadTrack> = tracks.values().filter(|track| track.name == "rate").collect();
    let mut compared = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let from_ns: u64 = cells[from].parse().expect("a time");
        let Ok(value) = cells[rate].parse::<f64>() else { continue };
        assert!(rates.iter().any(|track| track.value_at(from_ns) == Some(value)), "{row}");
        compared += 1;
    }
    assert!(compared > 200, "{compared} bins were compared");
}

#[test]
fn what_is_not_known_has_no_value_but_a_slice_that_says_so() {
    let mut all = shipped();
    all.truncate(30);
    let unknown = |metrics: &mut Metrics| {
        let machine = Arc::make_mut(&mut metrics.machine);
        for link in Arc::make_mut(&mut machine.links) {
            link.rates = None;
        }
    };
    all[10..13].iter_mut().for_each(unknown);
    let (from_ns, to_ns) = (all[9].machine.at_ns, all[12].machine.at_ns);
    let tracks = trace_of(&all);
    let sent: Vec<&ReadTrack> = tracks.values().filter(|track| track.name == "sent").collect();
    let gaps: Vec<&ReadTrack> = tracks.values().filter(|track| track.name == "sent: not known").collect();
    assert!(!sent.is_empty() && sent.len() == gaps.len());
    for (sent, gap) in sent.iter().zip(&gaps) {
        let whole = ReadSlice { from_ns, to_ns, name: "not known".to_owned() };
        assert_eq!((sent.below, &gap.slices), (gap.below, &vec![whole]));
        assert!(!sent.values.iter().any(|(at_ns, _)| (from_ns..to_ns).contains(at_ns)), "nothing is made up");
        assert!(sent.values.iter().any(|(at_ns, _)| *at_ns == to_ns), "it is known again");
    }
}

#[test]
fn what_has_gone_has_a_value_of_0() {
    let mut all = shipped();
    all.truncate(30);
    let without = |metrics: &mut Metrics| {
        let machine = Arc::make_mut(&mut metrics.machine);
        (machine.links, machine.threads, machine.moves) = (Arc::default(), Arc::default(), Arc::default());
    };
    all[20..].iter_mut().for_each(without);
    let gone_ns = all[19].machine.at_ns;
    let tracks = trace_of(&all);
    for name in ["sent", "CPU time"] {
        let last = tracks.values().filter(|track| track.name == name).map(|track| track.values.last());
        assert!(last.clone().count() > 0 && last.into_iter().all(|last| last == Some(&(gone_ns, 0.0))), "{name}");
    }
    let slices = tracks.values().filter(|track| track.thread.is_some()).map(|track| track.slices.last());
    assert!(
        slices.into_iter().all(|last| last.is_some_and(|last| last.to_ns <= gone_ns + 50_000_000)),
        "nor is it on a core"
    );
}

#[test]
fn a_part_has_nothing_of_before_and_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("part.pftrace");
    let (from, to) = (Duration::from_secs(20), Duration::from_secs(30));
    convert(&AskedFile { from, to: Some(to), ..asked(ConvertedTo::Perfetto, &output) }).expect("it is written");
    let all = shipped();
    let at_ns = |after: Duration| all[0].machine.at_ns + u64::try_from(after.as_nanos()).expect("short");
    let tracks = read(&std::fs::read(&output).expect("readable"));
    let times: Vec<u64> = tracks.values().flat_map(ReadTrack::times).collect();
    assert!(times.len() > 300, "{} events", times.len());
    // A thread is read a moment before or after its sample.
    let (first, last) = (at_ns(from) - 50_000_000, at_ns(to) + 50_000_000);
    assert!(times.iter().all(|at_ns| (first..=last).contains(at_ns)), "{first} {:?} {last}", times.iter().min());
}

#[test]
fn nothing_is_written_over_and_nothing_half_done_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let refused = |asked: &AskedFile<'_>| convert(asked).expect_err("it is refused").to_string();
    let there = path("there.csv");
    std::fs::write(&there, "mine").expect("writable");
    let table = ConvertedTo::Table(TableKind::Tests);
    assert!(refused(&asked(table, &there)).ends_with("exists already: name another file, or remove it first"));
    assert_eq!(std::fs::read_to_string(&there).expect("readable"), "mine");
    let new = path("new.csv");
    let late = refused(&AskedFile { from: Duration::from_hours(2), ..asked(table, &new) });
    assert!(late.contains("before 2:00:00"), "{late}");
    assert!(
        refused(&AskedFile { recording: &StoredIn::from(&there), ..asked(table, &new) })
            .contains("is not a vnettop recording")
    );
    assert!(refused(&AskedFile { host: Some("b"), ..asked(table, &new) }).contains("it is of one machine"));
    assert!(refused(&asked(ConvertedTo::Stacks, &new)).starts_with("no core was profiled in it"));
    assert!(refused(&asked(table, &path("nowhere/new.csv"))).starts_with("cannot write "));
    let gone = || !new.exists();
    assert!(gone(), "nothing is left of what failed");
    let whole = std::fs::read(SHIPPED).expect("readable");
    let torn = path("torn.zst");
    std::fs::write(&torn, &whole[..whole.len() / 2]).expect("writable");
    let missing = convert(&AskedFile { recording: &StoredIn::from(&torn), ..asked(table, &new) })
        .expect("what is there is written");
    assert!(missing.is_some() && !gone(), "{missing:?}");
}
