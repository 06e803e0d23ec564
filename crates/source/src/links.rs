//! Links of one network namespace: what each is (`RTM_GETLINK` once, then notifications), what each moved
//! (`RTM_GETSTATS` every tick), what each claims (ethtool's family or its ioctl, when something changed). A namespace is entered by
//! whoever opens the reader; its sockets stay there. It computes no rate and judges no claim.

pub mod all_namespaces;
mod claimed_speed;
mod counters;
pub(super) mod facts;
mod idle_links;
pub(super) mod nsid;
mod reader;
mod table;
#[cfg(test)]
mod tests;

use crate::ethtool_ioctl::Drivers;
use crate::netlink::client::NetlinkClient;
use crate::netlink::socket::{KernelSocket, protocols};
use crate::{SourceError, host};
use claimed_speed::EthtoolSpeed;
use facts::MessageNamespace;
pub use reader::LinkReader;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use vnettop_sample::{LinkCounters, LinkFacts};

/// Holds about 600 unread notifications; the default buffer holds 92.
const NOTIFICATION_BUFFER: usize = 1024 * 1024;
/// The calling thread's network namespace; its inode is the namespace's name.
const OWN_NETNS: &str = "/proc/thread-self/ns/net";
/// From this version on the kernel names a link's device (`IFLA_PARENT_DEV_NAME`).
const NAMES_DEVICES: (u32, u32) = (5, 14);

/// One reading of every link.
#[derive(Debug)]
pub struct LinkReading {
    /// `CLOCK_MONOTONIC` of the first datagram of counters, ns.
    pub at_ns: u64,
    /// What each link is, sorted by ifindex; the same `Arc` as before when nothing changed.
    pub links: Arc<Vec<Arc<LinkFacts>>>,
    /// What each moved, sorted by ifindex, only of links that are in `links`.
    pub counters: Vec<LinkCounters>,
}

impl LinkReader {
    /// Opens the calling thread's network namespace and reads which links it has.
    ///
    /// # Errors
    /// No netlink (a sandbox, a missing permission), no /proc, or a kernel that cannot list its links. Missing speeds
    /// are no error but a [problem](Self::problems).
    pub fn open() -> Result<Self, SourceError> {
        Self::open_with(facts::SYSFS, EthtoolSpeed::open())
    }

    fn open_with(sysfs: &str, claims: io::Result<EthtoolSpeed<KernelSocket>>) -> Result<Self, SourceError> {
        let netns =
            std::fs::metadata(OWN_NETNS).map_err(|error| SourceError::File { path: OWN_NETNS.into(), error })?.ino();
        let failed = |operation| move |error: io::Error| SourceError::Netlink { operation, error };
        let route = || KernelSocket::open(protocols::NETLINK_ROUTE);
        let dumps = route().map_err(failed("open a socket"))?;
        dumps.check_strictly();
        let mut news = route().map_err(failed("open a socket"))?;
        news.enlarge(NOTIFICATION_BUFFER);
        news.join(libc::RTNLGRP_LINK).map_err(failed("subscribe to link notifications"))?;
        let asks_drivers = claims.is_err() || host::is_before(NAMES_DEVICES);
        let drivers = if asks_drivers { Drivers::open().ok() } else { None };
        let place = MessageNamespace { netns, sysfs: sysfs.into(), drivers };
        Self::over(NetlinkClient::new(dumps), news, claims, place, reader::CLAIMS_SETTLE_NS)
    }

    /// Opens the calling thread's network namespace although the mounted /sys shows another one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_elsewhere() -> Result<Self, SourceError> {
        Self::open_with("", EthtoolSpeed::open())
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    let _ = (claimed_speed::claim(message, 4), counters::row(message, 1, 1));
    facts::change(message, &facts::MessageNamespace::default());
}
