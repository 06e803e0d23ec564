//! The benchmark programs among the watched processes, and what their command lines ask for. What a server does is not
//! in its command line: its sockets tell.

use super::{Direction, Proto, Reported, Side, Unread};
use serde::{Deserialize, Serialize};

/// A benchmark program that is recognised.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Program {
    /// iperf 3.
    #[default]
    Iperf3,
    /// iperf 2, which calls itself `iperf`.
    Iperf,
}

/// One running benchmark program, from its command line (`/proc/PID/cmdline`). None is what the line does not say;
/// port, protocol, streams and direction are then what the program takes. Text from outside, control characters replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Benchmark {
    /// The process.
    pub pid: u32,
    /// Which program.
    pub program: Program,
    /// Server or client.
    pub side: Side,
    /// The client's server, as it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The port of the server.
    pub port: u16,
    /// Of a client; an iperf 3 server takes what it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<Proto>,
    /// Of a client: streams a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Direction of a client's payload; `None` when it goes first one way and then the other (iperf 2's `-r`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// `--json-stream`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json_stream: bool,
    /// `-O`: left out of the test's own figures at its start, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omit_ms: Option<u64>,
    /// `-t`, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// `-b`: the rate asked for a stream; 0 is as fast as it goes.
    #[serde(rename = "bitrate", default, skip_serializing_if = "Option::is_none")]
    pub asked_bits_per_s: Option<u64>,
    /// `-l`: length of a read, write or datagram.
    #[serde(rename = "length", default, skip_serializing_if = "Option::is_none")]
    pub length_bytes: Option<u64>,
    /// `--gsro` of iperf 3: several datagrams in one call, which the kernel counts as one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batched: bool,
    /// `-A` of iperf 3: cores, as written: `2`, or `2,3` for client and server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<String>,
    /// What it reported last itself (iperf 3's `--json-stream`), where that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// Why that is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
}

impl Benchmark {
    /// A benchmark of which nothing else is known.
    #[must_use]
    pub fn new(pid: u32, program: Program, side: Side, port: u16) -> Self {
        Self { pid, program, side, port, ..Self::default() }
    }

    /// A test runs, as far as is known.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.streams.is_some()
    }
}
