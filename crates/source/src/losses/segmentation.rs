//! `RTM_GETLINK` of one link: what its offloads depend on besides its features, limits of segmentation and XDP. The kernel
//! announces neither for sure, so they are asked for. Every byte is treated as hostile.

use crate::netlink::message::{Message, attribute, u32_at};
use vnettop_sample::{GsoLimits, XdpProgram};

/// `struct ifinfomsg`, bytes.
const FIXED: usize = 16;
/// `IFLA_GSO_MAX_SEGS`, `IFLA_GSO_MAX_SIZE`, `IFLA_XDP`, `IFLA_TSO_MAX_SIZE`, `IFLA_TSO_MAX_SEGS`, `IFLA_GSO_IPV4_MAX_SIZE`.
const GSO_SEGMENTS: u16 = 40;
const GSO_SIZE: u16 = 41;
const XDP: u16 = 43;
const DEVICE_SIZE: u16 = 59;
const DEVICE_SEGMENTS: u16 = 60;
const GSO_IPV4_SIZE: u16 = 63;
/// `IFLA_XDP_ATTACHED` with `XDP_ATTACHED_NONE` and `_SKB`, and `IFLA_XDP_PROG_ID`.
const ATTACHED: u16 = 2;
const ATTACHED_NONE: u8 = 0;
const ATTACHED_GENERIC: u8 = 2;
const PROGRAM: u16 = 4;

/// What the answer says of both.
pub(super) fn parse(message: &Message<'_>) -> Option<(Option<GsoLimits>, Option<XdpProgram>)> {
    let attributes = message.body.get(FIXED..).filter(|_| message.kind == libc::RTM_NEWLINK)?;
    let number = |kind| u32_at(attribute(attributes, kind)?, 0);
    let limits = || {
        Some(GsoLimits {
            size: number(GSO_SIZE)?,
            ipv4_size: number(GSO_IPV4_SIZE),
            segments: number(GSO_SEGMENTS)?,
            device_size: number(DEVICE_SIZE),
            device_segments: number(DEVICE_SEGMENTS),
        })
    };
    Some((limits(), attribute(attributes, XDP).and_then(program)))
}

fn program(xdp: &[u8]) -> Option<XdpProgram> {
    let attached = *attribute(xdp, ATTACHED)?.first()?;
    let id = attribute(xdp, PROGRAM).and_then(|id| u32_at(id, 0)).filter(|&id| id != 0);
    (attached != ATTACHED_NONE).then_some(XdpProgram { id, native: attached != ATTACHED_GENERIC })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::facts;
    use crate::netlink::client::NetlinkClient;
    use crate::netlink::message::{NLA_F_NESTED, Request, messages};
    use crate::netlink::socket::protocols;
    use crate::sandbox::{inside, ip};
    use proptest::prelude::*;
    use vnettop_sample::Ifindex;

    /// A link whose driver runs program 7, and that takes packets of one segment.
    fn answer(attached: u8) -> Vec<u8> {
        let message = Request::new(libc::RTM_NEWLINK, 0, &[0; FIXED])
            .with(GSO_SIZE, &1500_u32.to_ne_bytes())
            .with(GSO_SEGMENTS, &1_u32.to_ne_bytes())
            .with_nested(XDP | NLA_F_NESTED, &[(ATTACHED, &[attached]), (PROGRAM, &7_u32.to_ne_bytes())]);
        message.clone().numbered(1).to_vec()
    }

    fn parsed(bytes: &[u8]) -> Option<(Option<GsoLimits>, Option<XdpProgram>)> {
        messages(bytes).find_map(|message| parse(&message))
    }

    #[test]
    fn limits_and_programs_are_read() {
        let (limits, xdp) = parsed(&answer(1)).expect("a link");
        let limits = limits.expect("both limits are there");
        assert_eq!((limits.size, limits.segments, limits.ipv4_size), (1500, 1, None), "before Linux 6.3");
        assert_eq!(xdp, Some(XdpProgram { id: Some(7), native: true }), "in the driver");
        let generic = parsed(&answer(ATTACHED_GENERIC)).and_then(|(_, xdp)| xdp);
        assert_eq!(generic, Some(XdpProgram { id: Some(7), native: false }), "behind the driver");
        assert_eq!(parsed(&answer(ATTACHED_NONE)).and_then(|(_, xdp)| xdp), None, "no program");
    }

    #[test]
    fn the_kernel_tells_the_limits_that_were_set() {
        inside("kn-gso", || {
            assert!(ip("link add veth0 type veth peer name veth1"), "a pair");
            assert!(ip("link set veth0 gso_max_size 1500 gso_max_segs 1"), "its limits");
            let mut netlink = NetlinkClient::open(protocols::NETLINK_ROUTE).expect("a socket");
            let mut reported = (2..64).filter_map(|index| {
                let request = &mut facts::request(Some(Ifindex(index)));
                netlink.get(request, parse).ok().flatten()?.0
            });
            assert!(reported.any(|limits| (limits.size, limits.segments) == (1500, 1)), "one end has them");
        });
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, at in 0_usize..120, byte: u8) {
            parsed(&bytes);
            let mut damaged = answer(1);
            let length = damaged.len();
            damaged[at % length] = byte;
            parsed(&damaged);
        }
    }
}
