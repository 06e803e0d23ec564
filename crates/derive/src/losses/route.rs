//! Which links the watched flows leave through and come in through, and where they start. Where no path is known, the busy
//! links of the namespaces they end in stand for it.

use super::ProtocolSpan;
use super::sent::SentPackets;
use crate::links::LinkMetrics;
use std::collections::BTreeSet;
use vnettop_sample::{FlowPath, HopWay, LinkKey, Sample};

/// A link that carries less of the packets than this share of the busiest one of its namespace is not on the path.
const BUSY: f64 = 0.1;

/// The paths of all watched flows together.
#[derive(Debug, Clone, Default)]
pub(super) struct Route {
    /// Links that packets leave through, and come in through.
    pub sent: BTreeSet<LinkKey>,
    pub received: BTreeSet<LinkKey>,
    /// Namespaces in which flows start.
    pub senders: BTreeSet<u64>,
    /// Every path is known to its end.
    pub is_whole: bool,
}

impl Route {
    /// The paths in the newer sample, or in the older one when the flows have just ended.
    pub fn of(previous: &Sample, next: &Sample, links: &[LinkMetrics], spans: &[ProtocolSpan<'_>]) -> Option<Self> {
        let sample = if next.flows.is_empty() { previous } else { next };
        if sample.flows.is_empty() {
            return None;
        }
        Some(if sample.facts.paths.iter().any(|path| !path.hops.is_empty()) {
            Self::along(&sample.facts.paths)
        } else {
            Self::around(sample, links, spans)
        })
    }

    fn along(paths: &[FlowPath]) -> Self {
        let mut route = Self { is_whole: true, ..Self::default() };
        for path in paths {
            route.is_whole &= path.gap.is_none() && !path.hops.is_empty();
            route.senders.insert(path.netns);
            for hop in &path.hops {
                if hop.way == HopWay::Sent {
                    route.sent.insert(hop.link);
                } else if hop.way == HopWay::Received {
                    route.received.insert(hop.link);
                }
            }
        }
        route
    }

    /// The namespace that sends the most is the sender's.
    fn around(sample: &Sample, links: &[LinkMetrics], spans: &[ProtocolSpan<'_>]) -> Self {
        let ends: BTreeSet<u64> = sample.flows.iter().map(|flow| flow.netns).collect();
        let sender = spans.iter().filter(|span| ends.contains(&span.now.netns));
        let sender = sender.max_by(|a, b| a.sent().unwrap_or(0.0).total_cmp(&b.sent().unwrap_or(0.0)));
        let mut route = Self { senders: sender.map(|span| span.now.netns).into_iter().collect(), ..Self::default() };
        for netns in ends {
            let packets = |link: &LinkMetrics| link.rates?.packets_per_s();
            let here = || links.iter().filter(move |link| link.facts.netns == netns);
            let most = here().filter_map(packets).fold(0.0, f64::max);
            let busy = here().filter(|link| packets(link).is_some_and(|packets| packets >= BUSY * most) || drops(link));
            for link in busy {
                route.sent.insert(link.facts.key());
                route.received.insert(link.facts.key());
            }
        }
        route
    }

    /// A sum over the namespaces in which flows start; none where there are none, or one does not tell.
    pub fn sum<'a>(&self, spans: &[ProtocolSpan<'a>], of: impl Fn(&ProtocolSpan<'a>) -> Option<f64>) -> Option<f64> {
        let mut senders = spans.iter().filter(|span| self.senders.contains(&span.now.netns)).peekable();
        senders.peek()?;
        senders.map(of).sum()
    }

    /// What the flows send, packets; none where there are none, or of one it is not known.
    pub fn sent(&self, sent: &SentPackets) -> Option<f64> {
        let mut senders = self.senders.iter().peekable();
        senders.peek()?;
        senders.map(|netns| sent.from(*netns)).sum()
    }

    /// The link is on a path.
    pub fn has(&self, link: LinkKey) -> bool {
        self.sent.contains(&link) || self.received.contains(&link)
    }
}

fn drops(link: &LinkMetrics) -> bool {
    link.rates.and_then(|rates| rates.dropped_per_s()).is_some_and(|packets| packets > 0.0)
}
