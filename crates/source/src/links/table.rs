//! Which links there are, kept current by what the kernel tells. It owns identity (a reused ifindex is a new link) and
//! decides which counter rows may be believed; it asks nobody anything.

use super::facts::{Described, LinkChange};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use vnettop_sample::{Ifindex, LinkCounters, LinkFacts, PeerRef, PortState};

/// The links of one namespace.
#[derive(Debug, Default)]
pub(super) struct Table {
    links: BTreeMap<Ifindex, LinkEntry>,
    /// How often a link was seen to be created; the newest one's `born`.
    births: u64,
    /// `births` when the running reading began: links born later may have no row yet.
    births_before: u64,
    /// Deleted since the running reading began.
    deleted: HashSet<Ifindex>,
    /// Deleted and created anew since then: nobody knows which of the two a row of that index counted.
    doubtful: HashSet<Ifindex>,
    published: Arc<Vec<Arc<LinkFacts>>>,
    changed: bool,
    /// Links deleted since the last [`Table::outdated`]; links that name one of them as their peer or lower link are outdated.
    left: HashSet<Ifindex>,
    /// Ends of pairs whose peer may have changed unannounced since then: those that others named as their peer, and those announced
    /// without a peer, which may be in another namespace and is announced there only.
    doubted: Vec<Ifindex>,
    /// The namespaces behind the kernel's local numbers, as far as they are known.
    namespaces: BTreeMap<i32, u64>,
}

#[derive(Debug)]
struct LinkEntry {
    facts: Arc<LinkFacts>,
    address: Box<[u8]>,
    /// Its driver was asked for its claim.
    was_asked: bool,
}

impl Table {
    /// A reading begins: from now on a deleted link's row is not its successor's.
    pub fn begin(&mut self) {
        self.births_before = self.births;
        self.deleted.clear();
        self.doubtful.clear();
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// One notification.
    pub fn apply(&mut self, change: LinkChange) {
        match change {
            LinkChange::Is(described) => self.describe(*described, true),
            LinkChange::Port(ifindex, state, isolated) => self.let_through(ifindex, state, isolated),
            LinkChange::Gone(ifindex) => self.delete(ifindex),
        }
    }

    /// A bridge's port has another state, or is isolated or no more.
    fn let_through(&mut self, ifindex: Ifindex, state: PortState, isolated: bool) {
        let Some(entry) = self.links.get_mut(&ifindex) else { return };
        if entry.facts.master.is_some() && (entry.facts.port_state, entry.facts.isolated) != (Some(state), isolated) {
            let facts = Arc::make_mut(&mut entry.facts);
            (facts.port_state, facts.isolated) = (Some(state), isolated);
            self.changed = true;
        }
    }

    /// A whole dump: what it does not name is gone.
    pub fn replace(&mut self, found: BTreeMap<Ifindex, Described>) {
        let first = self.births == 0 && self.links.is_empty();
        let gone = |old: &(&Ifindex, &LinkEntry)| !found.get(old.0).is_some_and(|new| old.1.same_link(new));
        let gone: Vec<Ifindex> = self.links.iter().filter(gone).map(|(&ifindex, _)| ifindex).collect();
        for ifindex in gone {
            self.delete(ifindex);
        }
        for described in found.into_values() {
            self.describe(described, !first);
        }
        self.left.clear();
        self.doubted.clear();
    }

    /// A link is there; one that was not may have been seen to be born.
    fn describe(&mut self, described: Described, seen_to_be_born: bool) {
        let Described { mut facts, address } = described;
        self.place(&mut facts);
        let ifindex = facts.ifindex;
        let Some(entry) = self.links.get_mut(&ifindex) else {
            self.births += u64::from(seen_to_be_born);
            facts.born = self.births;
            if self.deleted.contains(&ifindex) {
                self.doubtful.insert(ifindex);
            }
            self.doubted.extend(facts.peer.filter(here).map(|peer| peer.ifindex));
            self.doubted.extend((facts.kind.is_paired() && facts.peer.is_none()).then_some(ifindex));
            self.links.insert(ifindex, LinkEntry { facts: Arc::new(facts), address, was_asked: false });
            self.changed = true;
            return;
        };
        facts.born = entry.facts.born;
        facts.speed_mbps = entry.facts.speed_mbps;
        facts.speed_was_set = entry.facts.speed_was_set;
        entry.address = address;
        if entry.facts.peer != facts.peer {
            self.doubted.extend(facts.peer.filter(here).map(|peer| peer.ifindex));
        }
        if *entry.facts != facts {
            entry.facts = Arc::new(facts);
            self.changed = true;
        }
    }

    fn delete(&mut self, ifindex: Ifindex) {
        if self.links.remove(&ifindex).is_some() {
            self.changed = true;
        }
        self.deleted.insert(ifindex);
        self.left.insert(ifindex);
    }

    /// Says of a link's peer and lower link in which namespace they are.
    fn place(&self, facts: &mut LinkFacts) {
        for named in [&mut facts.peer, &mut facts.lower].into_iter().flatten() {
            if let Some(number) = named.netnsid {
                named.netns = self.namespaces.get(&number).copied();
            }
        }
    }

    /// The numbers that links name and nobody knows.
    pub fn unknown_namespaces(&self) -> BTreeSet<i32> {
        let named = self.links.values().flat_map(|entry| [entry.facts.peer, entry.facts.lower]).flatten();
        named.filter_map(|named| named.netnsid).filter(|number| !self.namespaces.contains_key(number)).collect()
    }

    pub fn has_namespace(&self, netns: u64) -> bool {
        self.namespaces.values().any(|known| *known == netns)
    }

    pub fn name_namespace(&mut self, number: i32, netns: u64) {
        self.namespaces.insert(number, netns);
    }

    /// Forgets the numbers of namespaces that are no more: the kernel gives them again.
    pub fn forget_namespaces(&mut self, is_known: impl Fn(u64) -> bool) {
        let before = self.namespaces.len();
        self.namespaces.retain(|_, netns| is_known(*netns));
        if before != self.namespaces.len() {
            self.resolve();
        }
    }

    /// Places every link again.
    pub fn resolve(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        for entry in links.values_mut().filter(|entry| names_elsewhere(&entry.facts)) {
            let mut facts = LinkFacts::clone(&entry.facts);
            self.place(&mut facts);
            if *entry.facts != facts {
                entry.facts = Arc::new(facts);
                self.changed = true;
            }
        }
        self.links = links;
    }

    /// Links whose facts changed without a word from the kernel: when one end of a veth moves to another namespace or
    /// back, only that end is announced; and a new pair's first end is announced before it has a peer.
    pub fn outdated(&mut self) -> Vec<Ifindex> {
        let (left, doubted) = (std::mem::take(&mut self.left), std::mem::take(&mut self.doubted));
        let names_one_that_left = |link: &LinkFacts| {
            let named = link.peer.or(link.lower).filter(|named| named.netnsid.is_none());
            named.is_some_and(|named| left.contains(&named.ifindex))
        };
        let mut outdated: Vec<Ifindex> = if left.is_empty() {
            Vec::new()
        } else {
            let outdated = self.links.values().filter(|entry| names_one_that_left(&entry.facts));
            outdated.map(|entry| entry.facts.ifindex).collect()
        };
        let knows_no_peer_here = |end: &Ifindex| {
            let entry = self.links.get(end);
            entry.is_some_and(|entry| !entry.facts.peer.as_ref().is_some_and(here))
        };
        outdated.extend(doubted.into_iter().filter(knows_no_peer_here));
        outdated.sort_unstable();
        outdated.dedup();
        outdated
    }

    /// Takes the claims of all drivers, all of them having been asked: a link that is not in `reported` claims nothing.
    pub fn claim_all(&mut self, reported: &BTreeMap<Ifindex, Option<u32>>) {
        for ifindex in self.behind(Ifindex(0), usize::MAX) {
            self.claim(ifindex, reported.get(&ifindex).copied().flatten());
        }
    }

    /// Takes the claim of a link's driver, which was asked for it.
    pub fn claim(&mut self, ifindex: Ifindex, mbps: Option<u32>) {
        let Some(entry) = self.links.get_mut(&ifindex) else { return };
        entry.was_asked = true;
        if entry.facts.speed_mbps != mbps {
            Arc::make_mut(&mut entry.facts).speed_mbps = mbps;
            self.changed = true;
        }
    }

    /// At most `most` links after `last`, by index.
    pub fn behind(&self, last: Ifindex, most: usize) -> Vec<Ifindex> {
        let behind = self.links.range((Bound::Excluded(last), Bound::Unbounded));
        behind.map(|(&ifindex, _)| ifindex).take(most).collect()
    }

    /// Someone set a link's mode. It counts as a set speed only if that differs from a speed known before: the kernel
    /// announces every change of mode.
    pub fn claim_announced(&mut self, ifindex: Ifindex, mbps: Option<u32>) {
        let Some(entry) = self.links.get_mut(&ifindex) else { return };
        if !entry.was_asked || entry.facts.speed_mbps == mbps {
            return;
        }
        let facts = Arc::make_mut(&mut entry.facts);
        facts.speed_mbps = mbps;
        facts.speed_was_set = true;
        self.changed = true;
    }

    /// The links as they are now; the same `Arc` as before when nothing changed.
    pub fn publish(&mut self) -> &Arc<Vec<Arc<LinkFacts>>> {
        if std::mem::take(&mut self.changed) {
            self.published = Arc::new(self.links.values().map(|entry| Arc::clone(&entry.facts)).collect());
        }
        &self.published
    }

    /// Keeps the rows of known links, one for each, sorted; of two rows the first.
    pub fn keep_known(&self, rows: &mut Vec<LinkCounters>) {
        let quiet = self.doubtful.is_empty() && rows.len() == self.links.len();
        if quiet && rows.iter().map(|row| &row.ifindex).eq(self.links.keys()) {
            return;
        }
        if !rows.is_sorted_by_key(|row| row.ifindex) {
            // Older kernels dump by hash bucket.
            rows.sort_by_key(|row| row.ifindex);
        }
        let mut known = self.links.keys().peekable();
        rows.retain(|row| {
            while known.next_if(|&&ifindex| ifindex < row.ifindex).is_some() {}
            known.next_if(|&&ifindex| ifindex == row.ifindex).is_some() && !self.doubtful.contains(&row.ifindex)
        });
    }

    /// Whether a published link that was there before the reading began has no row among these (see `keep_known`).
    pub fn lacks_a_row(&self, rows: &[LinkCounters]) -> bool {
        let mut rows = rows.iter().peekable();
        self.published.iter().any(|link| {
            let has_row = rows.next_if(|row| row.ifindex == link.ifindex).is_some();
            !has_row && link.born <= self.births_before && !self.doubtful.contains(&link.ifindex)
        })
    }
}

fn names_elsewhere(facts: &LinkFacts) -> bool {
    [facts.peer, facts.lower].into_iter().flatten().any(|named| named.netnsid.is_some())
}

/// The named link is in this namespace.
fn here(named: &PeerRef) -> bool {
    named.netnsid.is_none()
}

impl LinkEntry {
    /// After an overrun nobody saw what happened: the same index is taken for the same link unless its kind changed, or
    /// its name and its address both did.
    fn same_link(&self, new: &Described) -> bool {
        let same_label = self.facts.name == new.facts.name || self.address == new.address;
        self.facts.kind == new.facts.kind && same_label
    }
}
