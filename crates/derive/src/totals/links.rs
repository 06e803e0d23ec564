//! The links whose counters are kept. Each by its name, but those of containers, pods and virtual machines in vnettop's own
//! namespace: their names are others with each start (`vetha6c37c1`), so what one owner has of a kind counts together.

use super::super::{Basis, LinkMetrics, Metrics};
use super::bounded::Bounded;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{Kind, LinkCounters, LinkKey, Owner, OwnerKind};

/// What a link is called in a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkName {
    /// By its own name.
    Own(String),
    /// All links of one owner and kind.
    OfOwner,
}

/// The counters of a link, or the sum of several. Bytes and packets as the kernel counts them (`IFLA_STATS64`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of LinkCounters")]
pub struct LinkCounts {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_packets: u64,
    pub tx_packets: u64,
    /// Drops and errors; none where they are not counted.
    pub faults: Option<[u64; 4]>,
}

/// One series of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkTotal {
    /// Inode of its namespace.
    pub netns: u64,
    /// What it is called.
    pub name: LinkName,
    /// Its kind.
    pub kind: Kind,
    /// Whose it is; empty where that is not known.
    pub owner: String,
    /// The Kubernetes namespace of the pod whose it is; none of others.
    pub pod_namespace: Option<String>,
    /// Its counters.
    pub counts: LinkCounts,
    /// The speed that its driver claims, bits/s, and what that is worth; none where it says nothing, and of a sum.
    pub claim: Option<(u64, Basis)>,
}

/// Whose links count together: by the names that a start leaves as they are. Two pods of one name are in two namespaces of
/// Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OwnedLinks {
    netns: u64,
    kind: Kind,
    owner: String,
    pod_namespace: Option<String>,
}

/// Which links are kept, and the sums of those that have no name of their own.
#[derive(Debug, Clone)]
pub struct LinkSeries {
    most: usize,
    /// Links kept by name. A link that is in stays in, so that no series comes and goes.
    named: BTreeSet<LinkKey>,
    /// Sums of the links of one owner and kind since the first sample, or since that owner's first link came.
    owned: Bounded<OwnedLinks, LinkCounts>,
    /// Counters of the links in these sums, as of the newest sample.
    counted: BTreeMap<LinkKey, LinkCounts>,
    /// Every link of the newest sample; none before the first.
    seen: Option<BTreeSet<LinkKey>>,
    left_out: usize,
}

impl LinkSeries {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            named: BTreeSet::new(),
            owned: Bounded::new(most),
            counted: BTreeMap::new(),
            seen: None,
            left_out: 0,
        }
    }

    /// Links that found no room.
    pub(super) fn left_out(&self) -> usize {
        self.left_out + self.owned.left_out()
    }

    pub(super) fn observe(&mut self, metrics: &Metrics) {
        self.owned.begin_round();
        let before = std::mem::take(&mut self.counted);
        let (mut named, mut waiting) = (BTreeSet::new(), Vec::new());
        for link in metrics.machine.links.iter() {
            let (key, Some(counts)) = (link.facts.key(), LinkCounts::of(link)) else { continue };
            if let Some(owner) = owner_of_changing_name(metrics, link) {
                // What was before vnettop, or before the owner was known, does not count; of a new link everything does.
                let is_new = self.seen.as_ref().is_some_and(|seen| !seen.contains(&key));
                let late = || if is_new { LinkCounts::default() } else { counts };
                let since = counts.since(before.get(&key).copied().unwrap_or_else(late));
                let whose = OwnedLinks {
                    netns: key.netns,
                    kind: link.facts.kind.clone(),
                    owner: owner.name.clone(),
                    pod_namespace: owner.pod_namespace.clone(),
                };
                if let Some(sum) = self.owned.entry(whose) {
                    sum.add(since);
                    self.counted.insert(key, counts);
                }
            } else if self.named.contains(&key) {
                named.insert(key);
            } else {
                waiting.push((link.rates.and_then(|rates| rates.peak_bits_per_s()).unwrap_or_default(), key));
            }
        }
        self.owned.drop_quiet();
        self.seen = Some(metrics.machine.links.iter().map(|link| link.facts.key()).collect());
        // The busiest first, where there is not room for all.
        waiting.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let room = self.most.saturating_sub(named.len());
        self.left_out = waiting.len().saturating_sub(room);
        named.extend(waiting.into_iter().take(room).map(|(_, key)| key));
        self.named = named;
    }

    /// Every series, as of these metrics, which are those observed last.
    #[must_use]
    pub fn of(&self, metrics: &Metrics) -> Vec<LinkTotal> {
        let named =
            metrics.machine.links.iter().filter(|link| self.named.contains(&link.facts.key())).filter_map(|link| {
                let facts = &*link.facts;
                let owner = metrics.machine.owner(facts.key());
                Some(LinkTotal {
                    netns: facts.netns,
                    name: LinkName::Own(facts.name.clone()),
                    kind: facts.kind.clone(),
                    owner: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
                    pod_namespace: owner.and_then(|owner| owner.pod_namespace.clone()),
                    counts: LinkCounts::of(link)?,
                    claim: facts.speed_mbps.map(|mbps| (u64::from(mbps) * 1_000_000, link.basis)),
                })
            });
        let owned = self.owned.iter().map(|(of, counts)| LinkTotal {
            netns: of.netns,
            name: LinkName::OfOwner,
            kind: of.kind.clone(),
            owner: of.owner.clone(),
            pod_namespace: of.pod_namespace.clone(),
            counts: *counts,
            claim: None,
        });
        named.chain(owned).collect()
    }
}

/// Whose it is, where its own name says nothing and lasts no longer than its owner runs.
fn owner_of_changing_name<'a>(metrics: &'a Metrics, link: &LinkMetrics) -> Option<&'a Owner> {
    let comes_and_goes = [OwnerKind::Container, OwnerKind::Pod, OwnerKind::Vm];
    let owner = metrics.machine.owner(link.facts.key()).filter(|owner| comes_and_goes.contains(&owner.kind))?;
    (link.facts.netns == metrics.machine.netns).then_some(owner)
}

impl LinkCounts {
    fn of(link: &LinkMetrics) -> Option<Self> {
        let counters = link.counters.as_ref()?;
        let faults = |of: &LinkCounters| [of.rx_dropped, of.tx_dropped, of.rx_errors, of.tx_errors];
        Some(Self {
            rx_bytes: counters.rx_bytes,
            tx_bytes: counters.tx_bytes,
            rx_packets: counters.rx_packets,
            tx_packets: counters.tx_packets,
            faults: link.counts_drops().then(|| faults(counters)),
        })
    }

    /// The rise since `before`; all of it when the link was made anew.
    fn since(self, before: Self) -> Self {
        if self.rx_bytes < before.rx_bytes || self.tx_bytes < before.tx_bytes {
            return self;
        }
        let old = before.faults.unwrap_or_default();
        Self {
            rx_bytes: self.rx_bytes - before.rx_bytes,
            tx_bytes: self.tx_bytes - before.tx_bytes,
            rx_packets: self.rx_packets.saturating_sub(before.rx_packets),
            tx_packets: self.tx_packets.saturating_sub(before.tx_packets),
            faults: self.faults.map(|faults| std::array::from_fn(|at| faults[at].saturating_sub(old[at]))),
        }
    }

    fn add(&mut self, more: Self) {
        self.rx_bytes += more.rx_bytes;
        self.tx_bytes += more.tx_bytes;
        self.rx_packets += more.rx_packets;
        self.tx_packets += more.tx_packets;
        if let Some(faults) = more.faults {
            let sum = self.faults.get_or_insert_default();
            sum.iter_mut().zip(faults).for_each(|(sum, more)| *sum += more);
        }
    }
}
