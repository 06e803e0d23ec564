//! Several vnettops at once, and one after the other: whose mask is the thread's own.

use super::super::undo;
use super::*;
use std::fs;

/// Another vnettop that runs.
const OTHER: u32 = 4711;

/// Everything pinned so far was pinned by another vnettop, which runs.
fn by_another(fake: &Fake, dir: &TempDir) -> PathBuf {
    by(fake, dir, OTHER)
}

/// Makes what is in the own journal that of the vnettop `pid`, which runs.
fn by(fake: &Fake, dir: &TempDir, pid: u32) -> PathBuf {
    fake.add(pid, 99);
    let own = dir.path().join(format!("pins-{}-77.jsonl", std::process::id()));
    let text = fs::read_to_string(&own).expect("a journal");
    let begun = format!(r#""pid":{},"start":77"#, std::process::id());
    let theirs = dir.path().join(format!("pins-{pid}-99.jsonl"));
    fs::write(&theirs, text.replace(&begun, &format!(r#""pid":{pid},"start":99"#))).expect("written");
    fs::remove_file(own).expect("it was there");
    theirs
}

fn undone(fake: &Fake, dir: &TempDir) -> String {
    fake.0.borrow_mut().dir = None;
    said(&undo(&mut fake.clone(), dir.path()))
}

#[test]
fn what_another_vnettop_pinned_is_left_to_it_and_the_rest_is_pinned() {
    let (fake, dir) = (Fake::new(), temporary());
    controller(&fake, &dir).pin(&[request(101, "4"), request(102, "5")]);
    by_another(&fake, &dir);
    let mut second = controller(&fake, &dir);
    let outcome = second.pin(&[request(101, "1"), request(102, "2"), request(103, "3")]);
    assert_eq!(
        said(&outcome),
        "! another vnettop (pid 4711) has pinned iperf3 server 101 and 1 more: press U there, then try again\n\
         iperf3 server 103 is pinned to core 3 (before: 0-7)\n\
         ! 1 of 3 pinned; U undoes it\n"
    );
    assert_eq!([101, 102, 103].map(|tid| fake.mask(tid)), ["4", "5", "3"], "its pins stand");
    second.restore();
    fake.end(OTHER);
    undone(&fake, &dir);
    assert_eq!([101, 102, 103].map(|tid| fake.mask(tid)), ["0-7"; 3], "and when both are gone nothing wrong stays");
}

#[test]
fn what_another_vnettop_has_put_back_is_free() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut first = controller(&fake, &dir);
    first.pin(&[request(101, "4"), request(102, "5")]);
    fake.end(102);
    let journal = by_another(&fake, &dir);
    fake.change(101, |thread| thread.mask = cores("0-7"));
    let restored = r#"{"op":"restored","pid":100,"tid":101,"start":5000}"#;
    fs::write(&journal, fs::read_to_string(&journal).expect("a journal") + restored + "\n").expect("written");
    let reported = said(&controller(&fake, &dir).pin(&[request(101, "1")]));
    assert!(reported.contains("iperf3 server 101 is pinned to core 1 (before: 0-7)"), "{reported}");
}

#[test]
fn a_comparison_pins_all_its_threads_or_none() {
    let (fake, dir) = (Fake::new(), temporary());
    controller(&fake, &dir).pin(&[request(101, "4")]);
    by_another(&fake, &dir);
    let mut comparing = controller(&fake, &dir).comparing();
    let sentence = "another vnettop (pid 4711) has pinned iperf3 server 101: press U there, then try again";
    let ids = [101, 103].map(|tid| request(tid, "1").thread);
    assert_eq!(comparing.taken(ids.into_iter()).as_deref(), Some(sentence), "it can be told before anything is pinned");
    let outcome = comparing.pin(&[request(101, "1"), request(103, "3")]);
    assert_eq!((said(&outcome), outcome.taken), (format!("! {sentence}\n"), true));
    assert_eq!((fake.mask(103), comparing.pins()), ("0-7".to_owned(), 0), "also the thread that is free is left");
    assert_eq!(comparing.taken(ids.into_iter().skip(1)), None, "which could be compared on its own");
}

#[test]
fn threads_of_a_comparison_stay_its_own_while_they_are_not_pinned() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut comparing = controller(&fake, &dir).comparing();
    comparing.pin(&[request(101, "4")]);
    comparing.restore();
    assert_eq!(journals_in(dir.path()).len(), 1, "in an unpinned stretch its journal says that it compares");
    let journal = by_another(&fake, &dir);
    let reported = said(&controller(&fake, &dir).pin(&[request(101, "1")]));
    let expected = "another vnettop (pid 4711) compares pins of iperf3 server 101: wait until its comparison has \
                    ended, then try again";
    assert!(reported.contains(expected), "{reported}");
    assert_eq!(fake.mask(101), "0-7", "it is not pinned");
    let reported = undone(&fake, &dir);
    assert_eq!(reported, "vnettop 4711 still runs: wait until its comparison has ended\n", "undo says what to do");
    fake.end(OTHER);
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n", "killed there it left no pin");
    assert!(!journal.exists(), "and its journal goes");
}

#[test]
fn a_comparison_that_has_ended_leaves_no_journal() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut comparing = controller(&fake, &dir).comparing();
    for _ in 0..3 {
        comparing.pin(&[request(101, "4")]);
        comparing.restore();
    }
    comparing.finish();
    assert_eq!((fake.mask(101), journals_in(dir.path())), ("0-7".to_owned(), Vec::new()), "nothing is left behind");
}

#[test]
fn a_journal_of_a_running_vnettop_that_cannot_be_read_forbids_to_pin() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.add(OTHER, 99);
    fs::create_dir(dir.path().join("pins-4711-99.jsonl")).expect("unreadable as a file");
    let outcome = controller(&fake, &dir).pin(&[request(101, "1")]);
    let reported = said(&outcome);
    assert!(
        reported.starts_with("! nothing was pinned: cannot read the pins of another vnettop (pid 4711) in "),
        "{reported}"
    );
    assert_eq!(fake.mask(101), "0-7", "whose mask it has is not known, so it is not touched");
}

#[test]
fn a_mask_that_is_there_already_is_no_pin() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(101, |thread| thread.mask = cores("4"));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.pin(&[request(101, "4")]);
    assert_eq!(
        said(&outcome),
        "iperf3 server 101 is on core 4 already, nothing to pin\n0 of 1 pinned, 1 as before vnettop\n"
    );
    assert_eq!(
        (controller.pins(), journals_in(dir.path())),
        (0, Vec::new()),
        "nothing to put back, and no journal of it"
    );
    controller.pin(&[request(102, "5")]);
    let reported = said(&controller.pin(&[request(102, "0-7")]));
    assert!(
        reported.starts_with("iperf3 server 102 is back on cores 0-7\n"),
        "to ask for the old mask is to undo: {reported}"
    );
    assert_eq!((controller.pins(), journals_in(dir.path())), (0, Vec::new()), "so nothing is left to undo");
}

#[test]
fn undo_of_many_goes_back_to_the_mask_from_before_all_of_them() {
    let (fake, dir) = (Fake::new(), temporary());
    // By the names of their journals the newest comes first.
    for (pid, core) in [(903, "4"), (902, "5"), (901, "6")] {
        controller(&fake, &dir).pin(&[request(101, core), request(102, core)]);
        by(&fake, &dir, pid);
        fake.end(pid);
    }
    fake.change(102, |thread| thread.start = 6000);
    assert_eq!(
        undone(&fake, &dir),
        "iperf3 server 102 has exited, nothing to undo; its number now belongs to another thread\n\
         iperf3 server 101 is back on cores 0-7\n"
    );
    assert_eq!((fake.mask(101), fake.mask(102)), ("0-7".to_owned(), "6".to_owned()), "the stranger keeps its mask");
    assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "every journal is done with");
}

#[test]
fn undo_of_many_goes_back_to_what_someone_else_set_between_them() {
    let (fake, dir) = (Fake::new(), temporary());
    for (pid, own, core) in [(903, "0-7", "4"), (902, "2-3", "5"), (901, "5", "6")] {
        fake.change(101, |thread| thread.mask = cores(own));
        controller(&fake, &dir).pin(&[request(101, core)]);
        by(&fake, &dir, pid);
        fake.end(pid);
    }
    undone(&fake, &dir);
    assert_eq!(fake.mask(101), "2-3", "the user's own mask came after the first pin");
}

#[test]
fn a_line_that_left_a_mask_as_it_was_is_no_pin() {
    let (fake, dir) = (Fake::new(), temporary());
    controller(&fake, &dir).pin(&[request(101, "4")]);
    let journal = by_another(&fake, &dir);
    let text = fs::read_to_string(&journal).expect("a journal").replace(r#""old":"0-7""#, r#""old":"4""#);
    fs::write(&journal, text).expect("written");
    fake.change(101, |thread| thread.mask = cores("2"));
    fake.end(OTHER);
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n", "nobody's mask is in question");
}
