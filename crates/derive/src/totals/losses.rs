//! The losses of all tests between two samples, each once.

use super::super::losses::is_here;
use super::super::{Loss, Metrics, Test};
use super::LossGroup;
use super::space_labels::{label_of, pod_of};
use std::collections::BTreeMap;

/// Packets lost, by group. Of several tests at once: where the kernel is asked, each has its own; where counters say it, what one
/// place lost stands in every test that crosses it, and counts once. While no test runs, what the kernel tells late of one that
/// has ended is there too, and what is lost of everything that is watched.
pub(super) fn of(metrics: &Metrics) -> Vec<(LossGroup, f64)> {
    let running: Vec<&Test> = metrics.tests.iter().map(|test| &**test).filter(|test| test.ended_ns.is_none()).collect();
    let all =
        if running.is_empty() { vec![&*metrics.subject] } else { running.iter().map(|test| &*test.metrics).collect() };
    let every = all.into_iter().flat_map(|of| &of.losses.places).filter(|loss| is_here(&metrics.machine, loss));
    let group = |loss: &Loss| LossGroup {
        place: loss.place,
        reason: loss.reason.as_deref().unwrap_or_default().to_owned(),
        netns: loss.netns.map_or_else(String::new, |netns| label_of(metrics, netns)),
        pod: loss
            .netns
            .and_then(|netns| pod_of(metrics, netns))
            .map(|(space, name)| (space.to_owned(), name.to_owned())),
    };
    if metrics.machine.asks_kernel() || running.len() < 2 {
        return every.map(|loss| (group(loss), loss.packets)).collect();
    }
    let mut places: BTreeMap<_, (LossGroup, f64)> = BTreeMap::new();
    for loss in every {
        let place = (loss.place, loss.netns, loss.link, loss.qdisc.clone(), loss.core, loss.name.clone());
        let (_, packets) = places.entry(place).or_insert_with(|| (group(loss), 0.0));
        *packets = packets.max(loss.packets);
    }
    places.into_values().collect()
}
