//! What drivers claim: speeds from the kernel's ethtool family (generic netlink, Linux 5.6), and the news that someone
//! set one. It knows nothing of links but their index, and nothing of what a claim is worth. Older kernels' drivers are asked
//! one by one (`source/ethtool_ioctl`), and have no news.

use crate::SourceError;
use crate::netlink::client::{NetlinkClient, with_buffer};
use crate::netlink::generic::{self, FIXED};
use crate::netlink::message::{DUMP, Message, Request, attribute, messages, u32_at};
use crate::netlink::socket::{KernelSocket, Transport, protocols};
use std::io;
use vnettop_sample::Ifindex;

/// `ETHTOOL_MSG_LINKMODES_GET` and, from the kernel, `…_GET_REPLY`; `ETHTOOL_MSG_LINKMODES_NTF`.
const LINKMODES_GET: u8 = 4;
const LINKMODES_NTF: u8 = 5;
/// `ETHTOOL_A_LINKMODES_HEADER`, `ETHTOOL_A_LINKMODES_SPEED`.
const HEADER: u16 = 1;
const SPEED: u16 = 5;
/// `ETHTOOL_A_HEADER_DEV_INDEX`, `ETHTOOL_A_HEADER_FLAGS`.
const DEV_INDEX: u16 = 1;
const FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_COMPACT_BITSETS`: the link modes as bits, not as a list of names.
const COMPACT_BITSETS: u32 = 1;

/// A driver's word on a link's speed, Mb/s.
type ClaimedSpeed = (Ifindex, Option<u32>);

/// Netlink client of the ethtool family: asks drivers for speeds, and hears of those that are set.
#[derive(Debug)]
pub(super) struct EthtoolSpeed<W> {
    netlink: NetlinkClient<W>,
    monitor: W,
    family: u16,
    everyone: Request,
}

impl EthtoolSpeed<KernelSocket> {
    /// Finds the family and begins to listen.
    pub fn open() -> io::Result<Self> {
        let (netlink, family) = generic::open("ethtool", LINKMODES_GET)?;
        let mut monitor = KernelSocket::open(protocols::NETLINK_GENERIC)?;
        if let Some(group) = family.group("monitor") {
            monitor.join(group)?;
        }
        Ok(Self::new(netlink, monitor, family.id))
    }
}

impl<W: Transport> EthtoolSpeed<W> {
    pub fn new(netlink: NetlinkClient<W>, monitor: W, family: u16) -> Self {
        Self { netlink, monitor, family, everyone: request(family, None) }
    }

    /// Every link whose driver says something. An error ends it early: what was heard until then stands.
    pub fn dump(&mut self, mut each: impl FnMut(ClaimedSpeed)) -> Result<(), SourceError> {
        let received = self.netlink.dump(&mut self.everyone, "dump link speeds", |message, _| {
            if let Some(claim) = claim(message, LINKMODES_GET) {
                each(claim);
            }
        });
        received.map(drop)
    }

    /// One link's driver; `Unsupported` when it says nothing at all.
    pub fn ask(&mut self, ifindex: Ifindex) -> io::Result<Option<u32>> {
        let mut request = request(self.family, Some(ifindex));
        let answer = self.netlink.get(&mut request, |message| claim(message, LINKMODES_GET))?;
        Ok(answer.and_then(|(_, mbps)| mbps))
    }

    /// Hands over what was set since the last call; true if any claim may have changed.
    pub fn announced(&self, mut each: impl FnMut(ClaimedSpeed)) -> bool {
        let mut stale = false;
        with_buffer(|buffer| {
            loop {
                match self.monitor.receive(buffer) {
                    Ok(length) => {
                        stale = true;
                        let datagram = &buffer[..length.min(buffer.len())];
                        messages(datagram).filter_map(|message| claim(&message, LINKMODES_NTF)).for_each(&mut each);
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => stale = true,
                    Err(_) => return stale,
                }
            }
        })
    }
}

/// `LINKMODES_GET` of one link or of all.
fn request(family: u16, ifindex: Option<Ifindex>) -> Request {
    let dump = if ifindex.is_none() { DUMP } else { 0 };
    let of = ifindex.unwrap_or(Ifindex(0)).0.to_ne_bytes();
    let header: [(u16, &[u8]); 2] = [(DEV_INDEX, &of), (FLAGS, &COMPACT_BITSETS.to_ne_bytes())];
    let header = &header[usize::from(ifindex.is_none())..];
    Request::new(family, dump, &[LINKMODES_GET, 1, 0, 0]).with_nested(HEADER, header)
}

/// The claim in a reply or a notification of that command.
pub(super) fn claim(message: &Message<'_>, command: u8) -> Option<ClaimedSpeed> {
    let (fixed, body) = message.body.split_at_checked(FIXED)?;
    let header = attribute(body, HEADER).filter(|_| fixed[0] == command)?;
    let ifindex = Ifindex(u32_at(attribute(header, DEV_INDEX)?, 0)?);
    Some((ifindex, attribute(body, SPEED).and_then(|value| known(u32_at(value, 0)?))))
}

/// The values for which `ethtool` prints "Unknown!".
pub(super) fn known(mbps: u32) -> Option<u32> {
    Some(mbps).filter(|&mbps| mbps != 0 && mbps != u32::from(u16::MAX) && mbps != u32::MAX)
}
