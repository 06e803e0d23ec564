//! Whether addresses that the kernel reports are those of a path or of a socket.

use std::net::SocketAddr;
use vnettop_sample::FlowPath;

/// Whether a path leads from one end to the other.
pub(super) fn goes(path: &FlowPath, from: SocketAddr, to: SocketAddr) -> bool {
    is_same(path.from, from) && is_same(path.to, to)
}

/// Whether two ends are the same: an IPv4 address may be written as IPv6.
pub(crate) fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}
