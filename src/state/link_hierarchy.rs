//! What depends only on which links there are: their order by name, their masters, who matches the filter. Worked out
//! when the links or the filter change, not in every tick.

use super::link_activity::LinkActivity;
use crate::derive::{LinkMetrics, Metrics};
use crate::sample::{LinkFacts, LinkKey, Owned, Space};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// The master of every port of the kernel's datapath of Open vSwitch.
const OVS_SYSTEM: &str = "ovs-system";

/// Facts about the set of links now present; every list is indexed like `Metrics::links`.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkHierarchy {
    facts: Vec<Arc<LinkFacts>>,
    owners: Arc<Vec<Owned>>,
    /// The bridge of Open vSwitch that each is a port of.
    bridges: Vec<Option<LinkKey>>,
    filter: String,
    /// Indices in the natural order of names.
    pub by_name: Vec<u32>,
    /// Place of each link in that order.
    pub rank: Vec<u32>,
    /// Index of each link's master in this namespace.
    pub master: Vec<Option<u32>>,
    /// How many ports each link has.
    pub ports: Vec<u32>,
    /// Whether the name, alias, kind or owner holds the filter.
    pub matches: Vec<bool>,
    /// When each link last moved.
    pub stirs: Vec<LinkActivity>,
    /// Some link is not in vnettop's own namespace.
    pub several_namespaces: bool,
    spaces: Arc<Vec<Space>>,
    /// What the other namespaces are called.
    labels: HashMap<u64, String>,
}

impl LinkHierarchy {
    /// Brings everything in line with these links; a quiet tick costs one pointer comparison a link.
    pub fn follow(&mut self, metrics: &Metrics) {
        let (own, links, spaces) =
            (metrics.machine.netns, metrics.machine.links.as_slice(), &metrics.machine.facts.spaces);
        let owners = std::mem::replace(&mut self.owners, Arc::clone(&metrics.machine.owners));
        let same = |(known, link): (&Arc<LinkFacts>, &LinkMetrics)| Arc::ptr_eq(known, &link.facts);
        let bridges = || links.iter().map(|link| link.ovs.as_ref().and_then(|place| place.bridge_link));
        let same_places = Arc::ptr_eq(&self.spaces, spaces) && self.bridges.iter().copied().eq(bridges());
        if same_places && self.facts.len() == links.len() && self.facts.iter().zip(links).all(same) {
            if !Arc::ptr_eq(&owners, &self.owners) {
                self.find_matches();
            }
            return;
        }
        self.stirs = carried(&self.facts, &self.stirs, links);
        self.facts = links.iter().map(|link| Arc::clone(&link.facts)).collect();
        self.spaces = Arc::clone(spaces);
        self.labels = labels(own, spaces);
        self.several_namespaces = self.facts.iter().any(|link| link.netns != own);
        self.bridges = bridges().collect();
        self.order();
        self.find_masters(own);
        self.find_matches();
    }

    /// Finds again who matches, when the filter is another.
    pub fn filter(&mut self, filter: &str) {
        if self.filter != filter {
            filter.clone_into(&mut self.filter);
            self.find_matches();
        }
    }

    fn order(&mut self) {
        let facts = &self.facts;
        self.by_name = (0u32..).take(facts.len()).collect();
        let place = |link: &LinkFacts| self.labels.get(&link.netns);
        self.by_name.sort_by(|&a, &b| {
            let (a, b) = (&facts[a as usize], &facts[b as usize]);
            let by_space = || place(a).cmp(&place(b)).then(a.netns.cmp(&b.netns));
            // The own namespace has no label and comes first.
            if a.netns == b.netns { natural(&a.name, &b.name) } else { by_space() }
        });
        self.rank = vec![0; facts.len()];
        for (place, &index) in (0u32..).zip(&self.by_name) {
            self.rank[index as usize] = place;
        }
    }

    fn find_masters(&mut self, own: u64) {
        let find = |key: LinkKey| self.facts.binary_search_by_key(&key, |other| other.key()).ok();
        let index = |(link, bridge): (&Arc<LinkFacts>, &Option<LinkKey>)| {
            // The kernel says `ovs-system` of every port of its datapath; the bridge's own port hangs below nothing.
            let bridge = bridge.filter(|&bridge| bridge != link.key() && find(bridge).is_some());
            let master = link.master.map(|master| link.beside(master)).and_then(find);
            let switched = master.is_none_or(|at| &*self.facts[at].name == OVS_SYSTEM);
            let above = bridge.filter(|_| switched).and_then(find).or(master);
            let at = above.or_else(|| self.outer_end(link, own).and_then(find))?;
            u32::try_from(at).ok()
        };
        self.master = self.facts.iter().zip(&self.bridges).map(index).collect();
        self.ports = vec![0; self.facts.len()];
        let ports = self.facts.iter().zip(&self.bridges).zip(&self.master);
        for master in
            ports.filter_map(|((link, bridge), above)| above.filter(|_| link.master.is_some() || bridge.is_some()))
        {
            self.ports[master as usize] += 1;
        }
    }

    /// The end of a pair under which its other end stands: what leaves a container comes in there. It is in the own
    /// namespace, or it is the one that is a port of something, of a bridge of Open vSwitch too.
    fn outer_end(&self, link: &LinkFacts, own: u64) -> Option<LinkKey> {
        let peer = link.peer.filter(|_| link.netns != own)?;
        let key = LinkKey { netns: peer.netns.filter(|&netns| netns != link.netns)?, ifindex: peer.ifindex };
        let at = self.facts.binary_search_by_key(&key, |other| other.key()).ok()?;
        let is_port = self.facts[at].master.is_some() || self.bridges[at].is_some();
        (key.netns == own || is_port).then_some(key)
    }

    fn find_matches(&mut self) {
        let wanted = self.filter.to_lowercase();
        let holds = |text: &str| text.to_lowercase().contains(&wanted);
        let matches = |link: &Arc<LinkFacts>| {
            wanted.is_empty()
                || holds(&link.name)
                || holds(link.kind.word())
                || self.labels.get(&link.netns).is_some_and(|label| holds(label))
                || link.alias.as_deref().is_some_and(holds)
                || self.owner_of(link).is_some_and(holds)
        };
        self.matches = self.facts.iter().map(matches).collect();
    }

    /// The name of a link's owner.
    fn owner_of(&self, link: &LinkFacts) -> Option<&str> {
        let at = self.owners.binary_search_by_key(&link.key(), |owned| owned.link).ok()?;
        Some(&self.owners[at].owner.name)
    }
}

/// What to call the namespaces other than the own one.
fn labels(own: u64, spaces: &[Space]) -> HashMap<u64, String> {
    let others = spaces.iter().filter(|space| space.netns != own);
    others.map(|space| (space.netns, space.label())).collect()
}

/// When each of these links last moved, as far as it was known before; both lists are sorted by key.
fn carried(facts: &[Arc<LinkFacts>], stirs: &[LinkActivity], links: &[LinkMetrics]) -> Vec<LinkActivity> {
    let mut old = facts.iter().zip(stirs).peekable();
    let stir = |link: &LinkMetrics| {
        while old.next_if(|(known, _)| known.key() < link.facts.key()).is_some() {}
        let known = old.next_if(|(known, _)| known.key() == link.facts.key());
        known.filter(|(known, _)| known.born == link.facts.born).map_or_else(LinkActivity::default, |(_, stir)| *stir)
    };
    links.iter().map(stir).collect()
}

/// The order people expect of names: `veth2` before `veth10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        if !(x.is_ascii_digit() && y.is_ascii_digit()) {
            match x.cmp(y) {
                Ordering::Equal => (a, b) = (&a[1..], &b[1..]),
                other => return other,
            }
            continue;
        }
        let (x, y) = (digits(a), digits(b));
        let by_value = trimmed(x).len().cmp(&trimmed(y).len()).then_with(|| trimmed(x).cmp(trimmed(y)));
        match by_value.then(x.len().cmp(&y.len())) {
            Ordering::Equal => (a, b) = (&a[x.len()..], &b[y.len()..]),
            other => return other,
        }
    }
    a.len().cmp(&b.len())
}

fn digits(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

fn trimmed(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    &digits[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::{Basis, OvsPlace};
    use crate::sample::{Ifindex, Kind, OvsPort};

    fn link(index: u32, name: &str, master: Option<u32>, bridge: Option<u32>) -> LinkMetrics {
        let key = |index| LinkKey { netns: 1, ifindex: Ifindex(index) };
        let facts = LinkFacts {
            master: master.map(Ifindex),
            ..LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(index) }, name, Kind::Veth)
        };
        let port = |bridge| OvsPlace {
            bridge: "br0".to_owned(),
            bridge_link: Some(key(bridge)),
            datapath: "system".into(),
            port: OvsPort::new(name, "system", Some(key(index))),
        };
        let ovs = bridge.map(|bridge| Arc::new(port(bridge)));
        LinkMetrics { facts: Arc::new(facts), basis: Basis::None, counters: None, rates: None, ovs }
    }

    fn of(netns: u64, links: &[LinkMetrics]) -> Metrics {
        let links = Arc::new(links.to_vec());
        Metrics::of_machine(crate::derive::MachineMetrics { netns, links, ..Default::default() })
    }

    #[test]
    fn a_port_of_open_vswitch_hangs_below_its_bridge_whatever_the_datapath() {
        let mut links = vec![
            link(2, "ovs-system", None, None),
            link(3, "br0", None, Some(3)),
            link(4, "v0", Some(2), Some(3)),
            link(5, "v1", None, Some(3)),
            link(6, "docker0", None, None),
            link(7, "v2", Some(6), Some(3)),
            link(8, "v3", None, Some(99)),
        ];
        let mut family = LinkHierarchy::default();
        family.follow(&of(1, &links));
        let expected = [None, None, Some(1), Some(1), None, Some(4), None];
        assert_eq!(family.master, expected, "ovs-system is nobody's bridge, a kernel bridge is, an absent one is not");
        assert_eq!(family.ports[1], 2, "the bridge has two ports");
        links[3].ovs = None;
        family.follow(&of(1, &links));
        assert_eq!(
            family.master[3], None,
            "a port that was taken out stands alone, though the kernel says nothing new"
        );
    }

    #[test]
    fn what_is_behind_a_port_of_open_vswitch_hangs_below_it_in_every_namespace() {
        let mut links = vec![link(3, "br0", None, Some(3)), link(4, "v0", None, Some(3)), link(2, "eth0", None, None)];
        let pod = Arc::make_mut(&mut links[2].facts);
        let outside = LinkKey { netns: 1, ifindex: Ifindex(4) };
        pod.netns = 2;
        pod.peer = Some(crate::sample::PeerRef { netnsid: None, netns: Some(1), ifindex: outside.ifindex });
        let mut family = LinkHierarchy::default();
        family.follow(&of(7, &links));
        assert_eq!(family.master, [None, Some(0), Some(1)], "vnettop's own namespace is neither of the two");
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = ["veth10", "veth2", "br0", "veth2a", "veth02", "lo", "veth"];
        names.sort_by(|a, b| natural(a, b));
        let expected = ["br0", "lo", "veth", "veth2", "veth2a", "veth02", "veth10"];
        assert_eq!(names, expected, "numbers inside names count as numbers");
    }

    #[test]
    fn a_number_longer_than_any_integer_has_its_place_too() {
        let long = "x99999999999999999999999999";
        assert_eq!(natural(long, "x100000000000000000000000000"), Ordering::Less, "compared by digits, not parsed");
        assert_eq!(natural(long, long), Ordering::Equal, "equal to itself");
    }
}
