//! The reader on this machine's own namespace: silent without flows, right with them, closed after them.

use super::netns_counters::MANY_QDISCS;
use super::*;
use crate::netns::Choice;
use vnettop_sample::{Hop, HopBy, HopWay, Proto};

fn flow(netns: u64) -> FlowSample {
    let end = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    FlowSample::new(1, (netns, std::process::id()), (end(5201), end(43210)))
}

fn path(netns: u64) -> FlowPath {
    let link = LinkKey { netns, ifindex: Ifindex(1) };
    FlowPath {
        netns,
        proto: Proto::Tcp,
        from: ([127, 0, 0, 1], 43210).into(),
        to: ([127, 0, 0, 1], 5201).into(),
        hops: vec![Hop { link, way: HopWay::Received, by: HopBy::Local }],
        gap: None,
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }
}

fn watched<'a>(spaces: &'a Spaces, flows: &'a [FlowSample], paths: &'a [FlowPath]) -> WatchedFlows<'a> {
    WatchedFlows { spaces, list: &[], waits: false, flows, paths }
}

#[test]
fn nothing_is_opened_while_there_are_no_flows() {
    let spaces = Spaces::new(&Roots::default(), Choice::Own);
    let mut reader = LossReader::new(&Roots::default(), false);
    assert_eq!(reader.read(watched(&spaces, &[], &[]), 1), LossReading::default(), "there is nothing to say");
    assert!(reader.places.is_empty() && reader.buffer.is_empty(), "and nothing was opened for it");
}

#[test]
fn a_flows_namespace_is_read_and_closed_after_it_has_ended() {
    let roots = Roots::default();
    let (spaces, mut reader) = (Spaces::new(&roots, Choice::Own), LossReader::new(&roots, false));
    let (flows, paths) = ([flow(spaces.own())], [path(spaces.own())]);
    let reading = reader.read(watched(&spaces, &flows, &paths), 1);
    let [counters] = &reading.protocols[..] else { panic!("one namespace: {:?}", reading.protocols) };
    assert_eq!(counters.netns, spaces.own(), "it is the flow's");
    assert!(counters.at_ns > 0, "with the time it was read at");
    assert_eq!(reader.problems(), [], "the own namespace needs no right");
    let again = reader.read(watched(&spaces, &flows, &paths), 2);
    assert!(Arc::ptr_eq(&again.offloads, &reading.offloads), "what rarely changes is not read again");
    let last = reader.read(watched(&spaces, &[], &[]), 3);
    assert_eq!(last.protocols.len(), 1, "what was lost until the flow ended is still read");
    assert!(reader.places.is_empty(), "then everything is closed");
    assert_eq!(reader.read(watched(&spaces, &[], &[]), 4), LossReading::default(), "and stays so");
}

#[test]
fn while_a_benchmark_waits_its_counters_are_read_at_a_pace_of_their_own() {
    let roots = Roots::default();
    let (spaces, mut reader) = (Spaces::new(&roots, Choice::Own), LossReader::new(&roots, false));
    let netns = spaces.own();
    let list = [Space { netns, name: None, pid: Some(std::process::id()), rests: false }];
    let waiting = WatchedFlows { spaces: &spaces, list: &list, waits: true, flows: &[], paths: &[] };
    let first = reader.read(waiting, 1);
    assert_eq!(first.protocols.len(), 1, "what counts before the first packet");
    let again = reader.read(waiting, WAITING_EVERY_NS);
    assert_eq!(again, first, "not read anew on every tick, and not forgotten");
    let later = reader.read(waiting, 1 + WAITING_EVERY_NS);
    assert!(later.protocols[0].at_ns > first.protocols[0].at_ns, "but now and then");
    let (flows, paths) = ([flow(netns)], [path(netns)]);
    let begun = reader.read(WatchedFlows { flows: &flows, paths: &paths, ..waiting }, 2 + WAITING_EVERY_NS);
    assert!(begun.protocols[0].at_ns > later.protocols[0].at_ns, "a flow is read on every tick");
    let ended = reader.read(waiting, 3 + WAITING_EVERY_NS);
    assert!(ended.protocols[0].at_ns > begun.protocols[0].at_ns, "and once more when it has ended");
    let gone = reader.read(WatchedFlows { waits: false, ..waiting }, 4 + WAITING_EVERY_NS);
    assert_eq!((gone.protocols.len(), reader.places.len()), (1, 0), "with the last watched one all is closed");
    let crowd = vec![list[0].clone(); MOST_WAITING + 1];
    let many = WatchedFlows { list: &crowd, ..waiting };
    assert_eq!(reader.read(many, 5 + WAITING_EVERY_NS), LossReading::default(), "a host of containers costs nothing");
}

#[test]
fn a_host_of_many_links_is_asked_for_their_qdiscs_only_once_a_flow_begins() {
    let roots = Roots::default();
    let (spaces, mut reader) = (Spaces::new(&roots, Choice::Own), LossReader::new(&roots, false));
    let netns = spaces.own();
    let list = [Space { netns, name: None, pid: Some(std::process::id()), rests: false }];
    let waiting = WatchedFlows { spaces: &spaces, list: &list, waits: true, flows: &[], paths: &[] };
    let dumped = |reader: &mut LossReader| {
        let place = reader.places.get_mut(&netns).expect("it is open").as_mut().expect("and may be entered");
        std::mem::replace(&mut place.dumped, MANY_QDISCS)
    };
    reader.read(waiting, 1);
    assert!(dumped(&mut reader) < MANY_QDISCS, "a test's machine has few, so they are read");
    let later = reader.read(waiting, 1 + WAITING_EVERY_NS);
    assert_eq!(later.protocols.len(), 1, "what the protocols count is read with many, too");
    assert_eq!((dumped(&mut reader), later.qdiscs), (MANY_QDISCS, Vec::new()), "but nobody asks for qdiscs");
    let (flows, paths) = ([flow(netns)], [path(netns)]);
    reader.read(WatchedFlows { flows: &flows, paths: &paths, ..waiting }, 2 + WAITING_EVERY_NS);
    assert!(dumped(&mut reader) < MANY_QDISCS, "those of a flow's way are read, however many there are");
    reader.read(waiting, 3 + WAITING_EVERY_NS);
    assert!(dumped(&mut reader) < MANY_QDISCS, "and once more when it has ended");
    reader.read(waiting, 4 + 2 * WAITING_EVERY_NS);
    assert_eq!(dumped(&mut reader), MANY_QDISCS, "and then no more");
}

#[test]
fn a_namespace_that_nobody_asked_for_is_read_from_outside() {
    let roots = Roots::default();
    let (spaces, mut reader) = (Spaces::new(&roots, Choice::Own), LossReader::new(&roots, false));
    let reading = reader.read(watched(&spaces, &[flow(7)], &[]), 1);
    assert_eq!(reading.protocols.len(), 1, "through the process that lives there");
    assert_eq!(reading.qdiscs, [], "its qdiscs cannot be seen");
    assert_eq!(reader.problems(), [], "which is no problem: only the own namespace was wanted");
}

#[test]
fn a_namespace_that_may_not_be_entered_is_named_with_a_way_out() {
    let reported = problem(7, Some(812), &std::io::Error::from_raw_os_error(libc::EPERM));
    assert!(
        reported.text.contains("process 812") && reported.text.contains("as root"),
        "whose, and what to do: {}",
        reported.text
    );
}
