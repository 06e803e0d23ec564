//! Why the rate of a UDP test is not known, as a sentence.

use std::fmt;
use vnettop_sample::OtherUdp;

/// Why the rate of a UDP test is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateGap {
    /// Several UDP tests share a namespace.
    TooManyTests,
    /// It is one of several streams.
    OneOfSeveral,
    /// Datagrams go in both directions.
    BothWays,
    /// Several datagrams are given to the kernel at once.
    Batched,
    /// The length of a datagram is not known.
    NoLength,
    /// The length of a datagram is not known, as the client's control connection, which would tell it, cannot be read.
    NoControl,
    /// There is one reading so far.
    First,
    /// The counters of its namespace cannot be read.
    Unread,
    /// Its server answers several clients from one socket.
    SharedServer,
    /// Other sockets of its namespace are in the counters too.
    Others(OtherUdp),
}

impl fmt::Display for RateGap {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::TooManyTests => "several UDP tests share a namespace: their datagrams are counted together",
            Self::OneOfSeveral => {
                "the kernel counts datagrams by namespace: this test has one rate, not one per stream"
            }
            Self::BothWays => "datagrams go in both directions, and UDP does not show which socket sends",
            Self::Batched => "--gsro gives several datagrams to the kernel at once, which counts them as one",
            Self::NoLength => "length of datagrams unknown: the client is not a watched iperf3 or iperf",
            Self::NoControl => "datagram length unknown (control connection unreadable): use iperf3 -l",
            Self::First => "only one reading so far; a rate needs two readings",
            Self::Unread => "the UDP counters of its namespace cannot be read",
            Self::SharedServer => "its server answers several clients from one socket, which counts them together",
            Self::Others(OtherUdp { sockets, port }) => {
                let s = if *sockets == 1 { "" } else { "s" };
                return write!(
                    to,
                    "{sockets} other UDP socket{s} (port {port}) in its namespace, which counts all together; BPF \
                     can ask each socket from Linux 6.3 on"
                );
            }
        };
        to.write_str(text)
    }
}
