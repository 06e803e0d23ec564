//! Who holds the packet sockets that have dropped something: each is looked for once, on a thread of its own. It finds nothing
//! itself.

use crate::slow::Slow;
use crate::slow::socket_holders::{self, HeldSockets};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use vnettop_sample::{PacketSocket, SocketProcess};

/// The holders found so far, and the search that goes on.
#[derive(Debug, Default)]
pub(super) struct SocketSearch {
    /// By inode; none where nobody was seen to hold it.
    found: BTreeMap<u32, Option<SocketProcess>>,
    going_on: Option<Slow<HeldSockets>>,
    sought: Vec<u32>,
}

impl SocketSearch {
    /// Names the holders that are known, and begins to look for others.
    pub fn name(&mut self, proc: &Path, sockets: &mut [PacketSocket]) {
        if sockets.is_empty() {
            self.found.clear();
            return;
        }
        if let Some(found) = Slow::take_within(&mut self.going_on, Duration::ZERO) {
            let sought = std::mem::take(&mut self.sought);
            self.found.extend(sought.into_iter().map(|inode| (inode, found.get(&inode).cloned())));
        }
        let mut unknown = Vec::new();
        for socket in sockets.iter_mut().filter(|socket| socket.drops > 0) {
            match self.found.get(&socket.inode) {
                Some(holder) => socket.holder.clone_from(holder),
                None => unknown.push(socket.inode),
            }
        }
        if self.going_on.is_none() && !unknown.is_empty() {
            unknown.sort_unstable();
            unknown.dedup();
            self.going_on = socket_holders::search(proc.to_owned(), unknown.clone());
            self.sought = unknown;
        }
    }
}
