//! What TCP connections have carried and sent again since they were counted last, by their own sockets.

use super::{Connection, FlowMetrics};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Connections of a test that are remembered.
const MOST_CONNECTIONS: usize = 4096;

/// A connection, whichever end sends more.
type BothEnds = [(Option<u64>, SocketAddr); 2];

/// Each connection of a test, as it was counted last.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedConnections {
    /// Bytes and retransmits.
    connections: BTreeMap<BothEnds, (u64, u32)>,
}

/// What they did since then.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CountedStep {
    /// Payload, bytes.
    pub bytes: f64,
    /// Segments sent again; those whose sender does not tell are not in it.
    pub retransmits: f64,
    /// The same of connections whose data are those of another one, on the other side of a program that copies them.
    pub relayed_retransmits: f64,
    /// Some carry data, and the sender of each of these tells what it sent again.
    pub tells_retransmits: bool,
}

impl CountedConnections {
    /// What happened until this sample. A new connection counts from its start, unless it may be older than vnettop's first
    /// sample.
    pub fn advance(&mut self, flow: &FlowMetrics, counts_from_start: bool) -> CountedStep {
        let mut step = CountedStep::default();
        let mut present = BTreeSet::new();
        let all = || flow.connections.iter().filter_map(|one| Some((one, one.tcp()?)));
        let mut tell = all().filter(|(one, _)| one.carries).map(|(_, tcp)| tcp.retransmits.is_some());
        step.tells_retransmits = tell.next().is_some_and(|first| first && tell.all(|tells| tells));
        for (one, tcp) in all() {
            let now = (tcp.moved_bytes.unwrap_or_default(), tcp.retransmits.unwrap_or_default());
            let ends = both_ends(one);
            present.insert(ends);
            let first = if counts_from_start { (0, 0) } else { now };
            let counted = self.connections.entry(ends).or_insert(first);
            let again = f64::from(now.1.saturating_sub(counted.1));
            if one.relayed {
                step.relayed_retransmits += again;
            } else {
                step.bytes += now.0.saturating_sub(counted.0) as f64;
                step.retransmits += again;
            }
            // Where one of its ends is not read any more, the other may be a little behind: nothing counts twice.
            *counted = (now.0.max(counted.0), now.1.max(counted.1));
        }
        // A connection that is missing for a moment comes back; a server's short connections have no end.
        if self.connections.len() > MOST_CONNECTIONS {
            self.connections.retain(|ends, _| present.contains(ends));
        }
        step
    }

    /// Forgets them: none is counted any more.
    pub fn clear(&mut self) {
        self.connections.clear();
    }
}

fn both_ends(one: &Connection) -> BothEnds {
    let mut ends = [one.from, one.to].map(|end| (end.netns, end.address));
    ends.sort_unstable();
    ends
}
