//! What of a link is not a file of its folder: its switches, its root qdisc, and the backlog of the machine as its namespace shows it;
//! read, and changed for `effect`, which alone calls what changes.

use crate::ethtool_ioctl::LinkSwitches;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{DUMP, Message, Request, attribute, text, u32_at};
use crate::netlink::socket::protocols;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use vnettop_sample::text::clean;
use vnettop_sample::{Ifindex, Offload, QDISC_KINDS};

/// `struct ifinfomsg` and `struct tcmsg`, bytes; the index is at 4 in both, handle and parent at 8 and 12 of the latter.
const LINK_FIXED: usize = 16;
const QDISC_FIXED: usize = 20;
const INDEX: usize = 4;
const HANDLE: usize = 8;
const PARENT: usize = 12;
/// `IFLA_QDISC`, `IFLA_TXQLEN`, `TCA_KIND`, `TCA_OPTIONS`.
const QDISC: u16 = 6;
const QUEUE_LENGTH: u16 = 13;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// `NLM_F_ACK`, `NLM_F_REPLACE`, `NLM_F_CREATE`.
const ACK: u16 = 0x4;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;
/// As the thread's namespace shows it: only the machine's first has it.
const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";
/// What a link has in place of a qdisc while it is down.
const DOWN: &str = "noop";
/// How often the list of qdiscs is read in search of one.
const TRIES: usize = 3;
/// More digits has no number of it.
const DIGITS: usize = 32;

/// The sockets of one namespace, for one of its links.
#[derive(Debug)]
pub struct LinkControls {
    link: Ifindex,
    switches: LinkSwitches,
    netlink: NetlinkClient,
    backlog: io::Result<File>,
}

impl LinkControls {
    /// Opens them in the calling thread's namespace.
    pub(super) fn open(link: Ifindex) -> io::Result<Self> {
        let backlog = OpenOptions::new().read(true).write(true).open(BACKLOG);
        let netlink = NetlinkClient::open(protocols::NETLINK_ROUTE)?;
        Ok(Self { link, switches: LinkSwitches::open()?, netlink, backlog })
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

    /// `net.core.netdev_max_backlog` as the link's namespace shows it.
    ///
    /// # Errors
    /// `Unsupported` where that is not the machine's first: whether it was restored is not known then.
    pub fn backlog(&self) -> io::Result<String> {
        let mut bytes = [0; DIGITS];
        let read = self.backlog_file()?.read_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..read]).trim().to_owned())
    }

    /// Sets it.
    ///
    /// # Errors
    /// As it is read; EPERM.
    pub fn set_backlog(&self, text: &str) -> io::Result<()> {
        self.backlog_file()?.write_at(text.as_bytes(), 0).map(drop)
    }

    fn backlog_file(&self) -> io::Result<&File> {
        self.backlog.as_ref().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let why = "only the machine's first network namespace has it: run it there";
                io::Error::new(io::ErrorKind::Unsupported, why)
            }
            kind => io::Error::new(kind, error.to_string()),
        })
    }

    /// The kind of the root qdisc (`RTM_GETLINK`, `IFLA_QDISC`), and where somebody made it a sum of its parameters, so that one that
    /// was changed since is not taken for ours (`RTM_GETQDISC`): `noqueue`, `fq_codel/5d0c2a91`.
    ///
    /// # Errors
    /// ENODEV when the link is gone.
    pub fn root_qdisc(&mut self) -> io::Result<String> {
        let kind = self.of_link(|attributes| Some(clean(text(attribute(attributes, QDISC)?))))?;
        // A dump of many may miss one while links come and go; what the kernel makes itself may be in none.
        for _ in 0..TRIES {
            match self.made_root()? {
                Some((is_made, sum)) if is_made || kind != QDISC_KINDS[0] => return Ok(format!("{kind}/{sum:08x}")),
                None if ![QDISC_KINDS[0], DOWN].contains(&kind.as_str()) => {}
                _ => return Ok(kind),
            }
        }
        Err(io::Error::other("the kernel does not list its root qdisc"))
    }

    /// Whether somebody made the root qdisc, and the sum of its parameters, as the namespace's list of qdiscs tells it.
    fn made_root(&mut self) -> io::Result<Option<(bool, u32)>> {
        let mut told = None;
        let link = self.link.0;
        let each = |message: &Message<'_>, _: u64| {
            let is_root = u32_at(message.body, INDEX) == Some(link) && u32_at(message.body, PARENT) == Some(ROOT);
            let attributes = message.body.get(QDISC_FIXED..).filter(|_| is_root);
            told = told.or(attributes.map(|attributes| {
                let is_made = u32_at(message.body, HANDLE).is_some_and(|handle| handle != 0);
                (is_made, sum(attribute(attributes, OPTIONS).unwrap_or_default()))
            }));
        };
        let mut request = Request::new(libc::RTM_GETQDISC, DUMP, &[0; QDISC_FIXED]);
        self.netlink.dump(&mut request, "list qdiscs", each).map_err(io::Error::other)?;
        Ok(told)
    }

    /// What the link's own message says (`RTM_GETLINK`).
    fn of_link<T>(&mut self, mut told: impl FnMut(&[u8]) -> Option<T>) -> io::Result<T> {
        let mut fixed = [0; LINK_FIXED];
        fixed[INDEX..INDEX + 4].copy_from_slice(&self.link.0.to_ne_bytes());
        let told = |message: &Message<'_>| told(message.body.get(LINK_FIXED..)?);
        let answer = self.netlink.get(&mut Request::new(libc::RTM_GETLINK, 0, &fixed), told)?;
        answer.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Makes a qdisc of this kind the root, without parameters; the kind that queues nothing is had by taking the root away
    /// (`RTM_NEWQDISC`, `RTM_DELQDISC`).
    ///
    /// # Errors
    /// EPERM, ENOENT where the kernel has no such kind, ENODEV when the link is gone; `Unsupported` for a link whose queue has
    /// length 0, which a qdisc would change for good.
    pub fn set_root_qdisc(&mut self, kind: &str) -> io::Result<()> {
        if kind == QDISC_KINDS[0] {
            return self.netlink.order(&mut Request::new(libc::RTM_DELQDISC, ACK, &self.at_root()));
        }
        if self.of_link(|attributes| u32_at(attribute(attributes, QUEUE_LENGTH)?, 0))? == 0 {
            let why = "its queue has length 0, which a qdisc would change for good";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let kind = [kind.as_bytes(), &[0]].concat();
        let order = Request::new(libc::RTM_NEWQDISC, ACK | CREATE | REPLACE, &self.at_root());
        self.netlink.order(&mut order.with(KIND, &kind))
    }

    fn at_root(&self) -> [u8; QDISC_FIXED] {
        let mut fixed = [0; QDISC_FIXED];
        fixed[INDEX..INDEX + 4].copy_from_slice(&self.link.0.to_ne_bytes());
        fixed[PARENT..PARENT + 4].copy_from_slice(&ROOT.to_ne_bytes());
        fixed
    }
}

/// A sum by which changed parameters are told apart (FNV-1a).
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
