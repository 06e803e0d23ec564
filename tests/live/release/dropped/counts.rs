//! What a namespace itself has counted, and which packets of it arrived nowhere.

use crate::ground::Netns;
use std::collections::BTreeMap;

/// The counters of a namespace's protocols, as `UdpRcvbufErrors` and `TcpExtTCPTimeouts`.
#[derive(Debug, Clone)]
pub struct Counts(BTreeMap<String, f64>);

impl Counts {
    /// As they are now.
    pub fn of(netns: &Netns) -> Self {
        let text = netns.output("cat /proc/net/snmp /proc/net/netstat");
        let lines: Vec<&str> = text.lines().collect();
        let pairs = lines.chunks_exact(2).flat_map(|pair| {
            let [(kind, names), (_, values)] = [pair[0], pair[1]].map(|line| line.split_once(": ").expect("a kind"));
            let names = names.split_whitespace().map(move |name| format!("{kind}{name}"));
            names.zip(values.split_whitespace().map(|value| value.parse().expect("a number")))
        });
        Self(pairs.collect())
    }

    /// One of them.
    pub fn get(&self, name: &str) -> f64 {
        *self.0.get(name).unwrap_or_else(|| panic!("the kernel counts {name}"))
    }
}

/// What the counters of one end rose by.
#[derive(Debug, Clone)]
pub struct Rise {
    before: Counts,
    after: Counts,
}

impl Rise {
    /// While something runs.
    pub fn between(before: Counts, after: Counts) -> Self {
        Self { before, after }
    }

    /// By how much.
    pub fn of(&self, name: &str) -> f64 {
        self.after.get(name) - self.before.get(name)
    }

    /// Packets of TCP and UDP that were given to IP.
    fn sent(&self) -> f64 {
        self.of("IpOutRequests") - self.of("IcmpOutMsgs")
    }

    /// Packets that IP gave to TCP and UDP.
    fn arrived(&self) -> f64 {
        self.of("IpInDelivers") - self.of("IcmpInMsgs")
    }

    /// Segments that were given to IP: what is sent again is no `OutSegs`.
    pub fn segments_sent(&self) -> f64 {
        self.of("TcpOutSegs") + self.of("TcpRetransSegs")
    }

    /// Segments that came.
    pub fn segments_arrived(&self) -> f64 {
        self.of("TcpInSegs")
    }

    /// Datagrams that UDP gave to no socket.
    fn refused(&self) -> f64 {
        self.of("UdpInErrors") + self.of("UdpNoPorts")
    }

    /// Datagrams that still lay in a socket when it was closed.
    pub fn left_over(&self) -> f64 {
        self.arrived() - self.segments_arrived() - self.of("UdpInDatagrams") - self.refused()
    }
}

/// Packets that one of these ends sent and none took, of all who send there.
pub fn missing(ends: &[&Rise]) -> f64 {
    ends.iter().map(|end| end.sent() - end.arrived() + end.refused()).sum()
}
