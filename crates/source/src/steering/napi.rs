//! The threads of a link's NAPI (`NETDEV_CMD_NAPI_GET`): their names hold the link's, which many namespaces share, so
//! only the kernel can say whose they are.

use crate::netlink::client::NetlinkClient;
use crate::netlink::generic::{self, FIXED};
use crate::netlink::message::{DUMP, Message, Request, attribute, u32_at};
use std::io;
use vnettop_sample::Ifindex;

/// `NETDEV_CMD_NAPI_GET`; `NETDEV_A_NAPI_IFINDEX`, `NETDEV_A_NAPI_PID`.
const NAPI_GET: u8 = 11;
const IFINDEX: u16 = 1;
const PID: u16 = 4;
/// Most NAPI threads of a link; with more of them their cores are unknown rather than half known.
const MOST: usize = 1024;

/// A socket of the netdev family.
#[derive(Debug)]
pub(super) struct NetdevSocket {
    netlink: NetlinkClient,
    family: u16,
}

impl NetdevSocket {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        let (netlink, family) = generic::open("netdev", NAPI_GET)?;
        Ok(Self { netlink, family: family.id })
    }

    /// Process numbers of the NAPI threads; empty when NAPI runs in softirqs, or this kernel does not say.
    pub fn threads(&mut self, ifindex: Ifindex) -> Vec<u32> {
        let mut request = Request::new(self.family, DUMP, &[NAPI_GET, 1, 0, 0]).with(IFINDEX, &ifindex.0.to_ne_bytes());
        let mut threads = Vec::new();
        let each = |message: &Message<'_>, _: u64| threads.extend(thread(message));
        let received = self.netlink.dump(&mut request, "list NAPIs", each);
        if received.is_ok() && threads.len() <= MOST { threads } else { Vec::new() }
    }
}

pub(super) fn thread(message: &Message<'_>) -> Option<u32> {
    let (fixed, body) = message.body.split_at_checked(FIXED)?;
    u32_at(attribute(body, PID).filter(|_| fixed[0] == NAPI_GET)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::messages;
    use proptest::prelude::*;

    fn threads(bytes: &[u8]) -> Vec<u32> {
        messages(bytes).filter_map(|message| thread(&message)).collect()
    }

    #[test]
    fn a_threads_number_is_told_where_there_is_one() {
        let answer = |command| Request::new(30, 0, &[command, 1, 0, 0]).with(IFINDEX, &2_u32.to_ne_bytes());
        assert_eq!(threads(answer(NAPI_GET).numbered(1)), [0; 0], "NAPI in softirqs has no thread");
        let with = |command| answer(command).with(PID, &812_u32.to_ne_bytes());
        assert_eq!(threads(with(NAPI_GET).numbered(1)), [812], "the thread's number");
        assert_eq!(threads(with(10).numbered(1)), [0; 0], "another command's answer is not this one's");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            threads(&bytes);
        }
    }
}
