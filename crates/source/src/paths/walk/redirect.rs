//! What takes packets elsewhere where a link receives or sends them, past routes and bridges. A filter of traffic control that
//! sends what a link receives out through an ifb, from where it comes back to be received as before, puts a queue before it, as CNI's
//! bandwidth plugin has it. Other redirects and programs lead anywhere, as cilium's do: the way is known as far as them.

use super::Walk;
use crate::paths::lookups::{NetworkQueries, Redirect, TcHook};
use vnettop_sample::{HopBy, HopWay, Ifindex, Kind, LinkFacts, PeerRef, Word, shell_word};

/// A filter or program that may take packets elsewhere at a place of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Takeover {
    /// Hops of the path before it.
    hops: usize,
    /// `a tc program at ha`.
    who: String,
    /// Command that shows it.
    shows: String,
}

impl<L: NetworkQueries> Walk<'_, L> {
    /// A link has received the frame.
    pub(super) fn redirect(&mut self, link: &LinkFacts) -> Result<(), String> {
        if self.lookups.detail(link.key()).has_xdp {
            self.taken_over(
                format!("an XDP program at {}", link.name),
                format!("ip -d link show {}", shell_word(&link.name)),
            );
        }
        match self.lookups.redirected(link.key(), TcHook::Ingress, self.packet.to.is_ipv6()) {
            None => Ok(()),
            Some(Redirect::Program) => self.by_program(link, TcHook::Ingress),
            Some(redirect @ (Redirect::All(to) | Redirect::Some(to))) => {
                match self.map.link(link.beside(to)).filter(|to| to.kind == Kind::Ifb) {
                    Some(ifb) => self.through_ifb(link, ifb, redirect == Redirect::All(to)),
                    None => self.elsewhere(link, TcHook::Ingress, to, redirect == Redirect::All(to)),
                }
            }
        }
    }

    /// A link is given the frame to send. An ifb there only delays it: it is sent by the link afterwards.
    pub(super) fn redirect_sent(&mut self, link: &LinkFacts) -> Result<(), String> {
        match self.lookups.redirected(link.key(), TcHook::Egress, self.packet.to.is_ipv6()) {
            None => Ok(()),
            Some(Redirect::Program) => self.by_program(link, TcHook::Egress),
            Some(redirect @ (Redirect::All(to) | Redirect::Some(to))) => {
                let is_ifb = self.map.link(link.beside(to)).is_some_and(|to| to.kind == Kind::Ifb);
                if is_ifb { Ok(()) } else { self.elsewhere(link, TcHook::Egress, to, redirect == Redirect::All(to)) }
            }
        }
    }

    fn through_ifb(&mut self, link: &LinkFacts, ifb: &LinkFacts, all: bool) -> Result<(), String> {
        if !all {
            let (from, to) = (&link.name, &ifb.name);
            self.path.note.get_or_insert_with(|| {
                format!(
                    "filters of {from} send some packets, perhaps these, through {to} (tc filter show dev {} ingress)",
                    shell_word(from)
                )
            });
        } else if !self.path.hops.iter().any(|hop| hop.link == ifb.key()) {
            // Several links may share one ifb.
            self.push(ifb.key(), HopWay::Sent, HopBy::Redirect)?;
        }
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "as its neighbours")]
    fn by_program(&mut self, link: &LinkFacts, hook: TcHook) -> Result<(), String> {
        self.taken_over(format!("a tc program at {}", link.name), shown(link, hook));
        Ok(())
    }

    /// A filter redirects to a link that is no ifb, from which packets do not come back.
    fn elsewhere(&mut self, link: &LinkFacts, hook: TcHook, to: Ifindex, all: bool) -> Result<(), String> {
        let (from, to, shows) = (&link.name, self.map.name(link.beside(to)), shown(link, hook));
        if all {
            return Err(format!("a tc filter at {from} takes over here and redirects all packets to {to} ({shows})"));
        }
        self.taken_over(format!("a tc filter at {from}, which redirects some packets to {to},"), shows);
        Ok(())
    }

    /// Notes that the path is uncertain from here on. The first such place counts: behind it the path may already be another.
    fn taken_over(&mut self, who: String, shows: String) {
        let hops = self.path.hops.len();
        self.takeover.get_or_insert(Takeover { hops, who, shows });
    }

    /// Applies the takeover at the end of the walk. When the walk led nowhere, the packets took another path; when it arrived or
    /// left this machine, they may have taken the one found.
    pub(super) fn mind_takeover(&mut self) {
        let Some(Takeover { hops, who, shows }) = self.takeover.take() else { return };
        if self.path.gap.is_none() || self.has_left() {
            self.path.note.get_or_insert_with(|| format!("{who} may send packets elsewhere ({shows})"));
            return;
        }
        self.path.hops.truncate(hops);
        self.path.gap = Some(format!("{who} takes over here: where it sends packets is not known ({shows})"));
        self.path.note = None;
        (self.path.arrived, self.path.netns) = (None, 0);
        self.path.holders.clear();
    }

    /// The last link leads out of what is visible.
    fn has_left(&self) -> bool {
        let Some(last) = self.path.hops.last().and_then(|hop| self.map.link(hop.link)) else { return false };
        let is_unseen = || last.peer.and_then(PeerRef::key).is_none_or(|peer| self.map.link(peer).is_none());
        last.kind.is_hardware() || matches!(last.kind, Kind::Tun | Kind::Tap) || (last.kind.is_paired() && is_unseen())
    }
}

fn shown(link: &LinkFacts, hook: TcHook) -> String {
    format!("tc filter show dev {} {}", shell_word(&link.name), hook.word())
}
