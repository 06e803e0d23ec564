//! Whose packets the kernel dropped: it tells addresses and ports, which others may have too in other namespaces.

use crate::sample::{DropCount, FlowPath, LinkKey};
use std::net::SocketAddr;

/// Whether a row can be of a watched flow: others may have the same addresses and ports in other namespaces. `is_end` says
/// that one of its sockets is where the row is, `is_plain` which links are no tunnel's.
pub(super) fn is_theirs<'a>(
    row: &DropCount,
    paths: impl Iterator<Item = &'a FlowPath>,
    is_end: bool,
    is_plain: impl Fn(LinkKey) -> bool,
) -> bool {
    let (Some(flow), Some(netns)) = (row.flow, row.netns) else { return true };
    let mut paths = paths.filter(|path| path.proto == flow.proto);
    if flow.from.port() == 0 {
        // Who is connected to nobody is known by its port alone.
        let leads = |path: &FlowPath| path.to.port() == flow.to.port();
        return is_end || paths.any(|path| leads(path) && path.hops.iter().any(|hop| Some(hop.link) == row.link()));
    }
    let is_whole = |path: &FlowPath| path.gap.is_none() && path.hops.iter().all(|hop| is_plain(hop.link));
    let crosses = |path: &FlowPath| path.netns == netns || path.hops.iter().any(|hop| hop.link.netns == netns);
    let mut ways = paths.filter(|path| goes(path, flow.from, flow.to) || goes(path, flow.to, flow.from)).peekable();
    is_end || ways.peek().is_none() || ways.any(|path| !is_whole(path) || crosses(path))
}

/// Whether a path leads from one end to the other.
pub(super) fn goes(path: &FlowPath, from: SocketAddr, to: SocketAddr) -> bool {
    is_same(path.from, from) && is_same(path.to, to)
}

/// Whether two ends are the same: an IPv4 address may be written as IPv6.
pub(super) fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}
