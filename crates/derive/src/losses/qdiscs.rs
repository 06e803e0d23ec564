//! What qdiscs drop: of a root all that its children drop too, of `ingress` and `clsact` what a filter before the link drops.

use super::counted::SampleStep;
pub(crate) use super::known_qdisc::ROOT;
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
        let at_fault = at_fault(&step.previous.qdiscs, &step.next.qdiscs, now);
        let name = format!("{} on {}", at_fault.kind, step.name(now.link)?);
        let qdisc = Some(KnownQdisc::from(at_fault));
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

/// The qdisc below this root that has most of what it dropped; the root itself where no other has. A root counts what its children
/// drop, a child what those below it do. A queue that is full because a shaper above it lets no more pass is not at fault. Between two
/// readings of the qdiscs it goes by what they dropped in all.
pub(crate) fn at_fault<'a>(
    previous: &[QdiscCounters],
    next: &'a [QdiscCounters],
    root: &'a QdiscCounters,
) -> &'a QdiscCounters {
    let rise = |one: &QdiscCounters| dropped(previous, one).map_or(0.0, |(packets, _)| packets);
    let rises = rise(root) > 0.0;
    let lost = |one: &QdiscCounters| if rises { rise(one) } else { one.drops as f64 };
    let all = lost(root);
    if all <= 0.0 || root.parent != ROOT {
        return root;
    }
    let first = next.partition_point(|one| one.link < root.link);
    let here = next[first..].iter().take_while(|one| one.link == root.link && one.parent != INGRESS);
    let has_most = |one: &&QdiscCounters| lost(one) * 2.0 > all;
    let below: Vec<&QdiscCounters> = here.filter(|one| one.parent != ROOT).filter(has_most).collect();
    let mut at_fault = root;
    // Parents of a hostile recording may go in a circle.
    for _ in 0..below.len() {
        let is_child =
            |one: &&&QdiscCounters| one.parent >> 16 == at_fault.handle >> 16 && one.handle != at_fault.handle;
        match below.iter().find(is_child) {
            Some(child) if !shapes(at_fault) || shapes(child) || child.kind == "netem" => at_fault = child,
            _ => break,
        }
    }
    at_fault
}

/// It lets no more pass than it is set to.
fn shapes(qdisc: &QdiscCounters) -> bool {
    matches!(qdisc.kind.as_str(), "tbf" | "htb" | "hfsc" | "drr" | "cake")
}

/// A link's root qdisc; none where it has none that is read.
pub(crate) fn root(sample: &Sample, link: LinkKey) -> Option<&QdiscCounters> {
    let first = sample.qdiscs.partition_point(|one| one.link < link);
    let mut here = sample.qdiscs[first..].iter().take_while(|one| one.link == link);
    here.find(|one| one.parent == ROOT)
}

/// What drops on a link's way out; none where it has no qdisc that is read.
pub(super) fn dropping(step: &SampleStep<'_>, link: LinkKey) -> Option<KnownQdisc> {
    let root = root(step.next, link)?;
    Some(KnownQdisc::from(at_fault(&step.previous.qdiscs, &step.next.qdiscs, root)))
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

/// `TC_H_INGRESS`, which `clsact` has too.
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

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::Ifindex;

    const LINK: LinkKey = LinkKey { netns: 1, ifindex: Ifindex(2) };

    fn row(kind: &str, (handle, parent): (u32, u32), drops: u64) -> QdiscCounters {
        let counted = crate::losses::tests::qdisc(LINK, parent, 1 + drops, drops);
        QdiscCounters { kind: kind.into(), handle, ..counted }
    }

    /// Who is at fault for the drops of the first row, of rows that had dropped nothing a moment ago.
    fn fault(mut rows: Vec<QdiscCounters>) -> String {
        let before: Vec<QdiscCounters> =
            rows.iter().map(|one| QdiscCounters { drops: 0, at_ns: 0, ..one.clone() }).collect();
        for one in &mut rows {
            one.at_ns = 1_000_000_000;
        }
        let of_two = at_fault(&before, &rows, &rows[0]).kind.to_string();
        assert_eq!(at_fault(&rows, &rows, &rows[0]).kind, of_two, "and between two readings");
        of_two
    }

    #[test]
    fn what_a_root_counts_of_its_children_is_the_child_s() {
        let shaped = vec![row("netem", (0x1_0000, ROOT), 100), row("tbf", (0x2_0000, 0x1_0001), 100)];
        assert_eq!(fault(shaped), "tbf", "netem only delays");
        let deep = vec![
            row("prio", (0x1_0000, ROOT), 100),
            row("netem", (0x2_0000, 0x1_0001), 90),
            row("pfifo", (0x3_0000, 0x2_0001), 90),
        ];
        assert_eq!(fault(deep), "pfifo", "the innermost");
        let class = vec![row("htb", (0x1_0000, ROOT), 100), row("fq_codel", (0x2_0000, 0x1_0001), 100)];
        assert_eq!(fault(class), "htb", "the queue is full because the class lets no more pass");
        let random = vec![row("tbf", (0x1_0000, ROOT), 100), row("netem", (0x2_0000, 0x1_0001), 100)];
        assert_eq!(fault(random), "netem", "it drops by itself");
        let circle = vec![
            row("prio", (0x1_0000, ROOT), 9),
            row("fq", (0x2_0000, 0x3_0001), 9),
            row("fq", (0x3_0000, 0x2_0001), 9),
        ];
        assert_eq!(fault(circle), "prio");
        let own = vec![row("tbf", (0x1_0000, ROOT), 100), row("netem", (0x2_0000, 0x1_0001), 3)];
        assert_eq!(fault(own), "tbf", "the child has few of them");
        let many = vec![
            row("mq", (0x1_0000, ROOT), 100),
            row("fq", (0x2_0000, 0x1_0001), 50),
            row("fq", (0x3_0000, 0x1_0002), 50),
        ];
        assert_eq!(fault(many), "mq", "no queue has most");
    }
}
