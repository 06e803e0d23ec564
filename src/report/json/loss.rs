//! The losses of the watched flows as JSON: the place, how many packets, which share of those sent; and every drop of the
//! machine. It computes nothing.

use super::{JsonObject, link_named};
use crate::derive::{Drop, Loss, TestMetrics, drops};
use crate::sample::{LinkKey, Word};
use serde::ser::SerializeMap;

/// What was lost at one place; what does not apply to it is null.
impl JsonObject for Loss {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("place", self.place.word())?;
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("ifindex", &self.link.map(|link| link.ifindex))?;
        object.serialize_entry("link", &self.link.and_then(|key| link_named(metrics, key)))?;
        object.serialize_entry("qdisc", &self.qdisc.as_ref().map(|qdisc| &qdisc.kind))?;
        // As `tc` prints it.
        object.serialize_entry("handle", &self.qdisc.as_ref().map(|qdisc| format!("{:x}:", qdisc.handle >> 16)))?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("core", &self.core)?;
        object.serialize_entry("reason", &self.reason)?;
        object.serialize_entry("function", &self.function)?;
        object.serialize_entry("refused", &self.refused)?;
        object.serialize_entry("packets", &self.packets)?;
        object.serialize_entry("packets_per_s", &metrics.losses.per_second(self.packets))?;
        object.serialize_entry("share", &self.share)
    }
}

/// Every drop of the machine; none unless the whole machine was asked for.
pub(super) fn everywhere(metrics: &TestMetrics) -> Option<Vec<Drop>> {
    metrics.machine.kernel.as_ref()?.drops.as_ref().filter(|drops| drops.everywhere)?;
    drops::list(metrics)
}

/// Packets that the kernel dropped at one place for one reason, whosever they are.
impl JsonObject for Drop {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let key = self.netns.zip(self.ifindex).map(|(netns, ifindex)| LinkKey { netns, ifindex });
        object.serialize_entry("reason", &self.reason)?;
        object.serialize_entry("function", &self.function)?;
        object.serialize_entry("means", self.verdict.word())?;
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("ifindex", &self.ifindex)?;
        object.serialize_entry("link", &key.and_then(|key| link_named(metrics, key)))?;
        object.serialize_entry("of_flows", &self.of_flows)?;
        object.serialize_entry("packets", &self.packets)?;
        object.serialize_entry("packets_per_s", &self.packets_per_s)
    }
}
