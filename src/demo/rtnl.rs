//! The links and addresses of the demo, made through rtnetlink: one request, one acknowledgement, one sentence when it
//! fails. It reads no counters; the links on screen come from `source::links` like any others.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// A request that the kernel refused: what was asked, why not, what helps.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {error}{}", advice(error))]
pub struct RtnlError {
    /// As in "create bridge demo0".
    what: String,
    /// The kernel's answer.
    #[source]
    error: io::Error,
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

/// A rtnetlink socket; it stays bound to the network namespace it was opened in, also after the process left it.
pub struct Rtnl {
    socket: Socket,
    sequence: u32,
}

impl Rtnl {
    /// Opens a socket in the network namespace the calling thread is in now.
    pub fn open() -> Result<Self, RtnlError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(Self { socket, sequence: 0 })
        };
        open().map_err(failed(|| "open a rtnetlink socket".to_owned()))
    }

    /// Creates the bridge `name` and brings it up.
    pub fn create_bridge(&mut self, name: &str) -> Result<(), RtnlError> {
        let mut bridge = up(name);
        bridge.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
        self.create(bridge).map_err(failed(|| format!("create bridge {name}")))
    }

    /// Creates the veth `name`, up, as a port of `bridge`, and its peer `peer`, down, in the network namespace of process
    /// `pid`. (A veth created with its peer up is refused: opening one end takes the other, which is not there yet.)
    pub fn create_veth(&mut self, name: &str, bridge: &str, peer: &str, pid: u32) -> Result<(), RtnlError> {
        let bridge = self.index_of(bridge)?;
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        far.attributes.push(LinkAttribute::NetNsPid(pid));
        let mut near = up(name);
        near.attributes.push(LinkAttribute::Controller(bridge));
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.create(near).map_err(failed(|| format!("create veth {name} with its peer {peer}")))
    }

    /// Brings the link `name` up.
    pub fn set_up(&mut self, name: &str) -> Result<(), RtnlError> {
        self.acknowledged(RouteNetlinkMessage::SetLink(up(name)), 0).map_err(failed(|| format!("bring {name} up")))
    }

    /// Gives the link `name` an IPv4 address.
    pub fn add_address(&mut self, name: &str, address: Ipv4Addr, prefix: u8) -> Result<(), RtnlError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.index = self.index_of(name)?;
        message.attributes.push(AddressAttribute::Local(IpAddr::V4(address)));
        message.attributes.push(AddressAttribute::Address(IpAddr::V4(address)));
        self.acknowledged(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
            .map_err(failed(|| format!("give {name} the address {address}/{prefix}")))
    }

    fn index_of(&mut self, name: &str) -> Result<u32, RtnlError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let what = failed(|| format!("look up link {name}"));
        match self.request(RouteNetlinkMessage::GetLink(message), 0) {
            Ok(Some(RouteNetlinkMessage::NewLink(link))) => Ok(link.header.index),
            Ok(_) => Err(what(io::Error::from(io::ErrorKind::NotFound))),
            Err(error) => Err(what(error)),
        }
    }

    fn create(&mut self, link: LinkMessage) -> io::Result<()> {
        self.acknowledged(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn acknowledged(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request(message, flags).map(drop)
    }

    /// Sends one request and reads until its acknowledgement; the object that came before it, if any, is the answer.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = None;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while let Some((message, length)) = first_message(rest)? {
                rest = rest.get(length..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answer),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(inner) => answer = Some(inner),
                    _ => {}
                }
            }
        }
    }
}

/// The first message of a datagram and the bytes it takes with its padding; nothing when the datagram is used up.
fn first_message(bytes: &[u8]) -> io::Result<Option<(NetlinkMessage<RouteNetlinkMessage>, usize)>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
    let length = NetlinkBuffer::new_checked(bytes).map_err(invalid)?.length() as usize;
    let message = NetlinkMessage::deserialize(bytes).map_err(invalid)?;
    Ok(Some((message, length.next_multiple_of(4))))
}

/// A link message that names a link and asks for it to be up.
fn up(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn failed(what: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> RtnlError {
    |error| RtnlError { what: what(), error }
}
