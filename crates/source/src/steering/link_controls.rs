//! What of a link is not a file: its switches and its root qdisc, read, and changed for `effect`, which alone calls what changes.

use crate::ethtool_ioctl::LinkSwitches;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{Message, Request, attribute, text};
use crate::netlink::socket::protocols;
use std::io;
use vnettop_sample::text::clean;
use vnettop_sample::{Ifindex, Offload, QDISC_KINDS};

/// `struct ifinfomsg` and `struct tcmsg`, bytes; the index is at 4 in both, the parent at 12 of the latter.
const LINK_FIXED: usize = 16;
const QDISC_FIXED: usize = 20;
const INDEX: usize = 4;
const PARENT: usize = 12;
/// `IFLA_QDISC`, `TCA_KIND`.
const LINK_QDISC: u16 = 6;
const KIND: u16 = 1;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// `NLM_F_ACK`, `NLM_F_REPLACE`, `NLM_F_CREATE`.
const ACK: u16 = 0x4;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;

/// The sockets of one namespace, for one of its links.
#[derive(Debug)]
pub struct LinkControls {
    link: Ifindex,
    switches: LinkSwitches,
    netlink: NetlinkClient,
}

impl LinkControls {
    /// Opens them in the calling thread's namespace.
    pub(super) fn open(link: Ifindex) -> io::Result<Self> {
        Ok(Self { link, switches: LinkSwitches::open()?, netlink: NetlinkClient::open(protocols::NETLINK_ROUTE)? })
    }

    /// Whether a switch is on (`ETHTOOL_GGRO`, `ETHTOOL_GTSO`).
    ///
    /// # Errors
    /// ENODEV when the link is gone, EOPNOTSUPP where its driver has no such switch.
    pub fn is_on(&self, of: Offload) -> io::Result<bool> {
        self.switches.is_on(self.link, of)
    }

    /// Turns a switch on or off (`ETHTOOL_SGRO`, `ETHTOOL_STSO`).
    ///
    /// # Errors
    /// EPERM, EOPNOTSUPP where it cannot be changed, ENODEV when the link is gone.
    pub fn set(&self, of: Offload, on: bool) -> io::Result<()> {
        self.switches.set(self.link, of, on)
    }

    /// The kind of the root qdisc (`RTM_GETLINK`, `IFLA_QDISC`).
    ///
    /// # Errors
    /// ENODEV when the link is gone.
    pub fn root_qdisc(&mut self) -> io::Result<String> {
        let kind = |message: &Message<'_>| {
            let kind = attribute(message.body.get(LINK_FIXED..)?, LINK_QDISC)?;
            Some(clean(text(kind)))
        };
        let mut request = Request::new(libc::RTM_GETLINK, 0, &self.fixed::<LINK_FIXED>());
        self.netlink.get(&mut request, kind)?.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Makes a qdisc of this kind the root, without parameters; the kind that queues nothing is had by taking the root away
    /// (`RTM_NEWQDISC`, `RTM_DELQDISC`).
    ///
    /// # Errors
    /// EPERM, ENOENT where the kernel has no such kind, ENODEV when the link is gone.
    pub fn set_root_qdisc(&mut self, kind: &str) -> io::Result<()> {
        let mut fixed = self.fixed::<QDISC_FIXED>();
        fixed[PARENT..PARENT + 4].copy_from_slice(&ROOT.to_ne_bytes());
        if kind == QDISC_KINDS[0] {
            return self.netlink.order(&mut Request::new(libc::RTM_DELQDISC, ACK, &fixed));
        }
        let kind = [kind.as_bytes(), &[0]].concat();
        self.netlink.order(&mut Request::new(libc::RTM_NEWQDISC, ACK | CREATE | REPLACE, &fixed).with(KIND, &kind))
    }

    fn fixed<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut fixed = [0; LENGTH];
        fixed[INDEX..INDEX + 4].copy_from_slice(&self.link.0.to_ne_bytes());
        fixed
    }
}
