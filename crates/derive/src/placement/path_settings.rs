//! Settings of the links that a test's data cross, which say how packets are handled: on which links each makes sense, and what sets
//! it there.

use crate::TestMetrics;
use crate::paths;
use std::collections::BTreeSet;
use std::sync::Arc;
use vnettop_sample::{
    FlowPath, HopWay, Kind, LinkFacts, LinkKey, Offload, Proto, SteerRequest, SteerSetting, SteerTarget, SteerValue,
    TriedSteer, Word,
};

/// More links of a path are not changed together.
const MOST_LINKS: usize = 8;

/// What gives a setting this value on every link of the test's paths where it is otherwise and may be changed.
pub(super) fn requests(metrics: &TestMetrics, setting: SteerSetting, value: &SteerValue) -> Vec<TriedSteer> {
    let links: Vec<LinkKey> = match setting {
        SteerSetting::Gro => {
            of_hops(metrics, HopWay::Received).filter(|&link| lacks(metrics, link, Offload::Gro)).collect()
        }
        SteerSetting::Tso if is_tcp(metrics) => {
            of_hops(metrics, HopWay::Sent).filter(|&link| lacks(metrics, link, Offload::Tso)).collect()
        }
        SteerSetting::Qdisc => senders(metrics).filter(|&link| queues_nothing(metrics, link)).collect(),
        SteerSetting::NetdevMaxBacklog if is_so(metrics, setting, value) => Vec::new(),
        SteerSetting::NetdevMaxBacklog => own_loopback(metrics).into_iter().collect(),
        SteerSetting::Tso
        | SteerSetting::RpsCpus
        | SteerSetting::RpsFlowCnt
        | SteerSetting::XpsCpus
        | SteerSetting::Threaded
        | SteerSetting::Interrupt => Vec::new(),
    };
    let links: BTreeSet<LinkKey> = links.into_iter().collect();
    let links = links.into_iter().take(MOST_LINKS);
    let facts = links.filter_map(|link| Some(&metrics.machine.link(link)?.facts));
    let found: Vec<_> = facts.collect();
    let names: Vec<&str> = found.iter().map(|link| link.name.as_str()).collect();
    let whose = in_words(setting, value, &names);
    let steer = |link: &&Arc<LinkFacts>| TriedSteer {
        request: SteerRequest { link: link.key(), name: link.name.clone(), setting, value: value.clone() },
        whose: whose.clone(),
        target: SteerTarget::default(),
        space: metrics.machine.space_entry(link.netns),
    };
    found.iter().map(steer).collect()
}

/// Every link of the test's paths that the setting concerns is known to have this value, or more of it.
pub(super) fn is_so(metrics: &TestMetrics, setting: SteerSetting, value: &SteerValue) -> bool {
    let all = |links: Vec<LinkKey>, has: &dyn Fn(LinkKey) -> bool| !links.is_empty() && links.into_iter().all(has);
    let has = |of: Offload| move |link| paths::offloads(metrics, link).is_some_and(|offloads| offloads.has(of));
    match setting {
        SteerSetting::Gro => all(of_hops(metrics, HopWay::Received).collect(), &has(Offload::Gro)),
        SteerSetting::Tso => all(of_hops(metrics, HopWay::Sent).collect(), &has(Offload::Tso)),
        SteerSetting::Qdisc => all(senders(metrics).collect(), &|link| {
            metrics.losses.of_qdiscs(link).is_some_and(|drops| !drops.queues_nothing)
        }),
        SteerSetting::NetdevMaxBacklog => {
            let SteerValue::Number(wanted) = value else { return false };
            let mut standing = metrics.machine.steers.iter().filter(|steer| steer.setting == setting);
            let before = metrics.machine.facts.host.policy.netdev_max_backlog;
            let now = standing.next().map_or(before, |steer| steer.got.parse().ok());
            now.is_some_and(|now| now >= *wanted)
        }
        _ => false,
    }
}

/// `gro on (eth0, veth2)`
fn in_words(setting: SteerSetting, value: &SteerValue, links: &[&str]) -> String {
    let links = links.join(" ");
    match value {
        SteerValue::Number(1) if setting.is_switch() => format!("{} on ({links})", setting.word()),
        SteerValue::Kind(kind) => format!("{kind} ({links})"),
        value => format!("{} {}", setting.word(), value.to_text()),
    }
}

/// The paths of what carries data; those of control connections and acknowledgements are not changed.
pub(super) fn carrying(metrics: &TestMetrics) -> impl Iterator<Item = &FlowPath> {
    let carriers = metrics.flow.connections.iter().filter(|one| one.carries && !one.relayed);
    carriers.filter_map(|one| paths::found(&metrics.paths, one))
}

/// The links that data packets take that way, in the order of the path.
pub(super) fn of_hops(metrics: &TestMetrics, way: HopWay) -> impl Iterator<Item = LinkKey> {
    carrying(metrics).flat_map(|path| &path.hops).filter(move |hop| hop.way == way).map(|hop| hop.link)
}

/// What carries data is TCP.
pub(super) fn is_tcp(metrics: &TestMetrics) -> bool {
    carrying(metrics).any(|path| path.proto == Proto::Tcp)
}

/// A link that could have an offload, and has it not because nobody wants it. Without checksums the kernel refuses TSO, and keeps
/// only the wish.
fn lacks(metrics: &TestMetrics, link: LinkKey, of: Offload) -> bool {
    let is_programs =
        |kind: &Kind| matches!(kind, Kind::Loopback | Kind::Tun | Kind::Tap | Kind::Macvtap | Kind::Ipvtap);
    metrics.machine.link(link).is_some_and(|link| !is_programs(&link.facts.kind))
        && paths::offloads(metrics, link)
            .is_some_and(|offloads| offloads.unwanted.contains(&of) && (of != Offload::Tso || offloads.tx_checksum))
}

/// The first link of each path: the sender's own.
fn senders(metrics: &TestMetrics) -> impl Iterator<Item = LinkKey> {
    carrying(metrics).filter_map(|path| path.hops.first()).filter(|hop| hop.way == HopWay::Sent).map(|hop| hop.link)
}

/// A virtual link without a queue.
fn queues_nothing(metrics: &TestMetrics, link: LinkKey) -> bool {
    let is_virtual = |kind: &Kind| matches!(kind, Kind::Veth | Kind::Vxlan | Kind::Macvlan | Kind::Ipvlan | Kind::Vlan);
    metrics.machine.link(link).is_some_and(|link| is_virtual(&link.facts.kind))
        && metrics.losses.of_qdiscs(link).is_none_or(|drops| drops.queues_nothing)
}

/// What names the settings of the whole machine.
fn own_loopback(metrics: &TestMetrics) -> Option<LinkKey> {
    let own = metrics.machine.netns;
    let links = metrics.machine.links.iter().map(|link| &link.facts);
    links.into_iter().find(|link| link.netns == own && link.kind == Kind::Loopback).map(|link| link.key())
}
