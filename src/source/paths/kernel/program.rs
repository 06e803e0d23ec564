//! The programs behind tuns and taps, which the owners of links know, and their UDP sockets (`sock_diag`, `/proc/PID/fd`).

use super::{DeviceProgram, KernelQueries};
use crate::sample::{EndName, LinkKey, OwnerKind, Proto};
use crate::source::paths::lookups::Packet;
use std::collections::BTreeSet;

impl KernelQueries<'_> {
    pub(super) fn program_of(&self, link: LinkKey) -> Option<DeviceProgram> {
        let (pid, owner) = self.owners.holder(link)?;
        let guest = if owner.kind == OwnerKind::Vm { "the guest " } else { "" };
        Some(DeviceProgram { pid, name: format!("{guest}{}", owner.name) })
    }

    /// Its sockets may be of its own namespace or of the link's.
    pub(super) fn ask_calls(&mut self, netns: u64, pid: u32) -> Option<EndName> {
        let sockets = self.held_by(pid);
        let mut called = Vec::new();
        for netns in Self::home(pid).into_iter().chain([netns]).collect::<BTreeSet<u64>>() {
            let connected = self.connected(netns, Proto::Udp);
            called.extend(sockets.iter().filter_map(|inode| connected.get(inode)));
        }
        let first: EndName = *called.first()?;
        called.iter().all(|end| (end.netns, end.remote) == (first.netns, first.remote)).then_some(first)
    }

    /// Of a program with several nobody knows which one.
    pub(super) fn ask_tun_behind(&mut self, netns: u64, packet: &Packet) -> Option<LinkKey> {
        let inode = self.ask_socket(netns, packet.proto, packet.to, packet.from)?.inode;
        let mut programs: Vec<(LinkKey, u32)> = self.owners.holders().collect();
        programs.retain(|&(_, pid)| self.held_by(pid).contains(&inode));
        let [(link, _)] = programs[..] else { return None };
        Some(link)
    }
}
