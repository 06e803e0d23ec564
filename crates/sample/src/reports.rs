//! What iperf 3 itself says of its tests (`--json-stream`): an interval, a whole test, or why that cannot be read. Figures
//! are sums of all streams, of both directions where both send.

use serde::{Deserialize, Serialize};

/// An interval as iperf 3 itself reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Its end, counted from the start of the test, ms.
    pub at_ms: u64,
    /// Its length, ms.
    pub length_ms: u64,
    /// Sum of all streams, bits/s.
    pub bits_per_s: u64,
    /// Segments sent again within it; told by senders of TCP.
    pub retransmits: Option<u64>,
    /// Datagrams lost within it; told by receivers of UDP.
    pub lost_packets: Option<u64>,
    /// Datagrams of it.
    pub packets: Option<u64>,
}

/// A whole test as iperf 3 itself reports it at its end, without what `-O` leaves out. None is what it does not tell: a
/// server does not know what its client counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// Its length, ms.
    pub length_ms: u64,
    /// What the senders sent (`sum_sent`), bits/s.
    pub sent_bits_per_s: Option<u64>,
    /// What the receivers received (`sum_received`), bits/s.
    pub received_bits_per_s: Option<u64>,
    /// Segments of TCP sent again.
    pub retransmits: Option<u64>,
    /// Datagrams lost.
    pub lost_packets: Option<u64>,
    /// Datagrams of the test, those lost included.
    pub packets: Option<u64>,
    /// Jitter of UDP as the receivers compute it, ns.
    pub jitter_ns: Option<u64>,
}

/// Why the lines of an iperf 3 cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unread {
    /// The lines go to a terminal.
    Terminal,
    /// The lines go into a pipe or a socket, which only its own reader can read.
    Pipe,
    /// The lines go to something else that is no file.
    Device,
    /// The kernel does not let us.
    Rights,
    /// The lines go to a file that another machine or another program serves, which may not answer, or whose mount is not seen.
    Remote,
}

impl Unread {
    /// Why, and what to do about it.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Terminal => "iperf3 writes to a terminal, which vnettop cannot read: redirect it to a file",
            Self::Pipe => "iperf3 writes to another program's pipe: use vnettop run, or redirect to a file",
            Self::Device => "iperf3 writes neither to a file nor into a pipe: redirect it to a file",
            Self::Rights => "iperf3's output cannot be read: run vnettop as its user or as root",
            Self::Remote => "iperf3 writes to a file that is not on a local disk: name it with --iperf3-json",
        }
    }
}

/// What was read of an iperf 3's own lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// An interval.
    Interval(Reported),
    /// A test that has ended.
    Whole(Whole),
    /// Nothing, and why.
    Unread(Unread),
}
