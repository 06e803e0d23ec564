//! Into the program that holds a tun or tap. What a VPN is given it sends in datagrams of its own, which walk on to the VPN at the
//! other end; a guest keeps it.

use super::{At, Inner, Walk};
use crate::paths::lookups::{DeviceProgram, Mac, NetworkQueries, Packet, ProgramDatagram, ProgramSocket, TunAnswer};
use vnettop_sample::{CarrierKind, Kind, LinkFacts, LinkKey, Proto};

/// The kernel's words for a link with a program behind it.
pub(super) const TUNS: [&str; 2] = ["tun", "tap"];

impl<L: NetworkQueries> Walk<'_, L> {
    /// A tun or tap has been given the packet: it goes on where the program's socket leads.
    pub(super) fn enter_program(&mut self, link: &LinkFacts, mac: Option<Mac>) -> Result<At, String> {
        let exits = format!("the packets exit through {}, to ", link.name);
        let Some(program) = self.lookups.program(link.key()) else {
            return Err(format!("{exits}{}", self.whose(link.key())));
        };
        let sockets = self.lookups.sockets(link.key(), &program);
        if link.kind == Kind::Tap && self.is_guest(link, &program, &sockets) {
            return self.through_guest(link, &program, mac);
        }
        self.carried(program.pid, &program.name, CarrierKind::Vpn);
        let onward = self.datagram(link, &program, &sockets);
        let ProgramDatagram { packet: outer, netns, note } = onward.map_err(|more| {
            let exits = format!("{exits}{}", program.name);
            more.map_or_else(|| exits.clone(), |more| format!("{exits}; {more}"))
        })?;
        self.path.note = self.path.note.take().or(note);
        let (packet, kind) = (self.packet, link.kind.word().to_owned());
        let inner = Inner { packet, mac, kind, key: 0, through: link.key(), sealed: None };
        Ok(self.wrap(inner, outer, netns))
    }

    /// The holder of a tap is no VPN: it has no UDP socket, or none that leads somewhere and another tap besides.
    fn is_guest(&mut self, link: &LinkFacts, program: &DeviceProgram, sockets: &[ProgramSocket]) -> bool {
        let leads = sockets.iter().any(|socket| socket.remote.is_some());
        sockets.is_empty() || !leads && !self.lookups.held_beside(link.key(), program).is_empty()
    }

    /// The datagram that the program sends: where all of its connected sockets lead, or as far as it can be known without any.
    fn datagram(&mut self, link: &LinkFacts, program: &DeviceProgram, sockets: &[ProgramSocket]) -> TunAnswer {
        let mut connected = sockets.iter().filter_map(|socket| Some((socket, socket.remote?)));
        let Some((&ProgramSocket { netns, local, mark, .. }, to)) = connected.next() else {
            return self.far_program(link, program, sockets);
        };
        let is_one = connected.all(|(socket, remote)| (socket.netns, remote) == (netns, to));
        let packet = Packet { proto: Proto::Udp, from: local, to, mark };
        is_one.then_some(ProgramDatagram { packet, netns, note: None }).ok_or(None)
    }

    /// The datagram is at its address: the program that has the socket there writes the packet to its own tun.
    pub(super) fn leave_program(&mut self, netns: u64, inner: &Inner) -> Result<At, String> {
        let (at, through) = (self.packet.to, self.map.name(inner.through));
        let mut behind = self.lookups.tuns_behind(netns, &self.packet);
        behind
            .retain(|&far| far != inner.through && self.map.link(far).is_some_and(|far| far.kind.word() == inner.kind));
        if behind.is_empty() {
            let kind = &inner.kind;
            return Err(format!("at {at}, where the program of {through} sends, no program with a {kind} is visible"));
        }
        let count = behind.len();
        if count > 1 {
            behind.retain(|&far| self.takes(far, &inner.packet));
        }
        match behind[..] {
            [far] => {
                if let Some(program) = self.lookups.program(far) {
                    self.carried(program.pid, &program.name, CarrierKind::Vpn);
                }
                self.unwrap(inner, far)
            }
            _ => Err(format!("the program at {at} has {count} links of kind {}; which one is not known", inner.kind)),
        }
    }

    /// The holder of the link, as the end of a sentence.
    pub(super) fn whose(&mut self, link: LinkKey) -> String {
        let program = self.lookups.program(link);
        program.map_or_else(|| "the program that holds it open".to_owned(), |program| program.name)
    }
}
