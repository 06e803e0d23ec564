//! Other ends of real connections, held by a child, found and let go.

use super::*;
use std::net::{TcpListener, TcpStream};

/// A child whose standard input is this end: tests that run beside have connections of this process.
struct Child(std::process::Child);

impl Child {
    fn holding(end: TcpStream) -> Self {
        let stdin = std::os::fd::OwnedFd::from(end);
        Self(std::process::Command::new("cat").stdin(stdin).spawn().expect("cat runs"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The socket of the first end, which is the only one that is seen, and the other end where the listener has it.
fn half_seen(address: &str) -> (FlowSample, TcpStream, TcpListener) {
    let listener = TcpListener::bind(address).expect("loopback can be listened on");
    let near = TcpStream::connect(listener.local_addr().expect("it has a port")).expect("it connects");
    let ends = (near.local_addr().expect("bound"), near.peer_addr().expect("connected"));
    let own = netns::own().expect("the own namespace");
    (FlowSample::new(7, (own, 1), ends), near, listener)
}

/// What is found until nothing more is looked for.
fn found(peers: &mut Peers, flows: &[FlowSample], now_ns: u64) -> BTreeSet<u32> {
    let mut found = peers.look(flows, &[], now_ns);
    while peers.search.is_some() {
        found = peers.look(flows, &[], now_ns);
    }
    found
}

#[test]
fn who_holds_the_other_end_is_found_and_let_go_after_its_connection() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (flow, _near, listener) = half_seen(address);
        let child = Child::holding(listener.accept().expect("it is accepted").0);
        let (mut peers, holder) = (Peers::new(Path::new("/proc")), BTreeSet::from([child.0.id()]));
        assert_eq!(found(&mut peers, &[flow], 1), holder, "{address}: the child has it");
        assert_eq!(found(&mut peers, &[], 1 + KEPT_NS), holder, "what arrived last is read");
        assert_eq!(found(&mut peers, &[], 2 + KEPT_NS), BTreeSet::new(), "and then it is let go");
    }
}

#[test]
fn who_takes_a_connection_late_is_found_then() {
    let (flow, _near, listener) = half_seen("127.0.0.1:0");
    let (mut peers, flow) = (Peers::new(Path::new("/proc")), [flow]);
    for second in 0..20 {
        peers.due_ns = 0;
        assert_eq!(found(&mut peers, &flow, second * 1_000_000_000), BTreeSet::new(), "nobody has it yet");
    }
    let child = Child::holding(listener.accept().expect("it is accepted").0);
    peers.due_ns = 0;
    assert_eq!(found(&mut peers, &flow, 21_000_000_000), BTreeSet::from([child.0.id()]));
}

#[test]
fn a_connection_of_which_both_ends_are_seen_is_not_looked_for() {
    let (near, ..) = half_seen("127.0.0.1:0");
    let far = FlowSample { cookie: 8, pid: 2, local: near.remote, remote: near.local, ..near.clone() };
    let mut peers = Peers::new(Path::new("/proc"));
    assert_eq!(found(&mut peers, &[near, far], 1), BTreeSet::new());
    assert!(peers.known.values().all(|known| known.tries == 0), "and never will be");
}

#[test]
fn who_calls_on_is_told_from_a_server() {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let flow = |cookie, local, remote| FlowSample::new(cookie, (1, 50), (address(local), address(remote)));
    let asker = [flow(1, "10.0.0.1:45000", "10.0.0.9:12865"), flow(2, "10.0.0.1:50000", "10.0.0.9:40000")];
    let calls = |ends: &[(&str, &str)]| {
        let ends: Vec<SocketPair> = ends.iter().map(|&(local, remote)| (address(local), address(remote))).collect();
        calls_on(&ends, &BTreeSet::from([asker[1].key()]), &asker)
    };
    let netperfs = [("10.0.0.9:12865", "10.0.0.1:45000"), ("10.0.0.9:40000", "10.0.0.1:50000")];
    assert!(!calls(&netperfs), "its control connection and its data");
    assert!(!calls(&[netperfs[0], ("10.0.0.9:12865", "10.0.7.7:50001")]), "somebody else who asks of it");
    assert!(calls(&[netperfs[0], ("10.0.0.9:41000", "10.0.0.8:5201")]), "one that it has asked for itself");
}

#[test]
fn an_end_elsewhere_is_looked_for_a_few_times() {
    let ends = ["198.18.0.1:4000", "198.18.0.2:5201"].map(|text| text.parse().expect("an address"));
    let flow = FlowSample::new(7, (netns::own().expect("the own namespace"), 1), (ends[0], ends[1]));
    let mut peers = Peers::new(Path::new("/proc"));
    let mut looks = 0;
    for second in 0..60 {
        peers.due_ns = 0;
        let _nobody = peers.look(std::slice::from_ref(&flow), &[], second * 1_000_000_000);
        looks += u32::from(peers.search.is_some() || peers.due_ns > 0);
        while peers.search.is_some() {
            peers.look(std::slice::from_ref(&flow), &[], second * 1_000_000_000);
        }
    }
    assert_eq!(looks, u32::from(TRIES), "and then it is let be");
}
