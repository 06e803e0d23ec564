//! Which two ends belong together, across namespaces: each other's addresses, a translated address, a socket that is not
//! connected. Only what is certain is joined. It knows no bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use vnettop_sample::{EndName, Ends, FlowPath, FlowSample, Proto};

/// Where an end is, and which other end it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndPlace {
    pub netns: u64,
    pub local: SocketAddr,
    /// Of an end that is not connected port 0.
    pub remote: SocketAddr,
    /// The other end behind NAT, as connection tracking has it; none where nothing is translated, or that is not known.
    pub behind: Option<EndName>,
}

/// The connections that NAT gives other names.
pub(crate) struct Translated<'a>(Vec<(Proto, &'a Ends)>);

impl<'a> Translated<'a> {
    pub fn on(paths: &'a [FlowPath]) -> Self {
        Self(paths.iter().filter_map(|path| Some((path.proto, path.ends.as_ref()?))).collect())
    }

    pub fn place(&self, flow: &FlowSample) -> EndPlace {
        let &FlowSample { netns, local, remote, .. } = flow;
        let own = EndName { netns, local, remote };
        let known = |&(proto, ends): &(Proto, &Ends)| {
            let other = if ends.near == own { Some(ends.far) } else { (ends.far == own).then_some(ends.near) };
            other.filter(|_| proto == flow.proto)
        };
        EndPlace { netns, local, remote, behind: self.0.iter().find_map(known) }
    }

    pub fn places<'b>(&self, flows: impl IntoIterator<Item = &'b FlowSample>) -> Vec<EndPlace> {
        flows.into_iter().map(|flow| self.place(flow)).collect()
    }
}

impl EndPlace {
    /// It is the other end of the same connection.
    pub fn faces(&self, other: &Self) -> bool {
        let is = |other: &Self, name: EndName| {
            (other.netns, other.local, other.remote) == (name.netns, name.local, name.remote)
        };
        match (self.behind, other.behind) {
            (None, None) => self.local == other.remote && self.remote == other.local,
            (mine, its) => mine.is_none_or(|name| is(other, name)) && its.is_none_or(|name| is(self, name)),
        }
    }

    /// Keeps the known other end: connection tracking may have forgotten a connection that has just ended.
    pub fn or_as(self, known: Option<Self>) -> Self {
        let known = known.filter(|known| (known.local, known.remote) == (self.local, self.remote));
        Self { behind: self.behind.or_else(|| known?.behind), ..self }
    }

    /// It is connected to a remote address.
    pub fn is_connected(&self) -> bool {
        self.remote.port() != 0
    }

    /// This end is connected to the address that the other, unconnected one listens on.
    fn calls(&self, other: &Self) -> bool {
        let (called, listens) = (self.behind.map_or(self.remote, |behind| behind.local), other.local);
        let address = called.ip() == listens.ip() || listens.ip().is_unspecified();
        // Own addresses are within one namespace.
        let is_own = called.ip().is_loopback() || called.ip() == self.local.ip();
        let is_near = match self.behind {
            Some(behind) => behind.netns == other.netns,
            None => self.netns == other.netns || !is_own,
        };
        self.is_connected() && !other.is_connected() && called.port() == listens.port() && address && is_near
    }
}

/// Both ends of each connection, or the one that is known, as indices. Networks made alike have the same addresses, and often
/// the same ports: the paths between ends show which two belong together.
pub(crate) fn pairs(places: &[EndPlace], paths: &[FlowPath]) -> Vec<(usize, Option<usize>)> {
    let mut paired = vec![false; places.len()];
    let mut pairs = Vec::with_capacity(places.len());
    for one in 0..places.len() {
        if paired[one] {
            continue;
        }
        paired[one] = true;
        let facing: Vec<usize> = (0..places.len()).filter(|&at| at != one && places[one].faces(&places[at])).collect();
        let other = match facing[..] {
            [] => translated(places, &paired, one).or_else(|| listening(places, &paired, one)),
            [other] => Some(other),
            // The end in the namespace that the path leads to, or without a path in the same namespace; `None` unless there is
            // exactly one.
            _ => {
                let leads_to = other_netns(&places[one], paths).unwrap_or(places[one].netns);
                only(facing.into_iter().filter(|&at| places[at].netns == leads_to))
            }
        };
        let other = other.filter(|&other| !paired[other]);
        if let Some(other) = other {
            paired[other] = true;
        }
        pairs.push((one, other));
    }
    pairs
}

/// The namespace of its other end, by the path from it or the path to it.
fn other_netns(place: &EndPlace, paths: &[FlowPath]) -> Option<u64> {
    let names = |path: &FlowPath, from, to| (path.from, path.to) == (from, to);
    let mut ways = paths.iter().filter_map(|path| Some((path, path.receiver_netns()?)));
    let other = |(path, receiver): (&FlowPath, u64)| {
        let sends = path.netns == place.netns && names(path, place.local, place.remote);
        let receives = receiver == place.netns && names(path, place.remote, place.local);
        if sends { Some(receiver) } else { receives.then_some(path.netns) }
    };
    ways.find_map(other)
}

/// The unconnected end that each of several calls, by the one that calls: a server that answers all of them from one socket.
pub(crate) fn shared_servers(places: &[EndPlace], pairs: &[(usize, Option<usize>)]) -> BTreeMap<usize, usize> {
    let alone = || pairs.iter().filter(|(_, other)| other.is_none()).map(|(one, _)| *one);
    let calls = |one: usize| {
        let server = only((0..places.len()).filter(|&at| places[one].calls(&places[at])))?;
        alone().any(|at| at == server).then_some((one, server))
    };
    alone().filter_map(calls).collect()
}

fn only(mut found: impl Iterator<Item = usize>) -> Option<usize> {
    found.next().filter(|_| found.next().is_none())
}

/// The other end behind a translated address (a published port) where connection tracking cannot be asked: it sees the client
/// as the client sees itself, and no other connection does.
fn translated(places: &[EndPlace], paired: &[bool], one: usize) -> Option<usize> {
    let free = || (0..places.len()).filter(|&at| !paired[at]);
    let names = |a: usize, b: usize| places[a].is_connected() && places[a].remote == places[b].local;
    let alone = |address: SocketAddr| places.iter().filter(|place| place.local == address).count() == 1;
    let is_open = |at: usize| places[at].is_connected() && places[at].behind.is_none();
    let is_connected = |at: &usize| is_open(*at) && is_open(one);
    let server = only(free().filter(is_connected).filter(|&at| names(at, one))).filter(|_| alone(places[one].local));
    let client = || only(free().filter(is_connected).filter(|&at| names(one, at)));
    server.or_else(|| client().filter(|&at| alone(places[at].local)))
}

/// The one unconnected end that this one calls, or the one end that calls this unconnected one. A server that many call
/// belongs to none of them.
fn listening(places: &[EndPlace], paired: &[bool], one: usize) -> Option<usize> {
    let all = || 0..places.len();
    let called_by_one = |server: usize| {
        let callers = all().filter(|&at| places[at].calls(&places[server]));
        // A caller that faces another end has found its peer.
        only(callers.filter(|&at| !all().any(|other| other != at && places[at].faces(&places[other]))))
    };
    if !places[one].is_connected() {
        let client = called_by_one(one).filter(|&client| !paired[client])?;
        return only(all().filter(|&at| places[client].calls(&places[at]))).map(|_| client);
    }
    let server = only(all().filter(|&at| places[one].calls(&places[at]))).filter(|&server| !paired[server])?;
    called_by_one(server).filter(|&client| client == one).map(|_| server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vnettop_sample::{Hop, HopBy, HopWay, Ifindex, LinkKey};

    fn place(netns: u64, local: &str, remote: &str) -> EndPlace {
        let [local, remote] = [local, remote].map(|text| text.parse().expect("an address"));
        EndPlace { netns, local, remote, behind: None }
    }

    fn joined(ends: &[(u64, &str, &str)]) -> Vec<(usize, Option<usize>)> {
        pairs(&ends.iter().map(|&(netns, local, remote)| place(netns, local, remote)).collect::<Vec<_>>(), &[])
    }

    const NOBODY: &str = "0.0.0.0:0";

    #[test]
    fn each_others_addresses_are_one_connection_in_whatever_namespaces() {
        let ends = [(1, "10.0.0.2:4000", "10.0.0.1:5201"), (2, "10.0.0.1:5201", "10.0.0.2:4000")];
        assert_eq!(joined(&ends), [(0, Some(1))], "both ends in one");
    }

    #[test]
    fn the_same_addresses_in_two_namespaces_are_two_connections() {
        let (client, server) = ("127.0.0.1:4000", "127.0.0.1:5201");
        let ends = [(1, client, server), (2, client, server), (1, server, client), (2, server, client)];
        assert_eq!(joined(&ends), [(0, Some(2)), (1, Some(3))], "loopback of each namespace is its own");
        let elsewhere = [(1, client, server), (2, client, server), (3, server, client), (4, server, client)];
        assert!(joined(&elsewhere).iter().all(|pair| pair.1.is_none()), "where nobody knows, nothing is joined");
    }

    #[test]
    fn networks_made_alike_are_told_apart_by_their_ways_in_whatever_order() {
        let (client, server) = ("10.0.0.2:4000", "10.0.0.1:5201");
        let mut places =
            [place(1, server, client), place(2, client, server), place(3, server, client), place(4, client, server)];
        let way = |from: u64, to: u64| FlowPath {
            netns: from,
            from: places[1].local,
            to: places[1].remote,
            ..path_between(from, to)
        };
        let ways = [way(2, 1), way(4, 3)];
        for turn in 0..4 {
            places.rotate_left(turn);
            let unknown = pairs(&places, &[]);
            assert!(unknown.iter().all(|pair| pair.1.is_none()), "nobody knows: {unknown:?}");
            for known in [&ways[..], &ways[..1], &ways[1..]] {
                let joined = pairs(&places, known);
                let netns = |&(one, other): &(usize, Option<usize>)| Some([places[one].netns, places[other?].netns]);
                let mut joined: Vec<[u64; 2]> = joined.iter().filter_map(netns).collect();
                for pair in &mut joined {
                    pair.sort_unstable();
                }
                joined.sort_unstable();
                let expected: Vec<[u64; 2]> = known.iter().map(|way| [way.netns - 1, way.netns]).collect();
                assert_eq!(joined, expected, "as far as ways are known");
            }
        }
    }

    #[test]
    fn a_way_that_is_cut_or_copied_tells_no_receiver() {
        let mut path = path_between(1, 2);
        assert_eq!(path.receiver_netns(), Some(2), "where the last link is");
        path.hops.push(Hop { by: HopBy::Proxy, ..path.hops[0] });
        assert_eq!(path.receiver_netns(), None, "behind a program another connection goes on");
        path.hops.pop();
        path.gap = Some("cut".to_owned());
        assert_eq!(path.receiver_netns(), None, "it does not get there");
        path = FlowPath { hops: Vec::new(), gap: None, ..path };
        assert_eq!(path.receiver_netns(), Some(1), "without a link it stays where it is");
    }

    fn path_between(from: u64, to: u64) -> FlowPath {
        let hop = |netns, way, by| Hop { link: LinkKey { netns, ifindex: Ifindex(2) }, way, by };
        let nobody: SocketAddr = NOBODY.parse().expect("an address");
        let hops = vec![hop(from, HopWay::Sent, HopBy::Route), hop(to, HopWay::Received, HopBy::Peer)];
        FlowPath {
            netns: from,
            proto: Proto::Tcp,
            from: nobody,
            to: nobody,
            hops,
            gap: None,
            note: None,
            ends: None,
            outside: None,
            silent: None,
            neighbours: Vec::new(),
            carriers: Vec::new(),
        }
    }

    #[test]
    fn an_unconnected_server_is_joined_with_the_only_one_that_calls_it() {
        let (client, other) = ((1, "10.0.0.2:4000", "10.0.0.1:53"), (1, "10.0.0.3:4001", "10.0.0.1:53"));
        for server in ["10.0.0.1:53", "0.0.0.0:53", "[::]:53"] {
            assert_eq!(joined(&[client, (2, server, NOBODY)]), [(0, Some(1))], "{server} is called");
            assert_eq!(joined(&[(2, server, NOBODY), client]), [(0, Some(1))], "{server} is called");
        }
        let shared = joined(&[client, other, (2, "0.0.0.0:53", NOBODY)]);
        assert!(shared.iter().all(|pair| pair.1.is_none()), "a server of two belongs to none of them: {shared:?}");
        let two = joined(&[client, (2, "0.0.0.0:53", NOBODY), (3, "0.0.0.0:53", NOBODY)]);
        assert!(two.iter().all(|pair| pair.1.is_none()), "of two servers nobody knows which: {two:?}");
        let lo = joined(&[(1, "127.0.0.1:4000", "127.0.0.1:53"), (2, "0.0.0.0:53", NOBODY)]);
        assert!(lo.iter().all(|pair| pair.1.is_none()), "another namespace's loopback is not called: {lo:?}");
    }

    #[test]
    fn a_listener_beside_its_connected_socket_is_nobodys() {
        let ends =
            [(1, "10.0.0.2:4000", "10.0.0.1:5201"), (2, "10.0.0.1:5201", "10.0.0.2:4000"), (2, "0.0.0.0:5201", NOBODY)];
        for turn in 0..3 {
            let mut ends = ends;
            ends.rotate_left(turn);
            let found = joined(&ends);
            assert_eq!(found.len(), 2, "one connection and the listener: {found:?}");
        }
    }

    #[test]
    fn a_translated_address_is_seen_through_where_it_is_certain() {
        let (client, behind) = ((1, "10.0.0.2:4000", "10.0.0.1:5201"), (2, "172.17.0.2:5201", "10.0.0.2:4000"));
        assert_eq!(joined(&[client, behind]), [(0, Some(1))], "the server sees the client's own address");
        let two = joined(&[client, (3, "10.0.0.2:4000", "10.0.0.9:5201"), behind]);
        assert!(two.iter().all(|pair| pair.1.is_none()), "two clients have that address: {two:?}");
    }
    /// Ends with the other one behind NAT, where it is known.
    fn translated_as(ends: &[(u64, &str, &str)], known: &[[usize; 2]]) -> Vec<(usize, Option<usize>)> {
        let mut places: Vec<EndPlace> =
            ends.iter().map(|&(netns, local, remote)| place(netns, local, remote)).collect();
        for &[near, far] in known {
            let EndPlace { netns, local, remote, .. } = places[far];
            places[near].behind = Some(EndName { netns, local, remote });
        }
        pairs(&places, &[])
    }

    #[test]
    fn a_translated_source_is_seen_through_where_connection_tracking_tells() {
        let (client, server) = ((1, "10.0.1.1:4000", "10.0.2.1:5201"), (2, "10.0.2.1:5201", "10.0.2.254:4000"));
        assert_eq!(translated_as(&[client, server], &[[0, 1]]), [(0, Some(1))], "asked from the client");
        assert_eq!(translated_as(&[client, server], &[[1, 0]]), [(0, Some(1))], "or from the server");
        let second = [(1, "10.0.1.1:4002", "10.0.2.1:5201"), (2, "10.0.2.1:5201", "10.0.2.254:4002")];
        let unknown = translated_as(&[client, server, second[0], second[1]], &[]);
        assert!(unknown.iter().all(|pair| pair.1.is_none()), "else nobody knows: {unknown:?}");
        let listens = (2, "0.0.0.0:5201", NOBODY);
        let mut called = [place(1, client.1, client.2), place(2, listens.1, listens.2), place(3, listens.1, listens.2)];
        let [local, remote] = [server.1, server.2].map(|text| text.parse().expect("an address"));
        called[0].behind = Some(EndName { netns: 2, local, remote });
        assert_eq!(
            pairs(&called, &[]),
            [(0, Some(1)), (2, None)],
            "a socket that waits, in the namespace where it ends"
        );
    }

    #[test]
    fn two_clients_of_one_translated_address_are_told_apart() {
        // Both from the same own address in namespaces of their own, to one published port.
        let ends = [
            (1, "10.0.1.1:4000", "10.0.9.9:5201"),
            (2, "10.0.1.1:4000", "10.0.9.9:5201"),
            (3, "10.0.2.1:5201", "10.0.2.254:4000"),
            (3, "10.0.2.1:5201", "10.0.2.254:1024"),
        ];
        assert_eq!(translated_as(&ends, &[[0, 3], [1, 2]]), [(0, Some(3)), (1, Some(2))], "by their ports behind it");
        assert_eq!(translated_as(&ends, &[[0, 3]]), [(0, Some(3)), (1, None), (2, None)], "as far as it is known");
        // One whose own names look like the other end of another's.
        let alike = [ends[0], (4, "10.0.9.9:5201", "10.0.1.1:4000"), ends[3]];
        assert_eq!(translated_as(&alike, &[[0, 2]]), [(0, Some(2)), (1, None)], "what is translated faces nobody else");
    }

    #[test]
    fn a_port_that_is_used_again_is_not_what_it_was() {
        let server = place(2, "10.0.2.1:5201", "10.0.2.254:4000");
        let EndPlace { netns, local, remote, .. } = server;
        let was =
            EndPlace { behind: Some(EndName { netns, local, remote }), ..place(1, "10.0.1.1:4000", "10.0.2.1:5201") };
        let same = place(1, "10.0.1.1:4000", "10.0.2.1:5201");
        assert_eq!(same.or_as(Some(was)), was, "what was told of it stays, when the tracking has forgotten it");
        let again = place(1, "10.0.1.1:4000", "10.0.2.2:5201");
        assert_eq!(again.or_as(Some(was)), again, "but not of a socket that goes elsewhere now");
    }

    proptest! {
        #[test]
        fn whatever_the_addresses_every_end_is_in_one_pair(ends in prop::collection::vec((0..3_u64, 0..4_u8, 0..4_u16, 0..4_u8, 0..4_u16), 0..12)) {
            let address = |host, port| SocketAddr::from(([10, 0, 0, host], port));
            let ends = ends.into_iter().map(|(netns, a, b, c, d)| EndPlace { netns, local: address(a, b), remote: address(c, d), behind: None });
            let ends: Vec<EndPlace> = ends.collect();
            let mut seen: Vec<usize> = pairs(&ends, &[]).into_iter().flat_map(|(one, other)| [Some(one), other]).flatten().collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..ends.len()).collect::<Vec<_>>());
        }
    }
}
