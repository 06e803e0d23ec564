//! The losses of the watched flows as JSON: the place, how many packets, which share of those sent. It computes nothing.

use super::Row;
use crate::derive::{Loss, Metrics};
use crate::sample::Ifindex;
use serde::Serialize;

/// What was lost at one place; what does not apply to it is null.
#[derive(Serialize)]
pub(super) struct Lost<'a> {
    place: &'static str,
    netns: Option<u64>,
    ifindex: Option<Ifindex>,
    name: Option<&'a str>,
    core: Option<u32>,
    packets_per_s: f64,
    share: Option<f64>,
}

impl Row for Loss {
    type Out<'a> = Lost<'a>;

    fn row<'a>(&'a self, _: &'a Metrics) -> Lost<'a> {
        Lost {
            place: self.place.word(),
            netns: self.netns,
            ifindex: self.link.map(|link| link.ifindex),
            name: self.name.as_deref(),
            core: self.core,
            packets_per_s: self.packets_per_s,
            share: self.share,
        }
    }
}
