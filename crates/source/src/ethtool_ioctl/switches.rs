//! One switch of a link at a time: read, and for `effect` set. Every kernel has these questions, and one switch is all of a kind of
//! features: TSO of IPv4 and of IPv6.

use super::ioctl::{HEAD, IoctlRequest, IoctlSocket};
use crate::netlink::message::u32_at;
use std::io;
use vnettop_sample::{Ifindex, Offload};

/// `struct ethtool_value`: the value behind the command.
const VALUE: usize = 4;

/// Asks and tells the driver of one namespace's links.
#[derive(Debug)]
pub(crate) struct LinkSwitches(IoctlSocket);

impl LinkSwitches {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        IoctlSocket::open().map(Self)
    }

    /// Whether it is on; `Unsupported` for one that is not asked for here.
    pub fn is_on(&self, link: Ifindex, of: Offload) -> io::Result<bool> {
        let (question, _) = of_switch(of)?;
        let answer = self.0.ask(link, question, [0; HEAD])?;
        Ok(u32_at(&answer, VALUE).is_some_and(|value| value != 0))
    }

    /// Turns it on or off (`CAP_NET_ADMIN`).
    pub fn set(&self, link: Ifindex, of: Offload, on: bool) -> io::Result<()> {
        let (_, order) = of_switch(of)?;
        let mut head = [0; HEAD];
        head[VALUE..VALUE + 4].copy_from_slice(&u32::from(on).to_ne_bytes());
        self.0.ask(link, order, head).map(drop)
    }
}

fn of_switch(of: Offload) -> io::Result<(IoctlRequest, IoctlRequest)> {
    match of {
        Offload::Tso => Ok((IoctlRequest::Tso, IoctlRequest::SetTso)),
        Offload::Gro => Ok((IoctlRequest::Gro, IoctlRequest::SetGro)),
        Offload::Gso | Offload::TxChecksum | Offload::RxChecksum => Err(io::ErrorKind::Unsupported.into()),
    }
}
