//! The words of single cells: a name with its branches, whose a link is, where its other end is, what is left out.

use crate::derive::{LinkMetrics, Metrics};
use crate::sample::{LinkFacts, LinkKey, Owner, OwnerBy, OwnerKind, PeerRef};
use crate::state::{Hidden, LinkRow};
use crate::view::format::UNKNOWN;
use crate::view::text::plural;
use std::fmt::{self, Display, Formatter};

/// A name with the branches that lead to it, and the alias that someone gave the link.
pub(in crate::view) struct Name<'a> {
    pub row: &'a LinkRow,
    pub text: &'a str,
    pub alias: Option<&'a str>,
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let last = |depth: u8| self.row.last >> depth & 1 == 1;
        for depth in 1..self.row.depth {
            f.write_str(if last(depth) { "  " } else { "│ " })?;
        }
        if self.row.depth > 0 {
            f.write_str(if last(self.row.depth) { "└ " } else { "├ " })?;
        }
        f.write_str(self.text)?;
        self.alias.map_or(Ok(()), |alias| write!(f, " {alias}"))
    }
}

/// The owner of a link: an id without a name is shortened, a guess is marked.
pub(in crate::view) struct Whose<'a>(pub &'a Owner);

impl Display for Whose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Owner { kind, name, id, by, guess, pod_namespace: _ } = self.0;
        if id.as_ref() == Some(name) {
            write!(f, "{name:.12}")?;
        } else if *kind == OwnerKind::Network && *by == OwnerBy::Docker && name == "bridge" {
            // Docker's own network, whose name says nothing here.
            write!(f, "{by}")?;
        } else {
            f.write_str(name)?;
        }
        f.write_str(if *guess { "?" } else { "" })
    }
}

/// How many queues a link sends by, and receives by.
pub(in crate::view) struct Queues<'a>(pub &'a LinkFacts);

impl Display for Queues<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = |queues: Option<u32>| queues.map_or_else(|| UNKNOWN.to_string(), |queues| queues.to_string());
        write!(f, "{}/{}", number(self.0.tx_queues), number(self.0.rx_queues))
    }
}

/// The other end of a pair, or the link below.
pub(in crate::view) struct Peer<'a> {
    pub metrics: &'a Metrics,
    pub link: &'a LinkMetrics,
}

impl Display for Peer<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (word, other) = match (&self.link.facts.peer, &self.link.facts.lower) {
            (Some(peer), _) => ("", *peer),
            (None, Some(lower)) => ("on ", *lower),
            (None, None) => return Ok(()),
        };
        match other {
            PeerRef { netns: None, netnsid: Some(id), ifindex } => write!(f, "{word}if{} in netns {id}", ifindex.0),
            PeerRef { netns, ifindex, .. } => {
                match netns.and_then(|netns| self.metrics.machine.link(LinkKey { netns, ifindex })) {
                    Some(link) => write!(f, "{word}{}", link.facts.name),
                    None => write!(f, "{word}if{}", ifindex.0),
                }
            }
        }
    }
}

/// One line for everything that stands still.
pub(in crate::view) struct LeftOut(pub Hidden);

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Hidden { links, namespaces } = self.0;
        write!(f, "{links} idle {}", if links == 1 { "link" } else { "links" })?;
        if namespaces > 0 {
            write!(f, ", {} as a whole,", plural(namespaces, "namespace"))?;
        }
        Ok(())
    }
}
