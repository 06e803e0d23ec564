//! One network namespace with watched processes in it: finding their connections by a dump, then asking for those alone,
//! pulse after pulse. A connection that does not answer any more has ended. Its UDP sockets are the matter of `udp`.

use super::diag::{self, SocketId, SocketInfo};
use super::udp::UdpSockets;
use crate::sample::{FlowSample, Proto, Pulse, TcpState};
use crate::source::SourceError;
use crate::source::netlink::client::NetlinkClient;
use crate::source::netlink::message::Request;
use crate::source::netlink::socket::Transport;
use std::net::SocketAddr;

/// Asked for in one call: the answers, about a kilobyte of the kernel's memory each, must fit the socket's buffer.
const MOST_TOGETHER: usize = 48;

/// The connections of one namespace.
#[derive(Debug)]
pub(super) struct NamespaceFlows<W> {
    netlink: NetlinkClient<W>,
    netns: u64,
    /// Sorted by cookie, as `requests` is.
    flows: Vec<Followed>,
    requests: Vec<Request>,
    udp: UdpSockets,
}

#[derive(Debug)]
struct Followed {
    cookie: u64,
    pid: u32,
    local: SocketAddr,
    remote: SocketAddr,
    /// Since the last tick.
    pulses: Vec<Pulse>,
    /// At the last of them.
    tcp: Option<TcpState>,
    mark: Option<u32>,
    /// It answered the last time it was asked.
    lives: bool,
}

impl<W: Transport> NamespaceFlows<W> {
    pub fn new(netns: u64, netlink: NetlinkClient<W>) -> Self {
        Self { netlink, netns, flows: Vec::new(), requests: Vec::new(), udp: UdpSockets::default() }
    }

    /// How many connections are followed.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// How many connections and UDP sockets are followed.
    pub fn followed(&self) -> usize {
        self.flows.len() + self.udp.len()
    }

    /// Every TCP socket of the namespace that is connected or about to be, or every UDP socket.
    ///
    /// # Errors
    /// The kernel refused or broke off a dump.
    pub fn list(&mut self, proto: Proto, each: impl FnMut(&SocketInfo)) -> Result<(), SourceError> {
        diag::list(&mut self.netlink, proto, each)
    }

    /// Follows a socket of that process from the next reading on.
    pub fn follow(&mut self, proto: Proto, pid: u32, told: &SocketInfo) {
        match proto {
            Proto::Tcp => self.follow_connection(pid, &told.id),
            Proto::Udp => self.udp.follow(pid, told),
        }
    }

    fn follow_connection(&mut self, pid: u32, id: &SocketId) {
        let cookie = id.cookie();
        let Err(at) = self.flows.binary_search_by_key(&cookie, |flow| flow.cookie) else { return };
        let (local, remote) = (id.local(), id.remote());
        let (pulses, tcp, mark) = (Vec::new(), None, None);
        self.flows.insert(at, Followed { cookie, pid, local, remote, pulses, tcp, mark, lives: true });
        self.requests.insert(at, diag::one(Proto::Tcp, id));
    }

    /// Reads how far every connection has come.
    pub fn pulse(&mut self) {
        for flow in &mut self.flows {
            flow.lives = false;
        }
        let flows = &mut self.flows;
        for requests in self.requests.chunks_mut(MOST_TOGETHER) {
            let asked = self.netlink.get_each_at_once(requests, |message, at_ns| {
                let Some(told) = diag::parse(message).filter(SocketInfo::lives) else { return };
                let Some((acked, received)) = told.bytes else { return };
                if let Ok(at) = flows.binary_search_by_key(&told.id.cookie(), |flow| flow.cookie) {
                    flows[at].lives = true;
                    (flows[at].tcp, flows[at].mark) = (told.tcp, told.mark);
                    flows[at].pulses.push(Pulse { at_ns, acked, received });
                }
            });
            // Not hearing is not an end: the next pulse asks again.
            if asked.is_err() {
                for flow in flows.iter_mut() {
                    flow.lives = true;
                }
            }
        }
    }

    /// Reads how the UDP sockets stand; no system call where there are none.
    pub fn read_udp(&mut self) {
        self.udp.read(&mut self.netlink);
    }

    /// Hands over what was read since the last time, and forgets the connections that have ended or whose process
    /// `ended`; true for each process that lost one.
    pub fn take(&mut self, into: &mut Vec<FlowSample>, mut ended: impl FnMut(u32, bool) -> bool) {
        let netns = self.netns;
        for flow in self.flows.iter_mut().filter(|flow| !flow.pulses.is_empty()) {
            let room = Vec::with_capacity(flow.pulses.len());
            let pulses = std::mem::replace(&mut flow.pulses, room);
            let plain = FlowSample::new(flow.cookie, (netns, flow.pid), (flow.local, flow.remote));
            into.push(FlowSample { tcp: flow.tcp, mark: flow.mark, pulses, ..plain });
        }
        let keeps: Vec<bool> = self.flows.iter().map(|flow| !ended(flow.pid, flow.lives)).collect();
        let (mut flows, mut requests) = (keeps.iter(), keeps.iter());
        self.flows.retain(|_| flows.next().copied().unwrap_or(true));
        self.requests.retain(|_| requests.next().copied().unwrap_or(true));
        self.udp.take(netns, into, ended);
    }
}
