//! The tests as JSON: each with its two ends, its flows, and what was found of it alone.

use super::Each;
use super::finding::HeldBack;
use super::flow::{FlowEnd, Relay, SpreadObject};
use crate::derive::flow::{Connection, DatagramTest};
use crate::derive::{Finding, Loss, Test};
use crate::report::card::Proof;
use serde::Serialize;

/// One test; of one that has ended there are no losses, no findings and no rate of now, and the rest is as it was last.
#[derive(Serialize)]
pub(super) struct One<'a> {
    number: u32,
    client: Option<FlowEnd>,
    server: Option<FlowEnd>,
    /// Between the two.
    relay: Option<Relay<'a>>,
    began_t_ns: u64,
    ended_t_ns: Option<u64>,
    bits_per_s: Option<f64>,
    mean_bits_per_s: Option<f64>,
    lost_packets: f64,
    threads: Vec<u32>,
    flows: Each<'a, Connection>,
    datagrams: Each<'a, DatagramTest>,
    jitter: Option<SpreadObject>,
    losses: Each<'a, Loss>,
    findings: Each<'a, Finding>,
    limit: Option<HeldBack<'a>>,
    card: Option<Proof<'a>>,
}

impl<'a> One<'a> {
    pub fn of(test: &'a Test) -> Self {
        let metrics = &test.told;
        let runs = test.ended_ns.is_none();
        let [client, server] = test.ends().map(|end| end.as_ref().map(FlowEnd::of));
        Self {
            number: test.number,
            client,
            server,
            relay: metrics.flow.copied().and_then(|connection| Relay::of(metrics, connection)),
            began_t_ns: test.began_ns,
            ended_t_ns: test.ended_ns,
            bits_per_s: metrics.flow.bits_per_s.filter(|_| runs),
            mean_bits_per_s: test.mean_bits_per_s,
            lost_packets: test.lost,
            threads: metrics.threads.iter().map(|thread| thread.sample.id.tid).collect(),
            flows: Each { rows: &metrics.flow.connections, metrics },
            datagrams: Each { rows: &metrics.flow.tests, metrics },
            jitter: SpreadObject::of(metrics),
            losses: Each { rows: &metrics.losses.places, metrics },
            findings: Each { rows: &metrics.findings, metrics },
            limit: metrics.limit.as_ref().map(HeldBack::by),
            card: metrics.card.as_ref().map(Proof::of),
        }
    }
}
