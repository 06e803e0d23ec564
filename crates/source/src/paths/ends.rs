//! Which ways are asked for: one a connection, from its sender to its receiver, both ends of it counted once. Where a
//! socket does not tell which way its data goes, both.

use super::lookups::Packet;
use vnettop_sample::{Carrier, FlowSample, Hop, HopBy, HopWay, Proto};

/// A path to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WantedPath {
    pub packet: Packet,
    /// The namespace whose end is known.
    pub netns: u64,
    /// The known end is the receiver: the path is found backwards.
    pub backwards: bool,
}

/// The paths to be found for these flows.
pub(super) fn wanted(flows: &[FlowSample]) -> Vec<WantedPath> {
    let mut into = Vec::new();
    for flow in flows.iter().filter(|flow| flow.remote.port() != 0 && !flow.remote.ip().is_unspecified()) {
        let (sends, receives) = directions(flow);
        let forth = Packet { proto: flow.proto, from: flow.local, to: flow.remote, mark: flow.mark };
        if sends {
            into.push(WantedPath { packet: forth, netns: flow.netns, backwards: false });
        }
        let faces = |other: &&FlowSample| {
            other.local == flow.remote
                && other.remote == flow.local
                && other.proto == flow.proto
                && other.key() != flow.key()
        };
        if receives && flows.iter().find(faces).is_none() {
            let back = Packet { from: flow.remote, to: flow.local, ..forth };
            into.push(WantedPath { packet: back, netns: flow.netns, backwards: true });
        }
    }
    into
}

/// Whether an end sends and whether it receives what counts as data: a quarter of the other direction or more.
pub(super) fn directions(flow: &FlowSample) -> (bool, bool) {
    match flow.pulses.last() {
        Some(last) if flow.proto == Proto::Tcp => {
            (last.acked.saturating_mul(4) >= last.received, last.received.saturating_mul(4) >= last.acked)
        }
        _ => (true, true),
    }
}

/// The hops of the opposite direction: what was sent is received, and each hop follows from the one that is now before it.
/// Redirections are left out: they apply to what a link receives in one direction.
pub(super) fn turned(hops: &[Hop]) -> Vec<Hop> {
    let hops: Vec<&Hop> = hops.iter().filter(|hop| hop.by != HopBy::Redirect).collect();
    let by = |at: usize| match (hops[at].by, hops.get(at + 1).map(|after| after.by)) {
        (HopBy::Local, _) => HopBy::Local,
        (_, None | Some(HopBy::Local)) => HopBy::Route,
        (_, Some(HopBy::Lower)) => HopBy::Upper,
        (_, Some(HopBy::Upper)) => HopBy::Lower,
        (_, Some(HopBy::Bridge)) => HopBy::Fdb,
        (_, Some(HopBy::Fdb)) => HopBy::Bridge,
        (_, Some(other)) => other,
    };
    let way = |hop: &Hop| match hop.way {
        // lo receives what it sends.
        HopWay::Sent if hop.by == HopBy::Local => HopWay::Sent,
        HopWay::Sent => HopWay::Received,
        HopWay::Received => HopWay::Sent,
        HopWay::Passed => HopWay::Passed,
    };
    (0..hops.len()).rev().map(|at| Hop { link: hops[at].link, way: way(hops[at]), by: by(at) }).collect()
}

/// The programs on a path in the opposite direction, in the order of its hops.
pub(super) fn turned_carriers(hops: &[Hop], carriers: &[Carrier]) -> Vec<Carrier> {
    let stays = |hop: &&Hop| hop.by != HopBy::Redirect;
    let behind = |at: usize| hops[at.min(hops.len())..].iter().filter(stays).count();
    carriers.iter().rev().map(|one| Carrier { at: behind(one.at), ..one.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::FlowProgress;

    fn flow(cookie: u64, local: &str, remote: &str, (acked, received): (u64, u64)) -> FlowSample {
        let at = |text: &str| text.parse().expect("an address");
        FlowSample {
            pulses: vec![FlowProgress { at_ns: 1, acked, received }],
            ..FlowSample::new(cookie, (cookie, 1), (at(local), at(remote)))
        }
    }

    fn reported(flows: &[FlowSample]) -> Vec<(u64, String, bool)> {
        let one = |wanted: &WantedPath| {
            (wanted.netns, format!("{}-{}", wanted.packet.from, wanted.packet.to), wanted.backwards)
        };
        wanted(flows).iter().map(one).collect()
    }

    #[test]
    fn each_connection_is_asked_for_once_from_its_sender() {
        let sender = flow(1, "198.18.0.1:40000", "198.18.0.2:5201", (1_000_000, 37));
        let receiver = flow(2, "198.18.0.2:5201", "198.18.0.1:40000", (37, 1_000_000));
        let there = "198.18.0.1:40000-198.18.0.2:5201".to_owned();
        assert_eq!(reported(&[sender, receiver.clone()]), [(1, there.clone(), false)], "both ends are one way");
        assert_eq!(reported(&[receiver]), [(2, there, true)], "of the receiver alone it is found backwards");
    }

    #[test]
    fn both_ends_are_one_way_where_each_namespace_counts_its_own_cookies() {
        let sender = flow(1, "198.18.0.1:40000", "198.18.0.2:5201", (1_000_000, 37));
        let receiver = flow(1, "198.18.0.2:5201", "198.18.0.1:40000", (37, 1_000_000));
        let there = "198.18.0.1:40000-198.18.0.2:5201".to_owned();
        let ends = [sender, FlowSample { netns: 2, ..receiver }];
        assert_eq!(reported(&ends), [(1, there, false)], "it is not asked for backwards too");
    }

    #[test]
    fn where_the_direction_is_open_both_are_asked_for() {
        let both = flow(1, "198.18.0.1:40000", "198.18.0.2:5201", (500, 700));
        assert_eq!(reported(&[both]).len(), 2, "data that goes both ways has two ways");
        let mut udp = flow(1, "198.18.0.1:40000", "198.18.0.2:5201", (0, 0));
        (udp.proto, udp.pulses) = (Proto::Udp, Vec::new());
        assert_eq!(reported(&[udp.clone()]).len(), 2, "UDP counts no bytes");
        udp.remote = "0.0.0.0:0".parse().expect("an address");
        assert!(reported(&[udp]).is_empty(), "a socket that is connected to nobody has no way");
    }
}
