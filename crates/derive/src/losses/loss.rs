//! A loss and the losses of a tick: plain values, in packets.

use super::KnownQdisc;
use super::fragments::Fragments;
use std::sync::Arc;
use vnettop_sample::{CoreId, LinkKey, row_of};

/// Where packets can be lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LossPlace {
    /// A qdisc: its queue is full, or it is there to drop.
    Qdisc,
    /// A link refused to send or dropped on receipt.
    Link,
    /// A core's queue of received packets was full (`net.core.netdev_max_backlog`).
    Backlog,
    /// IP of one namespace: no route, no memory, a broken header.
    Ip,
    /// Datagrams of which a fragment was missing.
    Reassembly,
    /// The check of the source address (`rp_filter`).
    #[strum(to_string = "rp_filter")]
    ReversePath,
    /// A rule of the firewall (nftables, iptables).
    Firewall,
    /// A filter of traffic control (`tc filter`), as policing is.
    #[strum(to_string = "tc")]
    TrafficControl,
    /// Another rule: XDP, a cgroup's or a socket's program, a security module.
    Policy,
    /// A bridge: a VLAN that a port does not let in, a port that does not forward.
    Bridge,
    /// No answer to an ARP or neighbour discovery request, or too many packets waiting for one.
    Neighbour,
    /// A link received it for another MAC address, and no other link has taken it.
    MacAddress,
    /// No socket took it.
    NoSocket,
    /// TCP itself.
    Tcp,
    /// Somewhere in the kernel: a reason that vnettop does not know.
    #[default]
    Kernel,
    /// It arrived damaged: the checksum of UDP or TCP is wrong.
    Checksum,
    /// The receiver's socket had no room.
    ReceiveBuffer,
    /// The sender's socket had no room.
    SendBuffer,
    /// Connection tracking refused it.
    Conntrack,
    /// A link that only Open vSwitch knows.
    Ovs,
    /// A datapath of Open vSwitch that could not ask ovs-vswitchd what becomes of them.
    #[strum(to_string = "ovs_upcall")]
    Upcall,
    /// The socket through which a switch in user space is given a link's frames had no room.
    PacketSocket,
    /// A guest that was given them by one of its links and did not give them to the next.
    Forwarder,
}

impl LossPlace {
    /// Whether some counter has the drops of this place.
    pub(super) fn is_counted(self) -> bool {
        match self {
            Self::Qdisc
            | Self::Link
            | Self::Backlog
            | Self::Ip
            | Self::Reassembly
            | Self::ReversePath
            | Self::Checksum
            | Self::ReceiveBuffer
            | Self::SendBuffer
            | Self::Conntrack
            | Self::Ovs
            | Self::Upcall
            | Self::PacketSocket
            | Self::Forwarder => true,
            Self::Firewall
            | Self::TrafficControl
            | Self::Policy
            | Self::Bridge
            | Self::Neighbour
            | Self::MacAddress
            | Self::NoSocket
            | Self::Tcp
            | Self::Kernel => false,
        }
    }
}

/// What was lost at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loss {
    /// What kind of place.
    pub place: LossPlace,
    /// Inode of the namespace it is in.
    pub netns: Option<u64>,
    /// The link of a qdisc, link or backlog, and of any packet for which the kernel names the link; for a datapath, its
    /// bridge's link or its first port on the path.
    pub link: Option<LinkKey>,
    /// What people call it: the link; the qdisc's kind and the link; the datapath; of a receive buffer that is not the test's
    /// own, the VPN whose it is.
    pub name: Option<String>,
    /// Of a qdisc, what it is and is set to.
    pub qdisc: Option<KnownQdisc>,
    /// The core, of a backlog.
    pub core: Option<CoreId>,
    /// Packets lost between the two samples. No whole number where only a share of what is lost there is the flows'.
    pub packets: f64,
    /// Share of the packets sent; none where it is not known how many were sent.
    pub share: Option<f64>,
    /// The kernel's reason, `enum skb_drop_reason` without its prefix (Linux 5.17); none where counters tell.
    pub reason: Option<Arc<str>>,
    /// The kernel's function that dropped it; none where it does not name it.
    pub function: Option<Arc<str>>,
    /// A rule that somebody set refused it.
    pub refused: bool,
}

/// Everything lost on the path of the watched flows between two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Losses {
    /// Between the two samples; 0 where there are none.
    pub seconds: f64,
    /// The places, the worst first; empty where nothing is lost or nothing is known.
    pub places: Vec<Loss>,
    /// Packets that the senders' protocols were given to send: datagrams and TCP segments of their namespaces; none without
    /// flows.
    pub sent: Option<f64>,
    /// Since packets of the flows were lost last, as of the beginning of this time; 0 while they are, none before the first.
    pub quiet_s: Option<f64>,
    /// The worst place then; none before packets of the flows were lost.
    pub last: Option<Loss>,
    /// TCP segments sent again, in the senders' namespaces.
    pub retransmits: Option<f64>,
    /// Entries that connection tracking has and may have, where it is fullest.
    pub conntrack: Option<(u64, u64)>,
    /// Packets that connection tracking calls invalid, where it does so most.
    pub invalid: f64,
    /// What the qdiscs on the path drop, sorted by link.
    pub qdiscs: Vec<QdiscDrops>,
    /// Packets a second, of any flow, that datapaths of Open vSwitch on the path lose because they cannot ask ovs-vswitchd, by
    /// the link that stands for each.
    pub upcalls: Vec<(LinkKey, f64)>,
    /// Datagrams that are fragmented on the path.
    pub fragments: Option<Fragments>,
}

impl QdiscDrops {
    /// In both directions.
    #[must_use]
    pub fn packets_per_s(self) -> Option<f64> {
        let known = self.sent_per_s.is_some() || self.received_per_s.is_some();
        known.then(|| self.sent_per_s.unwrap_or(0.0) + self.received_per_s.unwrap_or(0.0))
    }
}

/// What the qdiscs of one link drop a second; none where it has none that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QdiscDrops {
    /// The link.
    pub link: LinkKey,
    /// Packets a second that the root qdisc drops on the way out.
    pub sent_per_s: Option<f64>,
    /// Packets a second that `ingress` or `clsact` drops on the way in.
    pub received_per_s: Option<f64>,
    /// The root queues nothing (`noqueue`).
    pub queues_nothing: bool,
}

impl Losses {
    /// Packets lost, in all places together.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.places.iter().map(|loss| loss.packets).sum()
    }

    /// A number of these packets as packets/s.
    #[must_use]
    pub fn per_second(&self, packets: f64) -> f64 {
        if self.seconds > 0.0 { packets / self.seconds } else { 0.0 }
    }

    /// What the qdiscs of a link drop.
    #[must_use]
    pub fn of_qdiscs(&self, link: LinkKey) -> Option<QdiscDrops> {
        row_of(&self.qdiscs, &link, |drops| drops.link).copied()
    }

    /// Packets a second that the datapath loses for which this link stands.
    #[must_use]
    pub fn of_upcalls(&self, link: LinkKey) -> Option<f64> {
        let here = || self.upcalls.iter().filter(|(at, _)| *at == link).map(|(_, lost)| lost);
        here().next().map(|_| here().sum())
    }
}

impl Loss {
    /// The datagrams of a user-space VPN are lost, in its own socket; the kernel names no function of those.
    #[must_use]
    pub fn is_of_vpn(&self) -> bool {
        self.place == LossPlace::ReceiveBuffer && self.name.is_some() && self.function.is_none()
    }

    /// Adds it to the others. Several flows, several lines of one function, several counters of one place are one loss.
    pub(super) fn add_to(self, losses: &mut Vec<Self>) {
        let is_same = |one: &&mut Self| {
            (one.place, one.netns, one.link, &one.reason, &one.function)
                == (self.place, self.netns, self.link, &self.reason, &self.function)
        };
        match losses.iter_mut().find(is_same) {
            Some(known) => known.packets += self.packets,
            None => losses.push(self),
        }
    }

    pub(super) fn in_space(place: LossPlace, netns: impl Into<Option<u64>>, packets: f64) -> Self {
        Self { place, netns: netns.into(), packets, ..Self::default() }
    }

    pub(super) fn on_link(place: LossPlace, link: LinkKey, name: String, packets: f64) -> Self {
        Self { link: Some(link), name: Some(name), ..Self::in_space(place, link.netns, packets) }
    }
}
