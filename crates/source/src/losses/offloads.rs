//! The features of one link, by name: their numbers differ from kernel to kernel. The ethtool family tells them
//! (`ETHTOOL_MSG_FEATURES_GET`, Linux 5.7), before it the drivers. Asked for rarely. Every byte is treated as hostile.

use crate::ethtool_ioctl::{Drivers, Feature};
use crate::netlink::client::NetlinkClient;
use crate::netlink::generic::{self, FIXED};
use crate::netlink::message::{Message, Request, attribute, attributes, text};
use std::io;
use vnettop_sample::{Ifindex, LinkKey, Offload, Offloads};

/// `ETHTOOL_MSG_FEATURES_GET` and what answers it; `ETHTOOL_A_FEATURES_HEADER`, `_HW` (may be set), `_WANTED`, `_ACTIVE`.
const FEATURES_GET: u8 = 11;
const HEADER: u16 = 1;
const CHANGEABLE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
/// `ETHTOOL_A_HEADER_DEV_INDEX`.
const DEV_INDEX: u16 = 1;
/// `ETHTOOL_A_BITSET_NOMASK` and `_BITS`, in that `ETHTOOL_A_BITSET_BITS_BIT`, in that `ETHTOOL_A_BITSET_BIT_NAME` and
/// `_VALUE`: a set without a mask lists its members, one with a mask every bit, and the members with a value.
const NO_MASK: u16 = 1;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// A socket of the ethtool family, or one to ask the drivers.
#[derive(Debug)]
pub(super) enum Asker {
    Family(NetlinkClient, u16),
    Drivers(Drivers),
}

impl Asker {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        match generic::open("ethtool", FEATURES_GET) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Drivers::open().map(Self::Drivers),
            opened => opened.map(|(netlink, family)| Self::Family(netlink, family.id)),
        }
    }

    /// The link's offloads; none where it is gone or its driver does not say.
    pub fn ask(&mut self, netns: u64, ifindex: Ifindex) -> Option<Offloads> {
        let link = LinkKey { netns, ifindex };
        match self {
            Self::Family(netlink, family) => {
                netlink.get(&mut request(*family, ifindex), |message| active(message, link)).ok()?
            }
            Self::Drivers(drivers) => by_driver(&drivers.features(ifindex).ok()?, link),
        }
    }
}

fn request(family: u16, ifindex: Ifindex) -> Request {
    let of = ifindex.0.to_ne_bytes();
    Request::new(family, 0, &[FEATURES_GET, 1, 0, 0]).with_nested(HEADER, &[(DEV_INDEX, &of)])
}

/// What is on, and what is off though it need not be.
pub(super) fn active(message: &Message<'_>, link: LinkKey) -> Option<Offloads> {
    let (fixed, body) = message.body.split_at_checked(FIXED)?;
    let set = |kind| attribute(body, kind).map(members).unwrap_or_default();
    attribute(attribute(body, ACTIVE).filter(|_| fixed[0] == FEATURES_GET)?, BITS)?;
    let [on, changeable, wanted] = [ACTIVE, CHANGEABLE, WANTED].map(set);
    Some(offloads(link, on, changeable, wanted))
}

/// A link's offloads as its driver lists them; `None` when it names none of [`Offload::EACH`].
fn by_driver(features: &[Feature], link: LinkKey) -> Option<Offloads> {
    let set = |is_member: fn(&Feature) -> bool| {
        let mut found = [false; 5];
        for of in features.iter().filter(|feature| is_member(feature)).filter_map(|feature| named(&feature.name)) {
            found[of as usize] = true;
        }
        found
    };
    features.iter().find(|feature| named(&feature.name).is_some())?;
    Some(offloads(link, set(|of| of.on), set(|of| of.changeable), set(|of| of.wanted)))
}

/// Each set in the order of [`Offload::EACH`].
fn offloads(link: LinkKey, on: [bool; 5], changeable: [bool; 5], wanted: [bool; 5]) -> Offloads {
    let is_unwanted = |of: &Offload| {
        let of = *of as usize;
        !on[of] && changeable[of] && !wanted[of]
    };
    let [tso, gso, gro, tx_checksum, rx_checksum] = on;
    let unwanted = Offload::EACH.into_iter().filter(is_unwanted).collect();
    Offloads { link, tso, gso, gro, tx_checksum, rx_checksum, unwanted, gso_limits: None, xdp: None }
}

/// Which of ours are in a set, in the order of [`Offload::EACH`].
fn members(set: &[u8]) -> [bool; 5] {
    let mut found = [false; 5];
    let has_mask = attribute(set, NO_MASK).is_none();
    let is_member = |bit: &[u8]| !has_mask || attribute(bit, BIT_VALUE).is_some();
    let bits = attribute(set, BITS).unwrap_or_default();
    for (_, bit) in attributes(bits).filter(|&(kind, bit)| kind == BIT && is_member(bit)) {
        if let Some(offload) = attribute(bit, BIT_NAME).map(text).and_then(named) {
            found[offload as usize] = true;
        }
    }
    found
}

/// What a feature is to us.
fn named(name: &[u8]) -> Option<Offload> {
    Some(match name {
        b"tx-tcp-segmentation" => Offload::Tso,
        b"tx-generic-segmentation" => Offload::Gso,
        b"rx-gro" => Offload::Gro,
        b"tx-checksum-ip-generic" | b"tx-checksum-ipv4" => Offload::TxChecksum,
        b"rx-checksum" => Offload::RxChecksum,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::NLA_F_NESTED;
    use crate::netlink::message::messages;
    use crate::sandbox::{inside, ip};
    use proptest::prelude::*;

    fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).expect("short").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// As a real kernel answers: every feature that there is in the set of those that may be set, with a value for those
    /// that may; in the other sets the members alone. TSO was turned off; the checksum follows from something else.
    fn answer(names: &[&str]) -> Vec<u8> {
        let bit = |name: &str, more: &[u8]| {
            nested(BIT | NLA_F_NESTED, &[nested(BIT_NAME, format!("{name}\0").as_bytes()), more.to_vec()].concat())
        };
        let plain = |names: &[&str]| {
            let bits: Vec<u8> = names.iter().flat_map(|name| bit(name, &[])).collect();
            [nested(NO_MASK, &[]), nested(BITS | NLA_F_NESTED, &bits)].concat()
        };
        let value = nested(BIT_VALUE, &[]);
        let masked = ["tx-tcp-segmentation", "rx-gro", "rx-checksum"].map(|name| bit(name, &value)).concat();
        let fixed = bit("tx-generic-segmentation", &[]);
        let changeable = nested(BITS | NLA_F_NESTED, &[masked, fixed].concat());
        let wanted = plain(&["rx-gro", "rx-checksum"]);
        let mut message = Request::new(30, 0, &[FEATURES_GET, 1, 0, 0]).with(ACTIVE | NLA_F_NESTED, &plain(names));
        for (kind, set) in [(CHANGEABLE, changeable), (WANTED, wanted)] {
            message = message.with(kind | NLA_F_NESTED, &set);
        }
        message.numbered(1).to_vec()
    }

    fn parsed(bytes: &[u8]) -> Vec<Offloads> {
        let link = LinkKey { netns: 1, ifindex: Ifindex(2) };
        messages(bytes).filter_map(|message| active(&message, link)).collect()
    }

    #[test]
    fn the_features_that_are_on_are_found_by_name() {
        let reported = parsed(&answer(&["rx-gro", "tx-generic-segmentation", "tx-checksum-ip-generic", "highdma"]));
        let [reported] = &reported[..] else { panic!("one link: {reported:?}") };
        assert!(reported.gro && reported.gso && reported.tx_checksum, "three of ours are on: {reported:?}");
        assert!(!reported.tso && !reported.rx_checksum, "what is not listed is off: {reported:?}");
        assert_eq!(reported.unwanted, [Offload::Tso], "what is wanted and off is off because of another: {reported:?}");
        let [reported] = &parsed(&answer(&["rx-gro"]))[..] else { panic!("one link") };
        assert!(!reported.unwanted.contains(&Offload::Gso), "what is fixed cannot be turned on: {reported:?}");
    }

    #[test]
    fn the_kernel_tells_of_a_link() {
        let drivers = Asker::Drivers(Drivers::open().expect("a socket"));
        for mut asker in [Asker::open().expect("a socket"), drivers] {
            let reported = asker.ask(1, Ifindex(1)).expect("lo says what it does");
            assert!(reported.tso && reported.gso, "lo puts segments together: {reported:?}");
            assert_eq!(asker.ask(1, Ifindex(1 << 30)), None, "a link that is not there says nothing");
        }
    }

    #[test]
    fn drivers_tell_the_offloads_that_netlink_tells() {
        inside("kn-offloads", || {
            assert!(ip("link add veth0 type veth peer name veth1") && ip("link add br0 type bridge"));
            assert!(ip("tuntap add tun0 mode tun"), "a tun");
            let mut by_netlink = Asker::open().expect("a socket");
            let mut by_drivers = Asker::Drivers(Drivers::open().expect("a socket"));
            let reported: Vec<Offloads> = (1..64).filter_map(|link| by_drivers.ask(1, Ifindex(link))).collect();
            assert!(reported.len() >= 5, "lo, both ends, the bridge and the tun: {reported:?}");
            for reported in reported {
                let link = reported.link.ifindex;
                assert_eq!(by_netlink.ask(1, link), Some(reported), "link {link:?}");
            }
        });
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, at in 0_usize..120, byte: u8) {
            parsed(&bytes);
            let mut damaged = answer(&["rx-gro", "rx-checksum"]);
            let length = damaged.len();
            damaged[at % length] = byte;
            parsed(&damaged);
        }
    }
}
