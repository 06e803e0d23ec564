//! What is wrong with the path of the watched flows: sizes that do not fit, halves that are down, detours, offloads that only
//! one end has. When no path is known, only what needs none is said.

mod cores;
mod offloads;
mod segmentation;

use super::{Diagnostic, LintInput};
use crate::flow::Connection;
use crate::links::LinkMetrics;
use crate::{TestMetrics, paths};
use vnettop_sample::{FlowPath, HopBy, HopWay, Kind, LinkState, PortState, Word, shell_word};

pub(super) use cores::{one_core, spare_core, steered};
pub(super) use offloads::offloads;
pub(super) use segmentation::{limited, taken_by_xdp};

/// What vxlan adds to a packet over IPv4 and over IPv6, bytes.
const VXLAN: [u32; 2] = [50, 70];
/// What wireguard adds to a packet over IPv4 and over IPv6, bytes.
const WIREGUARD: [u32; 2] = [60, 80];

fn whole<'a>(input: &LintInput<'a>) -> impl Iterator<Item = &'a FlowPath> {
    input.metrics.paths.iter().filter(|path| is_whole(path))
}

fn is_whole(path: &FlowPath) -> bool {
    path.gap.is_none() && path.hops.len() > 1
}

/// The link with its namespace's name, where that has one.
pub(super) fn named(metrics: &TestMetrics, link: &LinkMetrics) -> String {
    metrics
        .machine
        .space_name(link.facts.netns)
        .map_or_else(|| link.facts.name.clone(), |space| format!("{} ({space})", link.facts.name))
}

/// Whether a namespace matters to the watched flows: one ends in it or crosses it. Before there are flows every namespace may:
/// a broken path has none. Links that others set up elsewhere are half ready for a moment.
fn concerns(input: &LintInput<'_>, netns: u64) -> bool {
    let metrics = input.metrics;
    let connections = &metrics.flow.connections;
    let ends = connections.iter().flat_map(|connection| [connection.from.netns, connection.to.netns]);
    let mut crossed = metrics.paths.iter().flat_map(|path| &path.hops);
    connections.is_empty() || ends.flatten().any(|end| end == netns) || crossed.any(|hop| hop.link.netns == netns)
}

/// What a connection that moves nothing stays below, bits/s.
const NOTHING: f64 = 20_000.0;

/// A link between the ends that takes smaller packets than both ends send, and a connection that waits because of it. Nothing
/// is wrong when the sender knows the smaller size, or when segments cut later pass all the same.
pub(super) fn mtu(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let stuck = |connection: &&Connection| {
        let waits = connection.tx_queue_bytes.is_some_and(|bytes| bytes > 0);
        connection.tcp().is_some_and(|tcp| !tcp.connecting)
            && waits
            && connection.bits_per_s.is_some_and(|bits| bits < NOTHING)
    };
    let narrow = |connection: &Connection| {
        let path = paths::found(&metrics.paths, connection).filter(|path| is_whole(path))?;
        let links: Vec<&LinkMetrics> = path
            .hops
            .iter()
            .filter_map(|hop| metrics.machine.link(hop.link))
            .filter(|link| link.facts.tells_mtu())
            .collect();
        let (first, last) = (*links.first()?, *links.last()?);
        let ends = first.facts.mtu.min(last.facts.mtu);
        let narrowest = *links.iter().min_by_key(|link| link.facts.mtu)?;
        let headers = if path.from.is_ipv6() { 60 } else { 40 };
        let fits = connection.tcp()?.mss_bytes? + headers <= narrowest.facts.mtu;
        (narrowest.facts.mtu < ends && !fits).then_some((narrowest, first, last, ends))
    };
    let (link, first, last, ends) = metrics.flow.connections.iter().filter(stuck).find_map(narrow)?;
    let (name, mtu) = (&link.facts.name, link.facts.mtu);
    let text = format!(
        "{} has MTU {mtu}, but both ends of the path send {ends} bytes and no ICMP reaches the sender: a path MTU black hole, so no data arrives (ip link set {} mtu {ends}, or mtu {mtu} on {} and {})",
        named(metrics, link),
        shell_word(name),
        named(metrics, first),
        named(metrics, last),
    );
    Some(Diagnostic::new(text, [("mtu", f64::from(mtu)), ("ends_mtu", f64::from(ends))]))
}

/// A vxlan that leaves no room for its own header in what lies below it.
pub(super) fn headroom(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let vxlans = metrics.machine.links.iter().filter(|link| link.facts.kind == Kind::Vxlan);
    let pairs = vxlans.filter_map(|link| Some((link, metrics.machine.link(link.facts.lower?.key()?)?)));
    tight(input, pairs, VXLAN)
}

/// A wireguard that leaves no room for its own header in the link below it, which only a path shows.
pub(super) fn wireguard_headroom(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let pairs = metrics.paths.iter().flat_map(|path| path.hops.windows(2)).filter_map(|two| {
        let (link, below) = (metrics.machine.link(two[0].link)?, metrics.machine.link(two[1].link)?);
        let leaves = two.iter().all(|hop| hop.way == HopWay::Sent);
        (leaves && link.facts.kind == Kind::Wireguard).then_some((link, below))
    });
    tight(input, pairs, WIREGUARD)
}

/// The first tunnel whose packets, with its headers over IPv4 and over IPv6, do not fit into the link below it.
fn tight<'a>(
    input: &LintInput<'a>,
    mut tunnels: impl Iterator<Item = (&'a LinkMetrics, &'a LinkMetrics)>,
    headers: [u32; 2],
) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let (link, lower) = tunnels.find(|(link, lower)| {
        let is_tight = lower.facts.tells_mtu() && link.facts.mtu.saturating_add(headers[0]) > lower.facts.mtu;
        is_tight && (concerns(input, link.facts.netns) || concerns(input, lower.facts.netns))
    })?;
    let (mtu, below) = (link.facts.mtu, lower.facts.mtu);
    let text = format!(
        "{} has MTU {mtu}, {} below it {below}: tunnel headers add {} bytes over IPv4, {} over IPv6, so full \
         packets are fragmented or dropped (ip link set {} mtu {})",
        named(metrics, link),
        lower.facts.name,
        headers[0],
        headers[1],
        shell_word(&link.facts.name),
        below.saturating_sub(headers[0]),
    );
    Some(Diagnostic::new(text, [("mtu", f64::from(mtu)), ("lower_mtu", f64::from(below))]))
}

/// A pair of which only one end is up.
pub(super) fn half_down(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let without_carrier = |link: &&LinkMetrics| {
        let state = link.facts.state;
        state == LinkState::LowerLayerDown || (state == LinkState::Down && link.facts.is_set_up == Some(true))
    };
    let is_down = |link: &LinkMetrics| link.facts.state == LinkState::Down && link.facts.is_set_up != Some(true);
    let halves = metrics.machine.links.iter().filter(without_carrier);
    let mut halves = halves.filter_map(|link| Some((link, metrics.machine.link(link.facts.peer?.key()?)?)));
    let both = |link: &LinkMetrics, other: &LinkMetrics| {
        concerns(input, link.facts.netns) && concerns(input, other.facts.netns)
    };
    let (link, down) = halves.find(|(link, other)| is_down(other) && both(link, other))?;
    let text = format!(
        "{} carries nothing: {}, its other end, is down (ip link set {} up)",
        named(metrics, link),
        named(metrics, down),
        shell_word(&down.facts.name)
    );
    Some(Diagnostic::new(text, []))
}

/// A bridge that does not forward through a port yet, or not at all.
pub(super) fn port_waits(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let is_crossed = |link: &LinkMetrics| {
        let mut crossed = metrics.paths.iter().flat_map(|path| &path.hops);
        crossed.any(|hop| hop.link == link.facts.key())
    };
    let port = |link: &&LinkMetrics| {
        let up = matches!(link.facts.state, LinkState::Up | LinkState::Unknown);
        // A port that spanning tree blocks is on one of two paths to the same place, and packets take the other one.
        let waits = |state: PortState| !state.forwards() && (state != PortState::Blocking || is_crossed(link));
        up && link.facts.port_state.is_some_and(waits)
    };
    let link = metrics.machine.links.iter().filter(port).find(|link| concerns(input, link.facts.netns))?;
    let state = link.facts.port_state?;
    let bridge = link.facts.master.and_then(|master| metrics.machine.link(link.facts.beside(master)));
    let who = bridge.map_or_else(|| "a bridge".to_owned(), |bridge| named(metrics, bridge));
    let (port, word) = (&link.facts.name, state.word());
    let device = shell_word(port);
    let text = if matches!(state, PortState::Blocking | PortState::Disabled) {
        format!(
            "{who} forwards nothing through {port}: its port is {word}; if there is no loop: bridge link set dev {device} state 3"
        )
    } else {
        format!(
            "{who} forwards nothing through {port}: its port is {word} while spanning tree waits (wait 30 s; or, only if there is no loop: ip link set {} type bridge stp_state 0; bridge link set dev {device} state 3)",
            bridge.map_or_else(|| "BRIDGE".to_owned(), |bridge| shell_word(&bridge.facts.name)),
        )
    };
    Some(Diagnostic::new(text, []))
}

/// Both ends are addresses of one namespace: the packets never leave it.
pub(super) fn through_lo(input: &LintInput<'_>) -> Option<Diagnostic> {
    let local = |path: &&FlowPath| !path.to.ip().is_loopback() && path.hops.iter().any(|hop| hop.by == HopBy::Local);
    let path = input.metrics.paths.iter().find(local)?;
    let text = format!(
        "{} is an address of the sender's own namespace: its packets go through lo; to measure interfaces, use an address of another namespace or machine",
        path.to.ip()
    );
    Some(Diagnostic::new(text, []))
}

/// A program copies every byte.
pub(super) fn proxied(input: &LintInput<'_>) -> Option<Diagnostic> {
    let proxied = |path: &&FlowPath| path.hops.iter().any(|hop| hop.by == HopBy::Proxy);
    let path = input.metrics.paths.iter().find(proxied)?;
    let holders = path.ends.iter().flat_map(|ends| &ends.holders).filter(|holder| holder.name != "docker-proxy");
    let names: Vec<String> = holders.map(|holder| format!("{} ({})", holder.name, holder.pid)).collect();
    if !names.is_empty() {
        let text =
            format!("the test goes through {}, which copies every byte and limits the rate", names.join(" and "));
        return Some(Diagnostic::new(text, [("port", f64::from(path.to.port()))]));
    }
    let text = format!(
        "port {} is published through a proxy, which copies every byte; for NAT in the kernel, use the machine's own address or turn off Docker's userland-proxy",
        path.to.port()
    );
    Some(Diagnostic::new(text, [("port", f64::from(path.to.port()))]))
}

#[cfg(test)]
mod tests;
