//! `vnettop undo` after vnettops that were killed, that still run, that ran before a reboot, and after hostile files.

use super::super::{Journal, JournalError, LockError, left_behind, undo};
use super::*;
use crate::trust::Doubt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

/// A vnettop pins these and is killed: its journal stays, its process is gone.
fn killed_after(fake: &Fake, dir: &TempDir, requests: &[PinRequest]) {
    controller(fake, dir).pin(requests);
    kill_vnettop(fake);
}

fn kill_vnettop(fake: &Fake) {
    fake.end(std::process::id());
}

fn undone(fake: &Fake, dir: &TempDir) -> String {
    fake.0.borrow_mut().dir = None;
    said(&undo(&mut fake.clone(), dir.path()))
}

#[test]
fn undo_puts_back_what_a_killed_vnettop_left() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4"), request(102, "5")]);
    assert_eq!(left_behind(&mut fake.clone(), dir.path()).threads, 2, "the next vnettop says so");
    fake.end(102);
    assert_eq!(left_behind(&mut fake.clone(), dir.path()).threads, 1, "but for those that are gone");
    assert_eq!(
        undone(&fake, &dir),
        "iperf3 server 102 has exited, nothing to undo\niperf3 server 101 is back on cores 0-7\n"
    );
    assert_eq!(fake.mask(101), "0-7", "the old mask is in force");
    assert_eq!(left_behind(&mut fake.clone(), dir.path()).threads, 0, "nothing is left");
    assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "a journal that is undone is removed");
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n");
}

#[test]
fn undo_without_any_journal_has_nothing_to_do() {
    let fake = Fake::new();
    let outcome = undo(&mut fake.clone(), std::path::Path::new("/nonexistent/vnettop"));
    assert_eq!(said(&outcome), "nothing to undo: no vnettop left a pin behind\n");
}

#[test]
fn a_kill_at_any_byte_of_the_journal_can_be_undone() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    let path = journals_in(dir.path()).remove(0);
    let whole = fs::read(&path).expect("the journal");
    let intended = whole.split_inclusive(|&byte| byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    for length in 0..=whole.len() {
        // Before the intention is whole, no mask was set; from then on it may have been or not.
        for was_set in [false, true].into_iter().filter(|&was_set| length >= intended || !was_set) {
            fake.change(101, |thread| thread.mask = cores(if was_set { "4" } else { "0-7" }));
            fs::write(&path, &whole[..length]).expect("a torn journal");
            let reported = undone(&fake, &dir);
            assert_eq!(fake.mask(101), "0-7", "cut at byte {length} it is undone: {reported}");
            assert!(!reported.contains('!'), "cut at byte {length} nothing is wrong: {reported}");
            assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "cut at byte {length} the journal is removed");
        }
    }
}

#[test]
fn a_vnettop_that_still_runs_keeps_its_pins() {
    let (fake, dir) = (Fake::new(), temporary());
    controller(&fake, &dir).pin(&[request(101, "4")]);
    assert_eq!(undone(&fake, &dir), format!("vnettop {} still runs: press U there\n", std::process::id()));
    assert_eq!((fake.mask(101), journals_in(dir.path()).len()), ("4".to_owned(), 1), "nothing was touched");
    fake.change(std::process::id(), |vnettop| vnettop.start = 99);
    assert_eq!(undone(&fake, &dir), "iperf3 server 101 is back on cores 0-7\n", "a reused pid is not that vnettop");
}

#[test]
fn after_a_reboot_there_is_nothing_to_put_back() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    fake.0.borrow_mut().boot = "another boot".to_owned();
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n");
    assert_eq!((fake.mask(101), journals_in(dir.path()).len()), ("4".to_owned(), 0), "no thread is the same one");
}

#[test]
fn an_undo_in_another_time_or_pid_namespace_leaves_the_journal_for_the_right_one() {
    let there = NumberSpaces { pid_ns: Some(11), time_ns: Some(22) };
    for (here, named) in [
        (NumberSpaces { time_ns: Some(23), ..there }, "time:[22], where a start time means another thread"),
        (NumberSpaces { pid_ns: Some(12), ..there }, "pid:[11], where a process number means another thread"),
    ] {
        let (fake, dir) = (Fake::new(), temporary());
        fake.0.borrow_mut().spaces = there;
        killed_after(&fake, &dir, &[request(101, "4"), request(102, "5")]);
        fake.0.borrow_mut().spaces = here;
        // The same thread has another start time there.
        fake.change(101, |thread| thread.start += 100);
        fake.end(102);
        assert_eq!(left_behind(&mut fake.clone(), dir.path()).threads, 0, "who is pinned cannot be told");
        let reported = undone(&fake, &dir);
        assert!(reported.starts_with("! 2 pins in ") && reported.contains(named), "{reported}");
        assert!(!reported.contains("exited") && reported.contains("run vnettop undo there"), "{reported}");
        assert_eq!(journals_in(dir.path()).len(), 1, "the journal stays: {reported}");
        fake.0.borrow_mut().spaces = there;
        fake.change(101, |thread| thread.start -= 100);
        let reported = undone(&fake, &dir);
        assert!(
            reported.contains("iperf3 server 101 is back on cores 0-7"),
            "where it was written it is undone: {reported}"
        );
    }
}

#[test]
fn a_journal_that_names_no_namespaces_is_obeyed_as_before() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    assert!(!text_of_the_journal(dir.path()).contains("pid_ns"), "none are written where the kernel tells none");
    fake.0.borrow_mut().spaces = NumberSpaces { pid_ns: Some(11), time_ns: Some(22) };
    assert_eq!(undone(&fake, &dir), "iperf3 server 101 is back on cores 0-7\n");
}

#[test]
fn the_oldest_mask_wins_over_several_journals() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    fake.add(std::process::id(), 78);
    killed_after(&fake, &dir, &[request(101, "5")]);
    assert_eq!(journals_in(dir.path()).len(), 2, "two vnettops were killed");
    assert_eq!(undone(&fake, &dir), "iperf3 server 101 is back on cores 0-7\n", "one thread is one sentence");
    assert_eq!((fake.mask(101), journals_in(dir.path()).len()), ("0-7".to_owned(), 0), "the first old mask is back");
}

#[test]
fn a_thread_that_a_running_vnettop_holds_is_left_to_it() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    fake.add(std::process::id(), 78);
    let mut running = controller(&fake, &dir);
    running.pin(&[request(101, "5")]);
    let reported = undone(&fake, &dir);
    assert!(reported.contains("press U there, then vnettop undo again"), "it says what to do: {reported}");
    assert_eq!(fake.mask(101), "5", "the running vnettop's pin stands");
    running.restore();
    undone(&fake, &dir);
    assert_eq!(fake.mask(101), "0-7", "done as told, the first old mask is back");
}

#[test]
fn a_refusal_keeps_the_journal_for_another_try() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4"), request(102, "5")]);
    fake.change(102, |thread| thread.refuses = Some(libc::EPERM));
    let reported = undone(&fake, &dir);
    let mends = "! iperf3 server 102 keeps its pin: it belongs to another user; taskset -cp 0-7 102 as root restores";
    assert!(reported.contains(mends), "it says why, and what mends it: {reported}");
    assert!(!reported.contains("XDG_STATE_HOME"), "nobody is told to obey another user's journals: {reported}");
    assert!(reported.contains("! 1 thread is still pinned: "), "and how many are left: {reported}");
    fake.change(102, |thread| thread.refuses = None);
    assert_eq!(undone(&fake, &dir), "iperf3 server 102 is back on cores 0-7\n", "only what was left is done");
}

#[test]
fn someone_elses_mask_is_told_once() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    fake.change(101, |thread| thread.mask = cores("1"));
    let reported = undone(&fake, &dir);
    assert!(reported.contains("taskset -cp 0-7 101 restores"), "the user gets the line: {reported}");
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n");
}

#[test]
fn damaged_and_hostile_lines_are_told_and_the_others_honoured() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    let path = journals_in(dir.path()).remove(0);
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("the journal");
    let hostile = [
        "not a line",
        r#"{"op":"pin","pid":0,"tid":0,"start":0,"label":"\u001b[2J","old":"","asked":"1","wall_ms":0,"at_ns":0}"#,
        r#"{"op":"pin","pid":0,"tid":0,"start":0,"label":"x","old":"0-99999999","asked":"1","wall_ms":0,"at_ns":0}"#,
        r#"{"op":"pinned","pid":1,"tid":1,"start":1,"got":"0"}"#,
        r#"{"op":"begun","pid":1,"start":1,"boot":"x"}"#,
    ];
    file.write_all(hostile.join("\n").as_bytes()).expect("written");
    file.write_all(b"\n\xff\xfe\n").expect("written");
    let reported = undone(&fake, &dir);
    let damaged = reported.lines().filter(|line| line.contains("skipped")).collect::<Vec<_>>();
    assert!(damaged.len() == 1 && damaged[0].starts_with("! 6 lines of "), "they are told in one sentence: {reported}");
    assert!(reported.contains("iperf3 server 101 is back on cores 0-7\n"), "the sound lines count: {reported}");
    assert!(reported.contains(".jsonl.damaged"), "the damaged file is kept aside: {reported}");
    assert_eq!(undone(&fake, &dir), "nothing to undo: no vnettop left a pin behind\n", "and is not read again");
}

#[test]
fn a_pin_behind_a_narrower_cpuset_does_not_come_back() {
    for (own, narrow, shown) in [("0-7", "0-3", "0-3"), ("0-1", "0-3", "0-1"), ("0-3", "0-3", "0-3")] {
        let (fake, dir) = (Fake::new(), temporary());
        fake.0.borrow_mut().dir = None;
        fake.clone().set_mask(101, &cores(own)).expect("the user's own mask");
        killed_after(&fake, &dir, &[request(101, "5")]);
        fake.allow(101, narrow);
        assert_eq!(fake.mask(101), narrow, "the kernel shows nothing of the pin");
        let reported = undone(&fake, &dir);
        assert_eq!(fake.mask(101), shown, "its own mask is in force as far as the cpuset allows: {reported}");
        fake.allow(101, "0-7");
        assert_eq!(fake.mask(101), own, "and no pin comes back with the cores: {reported}");
        assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "so the journal is done with: {reported}");
    }
}

#[test]
fn what_is_left_of_a_pin_within_a_narrower_cpuset_is_put_back() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "3-5")]);
    fake.allow(101, "0-4");
    assert_eq!(fake.mask(101), "3-4", "one core of the pin is taken away");
    undone(&fake, &dir);
    fake.allow(101, "0-7");
    assert_eq!(fake.mask(101), "0-7", "what is left of it is vnettop's still");
}

#[test]
fn a_mask_that_someone_set_within_a_cpuset_stays() {
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "3")]);
    fake.allow(101, "0-4");
    fake.0.borrow_mut().dir = None;
    fake.clone().set_mask(101, &cores("0-4")).expect("someone frees it by hand");
    let reported = undone(&fake, &dir);
    assert!(
        reported.contains("set by another program since, and is not changed"),
        "the pin lies within the cpuset and would be seen: {reported}"
    );
    assert_eq!(fake.mask(101), "0-4");
}

#[test]
fn a_directory_that_others_may_write_to_is_not_obeyed() {
    use std::os::unix::fs::PermissionsExt;
    let (fake, dir) = (Fake::new(), temporary());
    killed_after(&fake, &dir, &[request(101, "4")]);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let reported = undone(&fake, &dir);
    assert!(
        reported.contains("is writable by others (mode 777)") && reported.contains("nothing was restored"),
        "{reported}"
    );
    assert_eq!(fake.mask(101), "4", "nothing was set");
    let reported = said(&controller(&fake, &dir).pin(&[request(102, "5")]));
    assert!(
        reported.contains("nothing was pinned") && reported.contains("XDG_STATE_HOME to a directory of your own"),
        "{reported}"
    );
    let why = Journal::new(Some(dir.path().to_owned())).lock().expect_err("it is not locked either");
    assert!(matches!(why, JournalError::Lock(LockError::Doubted(_, Doubt::Writable(0o777)))), "{why:?}");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let journal = journals_in(dir.path()).remove(0);
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).expect("it is ours");
    let reported = undone(&fake, &dir);
    assert!(reported.contains("it is writable by others (mode 666)") && reported.contains("skipped"), "{reported}");
    assert_eq!((fake.mask(101), journal.exists()), ("4".to_owned(), true), "nor a journal that others may write to");
}

#[test]
fn a_fifo_in_the_place_of_the_directory_or_of_a_journal_is_not_waited_for() {
    let (fake, dir) = (Fake::new(), temporary());
    let fifo = |path: &std::path::Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("a fifo");
    };
    let state = dir.path().join("vnettop");
    fifo(&state);
    let reported = said(&undo(&mut fake.clone(), &state));
    assert!(reported.contains(&format!("cannot open {}: ", state.display())), "{reported}");
    assert!(reported.contains("nothing was restored"), "{reported}");
    fs::remove_file(&state).expect("it was there");
    fs::create_dir(&state).expect("writable");
    fifo(&state.join("pins-1-1.jsonl"));
    let reported = said(&undo(&mut fake.clone(), &state));
    assert!(reported.contains("it is not a regular file"), "{reported}");
}

#[test]
fn what_is_not_a_plain_file_is_not_read() {
    let (fake, dir) = (Fake::new(), temporary());
    symlink("/etc/passwd", dir.path().join("pins-1-1.jsonl")).expect("a link");
    fs::create_dir(dir.path().join("pins-2-2.jsonl")).expect("a directory");
    fs::write(dir.path().join("notes.txt"), "mine").expect("a file");
    let reported = undone(&fake, &dir);
    assert_eq!(reported.matches("! cannot read the journal ").count(), 2, "both are told: {reported}");
    assert_eq!(journals_in(dir.path()).len(), 3, "and nothing is removed");
}

#[test]
fn a_leftover_of_the_same_name_is_not_written_to() {
    let (fake, dir) = (Fake::new(), temporary());
    let name = dir.path().join(format!("pins-{}-77.jsonl", std::process::id()));
    symlink(dir.path().join("target"), &name).expect("a link in the way");
    let mut controller = controller(&fake, &dir);
    fake.0.borrow_mut().dir = None;
    assert!(said(&controller.pin(&[request(101, "4")])).contains("1 of 1 pinned"), "another name is taken");
    assert!(!dir.path().join("target").exists(), "the link was not followed");
}
