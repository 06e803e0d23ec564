//! What qdiscs drop: of a root all that its children drop too, of `ingress` and `clsact` what a filter before the link drops.

use super::counted::SampleStep;
use super::route::Route;
use super::{KnownQdisc, Loss, LossPlace, QdiscDrops};
use vnettop_sample::{LinkKey, QDISC_KINDS, QdiscCounters, Sample, row_of};

/// Drops of the root qdiscs that the flows' packets leave through, and of what stands before a link (`clsact`, `ingress`).
pub(super) fn lost(step: &SampleStep<'_>, route: &Route) -> Vec<Loss> {
    let lost = |now: &QdiscCounters| {
        let stands = match now.parent {
            ROOT => route.sent.contains(&now.link),
            parent => parent == INGRESS && route.has(now.link),
        };
        let (packets, _) = dropped(&step.previous.qdiscs, now).filter(|_| stands)?;
        let name = format!("{} on {}", now.kind, step.name(now.link)?);
        let qdisc = Some(KnownQdisc::from(now));
        Some(Loss { qdisc, ..Loss::on_link(LossPlace::Qdisc, now.link, name, packets) })
    };
    step.next.qdiscs.iter().filter_map(lost).collect()
}

/// What the qdiscs of each link drop, sorted by link.
pub(super) fn drops(previous: &Sample, next: &Sample) -> Vec<QdiscDrops> {
    let mut all: Vec<QdiscDrops> = Vec::new();
    for now in next.qdiscs.iter().filter(|now| now.parent == ROOT || now.parent == INGRESS) {
        if all.last().is_none_or(|last| last.link != now.link) {
            all.push(QdiscDrops { link: now.link, sent_per_s: None, received_per_s: None, queues_nothing: false });
        }
        let Some(last) = all.last_mut() else { continue };
        last.queues_nothing |= now.parent == ROOT && now.kind == QDISC_KINDS[0];
        let side = if now.parent == ROOT { &mut last.sent_per_s } else { &mut last.received_per_s };
        *side = dropped(&previous.qdiscs, now).map(|(packets, seconds)| packets / seconds);
    }
    all
}

/// A link's root qdisc; none where it has none that is read.
pub(crate) fn root(sample: &Sample, link: LinkKey) -> Option<KnownQdisc> {
    let first = sample.qdiscs.partition_point(|one| one.link < link);
    let here = sample.qdiscs[first..].iter().take_while(|one| one.link == link);
    here.into_iter().find(|one| one.parent == ROOT).map(KnownQdisc::from)
}

/// Packets that a qdisc dropped, and in how many seconds; none where it was not there before.
pub(crate) fn dropped(previous: &[QdiscCounters], now: &QdiscCounters) -> Option<(f64, f64)> {
    let before = before(previous, now)?;
    let seconds = crate::rate::seconds(before.at_ns, now.at_ns)?;
    Some((wrapping_rise(before.drops, now.drops)? as f64, seconds))
}

/// This qdisc as it was read before; `None` when it was not there.
pub(crate) fn before<'a>(previous: &'a [QdiscCounters], now: &QdiscCounters) -> Option<&'a QdiscCounters> {
    let before = row_of(previous, &(now.link, now.handle), |one| (one.link, one.handle));
    before.filter(|before| before.kind == now.kind)
}

/// `TC_H_ROOT`, and `TC_H_INGRESS`, which `clsact` has too.
pub(crate) const ROOT: u32 = u32::MAX;
const INGRESS: u32 = 0xffff_fff1;

/// How much a counter of 32 bits rose; none where it was reset.
fn wrapping_rise(from: u64, to: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match to.checked_sub(from) {
        Some(rise) => Some(rise),
        // It went once around, if it was near the end.
        None if from < WRAP && from > WRAP / 2 && to < WRAP / 2 => Some(to + WRAP - from),
        None => None,
    }
}
