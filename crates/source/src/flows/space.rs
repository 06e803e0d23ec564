//! One network namespace with watched processes in it: finding their sockets by a dump, then asking for those alone: connections
//! pulse after pulse, UDP sockets, which count no bytes, on every tick. What does not answer any more has ended.

use super::diag::{self, SocketInfo};
use crate::SourceError;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::Request;
use crate::netlink::socket::Transport;
use vnettop_sample::{FlowProgress, FlowSample, OtherUdp, Proto};

/// Asked for in one call: the answers, about a kilobyte of the kernel's memory each, must fit the socket's buffer.
const MOST_TOGETHER: usize = 48;

/// How often it is looked for subflows of MPTCP that have joined, ns.
const SUBFLOWS_NS: u64 = 500_000_000;

/// The sockets of one namespace.
#[derive(Debug)]
pub(super) struct NamespaceFlows<W> {
    netlink: NetlinkClient<W>,
    netns: u64,
    connections: FollowedSockets,
    udp: FollowedSockets,
    /// When the other UDP sockets were counted last, ns, and what there was.
    others: Option<(u64, OtherUdp)>,
    /// When it was looked for subflows that have joined, ns.
    subflows_at_ns: u64,
}

/// How often the other UDP sockets of a namespace are counted, ns.
const OTHERS_EVERY_NS: u64 = 500_000_000;

/// Followed sockets of one protocol.
#[derive(Debug, Default)]
struct FollowedSockets {
    /// Sorted by cookie, as `requests` is.
    sockets: Vec<Followed>,
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Followed {
    pid: u32,
    /// The socket as of its last answer.
    info: SocketInfo,
    /// Progress of a connection since the last tick.
    pulses: Vec<FlowProgress>,
    /// The socket answered the last time it was asked.
    lives: bool,
}

impl<W: Transport> NamespaceFlows<W> {
    pub fn new(netns: u64, netlink: NetlinkClient<W>) -> Self {
        let [connections, udp] = std::array::from_fn(|_| FollowedSockets::default());
        Self { netlink, netns, connections, udp, others: None, subflows_at_ns: 0 }
    }

    /// How many connections are followed.
    pub fn len(&self) -> usize {
        self.connections.sockets.len()
    }

    /// How many connections and UDP sockets are followed.
    pub fn followed(&self) -> usize {
        self.len() + self.udp.sockets.len()
    }

    /// Every TCP socket of the namespace that is connected or about to be, or every UDP socket.
    ///
    /// # Errors
    /// The kernel refused or broke off a dump.
    pub fn list(&mut self, proto: Proto, each: impl FnMut(&SocketInfo)) -> Result<(), SourceError> {
        diag::list(&mut self.netlink, proto, each)
    }

    /// It follows this socket.
    pub fn follows(&self, proto: Proto, info: &SocketInfo) -> bool {
        let FollowedSockets { sockets, .. } = match proto {
            Proto::Tcp => &self.connections,
            Proto::Udp => &self.udp,
        };
        find(sockets, info).is_ok()
    }

    /// It follows a subflow of MPTCP: others may join it, behind the same descriptor of their process. True so often as it is
    /// worth looking.
    pub fn may_have_more(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.saturating_sub(self.subflows_at_ns) >= SUBFLOWS_NS;
        let may = is_due && self.connections.sockets.iter().any(|held| held.info.mptcp.is_some());
        if may {
            self.subflows_at_ns = now_ns;
        }
        may
    }

    /// Follows a socket of that process from the next reading on.
    pub fn follow(&mut self, proto: Proto, pid: u32, info: &SocketInfo) {
        let FollowedSockets { sockets, requests } = match proto {
            Proto::Tcp => &mut self.connections,
            Proto::Udp => &mut self.udp,
        };
        let Err(at) = find(sockets, info) else { return };
        sockets.insert(at, Followed { pid, info: *info, pulses: Vec::new(), lives: true });
        requests.insert(at, diag::one(proto, &info.id));
    }

    /// Reads how far every connection has come.
    pub fn pulse(&mut self) {
        let FollowedSockets { sockets, requests } = &mut self.connections;
        all_live(sockets, false);
        for requests in requests.chunks_mut(MOST_TOGETHER) {
            let asked = self.netlink.get_each_at_once(requests, |message, at_ns| {
                let Some(info) = diag::parse(message).filter(SocketInfo::lives) else { return };
                let Some((acked, received)) = info.bytes else { return };
                if let Ok(at) = find(sockets, &info) {
                    (sockets[at].info, sockets[at].lives) = (info, true);
                    sockets[at].pulses.push(FlowProgress { at_ns, acked, received });
                }
            });
            // Without answers no socket counts as ended: the next pulse asks again.
            if asked.is_err() {
                all_live(sockets, true);
            }
        }
    }

    /// Reads how the UDP sockets stand; no system call where there are none.
    pub fn read_udp(&mut self) {
        let FollowedSockets { sockets, requests } = &mut self.udp;
        all_live(sockets, false);
        for requests in requests.chunks_mut(MOST_TOGETHER) {
            // Sockets without an answer are looked for below.
            let _ = self.netlink.get_each(requests, |message, _| {
                if let Some(info) = diag::parse(message) {
                    receive(sockets, &info);
                }
            });
        }
        if sockets.iter().all(|held| held.lives) {
            return;
        }
        // Sockets that did not answer are looked for among all: one that has been connected meanwhile is known by other addresses,
        // and of several that share a port the kernel may find another one.
        let listed = diag::list(&mut self.netlink, Proto::Udp, |info| receive(sockets, info));
        // Without a list no socket counts as ended: the next tick asks again.
        if listed.is_err() {
            all_live(sockets, true);
        }
        for (held, request) in sockets.iter().zip(requests) {
            *request = diag::one(Proto::Udp, &held.info.id);
        }
    }

    /// The UDP sockets that are not followed, whose datagrams are in the same counters; `None` when no UDP socket is followed, or
    /// when they cannot be listed.
    pub fn other_udp(&mut self, now_ns: u64) -> Option<OtherUdp> {
        if self.udp.sockets.is_empty() {
            self.others = None;
            return None;
        }
        let is_new = |&(at_ns, _): &(u64, OtherUdp)| now_ns.saturating_sub(at_ns) < OTHERS_EVERY_NS;
        if let Some((_, others)) = self.others.filter(is_new) {
            return Some(others);
        }
        let (mut others, followed) = (OtherUdp::default(), &self.udp.sockets);
        let listed = diag::list(&mut self.netlink, Proto::Udp, |info| {
            if find(followed, info).is_err() {
                let port = info.id.local().port();
                others.port = if others.sockets == 0 { port } else { others.port.min(port) };
                others.sockets += 1;
            }
        });
        self.others = listed.ok().map(|()| (now_ns, others));
        self.others.map(|(_, others)| others)
    }

    /// Hands over what was read since the last time, and forgets the sockets that have ended or whose process
    /// `ended`; true for each process that lost one.
    pub fn take(&mut self, into: &mut Vec<FlowSample>, mut ended: impl FnMut(u32, bool) -> bool) {
        for (proto, followed) in [(Proto::Tcp, &mut self.connections), (Proto::Udp, &mut self.udp)] {
            let FollowedSockets { sockets, requests } = followed;
            for Followed { pid, info, pulses, lives } in sockets.iter_mut() {
                if pulses.is_empty() && (proto == Proto::Tcp || !*lives) {
                    continue;
                }
                let room = Vec::with_capacity(pulses.len());
                let pulses = std::mem::replace(pulses, room);
                let SocketInfo { id, mptcp, joined, mark, tcp, udp, .. } = *info;
                let plain = FlowSample::new(id.cookie(), (self.netns, *pid), (id.local(), id.remote()));
                let connecting = proto == Proto::Tcp && info.is_connecting();
                into.push(FlowSample { proto, connecting, mptcp, joined, mark, tcp, udp, pulses, ..plain });
            }
            let keeps: Vec<bool> = sockets.iter().map(|held| !ended(held.pid, held.lives)).collect();
            let (mut of_sockets, mut of_requests) = (keeps.iter(), keeps.iter());
            sockets.retain(|_| of_sockets.next().copied().unwrap_or(true));
            requests.retain(|_| of_requests.next().copied().unwrap_or(true));
        }
    }
}

/// Where a socket is among these, or would be.
fn find(sockets: &[Followed], info: &SocketInfo) -> Result<usize, usize> {
    sockets.binary_search_by_key(&info.id.cookie(), |held| held.info.id.cookie())
}

fn all_live(sockets: &mut [Followed], lives: bool) {
    for held in sockets {
        held.lives = lives;
    }
}

/// Takes the answer about a UDP socket, if it is one of `sockets`.
fn receive(sockets: &mut [Followed], info: &SocketInfo) {
    if let Ok(at) = find(sockets, info) {
        (sockets[at].info, sockets[at].lives) = (*info, info.inode != 0);
    }
}
