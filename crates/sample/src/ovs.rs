//! What Open vSwitch's own database says (RFC 7047): which link is a port of which bridge, which no kernel tells.

use super::{Ifindex, LinkFacts, LinkKey};
use serde::{Deserialize, Serialize};

/// One running ovs-vswitchd and its database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsSwitch {
    /// The database's socket.
    pub socket: String,
    /// Inode of the network namespace its links are in: that of ovs-vswitchd.
    pub netns: u64,
    /// `Open_vSwitch.ovs_version`.
    pub version: Option<String>,
    /// The process of ovs-vswitchd; `None` when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its bridges, sorted by name.
    pub bridges: Vec<OvsBridge>,
}

/// One bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsBridge {
    /// `Bridge.name`; the link of that name is its own port.
    pub name: String,
    /// `Bridge.datapath_type`.
    pub datapath: OvsDatapathKind,
    /// `Bridge.fail_mode`.
    pub fail_mode: Option<String>,
    /// Every interface of every port, sorted by name.
    pub ports: Vec<OvsPort>,
}

/// One interface of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsPort {
    /// `Interface.name`.
    pub name: String,
    /// `Port.name` where a bond makes it another.
    pub port: String,
    /// `Interface.type`.
    pub kind: OvsPortKind,
    /// The link it is: the kernel's where there is one, otherwise one that only Open vSwitch knows.
    pub link: Option<LinkKey>,
    /// `Interface.ofport`.
    pub ofport: Option<i64>,
    /// `Port.tag`.
    pub vlan: Option<u16>,
    /// `options:peer` of a patch port: the interface at its other end.
    pub peer: Option<String>,
    /// `options:remote_ip` of a tunnel.
    pub remote_ip: Option<String>,
    /// `options:local_ip` of a tunnel.
    pub local_ip: Option<String>,
    /// `options:key` of a tunnel.
    pub key: Option<String>,
    /// `Interface.error`: why it does not work.
    pub error: Option<String>,
    /// `Interface.statistics` has drops and errors too; without them the drops and errors in the link's counters mean nothing.
    #[serde(default)]
    pub counts_drops: bool,
}

/// `Bridge.datapath_type`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, strum::AsRefStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum OvsDatapathKind {
    /// The kernel's; where it is empty, too.
    #[default]
    System,
    /// In userspace: that of ovs-vswitchd itself.
    Netdev,
    /// What Open vSwitch may add.
    #[serde(untagged)]
    #[strum(default, transparent)]
    Other(String),
}

/// `Interface.type`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, strum::AsRefStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "Open vSwitch's words")]
pub enum OvsPortKind {
    /// A link of the kernel's; where it is empty, too.
    #[default]
    System,
    Internal,
    Tap,
    Patch,
    Vxlan,
    Geneve,
    Gre,
    Stt,
    /// What Open vSwitch has besides, or may add.
    #[serde(untagged)]
    #[strum(default, transparent)]
    Other(String),
}

impl OvsPortKind {
    /// A device that its switch has from a kernel.
    #[must_use]
    pub fn is_device(&self) -> bool {
        matches!(self, Self::System | Self::Internal | Self::Tap)
    }

    /// It leads to another switch.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        matches!(self, Self::Vxlan | Self::Geneve | Self::Gre | Self::Stt)
    }
}

/// What one datapath of Open vSwitch has counted (`OVS_DP_ATTR_STATS` of the kernel; `dpctl/show` of ovs-vswitchd for one in
/// userspace), absolute. Read only while a flow crosses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsDatapath {
    /// The database's socket of its switch.
    pub socket: String,
    /// Inode of the network namespace it is in.
    pub netns: u64,
    /// As in [`OvsBridge::datapath`].
    pub kind: OvsDatapathKind,
    /// Its name without the kind: all bridges of a kind share `ovs-system` or `ovs-netdev`.
    pub name: String,
    /// Which one of that name it is: the index of its own link, or the process of its ovs-vswitchd. Another one counts from 0.
    pub born: u64,
    /// `CLOCK_MONOTONIC` of the counters, ns.
    pub at_ns: u64,
    /// Packets that matched a flow.
    pub hit: u64,
    /// Packets that ovs-vswitchd had to be asked about (upcalls), also those lost.
    pub missed: u64,
    /// Packets lost because ovs-vswitchd could not be asked.
    pub lost: u64,
    /// Flows in its table.
    pub flows: u64,
}

impl OvsDatapath {
    /// What datapaths are sorted by.
    #[must_use]
    pub fn key(&self) -> (&str, u64, &str) {
        (&self.socket, self.netns, &self.name)
    }

    /// It is the one that its switch's bridges of this kind share.
    #[must_use]
    pub fn is_of(&self, switch: &OvsSwitch, bridge: &OvsBridge) -> bool {
        let is_shared = self.name.strip_prefix("ovs-") == Some(self.kind.as_ref());
        is_shared && self.kind == bridge.datapath && self.netns == switch.netns && self.socket == switch.socket
    }

    /// What `ovs-dpctl` calls it.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}@{}", self.kind.as_ref(), self.name)
    }
}

impl OvsPort {
    /// The only interface of its port; it counts drops, everything else is unknown.
    #[must_use]
    pub fn new(name: &str, kind: impl Into<OvsPortKind>, link: Option<LinkKey>) -> Self {
        Self {
            name: name.to_owned(),
            port: name.to_owned(),
            kind: kind.into(),
            link,
            counts_drops: true,
            ..Self::default()
        }
    }
}

impl LinkFacts {
    /// `mtu` is a number: Open vSwitch has none for ports that are no device.
    #[must_use]
    pub fn tells_mtu(&self) -> bool {
        self.mtu != 0 || self.ifindex.kernel().is_some()
    }
}

impl Ifindex {
    /// The first index of links that only Open vSwitch knows; the kernel's own are below.
    pub const OVS: u32 = 1 << 31;

    /// The kernel's index; none for a link that only Open vSwitch knows.
    #[must_use]
    pub fn kernel(self) -> Option<u32> {
        (self.0 < Self::OVS).then_some(self.0)
    }
}
