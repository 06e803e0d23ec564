//! `RTM_NEWLINK`, `RTM_DELLINK` → what became of which link. Attributes are picked one by one, so that a name that is no
//! UTF-8, a struct that has grown or an attribute nobody knows yet costs that attribute at most, never the link.

use crate::sample::{Ifindex, Kind, LinkFacts, LinkState, PeerRef, PortState};
use crate::source::ethtool_ioctl::Drivers;
use crate::source::netlink::message::{DUMP, Message, Request, attribute, attributes, i32_at, text, u32_at};
use crate::text::clean;
use netlink_packet_route::link::{LinkFlags, LinkHeader, LinkLayerType, State};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    /// Its bridge, which alone announces this, lets so much through it (`IFLA_PROTINFO` of `AF_BRIDGE`).
    Port(Ifindex, PortState),
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

/// The dump of every link.
pub(super) fn request() -> Request {
    Request::new(libc::RTM_GETLINK, DUMP, &[0; FIXED]).with(libc::IFLA_EXT_MASK, &SKIP_STATS.to_ne_bytes())
}

/// One link.
pub(in crate::source) fn request_one(ifindex: Ifindex) -> Request {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&ifindex.0.to_ne_bytes());
    Request::new(libc::RTM_GETLINK, 0, &fixed).with(libc::IFLA_EXT_MASK, &SKIP_STATS.to_ne_bytes())
}

/// None for whatever does not tell of a link: other messages, a bridge's view of its port (`AF_BRIDGE`, whose
/// `RTM_DELLINK` means that the port left the bridge) but for the port's state, a wireless event (a fragment with `IFLA_WIRELESS`).
pub(super) fn change(message: &Message<'_>, place: &MessageNamespace) -> Option<LinkChange> {
    let family = *message.body.first()?;
    let header = LinkHeader::parse(message.body).ok().filter(|header| header.index != 0)?;
    if i32::from(family) == libc::AF_BRIDGE && message.kind == libc::RTM_NEWLINK {
        let port = attribute(attribute(message.body.get(FIXED..)?, libc::IFLA_PROTINFO)?, PORT_STATE)?;
        return Some(LinkChange::Port(Ifindex(header.index), PortState::from_repr(*port.first()?)?));
    }
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    match message.kind {
        libc::RTM_DELLINK => Some(LinkChange::Gone(Ifindex(header.index))),
        libc::RTM_NEWLINK => {
            let raw = Raw::gather(message.body.get(FIXED..)?);
            (!raw.wireless).then(|| LinkChange::Is(Box::new(raw.described(&header, place))))
        }
        _ => None,
    }
}

/// The attributes that matter, as found.
#[derive(Default)]
struct Raw<'a> {
    name: &'a [u8],
    alias: Option<&'a [u8]>,
    address: &'a [u8],
    mtu: u32,
    tx_queues: Option<u32>,
    rx_queues: Option<u32>,
    operstate: u8,
    master: Option<u32>,
    link: Option<u32>,
    link_netnsid: Option<i32>,
    parent_bus: Option<&'a [u8]>,
    parent: bool,
    wireless: bool,
    info_kind: Option<&'a [u8]>,
    info_data: &'a [u8],
    slave_kind: Option<&'a [u8]>,
    slave_data: &'a [u8],
}

impl<'a> Raw<'a> {
    fn gather(bytes: &'a [u8]) -> Self {
        let mut raw = Self::default();
        for (kind, value) in attributes(bytes) {
            match kind {
                libc::IFLA_IFNAME => raw.name = text(value),
                libc::IFLA_IFALIAS => raw.alias = Some(text(value)),
                libc::IFLA_ADDRESS => raw.address = value,
                libc::IFLA_MTU => raw.mtu = u32_at(value, 0).unwrap_or(0),
                libc::IFLA_NUM_TX_QUEUES => raw.tx_queues = u32_at(value, 0),
                libc::IFLA_NUM_RX_QUEUES => raw.rx_queues = u32_at(value, 0),
                libc::IFLA_OPERSTATE => raw.operstate = value.first().copied().unwrap_or(0),
                libc::IFLA_MASTER => raw.master = u32_at(value, 0).filter(|&index| index != 0),
                libc::IFLA_LINK => raw.link = u32_at(value, 0).filter(|&index| index != 0),
                libc::IFLA_LINK_NETNSID => raw.link_netnsid = i32_at(value, 0),
                libc::IFLA_PARENT_DEV_NAME => raw.parent = true,
                libc::IFLA_PARENT_DEV_BUS_NAME => raw.parent_bus = Some(text(value)),
                libc::IFLA_WIRELESS => raw.wireless = true,
                libc::IFLA_LINKINFO => raw.gather_info(value),
                _ => {}
            }
        }
        raw
    }

    fn gather_info(&mut self, bytes: &'a [u8]) {
        for (kind, value) in attributes(bytes) {
            match kind {
                libc::IFLA_INFO_KIND => self.info_kind = Some(text(value)),
                libc::IFLA_INFO_DATA => self.info_data = value,
                libc::IFLA_INFO_SLAVE_KIND => self.slave_kind = Some(text(value)),
                libc::IFLA_INFO_SLAVE_DATA => self.slave_data = value,
                _ => {}
            }
        }
    }

    fn described(&self, header: &LinkHeader, place: &MessageNamespace) -> Described {
        let sysfs = &*place.sysfs;
        let ifindex = Ifindex(header.index);
        let kind = self.kind(header, place);
        let paired = kind.is_paired();
        let (peer, lower) = match self.linked(ifindex, &kind, place.netns) {
            peer if paired => (peer, None),
            lower => (None, lower),
        };
        let bond_mode = || attribute(self.info_data, BOND_MODE)?.first().copied();
        let facts = LinkFacts {
            netns: place.netns,
            ifindex,
            born: 0,
            name: if self.name.is_empty() { "?".to_owned() } else { clean(self.name) },
            alias: self.alias.filter(|alias| !alias.is_empty()).map(clean),
            state: state(header.flags, self.operstate),
            mtu: self.mtu,
            master: self.master.map(Ifindex),
            slave_kind: self.slave_kind.map(clean),
            port_state: self.port_state(),
            peer,
            lower,
            node: if matches!(kind, Kind::Physical | Kind::Virtio) {
                node(sysfs, self.name, header.index)
            } else {
                None
            },
            bond_mode: if kind == Kind::Bond { bond_mode() } else { None },
            speed_mbps: None,
            speed_was_set: false,
            is_set_up: Some(header.flags.contains(LinkFlags::Up)),
            tx_queues: self.tx_queues,
            rx_queues: self.rx_queues,
            kind,
        };
        Described { facts, address: self.address.into() }
    }

    /// `IFLA_LINK`; of a vxlan its own word. An index equal to the link's own is no link at all, unless it counts in
    /// another namespace: both ends of a container's veth are often number 2. A tunnel that was moved away from where it
    /// was made says its own index even then.
    fn linked(&self, own: Ifindex, kind: &Kind, netns: u64) -> Option<PeerRef> {
        let below = || u32_at(attribute(self.info_data, VXLAN_LINK)?, 0).filter(|&index| index != 0);
        let index = if *kind == Kind::Vxlan { below() } else { self.link }?;
        let here = self.link_netnsid.is_none().then_some(netns);
        let linked = PeerRef { netnsid: self.link_netnsid, netns: here, ifindex: Ifindex(index) };
        let moved = self.link_netnsid.is_some() && !matches!(kind.word(), "geneve" | "wireguard" | "bareudp" | "gtp");
        (moved || linked.ifindex != own).then_some(linked)
    }

    fn port_state(&self) -> Option<PortState> {
        self.slave_kind.filter(|&kind| kind == b"bridge")?;
        PortState::from_repr(*attribute(self.slave_data, PORT_STATE)?.first()?)
    }

    fn kind(&self, header: &LinkHeader, place: &MessageNamespace) -> Kind {
        match self.info_kind {
            Some(b"tun") => self.tun_or_tap(header.link_layer_type),
            Some(word) if !word.is_empty() => Kind::from(clean(word)),
            _ => self.kind_without_info(header, place),
        }
    }

    /// Before Linux 4.15 only the link layer tells: a tap is an Ethernet device.
    fn tun_or_tap(&self, layer: LinkLayerType) -> Kind {
        match attribute(self.info_data, TUN_TYPE).and_then(|value| value.first().copied()) {
            Some(IFF_TUN) => Kind::Tun,
            Some(IFF_TAP) => Kind::Tap,
            _ if layer == LinkLayerType::Ether => Kind::Tap,
            _ => Kind::Tun,
        }
    }

    /// Loopback and whatever a bus brings have no `IFLA_LINKINFO`. What has neither a kind nor a parent gets the word
    /// of its link layer, as `ip link` prints it.
    fn kind_without_info(&self, header: &LinkHeader, place: &MessageNamespace) -> Kind {
        if header.flags.contains(LinkFlags::Loopback) || header.link_layer_type == LinkLayerType::Loopback {
            return Kind::Loopback;
        }
        match self.parent_bus {
            Some(b"virtio") => return Kind::Virtio,
            Some(_) => return Kind::Physical,
            None if self.parent => return Kind::Physical,
            None => {}
        }
        kind_by_sysfs(&place.sysfs, self.name, header.index)
            .or_else(|| kind_by_driver(place.drivers.as_ref()?, header.index))
            .unwrap_or_else(|| Kind::Other(header.link_layer_type.to_string().to_lowercase()))
    }
}

/// /sys/class/net/NAME/device, for kernels that do not name the parent. sysfs shows the namespace it was mounted in, so
/// the ifindex must agree before it is believed: see [`directory`].
fn kind_by_sysfs(sysfs: &Path, name: &[u8], ifindex: u32) -> Option<Kind> {
    let bus = std::fs::read_link(directory(sysfs, name, ifindex)?.join("device/subsystem")).ok()?;
    Some(if bus.file_name() == Some(OsStr::new("virtio")) { Kind::Virtio } else { Kind::Physical })
}

/// What the driver says (`ETHTOOL_GDRVINFO`), where sysfs shows another namespace: only a device has a place on a bus.
fn kind_by_driver(drivers: &Drivers, ifindex: u32) -> Option<Kind> {
    let device = drivers.device(Ifindex(ifindex)).filter(|device| !device.bus.is_empty())?;
    Some(if device.driver == b"virtio_net" { Kind::Virtio } else { Kind::Physical })
}

/// The node of the device, or of the one it sits on (a virtio device on its PCI device); -1 is none.
fn node(sysfs: &Path, name: &[u8], ifindex: u32) -> Option<u32> {
    let link = directory(sysfs, name, ifindex)?;
    let read = |file: &str| std::fs::read_to_string(link.join(file)).ok();
    read("device/numa_node").or_else(|| read("device/../numa_node"))?.trim().parse().ok()
}

/// The link's directory, if it is the same link there.
fn directory(sysfs: &Path, name: &[u8], ifindex: u32) -> Option<PathBuf> {
    if name.is_empty() || name.contains(&b'/') || name.starts_with(b".") {
        return None;
    }
    let link = sysfs.join(OsStr::from_bytes(name));
    let told: u32 = std::fs::read_to_string(link.join("ifindex")).ok()?.trim().parse().ok()?;
    (told == ifindex).then_some(link)
}

/// Administratively down is down, whatever the operational state still says.
fn state(flags: LinkFlags, operstate: u8) -> LinkState {
    if !flags.contains(LinkFlags::Up) {
        return LinkState::Down;
    }
    match State::from(operstate) {
        State::Up => LinkState::Up,
        State::Down => LinkState::Down,
        State::LowerLayerDown => LinkState::LowerLayerDown,
        State::Dormant => LinkState::Dormant,
        State::Testing => LinkState::Testing,
        State::NotPresent => LinkState::NotPresent,
        _ => LinkState::Unknown,
    }
}
