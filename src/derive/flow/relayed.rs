//! What goes on behind a program that copies from one connection to another (Docker's proxy) is the same data once more: the
//! end that receives it there, which nobody watched faces, where a path through a proxy ends.

use crate::sample::{FlowPath, HopBy};
use std::net::SocketAddr;

/// Namespaces in which a path ends after it went through a proxy.
pub(in crate::derive) fn places(paths: &[FlowPath]) -> Vec<u64> {
    let relays = |path: &&FlowPath| path.gap.is_none() && path.hops.iter().any(|hop| hop.by == HopBy::Proxy);
    paths.iter().filter(relays).filter_map(|path| path.hops.last()).map(|hop| hop.link.netns).collect()
}

/// The end is one of the second connection: it receives in such a place, and is none of those that the paths are of.
pub(in crate::derive) fn is_behind(places: &[u64], paths: &[FlowPath], netns: u64, local: SocketAddr) -> bool {
    let is_first = |path: &FlowPath| path.hops.iter().any(|hop| hop.by == HopBy::Proxy) && path.from == local;
    places.contains(&netns) && !paths.iter().any(is_first)
}
