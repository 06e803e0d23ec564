//! Through an ifb: a filter of traffic control sends what a link receives out through it, and from there it comes back to be
//! received as before. So a queue stands before what is received, as CNI's bandwidth plugin has it.

use super::Walk;
use crate::sample::{HopBy, HopWay, Kind, LinkFacts};
use crate::source::paths::lookups::{NetworkQueries, Redirect};

impl<L: NetworkQueries> Walk<'_, L> {
    /// A link has received the frame. Filters are asked for only where there is an ifb that they might lead to.
    pub(super) fn redirect(&mut self, link: &LinkFacts) -> Result<(), String> {
        if !self.map.has_kind(link.netns, &Kind::Ifb) {
            return Ok(());
        }
        let Some(redirect) = self.lookups.redirected(link.key(), self.packet.to.is_ipv6()) else { return Ok(()) };
        let (Redirect::All(to) | Redirect::Some(to)) = redirect;
        let Some(ifb) = self.map.link(link.beside(to)).filter(|to| to.kind == Kind::Ifb) else { return Ok(()) };
        if redirect == Redirect::Some(to) {
            let (from, to) = (&link.name, &ifb.name);
            self.path.note.get_or_insert_with(|| {
                format!(
                    "filters of {from} send some packets, perhaps these, through {to} (tc filter show dev {from} ingress)"
                )
            });
        } else if !self.path.hops.iter().any(|hop| hop.link == ifb.key()) {
            // Several links may share one.
            self.push(ifb.key(), HopWay::Sent, HopBy::Redirect)?;
        }
        Ok(())
    }
}
