//! The settings that belong to a placement: which core the packets of a test are handled on where they first meet a backlog.
//! Two ends on two cores make two backlogs, in which packets overtake each other; one core for them keeps their order.

use super::path_settings::{of_hops, requests};
use super::{ProposedSteer, Step};
use crate::first_backlog::{self, FirstBacklog};
use crate::paths::softirq;
use crate::spare_core::{calmest_beside, idle_beside};
use crate::{TestMetrics, figure};
use std::collections::BTreeSet;
use vnettop_sample::{
    CoreId, CoreSet, HopWay, Interrupts, LinkKey, QDISC_KINDS, SteerRequest, SteerSetting, SteerTarget, SteerValue,
    ThreadId, TriedSteer, interrupt_line,
};

/// What sets each receive queue of a link by hand, in its namespace.
pub(crate) fn shell_line(metrics: &TestMetrics, request: &SteerRequest) -> String {
    request.shell_line(&metrics.machine.space_entry(request.link.netns))
}

/// Whose core it is, of these ends; no core where there is none.
pub(super) fn cores_of_target(metrics: &TestMetrics, ends: &[CoreSet; 2], target: SteerTarget) -> CoreSet {
    match target {
        SteerTarget::Receiver => ends[1].clone(),
        SteerTarget::Sender => ends[0].clone(),
        SteerTarget::Nobody => CoreSet::new(),
        SteerTarget::Idle => {
            let ends = [&ends[0], &ends[1]];
            let core = idle_beside(metrics, ends).or_else(|| calmest_beside(&metrics.machine, ends));
            core.map(CoreSet::single).unwrap_or_default()
        }
    }
}

/// The settings for a placement by these steps where a search has found whose core is best: each is on, for this reason.
pub(super) fn measured_steers(
    metrics: &TestMetrics,
    steps: &[Step],
    (target, reason): (SteerTarget, &str),
) -> Vec<ProposedSteer> {
    let placed: Vec<(ThreadId, CoreId)> = steps.iter().map(|step| (step.thread, step.core)).collect();
    let backlogs = first_backlog::all(metrics);
    let steer = |backlog: &FirstBacklog<'_>| {
        let cores = cores_of_target(metrics, &ends_then(metrics, backlog, &placed), target);
        let is_had = backlog.steering.rps.iter().all(|mask| *mask == cores);
        let is_possible = backlog.is_by_masks() && !is_had && (target == SteerTarget::Nobody || !cores.is_empty());
        is_possible.then(|| proposed(metrics, backlog, cores, reason.to_owned(), true))
    };
    backlogs.iter().filter_map(steer).collect()
}

/// The name of a link's namespace where it is not vnettop's own.
fn other_space(metrics: &TestMetrics, link: LinkKey) -> Option<String> {
    let is_own = link.netns == metrics.machine.netns;
    if is_own { None } else { metrics.machine.space_name(link.netns).map(std::borrow::Cow::into_owned) }
}

/// What a setting is where it is not as it was found best.
fn now_of(metrics: &TestMetrics, setting: SteerSetting) -> String {
    match setting {
        SteerSetting::Qdisc => QDISC_KINDS[0].to_owned(),
        SteerSetting::NetdevMaxBacklog => {
            metrics.machine.facts.host.policy.netdev_max_backlog.map_or_else(String::new, |now| now.to_string())
        }
        _ => "off".to_owned(),
    }
}

/// The setting that a search has found best, on each link of the test's paths where it is otherwise.
pub(super) fn tuned_steers(
    metrics: &TestMetrics,
    (setting, value): &(SteerSetting, SteerValue),
    reason: &str,
) -> Vec<ProposedSteer> {
    let proposed = |tried: TriedSteer| ProposedSteer {
        shell_line: tried.request.shell_line(&tried.space),
        now: now_of(metrics, *setting),
        space: other_space(metrics, tried.request.link),
        request: tried.request,
        reason: reason.to_owned(),
        is_on: true,
    };
    requests(metrics, *setting, value).into_iter().map(proposed).collect()
}

fn proposed(
    metrics: &TestMetrics,
    backlog: &FirstBacklog<'_>,
    cores: CoreSet,
    reason: String,
    is_on: bool,
) -> ProposedSteer {
    let request = request(backlog, cores);
    ProposedSteer {
        shell_line: shell_line(metrics, &request),
        request,
        now: backlog.steering.rps.first().map_or_else(String::new, CoreSet::to_mask),
        space: other_space(metrics, backlog.link.facts.key()),
        reason,
        is_on,
    }
}

/// The settings that belong to a placement by these steps; those that stand already are left out.
pub(crate) fn steers(metrics: &TestMetrics, steps: &[Step]) -> Vec<ProposedSteer> {
    let backlogs = first_backlog::all(metrics);
    let of_backlogs = backlogs.iter().filter_map(|one| steer(metrics, one, steps));
    of_backlogs.chain(interrupts(metrics, steps)).collect()
}

/// The interrupts of the hardware that the test's packets come in by, onto a core that is idle and no thread's of the test: listed,
/// and off. Which core is best no rule knows.
fn interrupts(metrics: &TestMetrics, steps: &[Step]) -> Vec<ProposedSteer> {
    let pids = || metrics.flow.connections.iter().flat_map(|one| [one.from.pid, one.to.pid]).flatten();
    let now = pids().flat_map(|pid| softirq::cores_of(metrics, pid).iter().collect::<Vec<_>>());
    let taken: CoreSet = now.chain(steps.iter().map(|step| step.core)).collect();
    let of = |link: LinkKey| {
        let facts = &metrics.machine.link(link)?.facts;
        let steering = softirq::steering(metrics, link)?;
        let Some(Interrupts::Cores(now)) = &steering.interrupts else { return None };
        let free = idle_beside(metrics, [now, &taken])?;
        let balanced = match metrics.machine.facts.host.policy.irqbalance {
            Some(true) => "; irqbalance runs and sets it anew within 10 s",
            _ => "",
        };
        let cores = CoreSet::single(free);
        let shell_line = interrupt_line(&steering.irqs, &cores.to_mask());
        let value = SteerValue::Cores(cores);
        Some(ProposedSteer {
            request: SteerRequest { link, name: facts.name.clone(), setting: SteerSetting::Interrupt, value },
            shell_line,
            now: now.to_mask(),
            space: other_space(metrics, link),
            reason: format!("core {free} is idle; only a measurement shows whether it helps{balanced}"),
            is_on: false,
        })
    };
    of_hops(metrics, HopWay::Received).collect::<BTreeSet<_>>().into_iter().filter_map(of).collect()
}

fn steer(metrics: &TestMetrics, backlog: &FirstBacklog<'_>, steps: &[Step]) -> Option<ProposedSteer> {
    if backlog.is_steered() {
        return None;
    }
    let placed: Vec<(ThreadId, CoreId)> = steps.iter().map(|step| (step.thread, step.core)).collect();
    let [senders, receivers] = ends_then(metrics, backlog, &placed);
    let (cores, reason, is_on) = if backlog.is_disordered(metrics) && !receivers.is_empty() {
        (receivers, measured(backlog), true)
    } else if backlog.is_tcp() && would_alternate(metrics, backlog, [&senders, &receivers], steps) {
        let reason = format!(
            "packets from cores {} would overtake each other there: one core keeps order",
            senders.iter().chain(receivers.iter()).collect::<CoreSet>()
        );
        (receivers, reason, true)
    } else {
        let free = idle_beside(metrics, [&senders, &receivers])?;
        let reason = format!("core {free} is idle; only a measurement shows whether it helps");
        (CoreSet::single(free), reason, false)
    };
    Some(proposed(metrics, backlog, cores, reason, is_on))
}

/// What would put the packets of each TCP connection onto the core that its receiver runs on now, whether or not they are seen to
/// overtake each other: for a measurement that compares with and without.
#[must_use]
pub fn at_receivers(metrics: &TestMetrics) -> Vec<SteerRequest> {
    let backlogs = first_backlog::all(metrics);
    let free = backlogs.iter().filter(|one| one.is_tcp() && !one.is_steered());
    let at = free.map(|one| {
        let [_, receivers] = one.ends(metrics);
        request(one, receivers)
    });
    at.filter(|request| matches!(&request.value, SteerValue::Cores(cores) if !cores.is_empty())).collect()
}

/// Why nothing is proposed that would steer a test's packets, in one sentence.
#[must_use]
pub fn unsteerable(metrics: &TestMetrics) -> &'static str {
    let backlogs = first_backlog::all(metrics);
    if metrics.paths.is_empty() {
        "no path of its packets is known"
    } else if backlogs.is_empty() {
        "a device or a program feeds its packets in, not a backlog"
    } else if backlogs.iter().all(FirstBacklog::is_steered) {
        "its packets are steered already"
    } else {
        "its packets do not come from two cores"
    }
}

/// One core for the packets of a first backlog.
pub(crate) fn request(backlog: &FirstBacklog<'_>, cores: CoreSet) -> SteerRequest {
    SteerRequest {
        link: backlog.link.facts.key(),
        name: backlog.link.facts.name.clone(),
        setting: SteerSetting::RpsCpus,
        value: SteerValue::Cores(cores),
    }
}

/// What was seen there.
fn measured(backlog: &FirstBacklog<'_>) -> String {
    let again = backlog.disorder.map_or(0.0, |disorder| disorder.retransmits_per_s);
    let changes = match backlog.switches_per_s {
        Some(switches) => {
            format!("packets change cores {} times/s there and overtake each other", figure::rate(switches))
        }
        None => "packets overtake each other there".to_owned(),
    };
    format!("{changes}, {} retransmits/s: one core keeps them in order", figure::rate(again))
}

/// Cores of the senders and of the receivers once these threads have these cores.
pub(super) fn ends_then(
    metrics: &TestMetrics,
    backlog: &FirstBacklog<'_>,
    placed: &[(ThreadId, CoreId)],
) -> [CoreSet; 2] {
    let now = backlog.ends(metrics);
    let of = |nth: usize, pid: fn(&crate::flow::Connection) -> Option<u32>| {
        let its = |thread: ThreadId| backlog.connections.iter().any(|one| pid(one) == Some(thread.pid));
        let placed: CoreSet = placed.iter().filter(|(thread, _)| its(*thread)).map(|(_, core)| *core).collect();
        if placed.is_empty() { now[nth].clone() } else { placed }
    };
    [of(0, |one| one.from.pid), of(1, |one| one.to.pid)]
}

/// Both ends stay on cores of their own, which differ.
fn would_alternate(
    metrics: &TestMetrics,
    backlog: &FirstBacklog<'_>,
    [senders, receivers]: [&CoreSet; 2],
    steps: &[Step],
) -> bool {
    let stays = |pid: Option<u32>| {
        let is_placed = steps.iter().any(|step| Some(step.thread.pid) == pid);
        let mut own = metrics.machine.threads.iter().filter(|thread| Some(thread.sample.id.pid) == pid);
        is_placed || own.any(|thread| super::busy_threads::bound_to(thread).is_some())
    };
    let are_bound = backlog.connections.iter().all(|one| stays(one.from.pid) && stays(one.to.pid));
    are_bound && !senders.is_empty() && !receivers.is_empty() && senders != receivers
}
