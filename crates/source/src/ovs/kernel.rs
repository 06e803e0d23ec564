//! The kernel's datapaths of Open vSwitch in one namespace (generic netlink family `ovs_datapath`): what they have counted.
//! The kernel tells it to everybody (`OVS_DP_CMD_GET` asks for no right); only another's namespace must be entered first.
//! Every byte is treated as hostile: what does not fit is no datapath, nothing panics.

use crate::netlink::client::NetlinkClient;
use crate::netlink::generic::{self, FIXED};
use crate::netlink::message::{DUMP, Message, Request, attribute, text, u32_at, u64_at};
use crate::netlink::socket::KernelSocket;
use std::io;
use vnettop_sample::text::clean;
use vnettop_sample::{OvsDatapath, OvsDatapathKind};

const FAMILY: &str = "ovs_datapath";
/// `OVS_DP_CMD_GET`, `OVS_DATAPATH_VERSION`.
const GET: u8 = 3;
const VERSION: u8 = 2;
/// `struct ovs_header`, bytes: the index of the datapath's own link.
const OWN: usize = 4;
/// `OVS_DP_ATTR_NAME`, `OVS_DP_ATTR_STATS` (`struct ovs_dp_stats`: hit, missed, lost, flows).
const NAME: u16 = 1;
const STATS: u16 = 3;
/// A namespace has one for all its bridges; beyond as many the rest is left out.
const MOST: usize = 64;

/// A socket of the family in one namespace.
#[derive(Debug)]
pub(super) struct DatapathSocket {
    netlink: NetlinkClient<KernelSocket>,
    request: Request,
}

impl DatapathSocket {
    /// Opens it in the calling thread's namespace; none where the kernel has no such datapath.
    pub fn open() -> io::Result<Option<Self>> {
        match generic::open(FAMILY, GET) {
            Ok((netlink, family)) => Ok(Some(Self { netlink, request: request(family.id) })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What every datapath of the namespace has counted. One that cannot be read has no counters this time.
    pub fn read(&mut self, netns: u64, socket: &str, into: &mut Vec<OvsDatapath>) {
        let first = into.len();
        let received = self.netlink.dump(&mut self.request, "list datapaths", |message, at_ns| {
            if into.len() - first < MOST {
                into.extend(datapath(message, netns, socket, at_ns));
            }
        });
        // A dump that broke off or was disturbed may tell one twice, or half of them.
        if received.map_or(true, |received| received.interrupted) {
            into.truncate(first);
        }
    }
}

fn request(family: u16) -> Request {
    Request::new(family, DUMP, &[GET, VERSION, 0, 0, 0, 0, 0, 0])
}

/// What the message says of a datapath, read at that time.
fn datapath(message: &Message<'_>, netns: u64, socket: &str, at_ns: u64) -> Option<OvsDatapath> {
    let own = u32_at(message.body, FIXED)?;
    let attributes = message.body.get(FIXED + OWN..)?;
    let stats = attribute(attributes, STATS)?;
    Some(OvsDatapath {
        socket: socket.to_owned(),
        netns,
        kind: OvsDatapathKind::System,
        name: clean(text(attribute(attributes, NAME)?)),
        born: u64::from(own),
        at_ns,
        hit: u64_at(stats, 0)?,
        missed: u64_at(stats, 8)?,
        lost: u64_at(stats, 16)?,
        flows: u64_at(stats, 24)?,
    })
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(message: &Message<'_>) {
    datapath(message, 7, "s", 9);
}

#[cfg(test)]
mod tests;
