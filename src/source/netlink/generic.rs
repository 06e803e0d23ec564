//! Generic netlink's families are numbered anew at each start of the kernel: their number is asked by name.

use super::dialogue::{BUFFER, Dialogue};
use super::message::{Message, Request, attribute, u16_at};
use super::socket::KernelSocket;
use std::io;

/// `NETLINK_GENERIC`; `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const PROTOCOL: isize = 16;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`, bytes.
pub(in crate::source) const FIXED: usize = 4;

/// Opens a socket in the calling thread's namespace and finds the family of that name, which ends in a NUL.
pub(in crate::source) fn open(name: &[u8]) -> io::Result<(Dialogue<KernelSocket>, u16)> {
    let mut dialogue = Dialogue::new(KernelSocket::open(PROTOCOL)?);
    let mut request = Request::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0]).with(FAMILY_NAME, name);
    let id = |message: &Message<'_>| u16_at(attribute(message.body.get(FIXED..)?, FAMILY_ID)?, 0);
    let family = dialogue.get(&mut request, &mut vec![0; BUFFER], id)?;
    Ok((dialogue, family.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?))
}
