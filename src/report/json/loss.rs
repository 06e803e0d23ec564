//! The losses of the watched flows as JSON: the place, how many packets, which share of those sent; and every drop of the
//! machine. It computes nothing.

use super::JsonRow;
use crate::derive::{Loss, Metrics, drops};
use crate::sample::{Ifindex, LinkKey, Word};
use serde::Serialize;
use std::sync::Arc;

/// What was lost at one place; what does not apply to it is null.
#[derive(Serialize)]
pub(super) struct LostObject<'a> {
    place: &'static str,
    netns: Option<u64>,
    ifindex: Option<Ifindex>,
    link: Option<&'a str>,
    qdisc: Option<&'a str>,
    /// As `tc` prints it.
    handle: Option<String>,
    name: Option<&'a str>,
    core: Option<u32>,
    reason: Option<&'a str>,
    function: Option<&'a str>,
    refused: bool,
    packets: f64,
    packets_per_s: f64,
    share: Option<f64>,
}

impl JsonRow for Loss {
    type Out<'a> = LostObject<'a>;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> LostObject<'a> {
        let name = |key: LinkKey| metrics.link(key).map(|link| link.facts.name.as_str());
        LostObject {
            place: self.place.word(),
            netns: self.netns,
            ifindex: self.link.map(|link| link.ifindex),
            link: self.link.and_then(name),
            qdisc: self.qdisc.as_ref().map(|(kind, _)| kind.as_str()),
            handle: self.qdisc.as_ref().map(|(_, handle)| format!("{:x}:", handle >> 16)),
            name: self.name.as_deref(),
            core: self.core,
            reason: self.reason.as_deref(),
            function: self.function.as_deref(),
            refused: self.refused,
            packets: self.packets,
            packets_per_s: metrics.losses.a_second(self.packets),
            share: self.share,
        }
    }
}

/// Packets that the kernel dropped at one place for one reason, whosever they are.
#[derive(Serialize)]
pub(super) struct Dropped<'a> {
    reason: Option<Arc<str>>,
    function: Option<Arc<str>>,
    means: &'static str,
    netns: Option<u64>,
    ifindex: Option<Ifindex>,
    link: Option<&'a str>,
    of_flows: bool,
    packets: u64,
    packets_per_s: Option<f64>,
}

impl<'a> Dropped<'a> {
    /// The list; none unless the whole machine was asked for.
    pub(super) fn all(metrics: &'a Metrics) -> Option<Vec<Self>> {
        metrics.kernel[0].as_ref()?.drops.as_ref().filter(|drops| drops.everywhere)?;
        let row = |drop: drops::Drop| {
            let link =
                drop.netns.zip(drop.ifindex).and_then(|(netns, ifindex)| metrics.link(LinkKey { netns, ifindex }));
            Self {
                means: drop.verdict.word(),
                netns: drop.netns,
                ifindex: drop.ifindex,
                link: link.map(|link| link.facts.name.as_str()),
                of_flows: drop.of_flows,
                packets: drop.packets,
                packets_per_s: drop.packets_per_s,
                reason: drop.reason,
                function: drop.function,
            }
        };
        Some(drops::list(metrics)?.into_iter().map(row).collect())
    }
}
