//! The connections of the watched processes (`sock_diag`), and how far each had come at several instants of a tick.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// How far a connection had come at one instant; absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// `CLOCK_MONOTONIC` at which it was read, ns.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// Bytes sent and acknowledged (`tcpi_bytes_acked` of `struct tcp_info`, Linux 4.1).
    #[serde(rename = "a")]
    pub acked: u64,
    /// Bytes received (`tcpi_bytes_received`).
    #[serde(rename = "r")]
    pub received: u64,
}

/// One established TCP connection of a watched process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The socket's cookie (`idiag_cookie`): unique on this machine, never given again.
    pub cookie: u64,
    /// Inode of its network namespace.
    pub netns: u64,
    /// The process that holds it.
    pub pid: u32,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Oldest first, about every 100 ms; the last one is this tick's.
    pub pulses: Vec<Pulse>,
}
