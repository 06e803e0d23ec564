//! What is wrong with the way of the watched flows: sizes that do not fit, halves that are down, detours, offloads that only
//! one end has. Where no path is known, only what needs none is said.

use super::{Said, Scene};
use crate::derive::Metrics;
use crate::derive::links::LinkMetrics;
use crate::sample::{FlowPath, HopBy, Kind, LinkKey, LinkState, Offloads};

/// What vxlan adds to a packet over IPv4 and over IPv6, bytes.
const VXLAN: [u32; 2] = [50, 70];

fn whole<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a FlowPath> {
    scene.metrics.paths.iter().filter(|path| path.gap.is_none() && path.hops.len() > 1)
}

/// The link with its namespace's name, where that has one.
fn named(metrics: &Metrics, link: &LinkMetrics) -> String {
    let space = metrics.space(link.facts.netns).and_then(|space| space.name.as_deref());
    space.map_or_else(|| link.facts.name.clone(), |space| format!("{} ({space})", link.facts.name))
}

/// A link between the ends that takes smaller packets than both ends send.
pub(super) fn mtu(scene: &Scene<'_>) -> Option<Said> {
    let narrow = |path: &FlowPath| {
        let links = path.hops.iter().filter_map(|hop| scene.metrics.link(hop.link));
        let links: Vec<&LinkMetrics> = links.filter(|link| link.facts.tells_mtu()).collect();
        let ends = links.first()?.facts.mtu.min(links.last()?.facts.mtu);
        let narrowest = *links.iter().min_by_key(|link| link.facts.mtu)?;
        (narrowest.facts.mtu < ends).then_some((narrowest, ends))
    };
    let (link, ends) = whole(scene).find_map(narrow)?;
    let text = format!(
        "{} takes {} bytes, the ends of its path send {ends}: without word of it a test connects and then moves nothing \
         (mtu {} at the ends mends it)",
        named(scene.metrics, link),
        link.facts.mtu,
        link.facts.mtu,
    );
    Some(Said { text, cost: None, numbers: vec![("mtu", f64::from(link.facts.mtu)), ("ends_mtu", f64::from(ends))] })
}

/// A vxlan that leaves no room for its own header in what lies below it.
pub(super) fn headroom(scene: &Scene<'_>) -> Option<Said> {
    let metrics = scene.metrics;
    let lower = |link: &LinkMetrics| {
        let lower = link.facts.lower?;
        metrics.link(LinkKey { netns: lower.netns?, ifindex: lower.ifindex })
    };
    let vxlans = metrics.links.iter().filter(|link| link.facts.kind == Kind::Vxlan);
    let tight = |link: &LinkMetrics, lower: &LinkMetrics| link.facts.mtu.saturating_add(VXLAN[0]) > lower.facts.mtu;
    let (link, lower) =
        vxlans.filter_map(|link| Some((link, lower(link)?))).find(|(link, lower)| tight(link, lower))?;
    let (mtu, below) = (link.facts.mtu, lower.facts.mtu);
    let text = format!(
        "{} takes {mtu} bytes and {} below it {below}: its header needs {} more over IPv4, {} over IPv6, so full packets \
         are cut or dropped (ip link set {} mtu {})",
        named(metrics, link),
        lower.facts.name,
        VXLAN[0],
        VXLAN[1],
        link.facts.name,
        below.saturating_sub(VXLAN[0]),
    );
    Some(Said { text, cost: None, numbers: vec![("mtu", f64::from(mtu)), ("lower_mtu", f64::from(below))] })
}

/// A pair of which only one end is up.
pub(super) fn half_down(scene: &Scene<'_>) -> Option<Said> {
    let metrics = scene.metrics;
    let waiting = metrics.links.iter().filter(|link| link.facts.state == LinkState::LowerLayerDown);
    let pair = |link: &'_ &LinkMetrics| {
        let peer = link.facts.peer?;
        metrics.link(LinkKey { netns: peer.netns?, ifindex: peer.ifindex })
    };
    let mut halves = waiting.filter_map(|link| Some((link, pair(&link)?)));
    let (link, down) = halves.find(|(_, other)| other.facts.state == LinkState::Down)?;
    let text = format!(
        "{} carries nothing: {}, its other end, is down (ip link set {} up)",
        named(metrics, link),
        named(metrics, down),
        down.facts.name
    );
    Some(Said { text, cost: None, numbers: Vec::new() })
}

/// A bridge that does not forward through a port yet, or not at all.
pub(super) fn port_waits(scene: &Scene<'_>) -> Option<Said> {
    let metrics = scene.metrics;
    let port = |link: &&LinkMetrics| {
        let up = matches!(link.facts.state, LinkState::Up | LinkState::Unknown);
        up && link.facts.port_state.is_some_and(|state| !state.forwards())
    };
    let link = metrics.links.iter().find(port)?;
    let state = link.facts.port_state?;
    let bridge = link.facts.master.and_then(|master| metrics.link(link.facts.beside(master)));
    let text = format!(
        "{} forwards nothing through {}: its port is {} (spanning tree; ip link set type bridge stp_state 0, or a shorter \
         forward_delay)",
        bridge.map_or_else(|| "a bridge".to_owned(), |bridge| named(metrics, bridge)),
        link.facts.name,
        state.word(),
    );
    Some(Said { text, cost: None, numbers: Vec::new() })
}

/// Both ends are addresses of one namespace: the packets never leave it.
pub(super) fn through_lo(scene: &Scene<'_>) -> Option<Said> {
    let local = |path: &&FlowPath| !path.to.ip().is_loopback() && path.hops.iter().any(|hop| hop.by == HopBy::Local);
    let path = scene.metrics.paths.iter().find(local)?;
    let text = format!(
        "{} is an address of the sender's own namespace, so its packets go through lo and no interface is measured",
        path.to.ip()
    );
    Some(Said { text, cost: None, numbers: Vec::new() })
}

/// A program copies every byte.
pub(super) fn proxied(scene: &Scene<'_>) -> Option<Said> {
    let proxied = |path: &&FlowPath| path.hops.iter().any(|hop| hop.by == HopBy::Proxy);
    let path = scene.metrics.paths.iter().find(proxied)?;
    let text = format!(
        "port {} is published through a proxy, a program that copies every byte: over the machine's own address, or with \
         Docker's userland-proxy off, NAT does it in the kernel",
        path.to.port()
    );
    Some(Said { text, cost: None, numbers: vec![("port", f64::from(path.to.port()))] })
}

/// Something that one end of a path puts together and the other does not.
pub(super) fn offloads(scene: &Scene<'_>) -> Option<Said> {
    type Of = fn(&Offloads) -> bool;
    const EACH: [(&str, Of); 5] = [
        ("tso", |of| of.tso),
        ("gso", |of| of.gso),
        ("gro", |of| of.gro),
        ("tx", |of| of.tx_checksum),
        ("rx", |of| of.rx_checksum),
    ];
    let metrics = scene.metrics;
    let told = |link: LinkKey| {
        let at = metrics.offloads.binary_search_by_key(&link, |told| told.link).ok()?;
        Some((&metrics.offloads[at], metrics.link(link)?))
    };
    let uneven = |path: &FlowPath| {
        let (from, to) = (told(path.hops.first()?.link)?, told(path.hops.last()?.link)?);
        // Different kinds of links do different things by themselves.
        let alike = from.1.facts.kind == to.1.facts.kind;
        let (word, of) = EACH.iter().find(|(_, of)| alike && of(from.0) != of(to.0))?;
        Some(if of(from.0) { (*word, to.1, from.1) } else { (*word, from.1, to.1) })
    };
    let (word, off, on) = whole(scene).find_map(uneven)?;
    let text = format!(
        "{word} is off on {} and on on {}: that end handles every packet by itself (ethtool -K {} {word} on)",
        named(metrics, off),
        named(metrics, on),
        off.facts.name
    );
    Some(Said { text, cost: None, numbers: Vec::new() })
}

/// From this share of softirq on a core is full of it; from this one on another is idle; nearly all forwarding is on one.
const FULL: f64 = 0.7;
const IDLE: f64 = 0.8;
const NEARLY_ALL: f64 = 0.9;
/// `NET_RX` in [`crate::sample::SOFTIRQ_KINDS`].
const NET_RX: usize = 3;

/// One core forwards everything while others idle.
pub(super) fn one_core(scene: &Scene<'_>) -> Option<Said> {
    let metrics = scene.metrics;
    if metrics.flow.connections.is_empty() {
        return None;
    }
    let share = |of: fn(&crate::derive::cores::Shares) -> f64| {
        metrics.cores.iter().filter_map(move |core| Some((core.place.core, of(&core.shares()?))))
    };
    let (core, softirq) =
        share(|shares| shares.softirq).max_by(|a, b| a.1.total_cmp(&b.1)).filter(|it| it.1 >= FULL)?;
    let idle = share(|shares| shares.idle).filter(|it| it.1 >= IDLE).count();
    let rounds = |core: &crate::derive::CoreMetrics| core.load?.softirqs_per_s[NET_RX];
    let all: f64 = metrics.cores.iter().filter_map(rounds).sum();
    let its = metrics.cores.iter().find(|row| row.place.core == core).and_then(rounds)?;
    (idle > 0 && its >= NEARLY_ALL * all).then(|| Said {
        text: format!(
            "core {core} spends {:.0} % of its time forwarding packets while {idle} of {} cores idle: RPS \
             (queues/rx-*/rps_cpus) spreads several flows over them",
            softirq * 100.0,
            metrics.cores.len()
        ),
        cost: None,
        numbers: vec![("core", f64::from(core)), ("softirq", softirq), ("idle_cores", idle as f64)],
    })
}

#[cfg(test)]
mod tests;
