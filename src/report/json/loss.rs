//! The losses of the watched flows as JSON: the place, how many packets, which share of those sent. It computes nothing.

use super::Row;
use crate::derive::{Loss, Metrics};
use crate::sample::{Ifindex, LinkKey};
use serde::Serialize;

/// What was lost at one place; what does not apply to it is null.
#[derive(Serialize)]
pub(super) struct Lost<'a> {
    place: &'static str,
    netns: Option<u64>,
    ifindex: Option<Ifindex>,
    link: Option<&'a str>,
    to_ifindex: Option<Ifindex>,
    to_link: Option<&'a str>,
    qdisc: Option<&'a str>,
    /// As `tc` prints it.
    handle: Option<String>,
    name: Option<&'a str>,
    core: Option<u32>,
    packets: f64,
    packets_per_s: f64,
    share: Option<f64>,
}

impl Row for Loss {
    type Out<'a> = Lost<'a>;

    fn row<'a>(&'a self, metrics: &'a Metrics) -> Lost<'a> {
        let name = |key: LinkKey| metrics.link(key).map(|link| link.facts.name.as_str());
        Lost {
            place: self.place.word(),
            netns: self.netns,
            ifindex: self.link.map(|link| link.ifindex),
            link: self.link.and_then(name),
            to_ifindex: self.to.map(|link| link.ifindex),
            to_link: self.to.and_then(name),
            qdisc: self.qdisc.as_ref().map(|(kind, _)| kind.as_str()),
            handle: self.qdisc.as_ref().map(|(_, handle)| format!("{:x}:", handle >> 16)),
            name: self.name.as_deref(),
            core: self.core,
            packets: self.packets,
            packets_per_s: metrics.losses.a_second(self.packets),
            share: self.share,
        }
    }
}
