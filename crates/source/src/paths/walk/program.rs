//! Into the program that holds a tun or tap. What a VPN is given it sends in datagrams of its own, which walk on to the VPN at the
//! other end; a guest keeps it.

use super::{At, Inner, Walk};
use crate::paths::lookups::{Mac, NetworkQueries, Packet};
use vnettop_sample::{CarrierKind, Kind, LinkFacts, LinkKey, Proto};

/// The kernel's words for a link with a program behind it.
pub(super) const TUNS: [&str; 2] = ["tun", "tap"];

impl<L: NetworkQueries> Walk<'_, L> {
    /// A tun or tap has been given the packet: it goes on where the program's connected socket leads.
    pub(super) fn enter_program(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let Some(program) = self.lookups.program(link.key()) else {
            return Err(format!("the packets exit through {}, to {}", link.name, self.whose(link.key())));
        };
        let onward = self.lookups.calls(link.key(), &program);
        let Some(onward) = onward else {
            if link.kind == Kind::Tap {
                return self.through_guest(link, &program, mac);
            }
            self.carried(program.pid, &program.name, CarrierKind::Vpn);
            return Err(format!("the packets exit through {}, to {}", link.name, program.name));
        };
        self.carried(program.pid, &program.name, CarrierKind::Vpn);
        let (packet, kind) = (self.packet, link.kind.word().to_owned());
        let inner = Inner { packet, mac, kind, key: 0, through: link.key(), sealed: None };
        let outer = Packet { proto: Proto::Udp, from: onward.local, to: onward.remote, mark: None };
        Ok(self.wrap(inner, outer, onward.netns))
    }

    /// The datagram is at its address: the program that has the socket there writes the packet to its own tun.
    pub(super) fn leave_program(&mut self, netns: u64, inner: &Inner) -> Result<At, String> {
        let far =
            self.lookups.tun_behind(netns, &self.packet).filter(|&far| far != inner.through).ok_or_else(|| {
                let (at, through) = (self.packet.to, self.map.name(inner.through));
                format!("at {at}, where the program of {through} sends, no program with a {} is visible", inner.kind)
            })?;
        if let Some(program) = self.lookups.program(far) {
            self.carried(program.pid, &program.name, CarrierKind::Vpn);
        }
        self.unwrap(inner, far)
    }

    /// The holder of the link, as the end of a sentence.
    pub(super) fn whose(&mut self, link: LinkKey) -> String {
        let program = self.lookups.program(link);
        program.map_or_else(|| "the program that holds it open".to_owned(), |program| program.name)
    }
}
