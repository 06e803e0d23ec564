//! The links and addresses of the demo, made through rtnetlink: one request, one acknowledgement, one sentence when it
//! fails. It reads no counters; the links on screen come from `source::links` like any others.

use crate::networks::RoleError;
use crate::source::netlink::client::NetlinkClient;
use crate::source::netlink::message::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, Request, nested, u32_at};
use crate::source::netlink::socket::protocols;
use std::io;
use std::net::Ipv4Addr;

/// `VETH_INFO_PEER`: the other end, a link message of its own.
const PEER: u16 = 1;
/// `AF_INET` of `struct ifaddrmsg`.
const IPV4: u8 = 2;
/// What is asked for is to be made, and is not there yet.
const CREATE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
/// `struct ifinfomsg` of a link about which nothing else is said, and of one that is to be up (`IFF_UP`, and that this is meant).
const LINK: [u8; 16] = [0; 16];
const UP: [u32; 4] = [0, 0, 1, 1];

/// A rtnetlink socket; it stays bound to the network namespace it was opened in, also after the process left it.
pub struct Rtnl(NetlinkClient);

impl Rtnl {
    /// Opens a socket in the network namespace the calling thread is in now.
    pub fn open() -> Result<Self, RoleError> {
        NetlinkClient::open(protocols::NETLINK_ROUTE).map(Self).map_err(failed(|| "open a rtnetlink socket".to_owned()))
    }

    /// Creates the bridge `name` and brings it up.
    pub fn create_bridge(&mut self, name: &str) -> Result<(), RoleError> {
        let bridge = up(libc::RTM_NEWLINK, CREATE, name);
        let mut bridge = bridge.with_nested(libc::IFLA_LINKINFO, &[(libc::IFLA_INFO_KIND, b"bridge")]);
        self.0.order(&mut bridge).map_err(failed(|| format!("create bridge {name}")))
    }

    /// Creates the veth `name`, up, as a port of `bridge`, and its peer `peer`, down, in the network namespace of process
    /// `pid`. (A veth created with its peer up is refused: opening one end takes the other, which is not there yet.)
    pub fn create_veth(&mut self, name: &str, bridge: &str, peer: &str, pid: u32) -> Result<(), RoleError> {
        let bridge = self.index_of(bridge)?.to_ne_bytes();
        let far = nested(&[(libc::IFLA_IFNAME, peer.as_bytes()), (libc::IFLA_NET_NS_PID, &pid.to_ne_bytes())]);
        let data = nested(&[(PEER, &[&LINK[..], &far].concat())]);
        let info: [(u16, &[u8]); 2] = [(libc::IFLA_INFO_KIND, b"veth"), (libc::IFLA_INFO_DATA, &data)];
        let veth = up(libc::RTM_NEWLINK, CREATE, name).with(libc::IFLA_MASTER, &bridge);
        let done = self.0.order(&mut veth.with_nested(libc::IFLA_LINKINFO, &info));
        done.map_err(failed(|| format!("create veth {name} with its peer {peer}")))
    }

    /// Brings the link `name` up.
    pub fn set_up(&mut self, name: &str) -> Result<(), RoleError> {
        let mut request = up(libc::RTM_SETLINK, NLM_F_ACK, name);
        self.0.order(&mut request).map_err(failed(|| format!("bring {name} up")))
    }

    /// Gives the link `name` an IPv4 address.
    pub fn add_address(&mut self, name: &str, address: Ipv4Addr, prefix: u8) -> Result<(), RoleError> {
        // `struct ifaddrmsg`.
        let fixed = [[IPV4, prefix, 0, 0], self.index_of(name)?.to_ne_bytes()].concat();
        let request = Request::new(libc::RTM_NEWADDR, CREATE, &fixed).with(libc::IFA_LOCAL, &address.octets());
        let done = self.0.order(&mut request.with(libc::IFA_ADDRESS, &address.octets()));
        done.map_err(failed(|| format!("give {name} the address {address}/{prefix}")))
    }

    fn index_of(&mut self, name: &str) -> Result<u32, RoleError> {
        let mut request = Request::new(libc::RTM_GETLINK, 0, &LINK).with(libc::IFLA_IFNAME, name.as_bytes());
        let answer = self.0.get(&mut request, |link| u32_at(link.body, 4));
        let index = answer.and_then(|index| index.ok_or_else(|| io::ErrorKind::NotFound.into()));
        index.map_err(failed(|| format!("look up link {name}")))
    }
}

/// A message about the link of that name, which is to be up.
fn up(kind: u16, flags: u16, name: &str) -> Request {
    Request::new(kind, flags, UP.map(u32::to_ne_bytes).as_flattened()).with(libc::IFLA_IFNAME, name.as_bytes())
}

/// A request that the kernel refused: what was asked, why not, what helps.
fn failed(what: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> RoleError {
    |error| RoleError::Said(format!("cannot {}: {error}{}", what(), advice(&error)))
}

fn advice(error: &io::Error) -> &'static str {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::OPNOTSUPP) => {
            ": this kernel lacks the link kind; load its module (modprobe bridge veth)"
        }
        Some(rustix::io::Errno::PERM) => ": the right to configure the private namespace is missing; try as root",
        _ => "",
    }
}
