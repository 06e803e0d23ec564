//! Who holds the other end of a connection, where a program that copies calls on, and the programs behind tuns and taps, which
//! the owners of links know (`sock_diag`, `/proc/PID/fd`): a socket is asked for by its addresses,
//! its holder found by its inode. Asked only where a way ends at a socket that no watched process holds.

use super::{KernelQueries, route};
use crate::flows::diag::{self, SocketId, SocketInfo};
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::Message;
use crate::netlink::socket::protocols;
use crate::paths::lookups::{
    DeviceProgram, HolderLookups, Packet, ProgramSocket, TunAnswer, TunQuestion, any_port, unspecified,
};
use crate::{netns_of, proc_file};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use vnettop_sample::{EndName, Holder, LinkKey, OwnerKind, Proto};

impl HolderLookups for KernelQueries<'_> {
    fn holder(&mut self, netns: u64, packet: &Packet) -> Option<Holder> {
        let &Packet { proto, from, to, .. } = packet;
        let reported = self.ask_socket(netns, proto, to, from)?;
        let is_it = reported.is_established() && reported.id.remote() == from;
        let waits = proto == Proto::Udp && reported.id.remote().port() == 0;
        if !is_it && !waits {
            return None;
        }
        let pid = self.sockets.holders.of((netns, reported.inode))?;
        let name = proc_file::comm(format!("/proc/{pid}").as_ref()).ok()?;
        // Some programs stop listening once they are connected: then the end with the lower port is the one that was called.
        let accepts = waits || self.listens_at(netns, proto, to) || to.port() < from.port();
        Some(Holder { pid, name, accepts })
    }

    fn onward(&mut self, holder: &Holder, netns: u64, packet: &Packet, held: &[(u64, SocketAddr)]) -> Option<EndName> {
        if !holder.accepts {
            return None;
        }
        // A socket may be of another namespace than its holder, as rootless containers' port drivers have them.
        let spaces: BTreeSet<u64> =
            held.iter().map(|&(netns, _)| netns).chain([netns]).chain(home(holder.pid)).collect();
        let mut called = self.called(holder.pid, spaces, packet.proto);
        called.retain(|end| (end.netns, end.local.port()) != (netns, packet.to.port()));
        let is_held = |end: &EndName| held.iter().any(|&(_, local)| local == end.remote);
        if called.iter().any(is_held) {
            called.retain(is_held);
        }
        // Connections to one address take the same path.
        let first = *called.first()?;
        called.iter().all(|end| end.remote == first.remote).then_some(first)
    }

    fn program(&mut self, link: LinkKey) -> Option<DeviceProgram> {
        let (pid, owner) = self.owners.holder(link)?;
        let guest = if owner.kind == OwnerKind::Vm { "the guest " } else { "" };
        Some(DeviceProgram { pid, name: format!("{guest}{}", owner.name) })
    }

    fn held_beside(&mut self, link: LinkKey, program: &DeviceProgram) -> Vec<LinkKey> {
        let of_program = self.owners.holders().filter(|&(held, pid)| pid == program.pid && held != link);
        of_program.map(|(held, _)| held).collect()
    }

    fn sockets(&mut self, link: LinkKey, program: &DeviceProgram) -> Vec<ProgramSocket> {
        // The sockets may be of the program's namespace or of the link's.
        let spaces: BTreeSet<u64> = home(program.pid).into_iter().chain([link.netns]).collect();
        let held = self.held_by(program.pid);
        let mut sockets = Vec::new();
        for netns in spaces {
            let reported = self.once(|round| &mut round.datagrams, netns, |this| this.ask_datagrams(netns));
            sockets.extend(reported.iter().filter(|(inode, _)| held.contains(inode)).map(|(_, socket)| *socket));
        }
        sockets
    }

    fn tuns_behind(&mut self, netns: u64, packet: &Packet) -> Vec<LinkKey> {
        let socket = self.ask_socket(netns, packet.proto, packet.to, packet.from);
        let Some(inode) = socket.map(|reported| reported.inode).filter(|&inode| inode != 0) else { return Vec::new() };
        let mut programs: Vec<(LinkKey, u32)> = self.owners.holders().collect();
        programs.retain(|&(_, pid)| self.held_by(pid).contains(&inode));
        programs.into_iter().map(|(link, _)| link).collect()
    }

    fn addresses(&mut self, netns: u64) -> Vec<(LinkKey, IpAddr)> {
        self.once(|round| &mut round.addresses, netns, |this| this.ask_addresses(netns))
    }

    fn tun_answers(&mut self) -> &mut HashMap<TunQuestion, TunAnswer> {
        &mut self.sockets.round.tuns
    }
}

impl KernelQueries<'_> {
    fn listens_at(&mut self, netns: u64, proto: Proto, local: SocketAddr) -> bool {
        let nobody = any_port(unspecified(local.ip()));
        self.ask_socket(netns, proto, local, nobody).is_some_and(|reported| !reported.is_established())
    }

    /// The socket with these two ends, else one that listens at `local`.
    pub(super) fn ask_socket(
        &mut self,
        netns: u64,
        proto: Proto,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<SocketInfo> {
        let mut request = diag::one(proto, &SocketId::between(local, remote));
        self.diag(netns, |netlink| netlink.get(&mut request, diag::parse)).ok()?.ok()?
    }

    /// The connected sockets of a namespace, by inode.
    pub(super) fn connected(&mut self, netns: u64, proto: Proto) -> &HashMap<u32, EndName> {
        if !self.sockets.round.connected.contains_key(&(netns, proto)) {
            let mut all = HashMap::new();
            let each = |reported: &SocketInfo| {
                if reported.is_established() && reported.id.remote().port() != 0 {
                    all.insert(
                        reported.inode,
                        EndName { netns, local: reported.id.local(), remote: reported.id.remote() },
                    );
                }
            };
            let _partly = self.diag(netns, |netlink| diag::list(netlink, proto, each));
            self.sockets.round.connected.insert((netns, proto), all);
        }
        &self.sockets.round.connected[&(netns, proto)]
    }

    /// Every UDP socket of a namespace that has a port, by inode.
    fn ask_datagrams(&mut self, netns: u64) -> Arc<Vec<(u32, ProgramSocket)>> {
        let mut all = Vec::new();
        let each = |reported: &SocketInfo| {
            let (local, remote) = (reported.id.local(), reported.id.remote());
            let remote = Some(remote).filter(|remote| reported.is_established() && remote.port() != 0);
            let (mark, only_ipv6) = (reported.mark, reported.only_ipv6);
            all.push((reported.inode, ProgramSocket { netns, local, remote, mark, only_ipv6 }));
        };
        let _partly = self.diag(netns, |netlink| diag::list(netlink, Proto::Udp, each));
        Arc::new(all)
    }

    fn ask_addresses(&mut self, netns: u64) -> Vec<(LinkKey, IpAddr)> {
        let mut all = Vec::new();
        let each = |message: &Message<'_>, _: u64| {
            all.extend(route::own_address(message).map(|(ifindex, ip)| (LinkKey { netns, ifindex }, ip)));
        };
        if let Ok(inside) = self.inside(netns) {
            let _partly = inside.route.dump(&mut route::own_addresses(), "list addresses", each);
        }
        all
    }

    /// Where the connected sockets of a process lead that are of these namespaces.
    fn called(&mut self, pid: u32, spaces: BTreeSet<u64>, proto: Proto) -> Vec<EndName> {
        let sockets = self.held_by(pid);
        let mut called = Vec::new();
        for netns in spaces {
            let connected = self.connected(netns, proto);
            called.extend(sockets.iter().filter_map(|inode| connected.get(inode)));
        }
        called
    }

    pub(super) fn held_by(&mut self, pid: u32) -> Vec<u32> {
        let holders = &mut self.sockets.holders;
        self.sockets.round.held_by.entry(pid).or_insert_with(|| holders.sockets(pid)).clone()
    }

    /// Asks `sock_diag` of a namespace; an error is one clause.
    pub(super) fn diag<T>(&mut self, netns: u64, ask: impl FnOnce(&mut NetlinkClient) -> T) -> Result<T, String> {
        let spaces = self.spaces;
        let open = || NetlinkClient::open(protocols::NETLINK_SOCK_DIAG);
        Ok(ask(match &mut self.inside(netns)?.sockets {
            Some(opened) => opened,
            none => none.insert(spaces.inside(netns, open).map_err(|error| unfound(&error.to_string()))?),
        }))
    }
}

/// Inode of the network namespace that a process lives in.
fn home(pid: u32) -> Option<u64> {
    netns_of(&Path::new("/proc").join(pid.to_string()))
}

/// Why a wireguard's socket is not found.
pub(super) fn unfound(why: &str) -> String {
    format!("its socket cannot be found ({why}; it needs CONFIG_INET_UDP_DIAG)")
}
