//! Why a bridge, or the other end of a pair, does not take a frame: what its ports say of themselves, before VLANs are suspected.

use crate::finding::path::named;
use crate::links::LinkMetrics;
use crate::losses::Loss;
use crate::{TestMetrics, paths};
use vnettop_sample::{FlowPath, HopWay, LinkState, PeerRef, Proto, Word, shell_word};

/// Where a bridge gives a frame to a port that does not take one so long.
const SENDS: [&str; 3] = ["br_dev_queue_push_xmit", "br_nf_dev_queue_xmit", "br_nf_ip_fragment"];
const OF_VLANS: [&str; 3] = ["__allowed_ingress", "br_allowed_ingress", "br_handle_vlan"];
/// What an IP header and one of UDP take, by version, bytes.
const UDP_HEADERS: [u32; 2] = [28, 48];
const VLANS: &str = "the port does not accept their VLAN (bridge vlan show)";

/// What is done about a bridge that drops.
pub(super) fn remedy(loss: &Loss, metrics: &TestMetrics) -> String {
    let Some(link) = loss.link.and_then(|link| metrics.machine.link(link)) else {
        return format!("{VLANS}; or does not forward (bridge -d link)");
    };
    let function = loss.function.as_deref().unwrap_or_default();
    if SENDS.iter().any(|sends| function.starts_with(sends)) || loss.reason.as_deref() == Some("PKT_TOO_BIG") {
        let down = || {
            is_down(link)
                .then(|| format!("{} is down (ip link set {} up there)", link.facts.name, shell_word(&link.facts.name)))
        };
        let unknown = || {
            let (name, mtu) = (&link.facts.name, link.facts.mtu);
            format!("they exceed the MTU of {name}, which is {mtu}; or it is down (ip link)")
        };
        return too_long(metrics, link).or_else(down).unwrap_or_else(unknown);
    }
    if loss.reason.as_deref() == Some("VLAN_FILTER") || OF_VLANS.contains(&function) {
        return VLANS.to_owned();
    }
    let out = out_port(metrics, link);
    waits(metrics, link)
        .or_else(|| waits(metrics, out?))
        .or_else(|| isolated(metrics, link, out))
        .or_else(|| super::doubled::sentence(metrics, out.unwrap_or(link).facts.key()))
        .or_else(|| sent_back(metrics, link, out?))
        .unwrap_or_else(|| format!("{VLANS}; or does not forward (bridge -d link)"))
}

/// Why one end of a pair refuses packets: an end is down, or has too small an MTU; `None` for other losses.
pub(super) fn of_pair(loss: &Loss, metrics: &TestMetrics) -> Option<String> {
    let is_pair = loss
        .function
        .as_deref()
        .is_some_and(|function| function.trim_start_matches('_').starts_with("dev_forward_skb"));
    let link = loss.link.filter(|_| is_pair).and_then(|link| metrics.machine.link(link))?;
    let peer = link.facts.peer.and_then(PeerRef::key).and_then(|peer| metrics.machine.link(peer));
    let ends = || [Some(link), peer].into_iter().flatten();
    let down = ends().find(|end| is_down(end));
    down.map(|end| format!("{} is down (ip link set {} up there)", named(metrics, end), shell_word(&end.facts.name)))
        .or_else(|| ends().find_map(|end| too_long(metrics, end)))
}

fn is_down(link: &LinkMetrics) -> bool {
    link.facts.is_set_up == Some(false) || (link.facts.is_set_up.is_none() && link.facts.state == LinkState::Down)
}

/// A link of that namespace that takes less than is sent through it, where a counter tells no more than that IP dropped.
pub(super) fn narrow_in(metrics: &TestMetrics, netns: Option<u64>) -> Option<String> {
    let mut hops = metrics.paths.iter().flat_map(|path| &path.hops).filter(|hop| Some(hop.link.netns) == netns);
    hops.find_map(|hop| too_long(metrics, metrics.machine.link(hop.link)?))
}

/// A sentence when this link has a smaller MTU than the first link of a path through it.
fn too_long(metrics: &TestMetrics, link: &LinkMetrics) -> Option<String> {
    let mtu = link.facts.mtu;
    let larger = |path: &FlowPath| {
        path.hops.iter().find(|hop| hop.link == link.facts.key())?;
        let first = metrics.machine.link(path.hops.first()?.link)?;
        (link.facts.tells_mtu() && first.facts.mtu > mtu).then_some((first, path.proto, path.to.is_ipv6()))
    };
    let of = |proto| metrics.paths.iter().filter(move |path| path.proto == proto);
    let (first, proto, ipv6) = of(Proto::Udp).chain(of(Proto::Tcp)).find_map(larger)?;
    let smaller = mtu.saturating_sub(UDP_HEADERS[usize::from(ipv6)]);
    let or = if proto == Proto::Udp { format!(", or iperf3 -l {smaller}") } else { String::new() };
    Some(format!(
        "{} has MTU {mtu}, {} {}: what is longer is dropped without ICMP; at both ends: ip link set {} mtu {mtu}{or}",
        named(metrics, link),
        named(metrics, first),
        first.facts.mtu,
        shell_word(&first.facts.name),
    ))
}

/// The port of the same bridge by which a path leaves that came in through this link.
fn out_port<'a>(metrics: &'a TestMetrics, link: &LinkMetrics) -> Option<&'a LinkMetrics> {
    let is_port =
        |other: &LinkMetrics| other.facts.master == link.facts.master && other.facts.netns == link.facts.netns;
    let beyond = |path: &'a FlowPath| {
        let at = path.hops.iter().position(|hop| hop.link == link.facts.key())?;
        let sent = path.hops[at + 1..].iter().filter(|hop| hop.way == HopWay::Sent);
        sent.filter_map(|hop| metrics.machine.link(hop.link)).find(|other| is_port(other))
    };
    link.facts.master.and_then(|_| metrics.paths.iter().find_map(beyond))
}

/// Its bridge lets nothing through it.
fn waits(metrics: &TestMetrics, port: &LinkMetrics) -> Option<String> {
    let state = port.facts.port_state.filter(|state| !state.forwards())?;
    let name = shell_word(&port.facts.name);
    Some(if is_down(port) {
        format!("{} is down (ip link set {name} up there)", named(metrics, port))
    } else {
        let word = state.word();
        format!("port {} is {word} (there: bridge link set dev {name} state 3, if no loop)", named(metrics, port))
    })
}

/// Both ports are isolated; when the other port is not known, the destination's is assumed to be.
fn isolated(metrics: &TestMetrics, port: &LinkMetrics, out: Option<&LinkMetrics>) -> Option<String> {
    let bridge = paths::bridge_of(metrics, port).filter(|_| port.facts.isolated)?;
    let to = match out {
        Some(out) if out.facts.isolated => &*out.facts.name,
        Some(_) => return None,
        None => "the destination's port",
    };
    let name = &port.facts.name;
    Some(format!(
        "{name} and {to} are isolated ports of {}: nothing passes between them; there: bridge link set dev {} isolated off",
        named(metrics, bridge),
        shell_word(name)
    ))
}

/// The bridge has the destination behind the port that they come from.
fn sent_back(metrics: &TestMetrics, port: &LinkMetrics, out: &LinkMetrics) -> Option<String> {
    let bridge = paths::bridge_of(metrics, port).filter(|_| port.facts.key() == out.facts.key())?;
    Some(format!(
        "{} has the destination behind {}, by which they came (there: bridge fdb show; hairpin sends them back)",
        named(metrics, bridge),
        port.facts.name
    ))
}
