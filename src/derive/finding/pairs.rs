//! Sender and receiver where their cores are too far from each other, or too near.

use super::threads::{SAMPLES_TOGETHER, busy};
use super::{Diagnostic, LintInput};
use crate::derive::threads::ThreadMetrics;
use crate::sample::{CorePlace, Side};

/// Samples in a row in which both ends stayed on their nodes before a sentence says so.
const SAMPLES_APART: usize = 6;

/// A sender and a receiver that stay on different NUMA nodes.
pub(super) fn other_node(scene: &LintInput<'_>) -> Option<Diagnostic> {
    if scene.metrics.facts.topology.nodes < 2 {
        return None;
    }
    let node = |thread: &ThreadMetrics| stays(scene, thread, SAMPLES_APART, |place| place.node);
    let ends: Vec<(&ThreadMetrics, u32)> =
        busy(scene.metrics).filter_map(|thread| Some((thread, node(thread)?))).collect();
    let (client, server, from, to) = pairs(&ends).find(|(_, _, from, to)| from != to)?;
    // One of several streams may well sit next to its other end, so every pair has to be apart.
    if pairs(&ends).any(|(_, _, from, to)| from == to) {
        return None;
    }
    let text = format!(
        "client {} runs on core {} of node {from}, server {} on core {} of node {to}: every byte crosses nodes",
        client.sample.id.tid, client.sample.core, server.sample.id.tid, server.sample.core,
    );
    Some(Diagnostic::new(text, [("client_node", f64::from(from)), ("server_node", f64::from(to))]))
}

/// Two busy threads that stay on the two halves of one physical core.
pub(super) fn siblings(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let physical = |thread: &ThreadMetrics| stays(scene, thread, SAMPLES_TOGETHER, |place| place.physical);
    let mut placed: Vec<(u32, &ThreadMetrics)> =
        busy(scene.metrics).filter_map(|thread| Some((physical(thread)?, thread))).collect();
    placed.sort_by_key(|(physical, thread)| (*physical, thread.sample.core));
    let apart =
        |pair: &&[(u32, &ThreadMetrics)]| pair[0].0 == pair[1].0 && pair[0].1.sample.core != pair[1].1.sample.core;
    let pair = placed.windows(2).find(apart)?;
    let (one, other) = (&pair[0].1.sample, &pair[1].1.sample);
    let text = format!(
        "busy threads {} and {} share one physical core: cores {} and {} are SMT siblings",
        one.id.tid, other.id.tid, one.core, other.core,
    );
    Some(Diagnostic::new(text, [("core", f64::from(one.core)), ("sibling", f64::from(other.core))]))
}

/// Every client with every server.
fn pairs<'a>(
    ends: &[(&'a ThreadMetrics, u32)],
) -> impl Iterator<Item = (&'a ThreadMetrics, &'a ThreadMetrics, u32, u32)> {
    let of = |side| ends.iter().filter(move |(thread, _)| thread.sample.side == Some(side));
    of(Side::Client).flat_map(move |(client, from)| of(Side::Server).map(|(server, to)| (*client, *server, *from, *to)))
}

/// The circle that the thread's core lies in, where it did not leave it for some samples.
fn stays(
    scene: &LintInput<'_>,
    thread: &ThreadMetrics,
    samples: usize,
    circle: fn(&CorePlace) -> Option<u32>,
) -> Option<u32> {
    let topology = &scene.metrics.facts.topology;
    let track = scene.history.thread(thread.sample.id).filter(|track| track.cores.len() >= samples)?;
    let now = circle(topology.place(thread.sample.core)?)?;
    let same = |core: &u32| topology.place(*core).and_then(circle) == Some(now);
    track.last(samples).all(same).then_some(now)
}
