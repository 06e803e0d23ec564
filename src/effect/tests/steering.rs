//! Settings of links: journalled before they are written, read back, put back exactly, and left alone where they are not vnettop's.

use super::super::{LeftBehind, left_behind, undo};
use super::steered::{veth2, with_veth2};
use super::*;
use crate::effect::SteerRequest;
use crate::sample::{Event, SteerSetting, SteerValue};
use SteerSetting::{RpsCpus, RpsFlowCnt, Threaded, XpsCpus};
use proptest::prelude::*;
use std::fs;

fn ask(setting: SteerSetting, value: SteerValue) -> SteerRequest {
    SteerRequest { link: veth2(), name: "veth2".to_owned(), setting, value }
}

fn on(setting: SteerSetting, list: &str) -> SteerRequest {
    ask(setting, SteerValue::Cores(cores(list)))
}

fn undone(fake: &Fake, dir: &TempDir) -> String {
    fake.0.borrow_mut().dir = None;
    said(&undo(&mut fake.clone(), dir.path()))
}

/// A vnettop steers these and is killed.
fn killed_after(fake: &Fake, dir: &TempDir, requests: &[SteerRequest]) {
    controller(fake, dir).steer(requests);
    fake.end(std::process::id());
}

#[test]
fn a_setting_is_journalled_written_read_back_and_put_back() {
    let (fake, dir) = (with_veth2(), temporary());
    fake.on_veth2(|link| drop(link.files.insert((RpsCpus, 3), "80".to_owned())));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.steer(&[on(RpsCpus, "1"), ask(RpsFlowCnt, SteerValue::Number(1000))]);
    assert_eq!(
        said(&outcome),
        "rps_cpus of veth2 (4 queues) set to 2 (before: 00 in rx-0 rx-1 rx-2, 80 in rx-3)\n\
         rps_flow_cnt of veth2 (4 queues) set to 1024: the kernel rounds 1000 up (before: 0)\n\
         2 of 2 settings of links changed; U undoes it\n"
    );
    let steered = outcome.events.iter().filter(|event| matches!(event, Event::Steered { .. })).count();
    assert_eq!((steered, controller.steers()), (8, 8), "each queue is an event and is remembered");
    assert_eq!((fake.texts(RpsCpus), fake.texts(RpsFlowCnt)), ("02 02 02 02".into(), "1024 1024 1024 1024".into()));
    assert_eq!(said(&controller.staying()), "2 settings of links stay changed: vnettop undo restores them\n");
    let outcome = controller.restore();
    assert_eq!(
        said(&outcome),
        "rps_flow_cnt of veth2 (4 queues) is back to 0\n\
         rps_cpus of veth2 (4 queues) is back to 00 in rx-0 rx-1 rx-2, 80 in rx-3\n"
    );
    assert_eq!(fake.texts(RpsCpus), "00 00 00 80", "byte for byte");
    assert!(matches!(outcome.events[..], [Event::Unsteered { .. }, ..]) && outcome.events.len() == 8);
    assert_eq!((controller.steers(), journals_in(dir.path())), (0, Vec::new()), "nothing is left behind");
    assert_eq!(fake.written().len(), 16, "every file is written once and put back once");
}

#[test]
fn what_is_there_already_is_no_steer_and_what_was_there_before_is_put_back() {
    let (fake, dir) = (with_veth2(), temporary());
    let mut controller = controller(&fake, &dir);
    let told = said(&controller.steer(&[on(RpsCpus, "")]));
    assert!(told.starts_with("rps_cpus of veth2 is 0 already, nothing to steer\n"), "{told}");
    assert_eq!(
        (controller.steers(), journals_in(dir.path()).len(), fake.written().len()),
        (0, 0, 0),
        "nothing is done"
    );
    controller.steer(&[on(RpsCpus, "1")]);
    controller.steer(&[on(RpsCpus, "2")]);
    let told = said(&controller.steer(&[on(RpsCpus, "")]));
    assert!(told.starts_with("rps_cpus of veth2 (4 queues) is back to 00\n1 of 1 settings"), "{told}");
    assert_eq!((controller.steers(), journals_in(dir.path()).len()), (0, 0), "so nothing is left to undo");
}

#[test]
fn a_queue_that_is_refused_takes_the_others_of_its_request_back() {
    let (fake, dir) = (with_veth2(), temporary());
    fake.on_veth2(|link| link.refuses = Some((RpsCpus, 2, libc::EBUSY)));
    let mut controller = controller(&fake, &dir);
    let outcome = controller.steer(&[on(RpsCpus, "1"), ask(Threaded, SteerValue::Number(1))]);
    assert_eq!(
        said(&outcome),
        "! rps_cpus of veth2 (rx-2) was not changed to 2: Device or resource busy (os error 16); the 2 queues changed \
         before it are restored\n\
         threaded of veth2 set to 1 (before: 0)\n\
         ! 1 of 2 settings of links changed; U undoes it\n"
    );
    assert_eq!((fake.texts(RpsCpus), controller.steers()), ("00 00 00 00".to_owned(), 1), "none of them is half done");
    fake.on_veth2(|link| link.refuses = None);
    controller.steer(&[on(RpsCpus, "1")]);
    fake.on_veth2(|link| link.refuses = Some((RpsCpus, 3, libc::EBUSY)));
    controller.steer(&[on(RpsCpus, "2")]);
    assert_eq!(fake.texts(RpsCpus), "02 02 02 02", "it is as before that request, which was a steer");
    fake.on_veth2(|link| link.refuses = None);
    controller.restore();
    assert_eq!((fake.texts(RpsCpus), fake.texts(Threaded)), ("00 00 00 00".to_owned(), "0".to_owned()));
    assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_read_back_stays_to_be_undone() {
    let (fake, dir) = (with_veth2(), temporary());
    fake.on_veth2(|link| link.hides = Some((RpsCpus, 1, "00")));
    let mut controller = controller(&fake, &dir);
    let told = said(&controller.steer(&[on(RpsCpus, "1")]));
    assert!(told.contains("rps_cpus of veth2 (rx-1) was changed to 2, but cannot be read back"), "{told}");
    assert!(told.contains("1 of the queues changed before it cannot be restored: U tries again"), "{told}");
    assert_eq!((fake.texts(RpsCpus), controller.steers()), ("00 02 00 00".to_owned(), 1));
    fake.on_veth2(|link| link.hides = None);
    assert_eq!(said(&controller.restore()), "rps_cpus of veth2 (rx-1) is back to 00\n");
    assert_eq!((fake.texts(RpsCpus), journals_in(dir.path()).len()), ("00 00 00 00".to_owned(), 0));
}

#[test]
fn every_refusal_has_its_sentence() {
    let one = |setting, value, number: Option<i32>| {
        let (fake, dir) = (with_veth2(), temporary());
        fake.on_veth2(|link| {
            link.refuses = number.map(|number| (setting, 0, number));
            link.files.remove(&(XpsCpus, 1));
        });
        let told = said(&controller(&fake, &dir).steer(&[ask(setting, value)]));
        assert_eq!(journals_in(dir.path()).len(), 0, "nothing to undo, no journal: {told}");
        told
    };
    let cores_of = |list| SteerValue::Cores(cores(list));
    for (told, expected) in [
        (one(XpsCpus, cores_of("1"), None), "veth2 has one transmit queue: xps_cpus does not exist there"),
        (
            one(RpsCpus, cores_of("9"), None),
            "rps_cpus of veth2 was not changed: this kernel does not have all of core 9",
        ),
        (one(RpsCpus, cores_of("1"), Some(libc::EINVAL)), "are all of its cores isolated or offline?"),
        (one(RpsCpus, cores_of("1"), Some(libc::EPERM)), "run vnettop as root with CAP_NET_ADMIN"),
        (one(RpsCpus, cores_of("1"), Some(libc::EROFS)), "run vnettop as root with CAP_NET_ADMIN"),
        (one(Threaded, SteerValue::Number(1), Some(libc::EOPNOTSUPP)), "turn GRO on first (ethtool -K veth2 gro on)"),
        (one(Threaded, SteerValue::Number(1), Some(libc::EIO)), "its NAPI has no threads"),
        (one(Threaded, cores_of("1"), None), "2 is no value for it"),
    ] {
        assert!(told.starts_with("! ") && told.contains(expected), "{told}");
    }
}

#[test]
fn isolated_cores_are_told_and_put_back_all_the_same() {
    let (fake, dir) = (with_veth2(), temporary());
    fake.on_veth2(|link| link.isolated = cores("3"));
    let mut controller = controller(&fake, &dir);
    let told = said(&controller.steer(&[on(RpsCpus, "2-3")]));
    assert!(told.contains("asked for cores 2-3, the kernel gave core 2: the others are isolated or offline"), "{told}");
    controller.restore();
    assert_eq!(fake.texts(RpsCpus), "00 00 00 00");
}

#[test]
fn what_someone_else_has_set_since_is_left_with_the_line_that_mends_it() {
    let (fake, dir) = (with_veth2(), temporary());
    let mut controller = controller(&fake, &dir);
    controller.steer(&[on(RpsCpus, "1")]);
    fake.on_veth2(|link| {
        link.files.insert((RpsCpus, 1), "0f".to_owned());
        link.name = "a b;c".to_owned();
    });
    let told = said(&controller.restore());
    assert!(told.contains("rps_cpus of a b;c (veth2 before) (3 queues) is back to 00\n"), "{told}");
    let line = r"ip netns exec blue sh -c 'echo 00 > '\''/sys/class/net/a b;c/queues/rx-1/rps_cpus'\'''";
    assert!(told.contains("is 0f, set by another program since, and is not changed") && told.contains(line), "{told}");
    assert_eq!((fake.texts(RpsCpus), controller.steers()), ("00 0f 00 00".to_owned(), 1));
    fake.on_veth2(|link| drop(link.files.insert((RpsCpus, 1), "02".to_owned())));
    controller.restore();
    assert_eq!((fake.texts(RpsCpus), controller.steers()), ("00 00 00 00".to_owned(), 0), "it can be tried again");
}

#[test]
fn what_is_gone_has_nothing_to_undo() {
    type Change = fn(&Fake);
    let cases: [(Change, &str); 4] = [
        (|fake| fake.0.borrow_mut().links.by_key.clear(), "its network namespace is gone, nothing to undo"),
        (
            |fake| {
                let link = fake.0.borrow_mut().links.by_key.remove(&veth2()).expect("it is there");
                let other = LinkKey { ifindex: crate::sample::Ifindex(8), ..veth2() };
                fake.0.borrow_mut().links.by_key.insert(other, link);
            },
            "the link is gone, nothing to undo",
        ),
        (|fake| fake.on_veth2(|link| link.files.retain(|(_, queue), _| *queue == 9)), "the queue is gone"),
        (|fake| fake.on_veth2(|link| link.cookie = Some(12)), "its network namespace is gone, nothing to undo"),
    ];
    for (change, expected) in cases {
        let (fake, dir) = (with_veth2(), temporary());
        killed_after(&fake, &dir, &[on(RpsCpus, "1")]);
        let written = fake.written().len();
        change(&fake);
        let told = undone(&fake, &dir);
        assert!(told.contains(expected) && !told.contains('!'), "{told}");
        assert_eq!((fake.written().len(), journals_in(dir.path()).len()), (written, 0), "nothing is written: {told}");
    }
}

#[test]
fn what_may_not_be_looked_at_is_kept_for_another_try() {
    let (fake, dir) = (with_veth2(), temporary());
    killed_after(&fake, &dir, &[on(RpsCpus, "1"), on(XpsCpus, "1")]);
    let left = || left_behind(&mut fake.clone(), dir.path());
    assert_eq!(left(), LeftBehind { threads: 0, settings: 2 }, "the next vnettop says so");
    fake.0.borrow_mut().links.unentered = Some(libc::EPERM);
    let told = undone(&fake, &dir);
    assert!(told.contains("keeps its value") && told.contains("vnettop undo needs root and CAP_NET_ADMIN"), "{told}");
    assert!(told.contains("! 2 settings of links are still changed: "), "{told}");
    fake.0.borrow_mut().links.unentered = None;
    undone(&fake, &dir);
    assert_eq!((fake.texts(RpsCpus), fake.texts(XpsCpus)), ("00 00 00 00".to_owned(), "00 00".to_owned()));
    assert_eq!(left(), LeftBehind::default());
}

#[test]
fn a_kill_at_any_moment_can_be_undone() {
    let (fake, dir) = (with_veth2(), temporary());
    let old = fake.0.borrow().links.by_key.clone();
    let mut controller = controller(&fake, &dir);
    fake.on_veth2(|link| link.refuses = Some((XpsCpus, 1, libc::EBUSY)));
    controller.steer(&[on(RpsCpus, "1"), ask(RpsFlowCnt, SteerValue::Number(1000)), on(XpsCpus, "1")]);
    controller.steer(&[on(RpsCpus, "1-3"), ask(Threaded, SteerValue::Number(1))]);
    controller.restore();
    drop(controller);
    let moments = fake.0.borrow().links.moments.clone();
    assert!(moments.len() > 40, "before and after each write, forth and back: {}", moments.len());
    let path = dir.path().join("pins-1-1.jsonl");
    fake.end(std::process::id());
    for (at, moment) in moments.iter().enumerate() {
        // Only what came after the last intention may not have reached the disk.
        let intended = moment.journal.rfind(r#"{"op":"steer","#).expect("an intention");
        let ends = moment.journal[intended..].match_indices('\n').map(|(end, _)| intended + end + 1);
        for end in ends {
            fs::write(&path, &moment.journal[..end]).expect("a journal");
            fake.0.borrow_mut().links.by_key = moment.links.clone();
            fake.on_veth2(|link| link.refuses = None);
            let told = undone(&fake, &dir);
            let now = fake.0.borrow().links.by_key[&veth2()].files.clone();
            assert_eq!(now, old[&veth2()].files, "killed at moment {at}, {end} bytes written: {told}");
            assert_eq!(journals_in(dir.path()), Vec::<PathBuf>::new(), "moment {at}: {told}");
        }
    }
}

#[test]
fn the_oldest_text_wins_over_several_journals_and_a_running_vnettop_keeps_its_own() {
    let (fake, dir) = (with_veth2(), temporary());
    killed_after(&fake, &dir, &[on(RpsCpus, "1")]);
    fake.add(std::process::id(), 78);
    let mut second = controller(&fake, &dir);
    second.steer(&[on(RpsCpus, "2")]);
    let told = undone(&fake, &dir);
    assert!(told.contains("rps_cpus of veth2 is steered by running vnettop"), "{told}");
    assert_eq!(fake.texts(RpsCpus), "04 04 04 04", "its steer stands: {told}");
    drop(second);
    fake.end(std::process::id());
    undone(&fake, &dir);
    assert_eq!((fake.texts(RpsCpus), journals_in(dir.path()).len()), ("00 00 00 00".to_owned(), 0));
}

#[test]
fn what_another_vnettop_steers_is_left_to_it() {
    for compares in [false, true] {
        let (fake, dir) = (with_veth2(), temporary());
        let mut first = controller(&fake, &dir);
        if compares {
            first = first.comparing();
        }
        first.steer(&[on(RpsCpus, "1")]);
        if compares {
            first.restore();
        }
        fake.add(4711, 99);
        let own = dir.path().join(format!("pins-{}-77.jsonl", std::process::id()));
        let text = fs::read_to_string(&own).expect("a journal");
        let text = text.replace(&format!(r#""pid":{},"start":77"#, std::process::id()), r#""pid":4711,"start":99"#);
        fs::write(dir.path().join("pins-4711-99.jsonl"), text).expect("written");
        fs::remove_file(own).expect("it was there");
        let before = fake.texts(RpsCpus);
        let outcome = controller(&fake, &dir).steer(&[on(RpsCpus, "2"), on(XpsCpus, "2")]);
        let told = said(&outcome);
        let (has, way_out) =
            if compares { ("compares steers of", "wait until") } else { ("has steered", "press U there") };
        assert!(told.contains(&format!("another vnettop (pid 4711) {has} rps_cpus of veth2: {way_out}")), "{told}");
        assert_eq!(
            (fake.texts(RpsCpus), fake.texts(XpsCpus)),
            (before, "04 04".to_owned()),
            "the rest is done: {told}"
        );
        let told =
            said(&controller(&fake, &dir).comparing().steer(&[on(RpsCpus, "2"), ask(Threaded, SteerValue::Number(1))]));
        assert_eq!(fake.texts(Threaded), "0", "one that compares has all or none: {told}");
    }
}

#[test]
fn readonly_steers_nothing() {
    let (fake, dir) = (with_veth2(), temporary());
    let mut controller = PinController::new(Box::new(fake.clone()), Some(dir.path().to_owned()), true);
    assert!(said(&controller.steer(&[on(RpsCpus, "1")])).starts_with("! nothing was changed: start vnettop without"));
    assert_eq!(said(&controller.place(&[request(101, "4")], &[on(RpsCpus, "1")])).lines().count(), 1, "said once");
    assert_eq!((fake.written().len(), journals_in(dir.path()).len()), (0, 0));
}

#[test]
fn a_placement_is_restored_as_a_whole() {
    let (fake, dir) = (with_veth2(), temporary());
    let mut controller = controller(&fake, &dir);
    controller.place(&[request(101, "4")], &[on(RpsCpus, "1")]);
    assert_eq!((controller.pins(), controller.steers()), (1, 4));
    controller.restore();
    assert_eq!((fake.mask(101), fake.texts(RpsCpus)), ("0-7".to_owned(), "00 00 00 00".to_owned()));
    controller.place(&[request(101, "4")], &[on(RpsCpus, "1")]);
    drop(controller);
    fake.end(std::process::id());
    assert_eq!(left_behind(&mut fake.clone(), dir.path()), LeftBehind { threads: 1, settings: 1 });
    undone(&fake, &dir);
    assert_eq!((fake.mask(101), fake.texts(RpsCpus)), ("0-7".to_owned(), "00 00 00 00".to_owned()), "undo does both");
}

/// A line on a file of `veth2`, with these texts.
fn line(setting: &str, old: &str, asked: &str, queue: u64) -> String {
    let old = serde_json::to_string(old).expect("text");
    let asked = serde_json::to_string(asked).expect("text");
    format!(
        r#"{{"op":"steer","netns":4026532000,"ifindex":7,"setting":"{setting}","queue":{queue},"name":"veth2","cookie":11,"old":{old},"asked":{asked},"wall_ms":0,"at_ns":1}}"#
    )
}

proptest! {
    #[test]
    fn no_journal_makes_vnettop_write_anything_but_a_mask_or_a_number(
        setting in "rps_cpus|rps_flow_cnt|xps_cpus|threaded|\\.\\./x|uevent",
        old in "\\PC{0,12}|[0-9a-f,]{0,12}|[0-9]{0,12}|\\+1|0x2",
        queue in prop_oneof![0..4_u64, any::<u64>()],
    ) {
        let (fake, dir) = (with_veth2(), temporary());
        fake.on_veth2(|link| link.files.iter_mut().for_each(|((_, _), text)| *text = "1".to_owned()));
        fs::write(dir.path().join("pins-1-1.jsonl"), line(&setting, &old, "1", queue) + "\n").expect("written");
        undone(&fake, &dir);
        for written in fake.written() {
            let (path, text) = written.split_once(" = ").expect("file = text");
            let mask = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',') && text.len() <= 4096;
            prop_assert!(mask && !text.is_empty() && !path.contains("..") && !path.contains("uevent"), "{written}");
        }
    }
}

#[test]
fn a_hostile_line_is_told_and_skipped() {
    let (fake, dir) = (with_veth2(), temporary());
    fake.on_veth2(|link| drop(link.files.insert((RpsCpus, 0), "01".to_owned())));
    let hostile = [
        line("rps_cpus", "", "1", 0),
        line("rps_cpus", "+1", "1", 0),
        line("rps_cpus", &"f".repeat(5000), "1", 0),
        line("rps_flow_cnt", "99999999999", "1", 0),
        line("threaded", "1; reboot", "1", 0),
        line("carrier", "1", "1", 0),
        r#"{"op":"unsteered","netns":1,"ifindex":1,"setting":"rps_cpus","queue":0}"#.to_owned(),
    ];
    let text = hostile.join("\n") + "\n" + &line("rps_cpus", "00", "1", 0) + "\n";
    fs::write(dir.path().join("pins-1-1.jsonl"), text).expect("written");
    let told = undone(&fake, &dir);
    assert!(told.contains("! 7 lines of ") && told.contains("rps_cpus of veth2 is back to 00\n"), "{told}");
    assert_eq!(fake.written(), ["queues/rx-0/rps_cpus = 00"], "the sound line counts");
}
