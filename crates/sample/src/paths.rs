//! Which links a flow crosses, as the kernel's own lookups say.

use super::{LinkKey, Proto};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The path of one flow's data, from its sender to its receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPath {
    /// Inode of the sender's network namespace; 0 where it is not known.
    pub netns: u64,
    /// TCP or UDP.
    pub proto: Proto,
    /// The sender's end.
    pub from: SocketAddr,
    /// The receiver's end as the sender names it; NAT or a proxy may make it another.
    pub to: SocketAddr,
    /// The links in the order of the packets.
    pub hops: Vec<Hop>,
    /// Why the path ends before the receiver; none where it is whole.
    pub gap: Option<String>,
    /// Which packets take this path, where routing rules look at firewall marks; `None` where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What is known of its two ends beyond their addresses; `None` when that is nothing, or the path does not reach the
    /// receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// How its packets are addressed outside this machine; `None` when the path has both ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<WireNames>,
    /// The first neighbour on the path that has not answered (`RTM_GETNEIGH`: `NUD_INCOMPLETE` or `NUD_FAILED`), so that
    /// nothing can be sent to it; `None` when each has answered, or none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<SilentNeighbour>,
    /// MAC addresses that its packets are sent to, in the order of the path; empty for a path that was found backwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<NextHop>,
    /// The programs that take the packets over between two links, in the order of the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carriers: Vec<Carrier>,
}

/// A program on a path: it takes the packets from one link, or from a connection, and gives them to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carrier {
    /// Its process.
    pub pid: u32,
    /// What it is called: a guest by its name, other programs by theirs.
    pub name: String,
    /// As what it takes them.
    pub kind: CarrierKind,
    /// How many hops of the path are before it.
    pub at: usize,
}

/// As what a program takes packets over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CarrierKind {
    /// It holds a tap or macvtap: a virtual machine, or a program that is one to its link.
    Guest,
    /// It holds a tun.
    Vpn,
    /// It copies from one connection to another.
    Relay,
    /// It is an Open vSwitch whose datapath is in user space.
    Switch,
}

/// A neighbour that does not answer with its MAC address (ARP, neighbour discovery).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilentNeighbour {
    /// The link that asks for it.
    pub link: LinkKey,
    /// The address that is asked for: the receiver's, or that of the router to it.
    pub ip: IpAddr,
}

/// A neighbour that packets are routed to, and its MAC address in the kernel's table (`RTM_GETNEIGH`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHop {
    /// The link that they are sent by.
    pub link: LinkKey,
    /// The gateway's address, or the destination's own.
    pub ip: IpAddr,
    /// As `ip neighbour` prints it.
    pub mac: String,
}

/// Addresses of a flow's packets outside this machine, in the flow's direction: after the NAT that this machine does (connection
/// tracking). Within a tunnel they are those of the flow's own packets, not of the tunnel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireNames {
    /// The sender's.
    pub from: SocketAddr,
    /// The receiver's.
    pub to: SocketAddr,
}

impl FlowPath {
    /// Inode of the receiver's network namespace; `None` when the path does not reach it, or crosses a program that copies
    /// data, behind which another connection goes on.
    #[must_use]
    pub fn receiver_netns(&self) -> Option<u64> {
        let is_one = self.gap.is_none() && self.hops.iter().all(|hop| hop.by != HopBy::Proxy);
        let last = self.hops.last().map_or(self.netns, |hop| hop.link.netns);
        Some(last).filter(|&netns| netns != 0 && is_one)
    }
}

/// The two ends of a connection, when NAT gives them other addresses or a process that is not watched holds the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// The end of a watched process, from which the path was found.
    pub near: EndName,
    /// The other one.
    pub far: EndName,
    /// The processes that hold the other end, when none of them is watched. Behind a program that copies data the path goes on,
    /// and so may this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
}

/// A process that holds an end (`/proc/PID/fd`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`).
    pub name: String,
    /// It was called: it listens on that port. Else it called.
    pub accepts: bool,
}

/// An end of a connection, as its own socket names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndName {
    /// Inode of its network namespace.
    pub netns: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// Address of the other end.
    pub remote: SocketAddr,
}

/// One link of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The link.
    pub link: LinkKey,
    /// Whether the flow's packets count as received or as sent there.
    pub way: HopWay,
    /// Why it is the next one.
    pub by: HopBy,
}

/// On which side of a link's counters the flow's packets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HopWay {
    /// Packets leave through the link: its sent packets.
    Sent,
    /// Packets come in through the link: its received packets.
    Received,
    /// Packets cross the link, and none of its counters counts them: a bridge counts what it itself sends and receives, not
    /// what it forwards from port to port.
    Passed,
}

/// What said that a link is the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HopBy {
    /// The namespace's routes (`RTM_GETROUTE`).
    Route,
    /// The other end of a pair.
    Peer,
    /// A bridge it is a port of.
    Bridge,
    /// A bridge's forwarding table.
    Fdb,
    /// A port that Open vSwitch forwards to.
    Ovs,
    /// The link a vlan, macvlan, ipvlan or bond stands on.
    Lower,
    /// A link that stands on this one.
    Upper,
    /// The far end of a tunnel, by its remote address.
    Tunnel,
    /// Both ends are addresses of one namespace.
    Local,
    /// A program that copies from one connection to another (socat, haproxy, Docker's proxy).
    Proxy,
    /// Another link of the guest that was given the packets.
    Guest,
    /// A filter of traffic control that has what the link before received pass an ifb first.
    Redirect,
}
