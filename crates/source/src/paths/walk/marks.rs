//! Marks of packets (`SO_MARK`, nftables): rules may route by them, and a way is that of packets with one mark.

use super::Walk;
use crate::paths::lookups::{Marking, NetworkQueries};

impl<L: NetworkQueries> Walk<'_, L> {
    /// Notes which packets take this path when the next namespace routes by marks, and the packet's mark is uncertain. The first
    /// such place counts.
    pub(super) fn mind_marks(&mut self, netns: u64) {
        if std::mem::replace(&mut self.marked_in, netns) != netns {
            // `skb_scrub_packet`
            self.packet.mark = Some(0);
        }
        if self.path.note.is_some() {
            return;
        }
        let mark = self.packet.mark;
        let why = match (self.lookups.marking(netns, self.packet.to.is_ipv6()), mark) {
            (Marking::Unused, _) | (Marking::BySockets, Some(_)) => return,
            (Marking::BySockets, None) => "the mark of its socket is not known (needs CAP_NET_ADMIN)".to_owned(),
            (Marking::Changed(by), _) => by,
        };
        let whose = match mark.unwrap_or(0) {
            0 => "packets without a mark".to_owned(),
            mark => format!("packets with mark {mark:#x}"),
        };
        self.path.note = Some(format!("path of {whose}: namespace {netns} has rules that route by marks, and {why}"));
    }
}
