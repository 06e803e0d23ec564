//! The UDP sockets of watched processes in one network namespace: asked for one by one on every tick, all of the
//! namespace only when one of them does not answer. UDP counts no bytes, so there are no pulses.

use super::diag::{self, SocketId, SocketInfo};
use crate::sample::{FlowSample, Proto, UdpState};
use crate::source::netlink::client::NetlinkClient;
use crate::source::netlink::message::Request;
use crate::source::netlink::socket::Transport;

/// Asked for in one call: the answers must fit the socket's buffer.
const MOST_TOGETHER: usize = 48;

/// The UDP sockets that are followed.
#[derive(Debug, Default)]
pub(super) struct UdpSockets {
    /// Sorted by cookie, as `requests` is.
    sockets: Vec<HeldCounters>,
    requests: Vec<Request>,
}

#[derive(Debug)]
struct HeldCounters {
    cookie: u64,
    pid: u32,
    id: SocketId,
    state: Option<UdpState>,
    mark: Option<u32>,
    /// It answered the last time it was asked.
    lives: bool,
}

impl UdpSockets {
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Follows a socket of that process.
    pub fn follow(&mut self, pid: u32, told: &SocketInfo) {
        let (id, cookie) = (told.id, told.id.cookie());
        let Err(at) = self.sockets.binary_search_by_key(&cookie, |held| held.cookie) else { return };
        self.sockets.insert(at, HeldCounters { cookie, pid, id, state: told.udp, mark: told.mark, lives: true });
        self.requests.insert(at, diag::one(Proto::Udp, &id));
    }

    /// Reads how every socket stands.
    pub fn read<W: Transport>(&mut self, netlink: &mut NetlinkClient<W>) {
        if self.sockets.is_empty() {
            return;
        }
        for held in &mut self.sockets {
            held.lives = false;
        }
        let sockets = &mut self.sockets;
        for requests in self.requests.chunks_mut(MOST_TOGETHER) {
            // Whoever was not heard is looked for below.
            let _ = netlink.get_each(requests, |message, _| {
                if let Some(told) = diag::parse(message) {
                    receive(sockets, &told);
                }
            });
        }
        if self.sockets.iter().any(|held| !held.lives) {
            self.find_again(netlink);
        }
    }

    /// Looks for those that did not answer among all: one that has been connected meanwhile is known by other addresses,
    /// and of several that share a port the kernel may find another one.
    fn find_again<W: Transport>(&mut self, netlink: &mut NetlinkClient<W>) {
        let sockets = &mut self.sockets;
        let listed = diag::list(netlink, Proto::Udp, |told| receive(sockets, told));
        // Not hearing is not an end: the next tick asks again.
        if listed.is_err() {
            for held in sockets.iter_mut() {
                held.lives = true;
            }
        }
        for (held, request) in sockets.iter().zip(&mut self.requests) {
            *request = diag::one(Proto::Udp, &held.id);
        }
    }

    /// Hands over every socket, and forgets those that are closed or whose process `ended`.
    pub fn take(&mut self, netns: u64, into: &mut Vec<FlowSample>, mut ended: impl FnMut(u32, bool) -> bool) {
        let (mut kept, mut of_kept) = (Vec::new(), Vec::new());
        if self.sockets.is_empty() {
            return;
        }
        for (held, request) in self.sockets.drain(..).zip(self.requests.drain(..)) {
            if held.lives {
                let ends = (held.id.local(), held.id.remote());
                let plain = FlowSample::new(held.cookie, (netns, held.pid), ends);
                into.push(FlowSample { proto: Proto::Udp, mark: held.mark, udp: held.state, ..plain });
            }
            if !ended(held.pid, held.lives) {
                kept.push(held);
                of_kept.push(request);
            }
        }
        (self.sockets, self.requests) = (kept, of_kept);
    }
}

/// Takes what is told of a socket, if it is one of these.
fn receive(sockets: &mut [HeldCounters], told: &SocketInfo) {
    let Ok(at) = sockets.binary_search_by_key(&told.id.cookie(), |held| held.cookie) else { return };
    let held = &mut sockets[at];
    (held.lives, held.id, held.state, held.mark) = (told.inode != 0, told.id, told.udp, told.mark);
}
