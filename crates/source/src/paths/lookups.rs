//! What a walk asks of the machine, as a trait: the kernel answers it live, a made-up network in the tests. It decides
//! nothing and knows no flow.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use vnettop_sample::{EndName, Holder, Ifindex, LinkKey, Proto};

/// A MAC address.
pub(super) type Mac = [u8; 6];

/// A packet as it is at one place of its path; NAT changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Packet {
    pub proto: Proto,
    /// The sender; the unspecified address when the kernel is to choose one.
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The mark that rules may route by (`SO_MARK`); `None` when unknown.
    pub mark: Option<u32>,
}

/// Whose packet it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PacketOrigin {
    /// The namespace's own.
    Own,
    /// The packet came in through a link.
    In(Ifindex),
    /// The namespace's own, bound to a link: a vrf, or what a tunnel was made upon.
    By(Ifindex),
}

/// Where a namespace's routes lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteResult {
    /// The address is its own.
    Here,
    /// Out through a link, to the gateway or to the destination itself.
    Out {
        link: Ifindex,
        gateway: Option<IpAddr>,
        /// What the kernel chooses where the packet has none.
        source: Option<IpAddr>,
    },
}

/// What a namespace knows of a neighbour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub mac: Option<Mac>,
    /// It was asked, and has not answered.
    pub is_silent: bool,
}

/// Where a bridge's forwarding table leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bridged {
    /// To the bridge itself.
    Here,
    /// Out through that port.
    Port(Ifindex),
}

/// The configuration of a tunnel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tunnel {
    /// VNI or key; 0 where it has none.
    pub key: u32,
    pub remote: Option<IpAddr>,
    pub local: Option<IpAddr>,
    /// UDP port; 0 where it uses none.
    pub port: u16,
}

/// Who a wireguard is to its peers.
pub(super) type PublicKey = [u8; 32];

/// The configuration of a wireguard (`WG_CMD_GET_DEVICE`), without its secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wireguard {
    /// `None` when the wireguard has no key and so sends nothing.
    pub key: Option<PublicKey>,
    /// UDP port that it listens on and sends from; 0 where it has not been up yet.
    pub port: u16,
    /// Mark of the packets that the wireguard sends; 0 for none.
    pub mark: u32,
    pub peers: Vec<WireguardPeer>,
}

/// A peer of a wireguard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WireguardPeer {
    pub key: PublicKey,
    /// Address that the peer's last packet came from, or the configured one.
    pub endpoint: Option<SocketAddr>,
    /// Addresses and the length of their prefixes.
    pub allowed: Vec<(IpAddr, u8)>,
}

impl Wireguard {
    /// The peer that an address belongs to: the one with the longest prefix that has it.
    pub fn peer_of(&self, ip: IpAddr) -> Option<&WireguardPeer> {
        let longest = |peer: &WireguardPeer| {
            let fits = peer.allowed.iter().filter(|(net, bits)| has(*net, *bits, ip));
            fits.map(|(_, bits)| *bits).max()
        };
        let fitting = self.peers.iter().filter_map(|peer| Some((longest(peer)?, peer)));
        fitting.max_by_key(|(bits, _)| *bits).map(|(_, peer)| peer)
    }
}

/// Whether the first bits of an address are those of the network's.
fn has(net: IpAddr, bits: u8, ip: IpAddr) -> bool {
    match (net, ip) {
        (IpAddr::V4(net), IpAddr::V4(ip)) => {
            let differ = net.to_bits() ^ ip.to_bits();
            differ.leading_zeros() >= u32::from(bits)
        }
        (IpAddr::V6(net), IpAddr::V6(ip)) => (net.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(bits),
        _ => false,
    }
}

/// What marks do to the routes of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marking {
    /// No rule looks at marks.
    Unused,
    /// Rules look at marks, and only sockets are seen to set them.
    BySockets,
    /// Rules look at marks, and packets may get another one on their path; one clause says from what.
    Changed(String),
}

/// Where filters of traffic control stand: at what a link receives, or at what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum TcHook {
    Ingress,
    Egress,
}

/// What filters of traffic control do with what a link receives or sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Filters send all packets to that link.
    All(Ifindex),
    /// Filters send some packets to that link; which ones is not asked.
    Some(Ifindex),
    /// A program decides, packet by packet.
    Program,
}

/// A next hop of a route: the link, and the gateway where there is one.
pub(super) type RouteHop = (Ifindex, Option<IpAddr>);

/// What the facts of a link leave out and a walk needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Detail {
    pub mac: Option<Mac>,
    pub tunnel: Option<Tunnel>,
    /// Namespace in which the outer packets of a tunnel go; none where it is not known.
    pub outside: Option<u64>,
    /// Number of a vlan.
    pub vlan: Option<u16>,
    /// `IFLA_MACVLAN_MODE`.
    pub macvlan_mode: Option<u32>,
    /// `IFLA_BOND_ACTIVE_SLAVE`.
    pub active_port: Option<Ifindex>,
    /// An XDP program sees what it receives (`IFLA_XDP_ATTACHED`).
    pub has_xdp: bool,
}

/// A program that holds a tun, tap or macvtap open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceProgram {
    pub pid: u32,
    /// What a sentence calls it: `openvpn 4242`, `the guest web1`.
    pub name: String,
}

/// A UDP socket of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramSocket {
    pub netns: u64,
    pub local: SocketAddr,
    /// `None` when it is not connected.
    pub remote: Option<SocketAddr>,
    pub mark: Option<u32>,
    /// It is of IPv6 and takes no IPv4.
    pub only_ipv6: bool,
}

impl ProgramSocket {
    /// It can send to that address, or receive at it, as far as the family goes.
    pub fn speaks(&self, ip: IpAddr) -> bool {
        match self.local.ip() {
            IpAddr::V4(_) => ip.is_ipv4(),
            IpAddr::V6(own) => ip.is_ipv6() || own.is_unspecified() && !self.only_ipv6,
        }
    }
}

/// A tun, and the two addresses of a packet that it is given.
pub(super) type TunQuestion = (LinkKey, [IpAddr; 2]);

/// The datagram that has such a packet in it, or what more there is to say of why it is not known.
pub(super) type TunAnswer = Result<ProgramDatagram, Option<String>>;

/// A datagram that a program sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramDatagram {
    pub packet: Packet,
    /// The namespace that it is sent in.
    pub netns: u64,
    /// What this takes for granted.
    pub note: Option<String>,
}

/// What a walk asks, place by place.
pub(super) trait NetworkQueries: HolderLookups {
    /// The namespace's route for a packet.
    ///
    /// # Errors
    /// One clause that says why there is none.
    fn route(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Result<RouteResult, String>;

    /// What is known of a neighbour on a link.
    fn neighbour(&mut self, link: LinkKey, ip: IpAddr) -> Neighbour;
    /// Details of a link that its facts leave out.
    fn detail(&mut self, link: LinkKey) -> Detail;
    /// What a bridge has learnt of an address.
    fn bridged(&mut self, bridge: LinkKey, mac: Mac) -> Option<Bridged>;
    /// Which far end a vxlan has for an address.
    fn remote(&mut self, tunnel: LinkKey, mac: Mac) -> Option<IpAddr>;
    /// The packet after NAT in that namespace (connection tracking); `None` when it stays as it is.
    fn translated(&mut self, netns: u64, packet: &Packet) -> Option<Packet>;
    /// A wireguard's configuration.
    ///
    /// # Errors
    /// One clause that says why it is not known.
    fn wireguard(&mut self, link: LinkKey) -> Result<Arc<Wireguard>, String>;
    /// A wireguard that was made in that namespace listens on that port there, wherever its link is now.
    ///
    /// # Errors
    /// One clause that says why that is not known.
    fn listens(&mut self, netns: u64, port: u16) -> Result<bool, String>;
    /// What marks do to the namespace's routes for that family.
    fn marking(&mut self, netns: u64, is_ipv6: bool) -> Marking;
    /// Where filters send packets of that family; `None` when they send them nowhere else.
    fn redirected(&mut self, link: LinkKey, hook: TcHook, is_ipv6: bool) -> Option<Redirect>;
    /// The next hops of the packet's route that are in use, where it has several (multipath); which of them a packet takes only
    /// the packet shows.
    fn next_hops(&mut self, netns: u64, packet: &Packet, origin: PacketOrigin) -> Vec<RouteHop>;
}

/// Finds the holders of the sockets at the ends and the programs behind tuns, for a walk.
pub(super) trait HolderLookups {
    /// The process that holds the socket which the packet is for.
    fn holder(&mut self, netns: u64, packet: &Packet) -> Option<Holder>;
    /// The socket on which a process that was called there passes the data on, preferably one whose other end is `held`; `None` when
    /// it does not copy data, or when it is unknown which socket it uses.
    fn onward(&mut self, holder: &Holder, netns: u64, packet: &Packet, held: &[(u64, SocketAddr)]) -> Option<EndName>;
    /// The program that holds a tun, tap or macvtap open.
    fn program(&mut self, link: LinkKey) -> Option<DeviceProgram>;
    /// The other tuns, taps and macvtaps that the program holds open.
    fn held_beside(&mut self, link: LinkKey, program: &DeviceProgram) -> Vec<LinkKey>;
    /// The UDP sockets of the program that holds the link.
    fn sockets(&mut self, link: LinkKey, program: &DeviceProgram) -> Vec<ProgramSocket>;
    /// The tuns and taps of the program whose UDP socket the packet is for.
    fn tuns_behind(&mut self, netns: u64, packet: &Packet) -> Vec<LinkKey>;
    /// The addresses of a namespace, with the links that have them.
    fn addresses(&mut self, netns: u64) -> Vec<(LinkKey, IpAddr)>;
    /// What other walks of this round have found out about datagrams of programs whose sockets are not connected.
    fn tun_answers(&mut self) -> &mut HashMap<TunQuestion, TunAnswer>;
}

/// The address that leaves the choice to the kernel, of the other one's family.
pub(super) fn unspecified(beside: IpAddr) -> IpAddr {
    if beside.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// An address whose port the kernel chooses.
pub(super) fn any_port(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}
