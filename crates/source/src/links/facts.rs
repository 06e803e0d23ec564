//! `RTM_NEWLINK`, `RTM_DELLINK` → what became of which link. Attributes are picked one by one, so that a name that is no
//! UTF-8, a struct that has grown or an attribute nobody knows yet costs that attribute at most, never the link.

use crate::ethtool_ioctl::Drivers;
use crate::netlink::message::{DUMP, Message, Request, attribute, i32_at, text, u32_at};
use netlink_packet_route::link::{LinkFlags, LinkHeader, LinkLayerType, State};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use vnettop_sample::text::clean;
use vnettop_sample::{Ifindex, Kind, LinkFacts, LinkState, PeerRef, PortState};

/// Where a link's device is looked for when the kernel is too old to name its parent (before Linux 5.14).
pub(super) const SYSFS: &str = "/sys/class/net";

/// `struct ifinfomsg`, bytes.
const FIXED: usize = 16;
/// `RTEXT_FILTER_SKIP_STATS`: counters come from `RTM_GETSTATS`.
const SKIP_STATS: u32 = 1 << 3;
/// `IFLA_TUN_TYPE` within tun's `IFLA_INFO_DATA` (Linux 4.15): 1 layer 3, 2 layer 2.
const TUN_TYPE: u16 = 3;
const IFF_TUN: u8 = 1;
const IFF_TAP: u8 = 2;
/// `IFLA_BOND_MODE` within bond's `IFLA_INFO_DATA`.
const BOND_MODE: u16 = 1;
/// `IFLA_BRPORT_STATE` within a bridge port's `IFLA_INFO_SLAVE_DATA`.
const PORT_STATE: u16 = 1;
/// `IFLA_BRPORT_ISOLATED` there (Linux 4.18).
const ISOLATED: u16 = 33;
/// `IFLA_MACVLAN_MODE` within macvlan's and macvtap's `IFLA_INFO_DATA`.
const MACVLAN_MODE: u16 = 1;
/// `IFLA_VXLAN_LINK` within vxlan's `IFLA_INFO_DATA`: vxlan has no `IFLA_LINK`.
const VXLAN_LINK: u16 = 3;

/// The namespace that messages come from.
#[derive(Debug, Default)]
pub(super) struct MessageNamespace {
    /// Its inode.
    pub netns: u64,
    /// Where its devices are looked for; empty where the mounted sysfs shows another namespace.
    pub sysfs: PathBuf,
    /// To ask its drivers, where the kernel may be too old to tell what they say.
    pub drivers: Option<Drivers>,
}

/// What a message says of a link.
#[derive(Debug)]
pub(super) enum LinkChange {
    /// It exists and is this.
    Is(Box<Described>),
    /// Its bridge, which alone announces this, lets so much through it, and whether it is isolated (`IFLA_PROTINFO` of
    /// `AF_BRIDGE`).
    Port(Ifindex, PortState, bool),
    /// It was deleted, or moved to another namespace.
    Gone(Ifindex),
}

/// A link as one message describes it: `born`, `speed_mbps` and `speed_was_set` are not its to say.
#[derive(Debug)]
pub(super) struct Described {
    pub facts: LinkFacts,
    /// `IFLA_ADDRESS`: whether a link seen after an overrun is the one known before.
    pub address: Box<[u8]>,
}

/// Asks for one link, or for all.
pub(crate) fn request(link: Option<Ifindex>) -> Request {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&link.unwrap_or_default().0.to_ne_bytes());
    let flags = if link.is_none() { DUMP } else { 0 };
    Request::new(libc::RTM_GETLINK, flags, &fixed).with(libc::IFLA_EXT_MASK, &SKIP_STATS.to_ne_bytes())
}

/// None for other messages and for wireless events (a fragment with `IFLA_WIRELESS`). Of a bridge's view of its port (`AF_BRIDGE`,
/// whose `RTM_DELLINK` means that the port left the bridge) only the port's state is read.
pub(super) fn change(message: &Message<'_>, place: &MessageNamespace) -> Option<LinkChange> {
    let family = *message.body.first()?;
    let header = LinkHeader::parse(message.body).ok().filter(|header| header.index != 0)?;
    if i32::from(family) == libc::AF_BRIDGE && message.kind == libc::RTM_NEWLINK {
        let port = attribute(message.body.get(FIXED..)?, libc::IFLA_PROTINFO)?;
        let state = PortState::from_repr(*attribute(port, PORT_STATE)?.first()?)?;
        return Some(LinkChange::Port(Ifindex(header.index), state, is_isolated(port)));
    }
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    match message.kind {
        libc::RTM_DELLINK => Some(LinkChange::Gone(Ifindex(header.index))),
        libc::RTM_NEWLINK => {
            let link = LinkMessage { header, attributes: message.body.get(FIXED..)? };
            let is_wireless = link.value(libc::IFLA_WIRELESS).is_some();
            (!is_wireless).then(|| LinkChange::Is(Box::new(link.described(place))))
        }
        _ => None,
    }
}

/// A message that describes a link.
struct LinkMessage<'a> {
    header: LinkHeader,
    attributes: &'a [u8],
}

impl<'a> LinkMessage<'a> {
    fn value(&self, kind: u16) -> Option<&'a [u8]> {
        attribute(self.attributes, kind)
    }

    fn number(&self, kind: u16) -> Option<u32> {
        u32_at(self.value(kind)?, 0)
    }

    /// The index of another link.
    fn index(&self, kind: u16) -> Option<Ifindex> {
        self.number(kind).filter(|&index| index != 0).map(Ifindex)
    }

    /// A member of `IFLA_LINKINFO`.
    fn info(&self, kind: u16) -> Option<&'a [u8]> {
        attribute(self.value(libc::IFLA_LINKINFO)?, kind)
    }

    /// What the link's kind says of it (`IFLA_INFO_DATA`).
    fn data(&self, kind: u16) -> Option<&'a [u8]> {
        attribute(self.info(libc::IFLA_INFO_DATA)?, kind)
    }

    fn described(&self, place: &MessageNamespace) -> Described {
        let (kind, ifindex) = (self.kind(place), Ifindex(self.header.index));
        let (peer, lower) = match self.linked(&kind, place.netns) {
            peer if kind.is_paired() => (peer, None),
            lower => (None, lower),
        };
        let name = self.name();
        let facts = LinkFacts {
            netns: place.netns,
            ifindex,
            born: 0,
            name: if name.is_empty() { "?".to_owned() } else { clean(name) },
            alias: self.value(libc::IFLA_IFALIAS).map(text).filter(|alias| !alias.is_empty()).map(clean),
            state: state(self.header.flags, self.value(libc::IFLA_OPERSTATE)),
            mtu: self.number(libc::IFLA_MTU).unwrap_or(0),
            master: self.index(libc::IFLA_MASTER),
            slave_kind: self.info(libc::IFLA_INFO_SLAVE_KIND).map(|kind| clean(text(kind))),
            port_state: self.port().and_then(|port| PortState::from_repr(*attribute(port, PORT_STATE)?.first()?)),
            isolated: self.port().is_some_and(is_isolated),
            mac: self.value(libc::IFLA_ADDRESS).and_then(mac_text),
            macvlan_mode: self
                .data(MACVLAN_MODE)
                .filter(|_| matches!(kind, Kind::Macvlan | Kind::Macvtap))
                .and_then(|mode| u32_at(mode, 0)),
            peer,
            lower,
            node: if kind.is_hardware() { node(&place.sysfs, name, ifindex) } else { None },
            bond_mode: self.data(BOND_MODE).filter(|_| kind == Kind::Bond).and_then(|mode| mode.first().copied()),
            speed_mbps: None,
            speed_was_set: false,
            is_set_up: Some(self.header.flags.contains(LinkFlags::Up)),
            tx_queues: self.number(libc::IFLA_NUM_TX_QUEUES),
            rx_queues: self.number(libc::IFLA_NUM_RX_QUEUES),
            kind,
        };
        Described { facts, address: self.value(libc::IFLA_ADDRESS).unwrap_or_default().into() }
    }

    fn name(&self) -> &'a [u8] {
        self.value(libc::IFLA_IFNAME).map(text).unwrap_or_default()
    }

    /// `IFLA_LINK`; of a vxlan its own word. An index equal to the link's own is no link at all, unless it counts in
    /// another namespace: both ends of a container's veth are often number 2. A tunnel that was moved away from where it
    /// was made says its own index even then.
    fn linked(&self, kind: &Kind, netns: u64) -> Option<PeerRef> {
        let below = || u32_at(self.data(VXLAN_LINK)?, 0).filter(|&index| index != 0).map(Ifindex);
        let ifindex = if *kind == Kind::Vxlan { below() } else { self.index(libc::IFLA_LINK) }?;
        let netnsid = self.value(libc::IFLA_LINK_NETNSID).and_then(|number| i32_at(number, 0));
        let moved =
            netnsid.is_some() && !(*kind == Kind::Wireguard || matches!(kind.word(), "geneve" | "bareudp" | "gtp"));
        let netns = netnsid.is_none().then_some(netns);
        (moved || ifindex.0 != self.header.index).then_some(PeerRef { netnsid, netns, ifindex })
    }

    /// What a bridge says of the link as its port.
    fn port(&self) -> Option<&'a [u8]> {
        self.info(libc::IFLA_INFO_SLAVE_KIND).filter(|&kind| text(kind) == b"bridge")?;
        self.info(libc::IFLA_INFO_SLAVE_DATA)
    }

    fn kind(&self, place: &MessageNamespace) -> Kind {
        match self.info(libc::IFLA_INFO_KIND).map(text) {
            Some(b"tun") => self.tun_or_tap(),
            Some(word) if !word.is_empty() => Kind::from(clean(word)),
            _ => self.kind_without_info(place),
        }
    }

    /// Before Linux 4.15 only the link layer tells: a tap is an Ethernet device.
    fn tun_or_tap(&self) -> Kind {
        match self.data(TUN_TYPE).and_then(|value| value.first().copied()) {
            Some(IFF_TUN) => Kind::Tun,
            Some(IFF_TAP) => Kind::Tap,
            _ if self.header.link_layer_type == LinkLayerType::Ether => Kind::Tap,
            _ => Kind::Tun,
        }
    }

    /// Loopback and whatever a bus brings have no `IFLA_LINKINFO`. What has neither a kind nor a parent gets the word
    /// of its link layer, as `ip link` prints it.
    fn kind_without_info(&self, place: &MessageNamespace) -> Kind {
        let (layer, ifindex) = (self.header.link_layer_type, Ifindex(self.header.index));
        if self.header.flags.contains(LinkFlags::Loopback) || layer == LinkLayerType::Loopback {
            return Kind::Loopback;
        }
        match self.value(libc::IFLA_PARENT_DEV_BUS_NAME).map(text) {
            Some(b"virtio") => return Kind::Virtio,
            Some(_) => return Kind::Physical,
            None if self.value(libc::IFLA_PARENT_DEV_NAME).is_some() => return Kind::Physical,
            None => {}
        }
        kind_by_sysfs(&place.sysfs, self.name(), ifindex)
            .or_else(|| kind_by_driver(place.drivers.as_ref()?, ifindex))
            .unwrap_or_else(|| Kind::Other(layer.to_string().to_lowercase()))
    }
}

fn is_isolated(port: &[u8]) -> bool {
    attribute(port, ISOLATED).and_then(|value| value.first()).is_some_and(|&value| value != 0)
}

/// A MAC address as `ip link` prints it; none of what has another length.
pub(crate) fn mac_text(octets: &[u8]) -> Option<String> {
    let [first, .., _] = octets else { return None };
    let rest = octets[1..].iter().map(|octet| format!(":{octet:02x}"));
    (octets.len() == 6).then(|| std::iter::once(format!("{first:02x}")).chain(rest).collect())
}

/// /sys/class/net/NAME/device, for kernels that do not name the parent. sysfs shows the namespace it was mounted in, so
/// the ifindex must agree before it is believed: see [`directory`].
fn kind_by_sysfs(sysfs: &Path, name: &[u8], ifindex: Ifindex) -> Option<Kind> {
    let bus = std::fs::read_link(directory(sysfs, name, ifindex)?.join("device/subsystem")).ok()?;
    Some(if bus.file_name() == Some(OsStr::new("virtio")) { Kind::Virtio } else { Kind::Physical })
}

/// What the driver says (`ETHTOOL_GDRVINFO`), where sysfs shows another namespace: only a device has a place on a bus.
fn kind_by_driver(drivers: &Drivers, ifindex: Ifindex) -> Option<Kind> {
    let device = drivers.device(ifindex).filter(|device| !device.bus.is_empty())?;
    Some(if device.driver == b"virtio_net" { Kind::Virtio } else { Kind::Physical })
}

/// The node of the device, or of the one it sits on (a virtio device on its PCI device); -1 is none.
fn node(sysfs: &Path, name: &[u8], ifindex: Ifindex) -> Option<u32> {
    let link = directory(sysfs, name, ifindex)?;
    let read = |file: &str| std::fs::read_to_string(link.join(file)).ok();
    read("device/numa_node").or_else(|| read("device/../numa_node"))?.trim().parse().ok()
}

/// The link's directory, if it is the same link there.
fn directory(sysfs: &Path, name: &[u8], ifindex: Ifindex) -> Option<PathBuf> {
    if name.is_empty() || name.contains(&b'/') || name.starts_with(b".") {
        return None;
    }
    let link = sysfs.join(OsStr::from_bytes(name));
    let reported: u32 = std::fs::read_to_string(link.join("ifindex")).ok()?.trim().parse().ok()?;
    (reported == ifindex.0).then_some(link)
}

/// Administratively down is down, whatever the operational state still says.
fn state(flags: LinkFlags, operstate: Option<&[u8]>) -> LinkState {
    if !flags.contains(LinkFlags::Up) {
        return LinkState::Down;
    }
    match State::from(operstate.and_then(|state| state.first().copied()).unwrap_or(0)) {
        State::Up => LinkState::Up,
        State::Down => LinkState::Down,
        State::LowerLayerDown => LinkState::LowerLayerDown,
        State::Dormant => LinkState::Dormant,
        State::Testing => LinkState::Testing,
        State::NotPresent => LinkState::NotPresent,
        _ => LinkState::Unknown,
    }
}
