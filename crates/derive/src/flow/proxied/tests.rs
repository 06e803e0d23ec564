//! Programs that copy, with every doubt about what.

use super::*;
use vnettop_sample::FlowProgress;

const MIB: u64 = 1024 * 1024;

/// The way from a watched end, which is alone in the namespace of its number, to who holds the other one, and what is behind it.
pub(crate) fn path((netns, local, remote): (u64, &str, &str), holders: &[(u32, bool)]) -> FlowPath {
    let at = |text: &str| text.parse().expect("an address");
    let near = EndName { netns, local: at(local), remote: at(remote) };
    let far = EndName { netns: 9, local: near.remote, remote: near.local };
    let holder = |&(pid, accepts): &(u32, bool)| Holder { pid, name: "socat".to_owned(), accepts };
    let ends = Some(Ends { near, far, holders: holders.iter().map(holder).collect() });
    let (from, to) = (near.local, near.remote);
    FlowPath {
        netns,
        proto: Proto::Tcp,
        from,
        to,
        hops: Vec::new(),
        gap: None,
        note: None,
        ends,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }
}

/// An end, its cookie as its namespace and its process, that has sent and received so many MiB.
fn end((cookie, local, remote): (u64, &str, &str), (sent, received): (u64, u64)) -> FlowSample {
    let at = |text: &str| text.parse().expect("an address");
    let pid = u32::try_from(cookie).expect("small");
    let pulse = FlowProgress { at_ns: 1, acked: sent * MIB, received: received * MIB };
    FlowSample { pulses: vec![pulse], ..FlowSample::new(cookie, (cookie, pid), (at(local), at(remote))) }
}

const ONE: (u64, &str, &str) = (1, "10.0.0.1:40000", "10.0.0.9:80");
const OTHER: (u64, &str, &str) = (2, "10.0.0.2:40000", "10.0.0.9:80");
const SERVER: (u64, &str, &str) = (3, "10.0.1.1:5201", "10.0.1.9:40002");
const AGAIN: (u64, &str, &str) = (4, "10.0.1.1:5201", "10.0.1.9:40004");

/// Each second connection and the first ones whose data it may be.
fn reported(flows: &[FlowSample], paths: &[FlowPath]) -> Vec<(u64, Vec<u64>)> {
    let reported = seconds(flows, paths).into_iter();
    reported.map(|second| (second.key.cookie, second.firsts.iter().map(|first| first.0.cookie).collect())).collect()
}

#[test]
fn the_process_between_two_ends_joins_them_whichever_sends() {
    let paths = [path(ONE, &[(70, true)]), path(SERVER, &[(70, false)])];
    assert_eq!(reported(&[end(ONE, (900, 0)), end(SERVER, (0, 890))], &paths), [(3, vec![1])], "some is in its hands");
    assert_eq!(reported(&[end(ONE, (0, 900)), end(SERVER, (905, 0))], &paths), [(3, vec![1])], "the other way");
    assert_eq!(reported(&[end(ONE, (900, 0)), end(SERVER, (0, 400))], &paths), [(3, vec![])], "other data");
    assert_eq!(reported(&[end(ONE, (900, 0)), end(SERVER, (890, 0))], &paths), [(3, vec![])], "both send to it");
    let apart = [path(ONE, &[(70, true)]), path(SERVER, &[(71, false)])];
    assert_eq!(
        reported(&[end(ONE, (900, 0)), end(SERVER, (0, 900))], &apart),
        [],
        "two programs with equal data are none"
    );
    let server_of = [path(ONE, &[(70, true)]), path(SERVER, &[(70, true)])];
    assert_eq!(
        reported(&[end(ONE, (900, 0)), end(SERVER, (0, 900))], &server_of),
        [],
        "who is called by both calls nobody"
    );
    assert_eq!(reported(&[end(SERVER, (0, 900))], &paths), [], "the client is elsewhere, or has gone");
}

#[test]
fn behind_ssh_and_its_server_comes_out_what_went_in() {
    let paths = [path(ONE, &[(70, true), (71, true)]), path(SERVER, &[(71, false)])];
    let flows = [end(ONE, (300, 0)), end(SERVER, (0, 298))];
    let [second] = &seconds(&flows, &paths)[..] else { panic!("one: {:?}", seconds(&flows, &paths)) };
    assert_eq!(
        (second.relay, &*second.firsts),
        (71, &[(flows[0].key(), 70)][..]),
        "each leg is told with the program at it"
    );
}

#[test]
fn of_two_that_go_through_one_program_the_data_tell_and_equal_data_tell_nothing() {
    let called = [(70, true)];
    let paths = [path(ONE, &called), path(OTHER, &called), path(SERVER, &[(70, false)]), path(AGAIN, &[(70, false)])];
    let flows =
        |one, other| [end(ONE, (one, 0)), end(OTHER, (other, 0)), end(SERVER, (0, other)), end(AGAIN, (0, one))];
    assert_eq!(reported(&flows(900, 300), &paths), [(3, vec![2]), (4, vec![1])]);
    assert_eq!(
        reported(&flows(300, 305), &paths),
        [(3, vec![1, 2]), (4, vec![1, 2])],
        "it may be the one or the other"
    );
}

#[test]
fn an_end_with_the_same_addresses_elsewhere_and_one_of_udp_are_not_meant() {
    let paths = [path(ONE, &[(70, true)]), path(SERVER, &[(70, false)])];
    let namesake = FlowSample { netns: 8, ..end(SERVER, (0, 900)) };
    assert_eq!(reported(&[end(ONE, (900, 0)), namesake], &paths), []);
    let udp = FlowSample { proto: Proto::Udp, ..end(SERVER, (0, 900)) };
    assert_eq!(reported(&[end(ONE, (900, 0)), udp], &paths), []);
}
