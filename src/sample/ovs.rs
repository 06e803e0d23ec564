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
    /// Its bridges, sorted by name.
    pub bridges: Vec<OvsBridge>,
}

/// One bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsBridge {
    /// `Bridge.name`; the link of that name is its own port.
    pub name: String,
    /// `Bridge.datapath_type`: `system` (kernel) where it is empty, or `netdev` (userspace).
    pub datapath: String,
    /// `Bridge.fail_mode`.
    pub fail_mode: Option<String>,
    /// Every interface of every port, sorted by name.
    pub ports: Vec<OvsPort>,
}

/// One interface of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OvsPort {
    /// `Interface.name`.
    pub name: String,
    /// `Port.name` where a bond makes it another.
    pub port: String,
    /// `Interface.type`: `system` where it is empty, `internal`, `patch`, `vxlan`, `geneve`, `gre`, …
    pub kind: String,
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
    /// `Interface.statistics` has drops and errors, too; where it has not, those of the link's counters are no numbers.
    #[serde(default)]
    pub counts_drops: bool,
}

impl OvsPort {
    /// The only interface of its port, which counts drops, and of which nothing else is known.
    #[must_use]
    pub fn plain(name: &str, kind: &str, link: Option<LinkKey>) -> Self {
        Self {
            name: name.to_owned(),
            port: name.to_owned(),
            kind: kind.to_owned(),
            link,
            ofport: None,
            vlan: None,
            peer: None,
            remote_ip: None,
            local_ip: None,
            key: None,
            error: None,
            counts_drops: true,
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
