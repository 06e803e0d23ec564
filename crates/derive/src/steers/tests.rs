//! Steers by their events, with counts of the kernel and settings as they are read.

use super::*;
use std::sync::Arc;
use vnettop_sample::{Facts, Ifindex, KernelCounts, SteeredFile, Steering};

const LINK: LinkKey = LinkKey { netns: 7, ifindex: Ifindex(2) };
const SECOND: u64 = 1_000_000_000;

fn steered(at_ns: u64) -> Steers {
    let mut steers = Steers::default();
    for queue in 0..2 {
        let file = SteeredFile { link: LINK, setting: SteerSetting::RpsCpus, queue };
        let (old, asked, got) = ("0".to_owned(), "2".to_owned(), "2".to_owned());
        steers.event(&Event::Steered { file, old, asked, got, at_ns });
    }
    steers
}

/// A sample with what a hop counted up to its time, and with how the link's queues are set.
fn sample(at_ns: u64, cores: &[(u32, u64)], rps: &str) -> Sample {
    let facts =
        LinkFacts { netns: LINK.netns, ifindex: LINK.ifindex, name: "veth2".to_owned(), ..LinkFacts::default() };
    let rps = CoreSet::from_mask(rps).expect("a mask");
    let steering = Steering {
        link: LINK,
        rps: vec![rps],
        rfs: false,
        threaded: false,
        napi: Vec::new(),
        interrupts: None,
        irqs: Vec::new(),
    };
    let hop = HopCores {
        link: LINK,
        way: HopWay::Received,
        cores: cores.to_vec(),
        for_ns: Some(SECOND),
        at_ns: Some(at_ns),
        flows: Vec::new(),
    };
    let facts =
        Facts { links: Arc::new(vec![Arc::new(facts)]), steering: Arc::new(vec![steering]), ..Facts::default() };
    let kernel = KernelCounts { hops: vec![hop], ..KernelCounts::default() };
    Sample { at_ns, kernel: Some(Arc::new(kernel)), facts: Arc::new(facts), ..Sample::default() }
}

fn effect(steers: &mut Steers, sample: &Sample) -> SteerEffect {
    steers.observe(sample).pop().expect("it stands").effect
}

#[test]
fn packets_that_went_where_they_were_put_are_told_by_a_count_from_after_it() {
    let mut steers = steered(10 * SECOND);
    let early = sample(10 * SECOND + SECOND / 2, &[(1, 100)], "0");
    assert_eq!(effect(&mut steers, &early), SteerEffect::Awaited, "that count began before it");
    assert_eq!(effect(&mut steers, &sample(11 * SECOND, &[(1, 99), (0, 1)], "2")), SteerEffect::Moved);
    let [one] = &steers.observe(&early)[..] else { panic!("two queues are one steer") };
    assert_eq!((one.name.as_str(), one.old.as_str()), ("veth2", "0"));
    assert_eq!(one.effect_sentence().as_deref(), Some("packets that come to veth2 are handled on core 1 now"));
}

#[test]
fn packets_that_stay_where_they_were_are_told_after_two_seconds() {
    let mut steers = steered(10 * SECOND);
    let at = |seconds: u64| sample(seconds * SECOND, &[(0, 60), (1, 40)], "2");
    assert_eq!(effect(&mut steers, &at(11)), SteerEffect::Awaited, "the first second may be another");
    let there = SteerEffect::Elsewhere("0-1".parse().expect("cores"));
    assert_eq!(effect(&mut steers, &at(12)), there);
    assert_eq!(effect(&mut steers, &sample(13 * SECOND, &[(1, 40)], "2")), SteerEffect::Moved, "and they may yet go");
}

#[test]
fn without_a_count_nothing_is_claimed() {
    let mut steers = steered(10 * SECOND);
    let quiet = |seconds: u64| sample(seconds * SECOND, &[], "2");
    assert_eq!(effect(&mut steers, &quiet(14)), SteerEffect::Awaited);
    assert_eq!(effect(&mut steers, &quiet(15)), SteerEffect::Uncounted);
}

#[test]
fn a_setting_that_another_program_changes_is_told_and_one_not_yet_read_is_not() {
    let mut steers = steered(10 * SECOND);
    let overridden = |steers: &mut Steers, rps: &str| {
        let row = steers.observe(&sample(12 * SECOND, &[], rps)).pop().expect("it stands");
        row.overridden_sentence()
    };
    assert_eq!(overridden(&mut steers, "0"), None, "read before it was set");
    assert_eq!(overridden(&mut steers, "00000002"), None, "in the kernel's width");
    let text = overridden(&mut steers, "1").expect("changed");
    assert!(text.starts_with("another program changed rps_cpus of veth2 from 2 to 1;"), "{text}");
    let undo = |steers: &mut Steers, queue| {
        let file = SteeredFile { link: LINK, setting: SteerSetting::RpsCpus, queue };
        steers.event(&Event::Unsteered { file, got: "0".to_owned(), at_ns: 13 * SECOND });
        steers.observe(&sample(13 * SECOND, &[], "0")).len()
    };
    assert_eq!(undo(&mut steers, 1), 1, "one of two queues still has it");
    assert_eq!(undo(&mut steers, 0), 0, "what was put back does not stand");
}
