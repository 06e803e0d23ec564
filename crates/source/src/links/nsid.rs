//! Which namespace a link means by the number its own namespace gave it (`IFLA_LINK_NETNSID`): asked for by descriptor,
//! because the kernel tells the number of a namespace, not the namespace of a number.

use crate::netlink::message::{Message, Request, attribute, i32_at};

/// `RTM_NEWNSID`, `RTM_GETNSID` (Linux 4.0).
const NEWNSID: u16 = 88;
const GETNSID: u16 = 90;
/// `NETNSA_NSID`, `NETNSA_FD`.
const NSID: u16 = 1;
const FD: u16 = 3;
/// `struct rtgenmsg`, padded.
const FIXED: [u8; 4] = [0; 4];

/// Asks for the number of the namespace that this descriptor of ours is open on.
pub(crate) fn request(descriptor: i32) -> Request {
    Request::new(GETNSID, 0, &FIXED).with(FD, &descriptor.to_ne_bytes())
}

/// The number; none where the namespace has none here (`NETNSA_NSID_NOT_ASSIGNED`, -1).
pub(crate) fn number(message: &Message<'_>) -> Option<i32> {
    let value = attribute(message.body.get(FIXED.len()..)?, NSID).filter(|_| message.kind == NEWNSID)?;
    i32_at(value, 0).filter(|&number| number >= 0)
}
