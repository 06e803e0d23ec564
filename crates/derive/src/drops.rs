//! Every drop that the kernel tells of, whosever packets they are: by reason, function, interface and namespace, with what a
//! reason means. The losses of the flows are made elsewhere; this is the list as it is.

use super::TestMetrics;
use super::losses::LossPlace;
use super::losses::counted::rises;
use super::losses::kernel;
use super::losses::other_host::OTHERHOST;
use super::losses::place_of_drop::{DropVerdict, is_packet, verdict_of};
use super::losses::same_ends::is_same;
use std::sync::Arc;
use vnettop_sample::{DropCount, Ifindex, LinkKey};

/// Packets dropped at one place for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Drop {
    /// Inode of the namespace; none where the packet belonged to none any more.
    pub netns: Option<u64>,
    /// The device; none where it was at none.
    pub ifindex: Option<Ifindex>,
    /// The kernel's reason; none before Linux 5.17.
    pub reason: Option<Arc<str>>,
    /// The kernel's function; none where it is not named.
    pub function: Option<Arc<str>>,
    /// What it means to whose packets they are.
    pub verdict: DropVerdict,
    /// They are a watched flow's.
    pub of_flows: bool,
    /// Packets since the programs were attached.
    pub packets: u64,
    /// Packets a second between the two samples; none for the first.
    pub packets_per_s: Option<f64>,
}

/// The list, what is dropped most now first, then what was dropped most; none where the kernel is not asked. Made when a
/// face asks for it.
#[must_use]
pub fn list(metrics: &TestMetrics) -> Option<Vec<Drop>> {
    let now = metrics.machine.kernel.as_ref()?.drops.as_ref()?;
    let before = metrics.machine.kernel_before.as_ref().and_then(|kernel| kernel.drops.as_ref());
    let mut list = Vec::new();
    let per_second = |packets: f64| metrics.machine.elapsed_s.map(|seconds| packets / seconds);
    for (row, rise) in rises(before.map_or(&[][..], |drops| &drops.flows), &now.flows) {
        add(row, is_theirs(metrics, row), per_second(rise.unwrap_or(row.packets as f64)), &mut list);
    }
    for row in &now.ended {
        add(row, true, per_second(0.0), &mut list);
    }
    for (row, rise) in rises(before.map_or(&[][..], |drops| &drops.others), &now.others) {
        // A count of others falls where a flow has turned out to be a watched one's: nothing was dropped for that.
        add(row, false, per_second(rise.unwrap_or(0.0)), &mut list);
    }
    // Whether a frame for another is a copy or the packet itself, the losses have told.
    let is_lost = |drop: &Drop| {
        let link = drop.netns.zip(drop.ifindex).map(|(netns, ifindex)| LinkKey { netns, ifindex });
        let mut places = metrics.losses.places.iter().filter(|loss| loss.place == LossPlace::MacAddress);
        drop.of_flows && drop.reason.as_deref() == Some(OTHERHOST) && places.any(|loss| loss.link == link)
    };
    for drop in &mut list {
        if is_lost(drop) {
            drop.verdict = DropVerdict::Lost(LossPlace::MacAddress);
        }
    }
    let rate = |drop: &Drop| drop.packets_per_s.unwrap_or(0.0);
    list.sort_by(|one, other| rate(other).total_cmp(&rate(one)).then(other.packets.cmp(&one.packets)));
    Some(list)
}

/// Whether a row of a watched flow's addresses and ports can be its own.
fn is_theirs(metrics: &TestMetrics, row: &DropCount) -> bool {
    let is_end = row.flow.is_none_or(|flow| {
        let ends = metrics.flow.connections.iter().flat_map(|connection| [connection.from, connection.to]);
        let is_its = |address| is_same(address, flow.to) || is_same(address, flow.from);
        ends.filter(|end| end.netns == row.netns).any(|end| is_its(end.address))
    });
    let is_plain = |key| metrics.machine.link(key).is_some_and(|link| link.facts.kind.is_plain());
    kernel::is_theirs(row, metrics.paths.iter(), is_end, is_plain)
}

/// Rows that differ only by flow, or by the line of a function, are one.
fn add(row: &DropCount, of_flows: bool, packets_per_s: Option<f64>, list: &mut Vec<Drop>) {
    if !row.function.as_deref().is_none_or(is_packet) {
        return;
    }
    let is_same = |one: &&mut Drop| {
        (one.netns, one.ifindex, &one.reason, &one.function, one.of_flows)
            == (row.netns, row.ifindex, &row.reason, &row.function, of_flows)
    };
    match list.iter_mut().find(is_same) {
        Some(known) => {
            known.packets = known.packets.saturating_add(row.packets);
            known.packets_per_s = known.packets_per_s.zip(packets_per_s).map(|(one, other)| one + other);
        }
        None => list.push(Drop {
            netns: row.netns,
            ifindex: row.ifindex,
            reason: row.reason.clone(),
            function: row.function.clone(),
            verdict: verdict_of(row.reason.as_deref(), row.function.as_deref()),
            of_flows,
            packets: row.packets,
            packets_per_s,
        }),
    }
}

#[cfg(test)]
mod tests;
