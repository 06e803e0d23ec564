//! What the programs of UDP sockets have sent and read, put beside the sockets.

use super::{KernelReader, Stage};
use crate::bpf::datagrams::SocketDatagrams;
use crate::sample::{DatagramCounts, FlowSample};
use crate::source::now_ns;

impl KernelReader {
    /// Each UDP socket can be asked what its program has sent and read.
    #[must_use]
    pub fn counts_datagrams(&self) -> bool {
        matches!(&self.stage, Stage::Running(_, maps) if maps.datagrams.is_some())
    }

    /// Adds to the UDP sockets what their programs have sent and read.
    pub fn count_datagrams(&self, flows: &mut [FlowSample]) {
        let Stage::Running(_, maps) = &self.stage else { return };
        let Some(table) = &maps.datagrams else { return };
        for flow in flows {
            let Some(udp) = &mut flow.udp else { continue };
            let told = |of: SocketDatagrams| DatagramCounts {
                at_ns: now_ns(),
                since_ns: of.since_ns,
                sent_bytes: of.sent_bytes,
                sent: of.sent,
                received_bytes: of.received_bytes,
                received: of.received,
                merged: of.merged,
            };
            udp.counts = table.of(flow.cookie).map(told);
        }
    }
}
