//! What is asked only where there is a wireguard or a rule about marks, through sockets that are opened for it.

use super::holder::unfound;
use super::{KernelQueries, marks, redirect, wireguard};
use crate::SourceError;
use crate::flows::diag;
use crate::netlink::client::{NetlinkClient, with_buffer};
use crate::netlink::generic;
use crate::netlink::message::Message;
use crate::netlink::socket::protocols;
use crate::nft;
use crate::paths::lookups::{Marking, Redirect, TcHook, Wireguard};
use std::io;
use std::sync::Arc;
use vnettop_sample::LinkKey;

impl KernelQueries<'_> {
    /// A wireguard's configuration as the kernel has it now.
    pub(super) fn ask_wireguard(&mut self, link: LinkKey) -> Result<Arc<Wireguard>, String> {
        let name = self.map.name(link).to_owned();
        let unasked = |error: &io::Error| match error.raw_os_error() {
            Some(libc::EPERM) => format!("the peers of {name} cannot be read without CAP_NET_ADMIN in its namespace"),
            _ => format!("the peers of {name} cannot be read ({error})"),
        };
        let spaces = self.spaces;
        let open = || generic::open(wireguard::FAMILY, wireguard::GET_DEVICE);
        let (netlink, family) = match &mut self.inside(link.netns)?.wireguard {
            Some(opened) => opened,
            none => none.insert(spaces.inside(link.netns, open).map_err(|error| unasked(&error))?),
        };
        let mut device = Wireguard::default();
        let each = |message: &Message<'_>, _: u64| wireguard::parse(message, &mut device);
        let received = netlink.dump(&mut wireguard::request(family.id, link.ifindex), "list peers", each);
        // Its private key and those that it shares were among the answer.
        with_buffer(|buffer| buffer.fill(0));
        match received {
            Ok(_) => Ok(Arc::new(device)),
            Err(SourceError::Netlink { error, .. }) => Err(unasked(&error)),
            Err(error) => Err(format!("the peers of {name} cannot be read ({error})")),
        }
    }

    /// Whether a wireguard has a socket on that port.
    pub(super) fn ask_sockets(&mut self, netns: u64, port: u16) -> Result<bool, String> {
        let mut listens = false;
        let each = |message: &Message<'_>, _: u64| listens |= wireguard::is_its_socket(message, port);
        // A wireguard always has a socket of IPv4.
        let received = self.diag(netns, |netlink| netlink.dump(&mut diag::udp_on(port), "list UDP sockets", each))?;
        received.map(|_| listens).map_err(|error| unfound(&error.to_string()))
    }

    /// The first filter of what a link receives or sends that takes packets elsewhere.
    pub(super) fn ask_filters(&mut self, link: LinkKey, hook: TcHook, is_ipv6: bool) -> Option<Redirect> {
        let mut first = None;
        let each = |message: &Message<'_>, _: u64| first = first.or_else(|| redirect::parse(message, is_ipv6));
        self.inside(link.netns)
            .ok()?
            .route
            .dump(&mut redirect::request(link.ifindex, hook), "list filters", each)
            .ok()?;
        first
    }

    /// The namespace has rules that look at marks. A kernel without rules has none.
    pub(super) fn looks_at_marks(&mut self, netns: u64, is_ipv6: bool) -> bool {
        let Ok(inside) = self.inside(netns) else { return false };
        let mut looks = false;
        let each = |message: &Message<'_>, _: u64| looks |= marks::looks_at_marks(message);
        inside.route.dump(&mut marks::rules(is_ipv6), "list rules", each).is_ok() && looks
    }

    /// Who may set marks there.
    pub(super) fn marked_by(&mut self, netns: u64, is_ipv6: bool) -> Marking {
        let filters = move || {
            if marks::has_mangle_table(is_ipv6) {
                return Ok(Some("the mangle table of iptables is in use there, which may set other marks"));
            }
            if nft::would_load() {
                return Ok(None);
            }
            let mut sets = false;
            let mut netlink = NetlinkClient::open(protocols::NETLINK_NETFILTER)?;
            let each = |message: &Message<'_>, _: u64| sets |= marks::sets_marks(message);
            netlink.dump(&mut nft::rules(), "list rules of nftables", each).map_err(SourceError::into_io)?;
            Ok(sets.then_some("nftables sets other marks there"))
        };
        match self.spaces.inside(netns, filters) {
            Ok(None) => Marking::BySockets,
            Ok(Some(by)) => Marking::Changed(by.to_owned()),
            // A kernel without nftables: the subsystem is not known.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Marking::BySockets,
            Err(error) => Marking::Changed(format!("netfilter's rules for marks cannot be read ({error})")),
        }
    }
}
