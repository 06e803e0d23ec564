//! Values of the types that no recording in the tree has: what they look like is known without one of a benchmark that was searched for.

use super::outputs::{recordings, two_hosts};
use super::shape::Registry;
use std::any::type_name;
use vnettop::derive::end_to_end::{HostMetrics, end_to_end};
use vnettop::derive::{Derivation, Metrics, moves::MovesByClass};
use vnettop::record::Recording;
use vnettop::report::json;
use vnettop::sample::{
    Event, Ifindex, Item, LinkKey, Policy, RealtimeRefusal, Report, Reported, SearchStep, SpaceEntry, SteerRequest,
    SteerSetting, SteerTarget, SteerValue, StretchSide, TestKind, TriedSteer, Unread, Whole,
};

/// What a line of `--json` is, by the type's name.
pub fn of_one_host() -> &'static str {
    type_name::<Metrics>()
}

/// Everything that is planted.
pub fn see(registry: &Registry) {
    of_events(registry);
    of_two_hosts(registry);
    registry.see(&MovesByClass::default());
    registry.see(&TestKind::default());
    let known = Policy { default_qdisc: Some("fq".to_owned()), netdev_max_backlog: Some(1000), ..Policy::default() };
    for policy in [Policy::default(), known] {
        registry.see(&policy);
    }
    registry.see(&RealtimeRefusal::NotAsked);
    registry.see(&SteerTarget::Nobody);
    registry.see(&SteerSetting::RpsCpus);
    for value in [SteerValue::Cores("1".parse().expect("a core")), SteerValue::Number(1), SteerValue::Kind("fq".into())]
    {
        registry.see(&value);
    }
    let request = SteerRequest {
        link: LinkKey { netns: 1, ifindex: Ifindex(1) },
        name: "a".to_owned(),
        setting: SteerSetting::Gro,
        value: SteerValue::Number(1),
    };
    registry.see(&TriedSteer { request, whose: "a".to_owned(), target: SteerTarget::Nobody, space: SpaceEntry::Own });
    for space in [SpaceEntry::Own, SpaceEntry::Named("a".into()), SpaceEntry::Process(1)] {
        registry.see(&space);
    }
}

/// Every kind of event, written with the next sample.
fn of_events(registry: &Registry) {
    let report = |report| Event::Reported { at_ns: 1, pid: 1, side: None, report };
    let search = |step| Event::Search { at_ns: 1, step };
    let events = [
        Event::Mark { at_ns: 1 },
        Event::RunStarted { at_ns: 1, pid: 1 },
        Event::Stretch { at_ns: 1, side: Some(StretchSide::Pinned) },
        report(Report::Interval(Reported::default())),
        report(Report::Whole(Whole::default())),
        report(Report::Unread(Unread::Pipe)),
        search(SearchStep::Started {
            seed: 1,
            placements: Vec::new(),
            left_out: Vec::new(),
            test: TestKind::default(),
        }),
        search(SearchStep::Phase { placement: 0, round: 0 }),
        search(SearchStep::Dropped { placement: 0, rounds: 1 }),
        search(SearchStep::Failed { placement: 0, why: String::new() }),
        search(SearchStep::Ended),
        Event::NotPinned { at_ns: 1, why: String::new() },
        Event::Profiled(Box::default()),
        Event::Saved { at_ns: 1, trigger: None },
        Event::RunEnded { at_ns: 1, code: 0 },
    ];
    let mut events = events.into_iter();
    let (mut recording, mut derivation) =
        (Recording::open(&recordings()[0]).expect("a recording"), Derivation::default());
    while let Some(item) = recording.next_item().expect("readable") {
        if let Some(event) = events.next() {
            derivation.advance(Item::Event(event));
        }
        if let Some(metrics) = derivation.advance(item) {
            registry.see(&json::object(&metrics));
        }
    }
    assert!(events.next().is_none(), "the recording was long enough");
}

/// A test between two hosts.
fn of_two_hosts(registry: &Registry) {
    let mut hosts = [0, 1].map(|at| {
        let recording = Recording::open(&two_hosts()).expect("a recording").of_host(at);
        (recording, Derivation::default(), None::<Metrics>)
    });
    loop {
        for (recording, derivation, newest) in &mut hosts {
            let Some(item) = recording.next_item().expect("readable") else { return };
            *newest = derivation.advance(item).or(newest.take());
        }
        let [(.., Some(one)), (.., Some(other))] = &hosts else { continue };
        let each = [HostMetrics { name: "one", metrics: one }, HostMetrics { name: "other", metrics: other }];
        registry.see(&json::object_of_host(&each, 0, &end_to_end(&each)));
    }
}
