//! What the flows that start in a namespace have sent between two samples, in packets on the wire: what shares of losses are of.
//! Their sockets say it themselves (`tcpi_segs_out`; of UDP what BPF counts, cut datagrams each). Where they cannot, or a
//! connection has come or gone meanwhile, what the protocols of the namespace have sent stands for them.

use super::ProtocolSpan;
use crate::flow::Connection;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{FlowSample, Proto, Sample, row_of};

/// Packets by namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct SentPackets {
    /// What the flows say themselves; none where one of them does not.
    flows: BTreeMap<u64, Option<f64>>,
    /// What the protocols say; of namespaces whose datagrams are asked of sockets none: others' are in their counters.
    protocols: BTreeMap<u64, f64>,
}

impl SentPackets {
    /// `connections` are those of the newer sample.
    pub fn of(previous: &Sample, next: &Sample, connections: &[Connection], spans: &[ProtocolSpan<'_>]) -> Self {
        let asked = |flow: &&FlowSample| flow.udp.is_some_and(|udp| udp.counts.is_some());
        let asked: BTreeSet<u64> =
            next.flows.iter().chain(&previous.flows).filter(asked).map(|flow| flow.netns).collect();
        // Where the sockets only receive nothing is sent.
        let mut flows: BTreeMap<u64, Option<f64>> = asked.iter().map(|&netns| (netns, Some(0.0))).collect();
        let mut add = |netns: u64, packets: Option<f64>| {
            let sum = flows.entry(netns).or_insert(Some(0.0));
            *sum = sum.zip(packets).map(|(sum, packets)| sum + packets);
        };
        for flow in next.flows.iter().filter(|flow| flow.proto == Proto::Tcp) {
            add(flow.netns, segments(flow, previous));
        }
        for (from, udp) in connections.iter().filter_map(|connection| Some((connection.from, connection.udp()?))) {
            if let Some(netns) = from.netns {
                add(netns, udp.sent_datagrams);
            }
        }
        for flow in &previous.flows {
            if row_of(&next.flows, &flow.key(), FlowSample::key).is_none() {
                flows.insert(flow.netns, None);
            }
        }
        let of = |span: &ProtocolSpan<'_>| Some((span.now.netns, span.sent()?));
        let protocols = spans.iter().filter(|span| !asked.contains(&span.now.netns)).filter_map(of).collect();
        Self { flows, protocols }
    }

    /// Packets that flows of this namespace have sent, by themselves or else by its protocols; `None` when neither is known.
    pub fn from(&self, netns: u64) -> Option<f64> {
        self.itself(netns).or_else(|| self.protocols.get(&netns).copied())
    }

    /// Packets that flows of this namespace have sent, as they say themselves; `None` when one of them does not.
    pub fn itself(&self, netns: u64) -> Option<f64> {
        self.flows.get(&netns).copied().flatten()
    }
}

/// Segments that a connection has sent since the sample before.
fn segments(flow: &FlowSample, previous: &Sample) -> Option<f64> {
    let before = row_of(&previous.flows, &flow.key(), FlowSample::key)?;
    Some(f64::from(flow.tcp?.segments_out?.wrapping_sub(before.tcp?.segments_out?)))
}
