//! The ethtool family's features of one link (`ETHTOOL_MSG_FEATURES_GET`, Linux 5.7), by name: their numbers differ from kernel
//! to kernel. Asked for rarely. Every byte is treated as hostile.

use crate::sample::{Ifindex, LinkKey, Offloads};
use crate::source::netlink::dialogue::{BUFFER, Dialogue};
use crate::source::netlink::message::{Message, Request, attribute, attributes, text, u16_at};
use crate::source::netlink::socket::KernelSocket;
use std::io;

/// Generic netlink; `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const NETLINK_GENERIC: isize = 16;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`, bytes.
const FIXED: usize = 4;
/// `ETHTOOL_MSG_FEATURES_GET` and what answers it; `ETHTOOL_A_FEATURES_HEADER`, `ETHTOOL_A_FEATURES_ACTIVE`.
const FEATURES_GET: u8 = 11;
const HEADER: u16 = 1;
const ACTIVE: u16 = 4;
/// `ETHTOOL_A_HEADER_DEV_INDEX`; `NLA_F_NESTED`.
const DEV_INDEX: u16 = 1;
const NESTED: u16 = 1 << 15;
/// `ETHTOOL_A_BITSET_BITS`, in it `ETHTOOL_A_BITSET_BITS_BIT`, in that `ETHTOOL_A_BITSET_BIT_NAME`.
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;

/// A socket of the ethtool family.
#[derive(Debug)]
pub(super) struct Asker {
    dialogue: Dialogue<KernelSocket>,
    family: u16,
}

impl Asker {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        let mut dialogue = Dialogue::new(KernelSocket::open(NETLINK_GENERIC)?);
        let mut request = Request::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0]).with(FAMILY_NAME, b"ethtool\0");
        let id = |message: &Message<'_>| u16_at(attribute(message.body.get(FIXED..)?, FAMILY_ID)?, 0);
        let family = dialogue.get(&mut request, &mut vec![0; BUFFER], id)?;
        let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Self { dialogue, family })
    }

    /// The link's offloads; none where it is gone or its driver does not say.
    pub fn ask(&mut self, netns: u64, ifindex: Ifindex, buffer: &mut [u8]) -> Option<Offloads> {
        let link = LinkKey { netns, ifindex };
        let mut request = request(self.family, ifindex);
        self.dialogue.get(&mut request, buffer, |message| active(message, link)).ok()?
    }
}

fn request(family: u16, ifindex: Ifindex) -> Request {
    let mut header = Vec::with_capacity(8);
    header.extend_from_slice(&8_u16.to_ne_bytes());
    header.extend_from_slice(&DEV_INDEX.to_ne_bytes());
    header.extend_from_slice(&ifindex.0.to_ne_bytes());
    Request::new(family, 0, &[FEATURES_GET, 1, 0, 0]).with(HEADER | NESTED, &header)
}

/// The features that are on: the kernel lists only those.
fn active(message: &Message<'_>, link: LinkKey) -> Option<Offloads> {
    let (fixed, body) = message.body.split_at_checked(FIXED)?;
    let bits = attribute(attribute(body, ACTIVE).filter(|_| fixed[0] == FEATURES_GET)?, BITS)?;
    let mut on = Offloads { link, tso: false, gso: false, gro: false, tx_checksum: false, rx_checksum: false };
    for (_, bit) in attributes(bits).filter(|&(kind, _)| kind == BIT) {
        match attribute(bit, BIT_NAME).map(text) {
            Some(b"tx-tcp-segmentation") => on.tso = true,
            Some(b"tx-generic-segmentation") => on.gso = true,
            Some(b"rx-gro") => on.gro = true,
            Some(b"tx-checksum-ip-generic" | b"tx-checksum-ipv4") => on.tx_checksum = true,
            Some(b"rx-checksum") => on.rx_checksum = true,
            _ => {}
        }
    }
    Some(on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::netlink::message::messages;
    use proptest::prelude::*;

    fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).expect("short").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn answer(names: &[&str]) -> Vec<u8> {
        let bit = |name: &&str| nested(BIT | NESTED, &nested(BIT_NAME, format!("{name}\0").as_bytes()));
        let bits: Vec<u8> = names.iter().flat_map(bit).collect();
        let set = nested(BITS | NESTED, &bits);
        Request::new(30, 0, &[FEATURES_GET, 1, 0, 0]).with(ACTIVE | NESTED, &set).numbered(1).to_vec()
    }

    fn parsed(bytes: &[u8]) -> Vec<Offloads> {
        let link = LinkKey { netns: 1, ifindex: Ifindex(2) };
        messages(bytes).filter_map(|message| active(&message, link)).collect()
    }

    #[test]
    fn the_features_that_are_on_are_found_by_name() {
        let told = parsed(&answer(&["rx-gro", "tx-generic-segmentation", "tx-checksum-ip-generic", "highdma"]));
        let [told] = told[..] else { panic!("one link: {told:?}") };
        assert!(told.gro && told.gso && told.tx_checksum, "three of ours are on: {told:?}");
        assert!(!told.tso && !told.rx_checksum, "what is not listed is off: {told:?}");
    }

    #[test]
    fn the_kernel_tells_of_a_link() {
        // Whether the ethtool family is there is the kernel's affair; where it is, lo has offloads.
        let Ok(mut asker) = Asker::open() else { return };
        let told = asker.ask(1, Ifindex(1), &mut vec![0; BUFFER]).expect("lo says what it does");
        assert!(told.tso && told.gso, "lo puts segments together: {told:?}");
        assert_eq!(asker.ask(1, Ifindex(1 << 30), &mut vec![0; BUFFER]), None, "a link that is not there says nothing");
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
