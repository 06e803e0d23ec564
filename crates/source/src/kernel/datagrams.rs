//! What the programs of UDP sockets have sent and read, put beside the sockets.

use super::{KernelReader, LoadStage};
use crate::bpf::datagrams::SocketDatagrams;
use crate::now_ns;
use vnettop_sample::{DatagramCounts, FlowSample};

/// A reading that took longer was held up between the counts and the clock, and is taken again, so often at most.
const HELD_UP_NS: u64 = 500_000;
const MOST_TRIES: usize = 3;

/// What is read, and when that was.
fn at_its_time<T>(read: impl Fn() -> Option<T>) -> Option<(T, u64)> {
    let mut before_ns = now_ns();
    for _ in 1..MOST_TRIES {
        let (read, after_ns) = (read()?, now_ns());
        if after_ns.saturating_sub(before_ns) < HELD_UP_NS {
            return Some((read, after_ns));
        }
        before_ns = now_ns();
    }
    Some((read()?, now_ns()))
}

impl KernelReader {
    /// Each UDP socket can be asked what its program has sent and read.
    #[must_use]
    pub fn counts_datagrams(&self) -> bool {
        matches!(&self.stage, LoadStage::Running(_, maps) if maps.datagrams.is_some())
    }

    /// Adds to the UDP sockets what their programs have sent and read.
    pub fn count_datagrams(&self, flows: &mut [FlowSample]) {
        let LoadStage::Running(_, maps) = &self.stage else { return };
        let Some(table) = &maps.datagrams else { return };
        for flow in flows {
            let Some(udp) = &mut flow.udp else { continue };
            let reported = |(of, at_ns): (SocketDatagrams, u64)| DatagramCounts {
                at_ns,
                since_ns: of.since_ns,
                sent_bytes: of.sent_bytes,
                sent: of.sent,
                received_bytes: of.received_bytes,
                received: of.received,
                merged: of.merged,
            };
            udp.counts = at_its_time(|| table.of(flow.cookie)).map(reported);
        }
    }
}
