//! Cores that a flow's packets are put onto where others would do better: all forwarding on one, or a setting that has a
//! link's packets handled on a core that the flow's own threads need.

use super::{Diagnostic, LintInput, named, whole};
use crate::figure::percent;
use crate::flow::Connection;
use crate::links::LinkMetrics;
use crate::paths::{self, SoftirqBy, softirq};
use crate::placement::{request, shell_line};
use crate::spare_core::{self, SpareCore};
use crate::{CoreMetrics, TestMetrics, plural};
use std::collections::BTreeMap;
use vnettop_sample::{CoreId, CoreSet, HopWay, Kind, LinkKey, Steering, shell_word};

/// From this share of a machine's rounds on one core forwards nearly all packets.
const NEARLY_ALL: f64 = 0.9;
/// `NET_RX` in [`vnettop_sample::SOFTIRQ_KINDS`].
const NET_RX: usize = 3;

/// One core forwards everything while others idle.
pub(in crate::finding) fn one_core(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    if metrics.flow.connections.is_empty() {
        return None;
    }
    let softirq = metrics.machine.cores.iter().filter_map(|core| Some((core.place.core, core.shares()?.softirq)));
    let (core, softirq) = softirq.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|it| it.1 >= spare_core::FORWARDS)?;
    let idle = spare_core::idle(metrics);
    let rounds = |core: &CoreMetrics| core.load?.softirqs_per_s[NET_RX];
    let all: f64 = metrics.machine.cores.iter().filter_map(rounds).sum();
    let its = metrics.machine.cores.iter().find(|row| row.place.core == core).and_then(rounds)?;
    (!idle.is_empty() && its >= NEARLY_ALL * all).then(|| {
        let mask = idle.to_mask();
        let command = receiver(input).map(|link| set_rps(link, softirq::steering(metrics, link.facts.key()), &mask));
        let command = command.unwrap_or_else(|| format!("echo {mask} | tee /sys/class/net/LINK/queues/rx-*/rps_cpus"));
        let text = format!(
            "core {core} forwards packets {} % of the time{}; {}: RPS spreads several flows ({command})",
            percent(softirq),
            all_of_it(metrics, core),
            are_idle(metrics, &idle),
        );
        Diagnostic::new(text, [("core", f64::from(core)), ("softirq", softirq), ("idle_cores", idle.len() as f64)])
    })
}

/// `, all softirq of 4 hops`, where every link that receives the flows' packets has them handled there.
fn all_of_it(metrics: &TestMetrics, core: CoreId) -> String {
    let carrying = metrics.flow.connections.iter().filter(|connection| connection.carries);
    let paths = carrying.filter_map(|connection| paths::of(metrics, connection));
    let hops = paths.flat_map(|path| path.hops).filter(|hop| hop.hop.way == HopWay::Received);
    let hops: BTreeMap<LinkKey, bool> =
        hops.map(|hop| (hop.hop.link, hop.softirq.is_ok_and(|at| at.cores == CoreSet::single(core)))).collect();
    let is_all = !hops.is_empty() && hops.values().all(|&is_there| is_there);
    if is_all { format!(", all softirq of {}", plural(hops.len(), "hop")) } else { String::new() }
}

fn are_idle(metrics: &TestMetrics, idle: &CoreSet) -> String {
    match idle.len() {
        1 => format!("core {idle} is idle"),
        some => format!("{some} of {} cores are idle ({idle})", metrics.machine.cores.len()),
    }
}

/// A core is full with packets beside what else runs there, and another one idles.
pub(in crate::finding) fn spare_core(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let found = spare_core::find(metrics).filter(SpareCore::is_full)?;
    if one_core(input).is_some() {
        return None;
    }
    let SpareCore { backlog, core, shares, idle } = &found;
    let [sends, receives] = backlog.ends(metrics).map(|end| end.contains(*core));
    let beside = match (sends, receives) {
        (true, true) => "both of its ends",
        (true, false) => "its sender",
        (false, true) => "its receiver",
        (false, false) => "other work",
    };
    let line = shell_line(metrics, &request(backlog, CoreSet::single(*idle)));
    let is = format!(
        "core {core} is full ({} % system, {} % softirq) with the test's packets and {beside}",
        percent(shares.system),
        percent(shares.softirq),
    );
    let then = format!("core {idle} is idle: packets from {} could go there ({line})", named(metrics, backlog.link));
    // Of TCP only a search tries an idle core.
    let tries = if backlog.is_tcp() { "search" } else { "compare" };
    let text = format!("{is}; {then}; only a measurement shows it (vnettop run --steer {tries})");
    let numbers = [
        ("core", f64::from(*core)),
        ("system", shares.system),
        ("softirq", shares.softirq),
        ("idle_core", f64::from(*idle)),
    ];
    Some(Diagnostic::new(text, numbers))
}

/// The first link that receives what the flows send, on whose queues RPS begins.
fn receiver<'a>(input: &LintInput<'a>) -> Option<&'a LinkMetrics> {
    let takes = |link: &&LinkMetrics| matches!(link.facts.kind, Kind::Veth | Kind::Physical | Kind::Virtio);
    let hops = whole(input).flat_map(|path| &path.hops).filter(|hop| hop.way == HopWay::Received);
    hops.filter_map(|hop| input.metrics.machine.link(hop.link)).find(takes)
}

/// RPS or threaded NAPI is set to use only cores that the flow's own threads run on.
pub(in crate::finding) fn steered(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let is_set = |reported: &Steering| {
        reported.threaded || !reported.napi.is_empty() || reported.rps.iter().any(|set| !set.is_empty())
    };
    if !metrics.machine.facts.steering.iter().any(is_set) {
        return None;
    }
    let carrying = metrics.flow.connections.iter().filter(|connection| connection.carries);
    carrying.into_iter().find_map(|connection| of(metrics, connection))
}

/// A link of a connection's path, what its packets are put onto, and by what.
struct Put<'a> {
    link: &'a LinkMetrics,
    reported: &'a Steering,
    by: SoftirqBy,
    cores: CoreSet,
}

fn of(metrics: &TestMetrics, connection: &Connection) -> Option<Diagnostic> {
    let path = paths::of(metrics, connection)?;
    let [sender, receiver] = [connection.from.pid, connection.to.pid]
        .map(|pid| pid.map_or_else(CoreSet::new, |pid| softirq::cores_of(metrics, pid)));
    let flows: CoreSet = sender.iter().chain(receiver.iter()).collect();
    // What is counted says where packets are, the settings say why.
    let by_settings = softirq::by_settings(metrics, connection, paths::found(&metrics.paths, connection)?);
    let put = path.hops.iter().zip(by_settings).filter_map(|(hop, softirq)| {
        // What vnettop was asked to put there is proposed with its reason, and has a card.
        if metrics.machine.steers.iter().any(|steer| steer.link == hop.hop.link) {
            return None;
        }
        let reported = softirq::steering(metrics, hop.hop.link)?;
        let softirq = softirq.ok()?;
        let cores = match softirq.by {
            SoftirqBy::Rps if reported.rps.iter().any(|set| !set.is_empty()) => softirq.cores.clone(),
            SoftirqBy::NapiThread if !reported.napi.is_empty() => {
                reported.napi.iter().flat_map(|thread| thread.allowed.iter()).collect()
            }
            _ => return None,
        };
        Some(Put { link: hop.link?, reported, by: softirq.by, cores })
    });
    let shared = |put: &Put<'_>| !put.cores.is_empty() && put.cores.is_subset(&flows);
    let put = put.into_iter().find(shared)?;
    let other = spare_core::idle_beside(metrics, [&sender, &receiver]);
    // Without the setting the packets are handled on the sender's core: no better where that is what is set.
    if other.is_none() && put.cores.iter().any(|core| sender.contains(core)) {
        return None;
    }
    let whose = if put.cores.iter().any(|core| receiver.contains(core)) { "receiver" } else { "sender" };
    let numbers = [("cores", put.cores.len() as f64), ("core", f64::from(put.cores.first()?))];
    Some(Diagnostic::new(sentence(metrics, &put, whose, other), numbers))
}

fn sentence(metrics: &TestMetrics, put: &Put<'_>, whose: &str, other: Option<CoreId>) -> String {
    let Put { link, reported, by, cores } = put;
    let name = named(metrics, link);
    let plural = if cores.len() == 1 { "core" } else { "cores" };
    let (what, mend) = match (by, other) {
        (SoftirqBy::NapiThread, Some(core)) => {
            let pid = reported.napi.first().map_or(0, |thread| thread.pid);
            ("the NAPI thread handles", format!("taskset -cp {core} {pid}"))
        }
        (SoftirqBy::NapiThread, None) => {
            ("the NAPI thread handles", format!("echo 0 > /sys/class/net/{}/threaded", shell_word(&link.facts.name)))
        }
        (_, Some(core)) => ("RPS puts", set_rps(link, Some(reported), &CoreSet::single(core).to_mask())),
        (_, None) => ("RPS puts", set_rps(link, Some(reported), "0")),
    };
    let better = other.map_or_else(
        || "without that the sender's core handles them".to_owned(),
        |core| format!("core {core} is idle"),
    );
    format!("{what} packets from {name} on {plural} {cores}, which the flow's {whose} needs: {better} ({mend})")
}

/// The command that gives each receive queue of a link this mask.
fn set_rps(link: &LinkMetrics, reported: Option<&Steering>, mask: &str) -> String {
    let queues = format!("/sys/class/net/{}/queues", shell_word(&link.facts.name));
    match reported.map_or(1, |reported| reported.rps.len()) {
        0 | 1 => format!("echo {mask} > {queues}/rx-0/rps_cpus"),
        _ => format!("echo {mask} | tee {queues}/rx-*/rps_cpus"),
    }
}
