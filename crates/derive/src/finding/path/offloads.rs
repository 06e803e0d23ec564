//! Offloads that someone turned off where a flow goes: at one of its two ends, or in between. What a kind of link is born
//! without, or what follows from another switch, is no finding: there is nothing to turn on.

use super::{Diagnostic, LintInput, named, whole};
use crate::TestMetrics;
use crate::links::LinkMetrics;
use crate::paths;
use vnettop_sample::{FlowPath, Hop, HopWay, Kind, LinkKey, Offload, Offloads, Proto, Word, shell_word};

/// Something that is off and costs.
pub(in crate::finding) fn offloads(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let text = whole(input).find_map(|path| uneven(metrics, path).or_else(|| between(metrics, path)))?;
    Some(Diagnostic::new(text, []))
}

fn known(metrics: &TestMetrics, link: LinkKey) -> Option<(&Offloads, &LinkMetrics)> {
    Some((paths::offloads(metrics, link)?, metrics.machine.link(link)?))
}

/// Offloads that matter to the flow's packets: datagrams are not cut or put together unless their program asks for it.
fn concerned(path: &FlowPath) -> impl Iterator<Item = Offload> {
    let checks = |of: &Offload| matches!(of, Offload::TxChecksum | Offload::RxChecksum);
    let tcp = path.proto == Proto::Tcp;
    Offload::EACH.into_iter().filter(move |of| tcp || checks(of))
}

/// One end has what the other one has not.
fn uneven(metrics: &TestMetrics, path: &FlowPath) -> Option<String> {
    let (from, to) = (known(metrics, path.hops.first()?.link)?, known(metrics, path.hops.last()?.link)?);
    // Different kinds of links do different things by themselves.
    if from.1.facts.kind != to.1.facts.kind {
        return None;
    }
    let (of, off, on) = concerned(path).find_map(|of| match (from.0.has(of), to.0.has(of)) {
        (true, false) => Some((of, to, from)),
        (false, true) => Some((of, from, to)),
        _ => None,
    })?;
    let may_be_on = off.0.unwanted.contains(&of);
    may_be_on.then(|| {
        let on = format!(", not on {}", named(metrics, on.1));
        sentence(metrics, of, off.1, &on)
    })
}

/// A link on the path lacks an offload that the flow needs.
fn between(metrics: &TestMetrics, path: &FlowPath) -> Option<String> {
    let lacks = |hop: &Hop| {
        let (offloads, link) = known(metrics, hop.link)?;
        let of = concerned(path).find(|&of| offloads.unwanted.contains(&of) && costs(of, hop.way, &link.facts.kind))?;
        Some(sentence(metrics, of, link, ""))
    };
    path.hops.iter().find_map(lacks)
}

/// Whether a hop does without it at a price. A veth receives what its other end put together as it is, and has GRO only
/// for what comes one by one; a tun or tap has what the program that holds it asks for.
fn costs(of: Offload, way: HopWay, kind: &Kind) -> bool {
    match (of, way) {
        _ if matches!(kind, Kind::Tun | Kind::Tap | Kind::Loopback) => false,
        (Offload::Tso | Offload::Gso | Offload::TxChecksum, HopWay::Sent) | (Offload::RxChecksum, HopWay::Received) => {
            true
        }
        (Offload::Gro, HopWay::Received) => matches!(kind, Kind::Physical | Kind::Virtio),
        _ => false,
    }
}

fn sentence(metrics: &TestMetrics, of: Offload, off: &LinkMetrics, on: &str) -> String {
    let price = match of {
        Offload::Tso => "the CPU segments what it sends, and each is processed alone",
        Offload::Gso => "every packet that it sends is built and processed alone",
        Offload::Gro => "packets that arrive one by one are not merged",
        Offload::TxChecksum => "the CPU computes the checksum of all that it sends",
        Offload::RxChecksum => "the CPU computes the checksum of all that it receives",
    };
    let (word, name) = (of.word(), shell_word(&off.facts.name));
    format!("{word} is off on {}{on}: {price} (ethtool -K {name} {word} on)", named(metrics, off))
}
