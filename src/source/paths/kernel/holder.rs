//! Who holds the other end of a connection, and where a program that copies calls on: a socket is asked for by its addresses,
//! its holder found by its inode. Asked only where a way ends at a socket that no watched process holds.

use super::{KernelQueries, SOCK_DIAG};
use crate::sample::{EndName, Holder, Proto};
use crate::source::flows::diag::{self, SocketId, SocketInfo};
use crate::source::netlink::dialogue::Dialogue;
use crate::source::netlink::message::Message;
use crate::source::netlink::socket::KernelSocket;
use crate::source::paths::lookups::{Packet, any_port, unspecified};
use crate::text;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

impl KernelQueries<'_> {
    /// The process that has the socket which the packet is for.
    pub(super) fn ask_holder(&mut self, netns: u64, packet: &Packet) -> Option<Holder> {
        let &Packet { proto, from, to, .. } = packet;
        let told = self.ask_socket(netns, proto, to, from)?;
        let is_it = told.is_established() && told.id.remote() == from;
        let waits = proto == Proto::Udp && told.id.remote().port() == 0;
        if !is_it && !waits {
            return None;
        }
        let pid = self.sockets.holders.of((netns, told.inode))?;
        let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
        let name = text::clean(name.trim_ascii_end());
        // Some stop listening once they are called: then the lower port is that of who was called.
        let accepts = waits || self.listens_at(netns, proto, to) || to.port() < from.port();
        Some(Holder { pid, name, accepts })
    }

    /// The socket on which that process calls on.
    pub(super) fn ask_onward(
        &mut self,
        holder: &Holder,
        (netns, packet): (u64, &Packet),
        held: &[(u64, SocketAddr)],
    ) -> Option<EndName> {
        if !holder.accepts {
            return None;
        }
        // A socket may be of another namespace than its holder, as rootless containers' port drivers have them.
        let spaces: BTreeSet<u64> =
            held.iter().map(|&(netns, _)| netns).chain([netns]).chain(Self::home(holder.pid)).collect();
        let sockets = self.held_by(holder.pid);
        let calls = |end: &EndName| (end.netns, end.local.port()) != (netns, packet.to.port());
        let mut called: Vec<EndName> = Vec::new();
        for netns in spaces {
            let connected = self.connected(netns, packet.proto);
            called.extend(sockets.iter().filter_map(|inode| connected.get(inode)).filter(|end| calls(end)));
        }
        let is_held = |end: &EndName| held.iter().any(|&(_, local)| local == end.remote);
        if called.iter().any(is_held) {
            called.retain(is_held);
        }
        // All that go to one address go the same way.
        let first = *called.first()?;
        called.iter().all(|end| end.remote == first.remote).then_some(first)
    }

    /// Inode of the network namespace that a process lives in.
    pub(super) fn home(pid: u32) -> Option<u64> {
        std::fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.ino())
    }

    fn listens_at(&mut self, netns: u64, proto: Proto, local: SocketAddr) -> bool {
        let nobody = any_port(unspecified(local.ip()));
        self.ask_socket(netns, proto, local, nobody).is_some_and(|told| !told.is_established())
    }

    /// The socket with these two ends, else one that listens there.
    pub(super) fn ask_socket(
        &mut self,
        netns: u64,
        proto: Proto,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<SocketInfo> {
        let mut request = diag::one(proto, &SocketId::between(local, remote));
        self.diag(netns, |dialogue, buffer| dialogue.get(&mut request, buffer, diag::told).ok().flatten())
    }

    /// The connected sockets of a namespace, by inode.
    pub(super) fn connected(&mut self, netns: u64, proto: Proto) -> &HashMap<u32, EndName> {
        if !self.sockets.round.connected.contains_key(&(netns, proto)) {
            let mut all = HashMap::new();
            let mut each = |message: &Message<'_>, _: u64| {
                let connected =
                    diag::told(message).filter(|told| told.is_established() && told.id.remote().port() != 0);
                let name = |told: &SocketInfo| EndName { netns, local: told.id.local(), remote: told.id.remote() };
                all.extend(connected.map(|told| (told.inode, name(&told))));
            };
            self.diag(netns, |dialogue, buffer| {
                for family in [diag::IPV4, diag::IPV6] {
                    dialogue.dump(&mut diag::dump(proto, family), buffer, "list sockets", &mut each).ok()?;
                }
                Some(())
            });
            self.sockets.round.connected.insert((netns, proto), all);
        }
        &self.sockets.round.connected[&(netns, proto)]
    }

    pub(super) fn held_by(&mut self, pid: u32) -> Vec<u32> {
        let holders = &mut self.sockets.holders;
        self.sockets.round.held_by.entry(pid).or_insert_with(|| holders.sockets(pid)).clone()
    }

    /// Asks `sock_diag` of a namespace.
    fn diag<T>(
        &mut self,
        netns: u64,
        ask: impl FnOnce(&mut Dialogue<KernelSocket>, &mut Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let spaces = self.spaces;
        let (inside, buffer) = self.inside(netns).ok()?;
        let mut dialogue = match inside.sockets.take() {
            Some(open) => open,
            None => spaces.inside(netns, || KernelSocket::open(SOCK_DIAG).map(Dialogue::new)).ok()?,
        };
        let answer = ask(&mut dialogue, buffer);
        inside.sockets = Some(dialogue);
        answer
    }
}
