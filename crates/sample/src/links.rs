//! What a link is and what it has moved, as the kernel's netlink messages say it.

use serde::{Deserialize, Serialize};

/// The kernel's index of a link within its network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ifindex(pub u32);

/// A link at one instant: two namespaces may use the same index. Ordered by namespace, then index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkKey {
    /// Inode of its network namespace.
    pub netns: u64,
    /// Its index there.
    pub ifindex: Ifindex,
}

/// What a link is (`RTM_NEWLINK`), without its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// Inode of the network namespace it is in.
    pub netns: u64,
    /// Identity within the namespace, together with `born`.
    pub ifindex: Ifindex,
    /// Counts up whenever an ifindex is seen to be created anew, so a reused index is a new link.
    pub born: u64,
    /// `IFLA_IFNAME`, a label; control characters replaced.
    pub name: String,
    /// `IFLA_IFALIAS`; control characters replaced.
    pub alias: Option<String>,
    /// What the link is.
    pub kind: Kind,
    /// `IFLA_OPERSTATE` (and the administrative flag).
    pub state: LinkState,
    /// `IFLA_MTU`, bytes.
    pub mtu: u32,
    /// `IFLA_MASTER`: the bridge, bond or `ovs-system` it is a port of.
    pub master: Option<Ifindex>,
    /// `IFLA_INFO_SLAVE_KIND`: what its master takes it for (`bridge`, `bond`, `openvswitch`, …).
    pub slave_kind: Option<String>,
    /// `IFLA_BRPORT_STATE`: what its bridge lets through it; of a bridge's ports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_state: Option<PortState>,
    /// `IFLA_BRPORT_ISOLATED`: its bridge sends nothing from it to another port that is so too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// `IFLA_ADDRESS` of six octets, as `ip link` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// `IFLA_MACVLAN_MODE`, of macvlan and macvtap only: 1 private, 2 vepa, 4 bridge, 8 passthru.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macvlan_mode: Option<u32>,
    /// `IFLA_LINK` of a veth (or netkit): the other end.
    pub peer: Option<PeerRef>,
    /// `IFLA_LINK` of anything stacked (vlan, macvlan, vxlan with `dev`, …): the link below it.
    pub lower: Option<PeerRef>,
    /// Bond mode (`IFLA_BOND_MODE`), the kernel's number; for bonds only.
    pub bond_mode: Option<u8>,
    /// NUMA node of the device behind it (`device/numa_node` of sysfs), for physical and virtio links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// `ETHTOOL_A_LINKMODES_SPEED`, Mb/s; none where the driver says nothing or "unknown".
    pub speed_mbps: Option<u32>,
    /// The speed of this link was seen to be set by someone (ethtool's notification) while it was watched.
    pub speed_was_set: bool,
    /// `IFF_UP`: the link is set up, with or without a carrier. The operational state does not show this: a pair's end has the
    /// same state whether it or its peer in another namespace is set down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_set_up: Option<bool>,
    /// `IFLA_NUM_TX_QUEUES`: queues to send by that the device was made with; not all of them need be in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    /// `IFLA_NUM_RX_QUEUES`: queues to receive by that the device was made with; unknown when the kernel has no RPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
}

impl LinkFacts {
    /// A link that is up, MTU 1500, everything else unknown.
    #[must_use]
    pub fn new(key: LinkKey, name: &str, kind: Kind) -> Self {
        Self {
            netns: key.netns,
            ifindex: key.ifindex,
            born: 1,
            name: name.to_owned(),
            kind,
            state: LinkState::Up,
            mtu: 1500,
            ..Self::default()
        }
    }

    /// Where it is.
    #[must_use]
    pub fn key(&self) -> LinkKey {
        LinkKey { netns: self.netns, ifindex: self.ifindex }
    }

    /// Key of another link of the same namespace.
    #[must_use]
    pub fn beside(&self, ifindex: Ifindex) -> LinkKey {
        LinkKey { netns: self.netns, ifindex }
    }
}

impl PeerRef {
    /// The link; none where its namespace is not known.
    #[must_use]
    pub fn key(self) -> Option<LinkKey> {
        Some(LinkKey { netns: self.netns?, ifindex: self.ifindex })
    }
}

impl LinkCounters {
    /// Counters of a link that has moved nothing yet.
    #[must_use]
    pub fn zero(key: LinkKey, at_ns: u64) -> Self {
        Self { netns: key.netns, ifindex: key.ifindex, at_ns, ..Self::default() }
    }

    /// The link that they count for.
    #[must_use]
    pub fn key(&self) -> LinkKey {
        LinkKey { netns: self.netns, ifindex: self.ifindex }
    }
}

/// A link named by another: an index, in this namespace or in one the kernel numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRef {
    /// `IFLA_LINK_NETNSID`; none means the same namespace.
    pub netnsid: Option<i32>,
    /// Inode of the namespace meant, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<u64>,
    /// `IFLA_LINK`.
    pub ifindex: Ifindex,
}

/// Operational state, RFC 2863 words as `ip link` prints them, in lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum LinkState {
    /// `IF_OPER_UP`.
    Up,
    /// `IF_OPER_DOWN`, or administratively down.
    Down,
    /// `IF_OPER_LOWERLAYERDOWN`.
    LowerLayerDown,
    /// `IF_OPER_DORMANT`.
    Dormant,
    /// `IF_OPER_TESTING`.
    Testing,
    /// `IF_OPER_NOTPRESENT`.
    NotPresent,
    /// `IF_OPER_UNKNOWN`: the driver does not say (tun, lo); it may well carry traffic.
    #[default]
    Unknown,
}

/// What a bridge lets through a port (spanning tree), as `bridge link` prints it, in the order of the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::FromRepr, strum::IntoStaticStr)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PortState {
    /// `BR_STATE_DISABLED`: nothing.
    Disabled,
    /// `BR_STATE_LISTENING`: nothing yet.
    Listening,
    /// `BR_STATE_LEARNING`: nothing yet, but addresses are learnt.
    Learning,
    /// `BR_STATE_FORWARDING`: everything.
    Forwarding,
    /// `BR_STATE_BLOCKING`: nothing, packets take another path.
    Blocking,
}

impl PortState {
    /// Packets pass.
    #[must_use]
    pub fn forwards(self) -> bool {
        self == Self::Forwarding
    }
}

/// What a link is: the kernel's own word (`IFLA_INFO_KIND`), with the few that need telling apart.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::AsRefStr, strum::EnumString,
)]
#[serde(from = "String", into = "String")]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// `lo` (ARPHRD 772).
    Loopback,
    /// A device with hardware behind it that is not virtio.
    Physical,
    /// A device on the virtio bus.
    Virtio,
    /// Kernel kind `tun`, layer 3.
    Tun,
    /// Kernel kind `tun`, layer 2.
    Tap,
    /// One end of a pair.
    Veth,
    /// The kernel's bridge.
    Bridge,
    /// Open vSwitch bridge or internal port, kernel datapath.
    OpenVSwitch,
    /// A second MAC address on a lower link.
    Macvlan,
    /// A second MAC address on a lower link, with a character device.
    Macvtap,
    /// A second IP address on a lower link.
    Ipvlan,
    /// 802.1Q.
    Vlan,
    /// UDP overlay.
    Vxlan,
    /// Aggregation.
    Bond,
    /// One end of a pair, with BPF programs.
    Netkit,
    /// Aggregation by a program (teamd).
    Team,
    /// 802.1AE.
    Macsec,
    /// An ipvlan with a character device.
    Ipvtap,
    /// An encrypting tunnel.
    Wireguard,
    /// A routing table of its own.
    Vrf,
    /// What packets are redirected to, to be shaped.
    Ifb,
    /// What drops all that it is given.
    Dummy,
    /// Every other kind, in the kernel's own word.
    #[strum(default, transparent)]
    Other(String),
}

impl Kind {
    /// The word shown and written: vnettop's own, or the kernel's.
    #[must_use]
    pub fn word(&self) -> &str {
        self.as_ref()
    }

    /// Whether a device stands behind it, which can lose packets before the kernel has them.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        matches!(self, Self::Physical | Self::Virtio)
    }

    /// Whether it is one end of a pair: its `IFLA_LINK` is the other.
    #[must_use]
    pub fn is_paired(&self) -> bool {
        matches!(self, Self::Veth | Self::Netkit)
    }

    /// Whether packets cross the link as they are, not wrapped into packets that take a path of their own.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let is_local =
            matches!(self, Self::Loopback | Self::Bridge | Self::Macvlan | Self::Ipvlan | Self::Vlan | Self::Bond);
        is_local || self.is_paired() || matches!(self, Self::Vrf | Self::Ifb | Self::Dummy)
    }

    /// Whether Ethernet frames cross it: its counters then include their headers.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        const WITHOUT: [&str; 13] =
            ["gre", "ip6gre", "ipip", "sit", "ip6tnl", "vti", "vti6", "xfrm", "ppp", "nlmon", "bareudp", "gtp", "ovpn"];
        match self {
            // A vrf is an Ethernet device, but what it counts is out of its frame (`vrf_ip_rcv`).
            Self::Loopback | Self::Tun | Self::Wireguard | Self::Vrf => false,
            Self::Other(word) => !WITHOUT.contains(&word.as_str()),
            _ => true,
        }
    }
}

/// A link whose kind is not known.
impl Default for Kind {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<String> for Kind {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.word().to_owned()
    }
}

/// What a link has moved since it was created (`IFLA_STATS_LINK_64` of `RTM_GETSTATS`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Inode of the link's network namespace.
    #[serde(rename = "n")]
    pub netns: u64,
    /// The link.
    #[serde(rename = "i")]
    pub ifindex: Ifindex,
    /// `CLOCK_MONOTONIC` at which the kernel wrote this row, ns.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// Bytes received.
    #[serde(rename = "rb")]
    pub rx_bytes: u64,
    /// Bytes sent.
    #[serde(rename = "tb")]
    pub tx_bytes: u64,
    /// Packets received.
    #[serde(rename = "rp")]
    pub rx_packets: u64,
    /// Packets sent.
    #[serde(rename = "tp")]
    pub tx_packets: u64,
    /// Received packets dropped.
    #[serde(rename = "rd")]
    pub rx_dropped: u64,
    /// Packets dropped before sending.
    #[serde(rename = "td")]
    pub tx_dropped: u64,
    /// Received packets with errors.
    #[serde(rename = "re")]
    pub rx_errors: u64,
    /// Packets that failed to be sent.
    #[serde(rename = "te")]
    pub tx_errors: u64,
}
