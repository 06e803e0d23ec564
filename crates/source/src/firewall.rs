//! How many rules of nftables packets of the watched paths may meet, in each namespace that they cross. Counted while a
//! profile shows that the kernel goes through rules, again every ten seconds, on a thread of its own; else nothing is read.

mod passages;

use super::netns::Spaces;
use super::nft;
use super::slow::Slow;
use super::slow::rule_counts::{RulesThere, count};
use crate::netlink::client::NetlinkClient;
use crate::netlink::socket::protocols;
use passages::{Passage, passages};
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vnettop_sample::{FirewallRules, FlowPath, LinkFacts};

/// How long a count holds, ns.
const AGAIN_NS: u64 = 10_000_000_000;
/// Namespaces that are asked at most.
const MOST_PLACES: usize = 16;
/// Whether bridges have their packets pass the hooks of IP: of IPv4, of IPv6.
const CALLS: [&str; 2] =
    ["/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/bridge/bridge-nf-call-ip6tables"];

/// Has rules counted, and keeps the counts.
#[derive(Debug, Default)]
pub struct FirewallReader {
    published: Arc<Vec<FirewallRules>>,
    passages: Vec<Passage>,
    counting: Option<Slow<Vec<FirewallRules>>>,
    counted_ns: u64,
}

/// What is found in a namespace beside its rules.
struct FirewallPlace {
    netlink: Option<NetlinkClient>,
    calls: [bool; 2],
    has_older: bool,
}

impl FirewallPlace {
    fn here() -> io::Result<Self> {
        let is_on = |file: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() != "0");
        let netlink = if nft::would_load() { None } else { Some(NetlinkClient::open(protocols::NETLINK_NETFILTER)?) };
        let has_older = [false, true].iter().any(|&is_ipv6| !nft::older_tables(is_ipv6).is_empty());
        Ok(Self { netlink, calls: CALLS.map(is_on), has_older })
    }
}

impl FirewallReader {
    /// The rules that packets of these paths may meet, sorted by link; empty while they are not wanted, and until they are
    /// counted. `links` are all links, sorted by key.
    pub fn read(
        &mut self,
        wanted: bool,
        spaces: &Spaces,
        (links, paths): (&[Arc<LinkFacts>], &[FlowPath]),
        now_ns: u64,
    ) -> Arc<Vec<FirewallRules>> {
        if !wanted {
            if !self.passages.is_empty() {
                *self = Self::default();
            }
            return Arc::clone(&self.published);
        }
        if let Some(counted) = Slow::take_within(&mut self.counting, Duration::ZERO)
            && counted != **self.published
        {
            self.published = Arc::new(counted);
        }
        let is_due = now_ns.saturating_sub(self.counted_ns) >= AGAIN_NS;
        let passages = passages(links, paths);
        if self.counting.is_none() && (is_due || passages != self.passages) {
            (self.passages, self.counted_ns) = (passages, now_ns);
            let places = self.passages.iter().take(MOST_PLACES).map(|passage| there(spaces, passage));
            self.counting = count(places.collect());
        }
        Arc::clone(&self.published)
    }
}

fn there(spaces: &Spaces, passage: &Passage) -> RulesThere {
    let Passage { link, mut hooks } = passage.clone();
    match spaces.inside(link.netns, FirewallPlace::here) {
        Ok(FirewallPlace { netlink, calls, has_older }) => {
            hooks.call_ip(calls);
            RulesThere { link, hooks, netlink: Ok(netlink), has_older }
        }
        Err(error) => RulesThere { link, hooks, netlink: Err(error), has_older: false },
    }
}
