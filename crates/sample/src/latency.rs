//! How long packets took from one point of their path to the next, and how long threads and softirqs waited for a core, by BPF
//! while it is asked for. Absolute, since it was asked for first.

use super::{CoreId, DropFlow, LinkKey, ThreadId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Buckets of a histogram: four to each power of two from 128 ns to 17 s, one below, and the last for what is longer, which has the
/// number 111.
pub const LATENCY_BUCKETS: usize = 110;
/// The first bucket ends here, ns.
const SHORTEST_NS: u64 = 128;

/// Everything that was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// `CLOCK_MONOTONIC` of the reading, ns.
    pub at_ns: u64,
    /// For how long threads have been looked at, ns.
    pub threads_for_ns: u64,
    /// For how long packets have been looked at, ns: a part of each second where there are many.
    pub packets_for_ns: u64,
    /// The programs that look at packets are attached now.
    pub is_looking: bool,
    /// Flows whose packets are not followed, because there are too many.
    #[serde(default)]
    pub left_out: u32,
    /// The kernel tells of reads and sends (`sock_recv_length`, Linux 6.3).
    pub tells_reads: bool,
    /// One for each thing that was looked at and had something to wait for, sorted.
    pub rows: Vec<LatencyRow>,
    /// Who ran before a watched thread that had waited 0.5 ms or more, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited_for: Vec<WaitedFor>,
}

/// Times of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRow {
    /// Of what.
    pub of: LatencyOf,
    /// The longest, ns.
    pub max_ns: u64,
    /// Bucket, how many, and their sum in ns; those that had some, sorted; see [`bucket_ns`].
    pub buckets: Vec<(u8, u64, u64)>,
}

/// What took the time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyOf {
    /// A packet with payload, from one point of its path to the next at which it was seen.
    Packets {
        /// Whose packets.
        flow: DropFlow,
        /// From there.
        from: PathPoint,
        /// To there.
        to: PathPoint,
    },
    /// A packet from the first point of its path to the last link.
    Whole {
        /// Whose packets.
        flow: DropFlow,
    },
    /// A softirq that received packets of a flow, from raised to run (`softirq_raise`, `softirq_entry`).
    Softirq {
        /// Whose packets.
        flow: DropFlow,
        /// On which core.
        core: CoreId,
    },
    /// A thread that could run and did not (`sched_waking` or preempted, until `sched_switch`).
    Wakeup {
        /// The thread.
        thread: ThreadId,
    },
    /// Between two returns from reading a socket (`sock_recv_length`, Linux 6.3).
    ReadGap {
        /// The thread.
        thread: ThreadId,
    },
    /// Between two returns from sending by a socket (`sock_send_length`, Linux 6.3).
    SendGap {
        /// The thread.
        thread: ThreadId,
    },
    /// From a return from reading a socket to the thread's next packet with payload (Linux 6.3).
    Answer {
        /// The thread.
        thread: ThreadId,
    },
    /// Between two packets of a flow at the last link of its path.
    ArrivalGap {
        /// Whose packets.
        flow: DropFlow,
    },
    /// A packet like one that was sent less than 10 ms before: such packets cannot be told apart.
    Alike {
        /// Whose packets.
        flow: DropFlow,
    },
}

impl LatencyOf {
    /// Whose packets, of what is about packets.
    pub fn flow_mut(&mut self) -> Option<&mut DropFlow> {
        match self {
            Self::Packets { flow, .. }
            | Self::Whole { flow }
            | Self::Softirq { flow, .. }
            | Self::ArrivalGap { flow }
            | Self::Alike { flow } => Some(flow),
            Self::Wakeup { .. } | Self::ReadGap { .. } | Self::SendGap { .. } | Self::Answer { .. } => None,
        }
    }
}

/// Where on its path a packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PathPoint {
    /// The link; none for the socket of its reader.
    pub link: Option<LinkKey>,
    /// What happened to it there.
    pub what: PointKind,
}

/// What happens to a packet at a point of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PointKind {
    /// It is given to the link's qdisc (`net_dev_queue`).
    Queued,
    /// It is given to the link's driver (`net_dev_start_xmit`).
    Sent,
    /// It comes in through the link (`netif_receive_skb`): behind the backlog, in the softirq.
    Received,
    /// The program has read it (`sock_recv_length`, Linux 6.3): of TCP, where a read ended with the packet's last byte.
    Read,
}

/// Who ran on the core that a thread waited for, as of the end of its waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitedFor {
    /// Who waited.
    pub thread: ThreadId,
    /// Who ran: its tid; 0 where the core was idle, as when the thread was not allowed to run.
    pub by: u32,
    /// Its process.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: Arc<str>,
    /// Its real-time priority (1 to 99); 0 where it has none.
    pub real_time: u32,
    /// The same of who waited.
    pub own_real_time: u32,
    /// On which core, the last time.
    pub core: CoreId,
    /// How long it was waited for, ns.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

/// From where (included) to where (not included) a bucket goes, ns; the last one has no end.
#[must_use]
pub fn bucket_ns(bucket: usize) -> (u64, u64) {
    let bucket = bucket.min(LATENCY_BUCKETS - 1);
    let starts = |bucket: usize| match bucket.checked_sub(1) {
        None => 0,
        Some(at) => {
            let power = SHORTEST_NS << (at / 4).min(40);
            power + power / 4 * (at % 4) as u64
        }
    };
    let end = if bucket + 1 < LATENCY_BUCKETS { starts(bucket + 1) } else { u64::MAX };
    (starts(bucket), end)
}

#[cfg(test)]
mod tests {
    use super::{LATENCY_BUCKETS, bucket_ns};

    #[test]
    fn the_buckets_stand_end_to_end() {
        assert_eq!(bucket_ns(0), (0, 128));
        assert_eq!(bucket_ns(1), (128, 160));
        assert_eq!(bucket_ns(5), (256, 320));
        for bucket in 1..LATENCY_BUCKETS {
            assert_eq!(bucket_ns(bucket - 1).1, bucket_ns(bucket).0, "{bucket}");
        }
        assert_eq!(bucket_ns(108), (15_032_385_536, 17_179_869_184));
        assert_eq!(bucket_ns(111), (17_179_869_184, u64::MAX), "the number that the program gives to what is longer");
    }
}
