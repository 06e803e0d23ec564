//! Which two ends belong together, across namespaces: each other's addresses, a translated address, a socket that is not
//! connected. Only what is certain is joined. It knows no bytes.

use crate::sample::FlowSample;
use std::net::SocketAddr;

/// Where an end is, and which other end it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::derive) struct Place {
    pub netns: u64,
    pub local: SocketAddr,
    /// Of an end that is not connected port 0.
    pub remote: SocketAddr,
}

impl Place {
    pub fn of(flow: &FlowSample) -> Self {
        Self { netns: flow.netns, local: flow.local, remote: flow.remote }
    }

    /// It is the other end of the same connection.
    pub fn faces(&self, other: &Self) -> bool {
        self.local == other.remote && self.remote == other.local
    }

    /// It knows where it sends.
    pub fn is_connected(&self) -> bool {
        self.remote.port() != 0
    }

    /// This end is connected to the address that the other, unconnected one listens on.
    fn calls(&self, other: &Self) -> bool {
        let (called, listens) = (self.remote, other.local);
        let address = called.ip() == listens.ip() || listens.ip().is_unspecified();
        // Own addresses are within one namespace.
        let is_near = self.netns == other.netns || !(called.ip().is_loopback() || called.ip() == self.local.ip());
        self.is_connected() && !other.is_connected() && called.port() == listens.port() && address && is_near
    }
}

/// Both ends of each connection, or the one that is known; indices.
pub(in crate::derive) fn pairs(places: &[Place]) -> Vec<(usize, Option<usize>)> {
    let mut paired = vec![false; places.len()];
    let mut pairs = Vec::with_capacity(places.len());
    for one in 0..places.len() {
        if paired[one] {
            continue;
        }
        paired[one] = true;
        let free = |&other: &usize| !paired[other];
        let facing: Vec<usize> = (0..places.len()).filter(free).filter(|&at| places[one].faces(&places[at])).collect();
        let other = match facing[..] {
            [] => translated(places, &paired, one).or_else(|| listening(places, &paired, one)),
            [other] => Some(other),
            // The same addresses in several namespaces: the one beside it, or nobody knows.
            _ => only(facing.into_iter().filter(|&at| places[at].netns == places[one].netns)),
        };
        if let Some(other) = other {
            paired[other] = true;
        }
        pairs.push((one, other));
    }
    pairs
}

fn only(mut found: impl Iterator<Item = usize>) -> Option<usize> {
    found.next().filter(|_| found.next().is_none())
}

/// The other end behind a translated address (a published port): it sees the client as the client sees itself, and no
/// other connection does.
fn translated(places: &[Place], paired: &[bool], one: usize) -> Option<usize> {
    let free = || (0..places.len()).filter(|&at| !paired[at]);
    let names = |a: usize, b: usize| places[a].is_connected() && places[a].remote == places[b].local;
    let alone = |address: SocketAddr| places.iter().filter(|place| place.local == address).count() == 1;
    let is_connected = |at: &usize| places[*at].is_connected() && places[one].is_connected();
    let server = only(free().filter(is_connected).filter(|&at| names(at, one))).filter(|_| alone(places[one].local));
    let client = || only(free().filter(is_connected).filter(|&at| names(one, at)));
    server.or_else(|| client().filter(|&at| alone(places[at].local)))
}

/// The one unconnected end that this one calls, or the one end that calls this unconnected one. A server that many call
/// belongs to none of them.
fn listening(places: &[Place], paired: &[bool], one: usize) -> Option<usize> {
    let all = || 0..places.len();
    let called_by_one = |server: usize| {
        let callers = all().filter(|&at| places[at].calls(&places[server]));
        // One that faces another end has found whom it calls.
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

    fn place(netns: u64, local: &str, remote: &str) -> Place {
        Place { netns, local: local.parse().expect("an address"), remote: remote.parse().expect("an address") }
    }

    fn joined(ends: &[(u64, &str, &str)]) -> Vec<(usize, Option<usize>)> {
        pairs(&ends.iter().map(|&(netns, local, remote)| place(netns, local, remote)).collect::<Vec<_>>())
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
    proptest! {
        #[test]
        fn whatever_the_addresses_every_end_is_in_one_pair(ends in prop::collection::vec((0..3_u64, 0..4_u8, 0..4_u16, 0..4_u8, 0..4_u16), 0..12)) {
            let address = |host, port| SocketAddr::from(([10, 0, 0, host], port));
            let ends = ends.into_iter().map(|(netns, a, b, c, d)| Place { netns, local: address(a, b), remote: address(c, d) });
            let ends: Vec<Place> = ends.collect();
            let mut seen: Vec<usize> = pairs(&ends).into_iter().flat_map(|(one, other)| [Some(one), other]).flatten().collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..ends.len()).collect::<Vec<_>>());
        }
    }
}
