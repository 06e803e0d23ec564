//! Pinning and putting back within one run: every errno, every race, every shrink.

use super::super::pin::{self, PinError};
use super::*;
use crate::sample::Event;
use std::os::unix::fs::PermissionsExt;

#[test]
fn pinned_threads_get_their_cores_and_their_exact_masks_back() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(102, |thread| thread.mask = cores("2-5"));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.pin(&[request(101, "4"), request(102, "5")]);
    assert_eq!(
        said(&outcome),
        "iperf3 server 101 is pinned to core 4 (before: 0-7)\niperf3 server 102 is pinned to core 5 (before: 2-5)\n2 \
         of 2 pinned; U undoes it\n"
    );
    assert_eq!(controller.pins(), 2, "both are in force");
    let Event::Pinned { old, asked, got, .. } = &outcome.events[1] else { panic!("a pin is an event") };
    assert_eq!([old, asked, got], [&cores("2-5"), &cores("5"), &cores("5")], "the event holds all three masks");

    let outcome = controller.restore();
    assert_eq!(said(&outcome), "iperf3 server 102 is back on cores 2-5\niperf3 server 101 is back on cores 0-7\n");
    assert_eq!((fake.mask(101), fake.mask(102)), ("0-7".to_owned(), "2-5".to_owned()), "the masks are the old ones");
    assert_eq!(outcome.events.len(), 2, "each restored mask is an event");
    assert_eq!(controller.pins(), 0, "none is left");
    assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "a journal with nothing in force is removed");
    assert_eq!(said(&controller.restore()), "nothing to undo: this vnettop has pinned nothing\n");
}

#[test]
fn what_stays_pinned_at_the_end_is_told_with_what_undoes_it() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut controller = controller(&fake, &dir);
    assert_eq!(said(&controller.staying()), "", "nothing was pinned");
    controller.pin(&[request(101, "4"), request(102, "5")]);
    assert_eq!(said(&controller.staying()), "2 threads stay pinned: vnettop undo restores their affinities\n");
    fake.end(102);
    assert_eq!(said(&controller.staying()), "1 thread stays pinned: vnettop undo restores its affinity\n", "one ended");
}

#[test]
fn a_second_pin_keeps_the_first_old_mask() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut controller = controller(&fake, &dir);
    controller.pin(&[request(101, "4")]);
    controller.pin(&[request(101, "5")]);
    assert_eq!((controller.pins(), fake.mask(101)), (1, "5".to_owned()), "the newer pin is in force");
    controller.restore();
    assert_eq!(fake.mask(101), "0-7", "undo goes back to the mask from before vnettop, not to the first pin");
}

#[test]
fn a_mask_that_someone_else_set_between_two_pins_is_the_one_to_go_back_to() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut first = controller(&fake, &dir);
    first.pin(&[request(101, "4")]);
    fake.change(101, |thread| thread.mask = cores("2-3"));
    first.pin(&[request(101, "5")]);
    assert!(text_of_the_journal(dir.path()).contains(r#""old":"2-3","asked":"5""#), "the journal says the same");
    first.restore();
    assert_eq!(fake.mask(101), "2-3", "not the older mask over that of someone else");
}

#[test]
fn a_mask_that_the_cpuset_shrinks_is_told() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(101, |thread| (thread.mask, thread.cpuset) = (cores("0"), cores("0")));
    let outcome = controller(&fake, &dir).pin(&[request(101, "0-1")]);
    assert_eq!(
        said(&outcome),
        "! iperf3 server 101: asked for 0-1, the kernel gave 0: the cpuset of its cgroup allows no more, or the rest is offline\n\
         1 of 1 pinned; U undoes it\n"
    );
}

#[test]
fn what_the_kernel_refuses_has_its_sentence_and_the_others_stay_pinned() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(102, |thread| thread.refuses = Some(libc::EPERM));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.pin(&[request(101, "4"), request(102, "5"), request(103, "9")]);
    assert_eq!(
        said(&outcome),
        "iperf3 server 101 is pinned to core 4 (before: 0-7)\n\
         ! iperf3 server 102 belongs to another user: run vnettop as root or with CAP_SYS_NICE\n\
         ! iperf3 server 103 was not pinned: core 9 is offline or not allowed for it; its mask allows cores 0-7\n\
         ! 1 of 3 pinned; U undoes it\n"
    );
    assert_eq!((controller.pins(), outcome.events.len()), (1, 1), "only what succeeded is in force");
    assert_eq!(said(&controller.restore()), "iperf3 server 101 is back on cores 0-7\n");
}

#[test]
fn a_refusal_that_has_no_name_keeps_the_kernels_error() {
    let fake = Fake::new();
    let refused = |number| {
        fake.change(101, |thread| thread.refuses = Some(number));
        pin::set(&mut fake.clone(), &request(101, "4"), &cores("0-7")).expect_err("it is refused")
    };
    assert!(matches!(refused(libc::EPERM), PinError::OtherUser { .. }));
    let PinError::Refused { error, .. } = refused(libc::ENOMEM) else { panic!("nothing else is known of it") };
    assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
}

#[test]
fn a_thread_that_ended_is_never_pinned_not_even_under_its_reused_number() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.end(101);
    fake.change(102, |thread| thread.start = 6000);
    fake.change(103, |thread| thread.twist = Some(Twist::Ends));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.pin(&[request(101, "1"), request(102, "2"), request(103, "3")]);
    assert_eq!(
        said(&outcome),
        "! iperf3 server 101 exited before it could be pinned\n\
         ! iperf3 server 102 exited before it could be pinned; its number now belongs to another thread\n\
         ! iperf3 server 103 exited right after it was pinned\n\
         ! 0 of 3 pinned\n"
    );
    assert_eq!(fake.set(), ["103 → 3"], "no mask but that of the living thread was touched");
    assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "nothing is in force, so there is no journal");
}

#[test]
fn a_number_that_changes_hands_in_the_very_moment_is_told() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(101, |thread| thread.twist = Some(Twist::IsReused));
    let outcome = controller(&fake, &dir).pin(&[request(101, "1")]);
    assert_eq!(
        said(&outcome),
        "! iperf3 server 101 exited while being pinned and its TID was reused: \
         the new thread may be limited to core 1; check with taskset -cp 101\n! 0 of 1 pinned\n"
    );
}

#[test]
fn a_mask_set_by_someone_else_in_the_very_moment_is_told() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(101, |thread| thread.twist = Some(Twist::SomeoneSets(6)));
    let outcome = controller(&fake, &dir).pin(&[request(101, "1")]);
    let reported =
        "! iperf3 server 101: asked for 1, but it has 6: another program set its mask at the same moment; pin again\n";
    assert!(said(&outcome).starts_with(reported), "what was read back is told: {}", said(&outcome));
}

#[test]
fn a_mask_that_cannot_be_read_back_can_still_be_put_back() {
    let (fake, dir) = (Fake::new(), temporary());
    fake.change(101, |thread| thread.twist = Some(Twist::HidesItsMask));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.pin(&[request(101, "1")]);
    assert!(said(&outcome).contains("cannot be read back"), "it is told: {}", said(&outcome));
    fake.change(101, |thread| thread.twist = None);
    controller.restore();
    assert_eq!(fake.mask(101), "0-7", "what may have been set is undone");
}

#[test]
fn a_mask_that_someone_else_set_since_is_left_alone() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut controller = controller(&fake, &dir);
    controller.pin(&[request(101, "4"), request(102, "5"), request(103, "6")]);
    fake.change(101, |thread| thread.mask = cores("2"));
    fake.change(102, |thread| thread.mask = cores("0-7"));
    fake.end(103);
    let outcome = controller.restore();
    assert_eq!(
        said(&outcome),
        "iperf3 server 103 has exited, nothing to undo\n\
         iperf3 server 102 is on cores 0-7 already, as before vnettop\n\
         ! iperf3 server 101 is on core 2, set by another program since, and is not changed; \
         taskset -cp 0-7 101 restores the mask from before vnettop\n"
    );
    assert_eq!(fake.mask(101), "2", "the other's mask stands");
    assert_eq!(controller.pins(), 1, "a pin that was not put back is still known");
}

#[test]
fn an_old_mask_that_is_no_longer_allowed_is_told() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut controller = controller(&fake, &dir);
    fake.change(102, |thread| thread.mask = cores("6-7"));
    controller.pin(&[request(101, "1"), request(102, "2")]);
    fake.change(101, |thread| thread.cpuset = cores("0-3"));
    fake.change(102, |thread| thread.cpuset = cores("0-3"));
    assert_eq!(
        said(&controller.restore()),
        "! iperf3 server 102 keeps its pin: its old cores 6-7 are all offline or not allowed for it now\n\
         ! iperf3 server 101: asked for 0-7, the kernel gave 0-3: the cpuset of its cgroup allows no more, or the rest is offline\n"
    );
    assert_eq!(controller.pins(), 1, "the one that could not be put back is still held");
}

#[test]
fn without_a_journal_nothing_is_pinned() {
    let (fake, dir) = (Fake::new(), temporary());
    let file = dir.path().join("state");
    std::fs::write(&file, "").expect("a file in the way");
    let mut controller = PinController::new(Box::new(fake.clone()), Some(file.join("vnettop")), false);
    let reported = said(&controller.pin(&[request(101, "4")]));
    assert!(
        reported.starts_with("! nothing was pinned, because the journal that undoes it cannot be written: "),
        "{reported}"
    );
    assert!(
        reported.contains("set XDG_STATE_HOME to a directory that you can write"),
        "it says what to do: {reported}"
    );
    assert_eq!((controller.pins(), fake.set().len()), (0, 0), "nothing was touched");

    let homeless = super::super::journal_dir(|_| None);
    let reported = said(&PinController::new(Box::new(fake.clone()), homeless, false).pin(&[request(101, "4")]));
    assert!(reported.contains("neither XDG_STATE_HOME nor HOME is set"), "also where there is no home: {reported}");
}

#[test]
fn readonly_changes_nothing() {
    let (fake, dir) = (Fake::new(), temporary());
    let mut controller = PinController::new(Box::new(fake.clone()), Some(dir.path().to_owned()), true);
    for outcome in [controller.pin(&[request(101, "4")]), controller.restore()] {
        let reported = "! nothing was changed: start vnettop without --readonly to pin or restore\n";
        assert_eq!(said(&outcome), reported);
    }
    assert_eq!((fake.set().len(), journals_in(dir.path()).len()), (0, 0), "no mask, no file");
}

#[test]
fn an_empty_choice_of_cores_is_refused() {
    let (fake, dir) = (Fake::new(), temporary());
    let outcome = controller(&fake, &dir).pin(&[request(101, "")]);
    assert_eq!(said(&outcome), "! iperf3 server 101 was not pinned: no core was chosen for it\n! 0 of 1 pinned\n");
}

#[test]
fn the_journal_is_private() {
    let (fake, dir) = (Fake::new(), temporary());
    let state = dir.path().join("a/vnettop");
    PinController::new(Box::new(fake), Some(state.clone()), false).pin(&[request(101, "4")]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700, "the directory is the user's alone");
    assert_eq!(mode(&journals_in(&state)[0]), 0o600, "the file too");
}

#[test]
fn the_journal_lives_where_state_belongs() {
    let env = |pairs: &'static [(&str, &str)]| {
        super::super::journal_dir(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    };
    assert_eq!(
        env(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]),
        Some("/s/vnettop".into()),
        "the variable counts first"
    );
    assert_eq!(env(&[("HOME", "/h")]), Some("/h/.local/state/vnettop".into()), "then the home");
    assert_eq!(
        env(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]),
        Some("/h/.local/state/vnettop".into()),
        "relative is unset"
    );
}

#[test]
fn a_thread_named_twice_is_pinned_once() {
    let (fake, dir) = (Fake::new(), temporary());
    let reported = said(&controller(&fake, &dir).pin(&[request(101, "4"), request(101, "5"), request(102, "6")]));
    assert!(reported.contains("! iperf3 server 101 was named twice: only the first is done"), "{reported}");
    assert!(reported.contains("2 of 2 pinned"), "{reported}");
    assert_eq!(fake.set(), ["101 → 4", "102 → 6"], "each is set once");
}
