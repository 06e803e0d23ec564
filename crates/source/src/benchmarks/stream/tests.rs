//! The file that was named: files of all kinds, and whose they are.

use super::*;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use vnettop_sample::{Program, Reported};

const START: &str = r#"{"event":"start","data":{"connected":[]}}"#;
const TCP: &str = r#"{"event":"interval","data":{"streams":[],"sum":{"end":2.0001,"seconds":1.0001,"bits_per_second":9.9,"retransmits":7}}}"#;
const UDP: &str =
    r#"{"event":"interval","data":{"sum":{"end":1,"seconds":1,"bits_per_second":1e6,"lost_packets":3,"packets":90}}}"#;
const END: &str =
    r#"{"event":"end","data":{"sum_sent":{"seconds":2,"bits_per_second":5},"sum_received":{"bits_per_second":4}}}"#;
const S: u64 = 1_000_000_000;

fn named(path: &Path) -> Named {
    Named { path: path.to_owned(), ..Named::default() }
}

fn client() -> Benchmark {
    Benchmark { json_stream: true, ..Benchmark::new(7, Program::Iperf3, Side::Client, 5201) }
}

fn last(named: &Named) -> Reported {
    named.tail.as_ref().and_then(|tail| tail.lines.last).expect("an interval")
}

fn read(named: &mut Named, second: u64) -> Vec<ProcessReport> {
    let mut reported = Vec::new();
    named.follow(&[client()], second * S, &mut Vec::new(), &mut reported);
    reported
}

#[test]
fn a_file_that_grows_and_is_written_anew_is_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.json");
    let mut named = named(&path);
    read(&mut named, 0);
    assert_eq!(named.problems.len(), 1, "it is said that there is no file yet");
    std::fs::write(&path, format!("{START}\n{UDP}\n{TCP}\n")).expect("writable");
    read(&mut named, 1);
    assert!(named.problems.is_empty(), "now there is");
    assert_eq!(last(&named).retransmits, Some(7), "its last interval");
    std::fs::write(&path, format!("{START}\n{UDP}\n")).expect("writable");
    read(&mut named, 2);
    assert_eq!(last(&named).packets, Some(90), "the new test's");
    let other = directory.path().join("other.json");
    std::fs::write(&other, format!("{START}\n{TCP}\n")).expect("writable");
    std::fs::rename(&other, &path).expect("it is replaced");
    read(&mut named, 3);
    assert_eq!(last(&named).retransmits, Some(7), "that of the file which has the name now");
    std::fs::remove_file(&path).expect("it is removed");
    read(&mut named, 4);
    assert_eq!((last(&named).retransmits, named.problems.len()), (Some(7), 0), "without a name it is read on");
}

#[test]
fn a_test_that_had_ended_before_is_not_told_and_one_that_ends_now_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.json");
    std::fs::write(&path, format!("{START}\n{TCP}\n{END}\n{START}\n{TCP}\n")).expect("writable");
    let mut named = named(&path);
    let mut reported = Vec::new();
    (0..9).for_each(|second| reported.extend(read(&mut named, second)));
    assert_eq!(reported, [], "the end in it was somebody's before");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("writable");
    file.write_all(format!("{END}\n").as_bytes()).expect("writable");
    let reported = read(&mut named, 9);
    let [(7, None, Report::Whole(whole))] = reported[..] else { panic!("one test of process 7: {reported:?}") };
    assert_eq!((whole.sent_bits_per_s, whole.received_bits_per_s, whole.length_ms), (Some(5), Some(4), 2000));
}

#[test]
fn a_useless_file_is_told_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let reported = |path: &Path| {
        let mut named = named(path);
        // At 0, 20 and 40 s of a running test.
        for second in [0, 20, 40] {
            read(&mut named, second);
        }
        named.problems.iter().map(|problem| problem.text.clone()).collect::<Vec<_>>()
    };
    let file = directory.path().join("out.json");
    std::fs::write(&file, "- - - - -\nServer listening on 5201\n").expect("writable");
    let [garbage] = &reported(&file)[..] else { panic!("one sentence of garbage") };
    assert!(garbage.contains("does not hold what iperf3 writes with --json-stream"), "{garbage}");
    std::fs::write(&file, "").expect("writable");
    let [empty] = &reported(&file)[..] else { panic!("one sentence of a file that is never written") };
    assert!(empty.contains("has written nothing to it"), "{empty}");
    let [folder] = &reported(directory.path())[..] else { panic!("one sentence of a directory") };
    assert!(folder.contains("it is not a regular file"), "{folder}");
    std::fs::write(&file, format!("\n{START}\n")).expect("writable");
    assert!(reported(&file).is_empty(), "a test that has begun is no problem");
}

#[test]
fn in_a_file_of_any_size_the_last_interval_is_found_soon() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out.json");
    let mut file = std::fs::File::create(&path).expect("writable");
    // As large as a day of streams, without holding a byte of it.
    file.set_len(1 << 40).expect("a hole");
    file.seek(SeekFrom::End(0)).expect("its end");
    file.write_all(format!("\n{START}\n{TCP}\n").as_bytes()).expect("writable");
    let mut named = named(&path);
    (0..20).for_each(|_| drop(read(&mut named, 0)));
    assert_eq!(last(&named).retransmits, Some(7), "within twenty ticks");
}
