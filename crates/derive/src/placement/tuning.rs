//! What `run --tune` tries: placements of the threads, cores for the packets, and a bounded list of settings of the links on the
//! path, each alone, so that the ranking says what each does. A setting is tried only where it is not so already, and only towards
//! what may help: merging, long segments, a queue, a longer backlog.

use super::classes::{ClassPlacements, by_class};
use super::path_settings::{carrying, is_tcp, requests};
use super::steers::request;
use super::treatments::{untouched, variants};
use crate::first_backlog::{self, FirstBacklog};
use crate::{CoreMetrics, TestMetrics};
use vnettop_sample::{
    CoreSet, QDISC_KINDS, SteerMode, SteerSetting, SteerTarget, SteerValue, TriedPlacement, TriedSteer, Word,
};

/// More treatments are not tried: each needs three phases and more.
const MOST: usize = 16;
/// What a backlog that dropped packets is to take at least: the kernel's 1,000 are the usual.
const LEAST_LONGER: u32 = 10_000;
/// What a running command cannot be asked about.
const NEVER_TRIED: [&str; 2] = [
    "not tried: MTU, a connection keeps the segment size it started with",
    "not tried: busy polling, a socket takes net.core.busy_read when it is made",
];

/// The treatments of `--tune`, untouched first.
///
/// # Errors
/// A sentence why there is nothing to try.
pub(super) fn tuning(metrics: &TestMetrics) -> Result<ClassPlacements, String> {
    let (mut placements, mut left_out) = match by_class(metrics) {
        Ok(ClassPlacements { placements, left_out }) => (placements, left_out),
        Err(why) => (vec![untouched()], vec![format!("not tried: pins, {why}")]),
    };
    let backlogs: Vec<FirstBacklog<'_>> =
        first_backlog::all(metrics).into_iter().filter(FirstBacklog::is_by_masks).collect();
    let steerable: Vec<&FirstBacklog<'_>> = backlogs.iter().collect();
    if steerable.is_empty() {
        left_out.push("not tried: rps_cpus, the path has no backlog that RPS alone fills".to_owned());
    } else {
        let rule = placements.iter().find(|one| one.is_rule && !one.threads.is_empty()).cloned();
        let with = |one: &TriedPlacement, steer| {
            let steered =
                variants(metrics, &steerable, one, steer).into_iter().filter(|steers| is_news(&backlogs, steers));
            let steered = steered.map(|steers| TriedPlacement { steers, is_rule: false, ..one.clone() });
            steered.collect::<Vec<_>>()
        };
        placements.extend(rule.iter().flat_map(|rule| with(rule, SteerMode::Compare)));
        placements.extend(with(&untouched(), SteerMode::Search));
        placements.extend(unsteered(metrics, &backlogs));
    }
    for setting in [SteerSetting::Gro, SteerSetting::Tso, SteerSetting::Qdisc, SteerSetting::NetdevMaxBacklog] {
        match value(metrics, setting).map(|value| (requests(metrics, setting, &value), value)) {
            Ok((steers, _)) if steers.is_empty() => left_out.push(format!("not tried: {}", as_it_is(setting))),
            Ok((steers, _)) => placements.push(TriedPlacement { steers, ..untouched() }),
            Err(why) => left_out.push(format!("not tried: {}, {why}", setting.word())),
        }
    }
    left_out.extend(placements.iter().skip(MOST).map(|one| format!("not tried: {}, {MOST} are enough", one.words())));
    left_out.extend(NEVER_TRIED.map(str::to_owned));
    placements.truncate(MOST);
    if placements.len() < 2 {
        return Err(format!("nothing was tried: {}", left_out.join("; ")));
    }
    Ok(ClassPlacements { placements, left_out })
}

/// The present value would be measured twice.
fn is_news(backlogs: &[FirstBacklog<'_>], steers: &[TriedSteer]) -> bool {
    let masks = backlogs.iter().zip(steers).map(|(backlog, steer)| match &steer.request.value {
        SteerValue::Cores(cores) => backlog.steering.rps.iter().all(|mask| mask == cores),
        SteerValue::Number(_) | SteerValue::Kind(_) => false,
    });
    !masks.into_iter().all(|is_so| is_so)
}

/// Packets stay where they come in, where a mask sends them elsewhere now.
fn unsteered(metrics: &TestMetrics, backlogs: &[FirstBacklog<'_>]) -> Option<TriedPlacement> {
    let set = |one: &&FirstBacklog<'_>| one.is_steered();
    let off = |backlog: &FirstBacklog<'_>| {
        let request = request(backlog, CoreSet::new());
        let space = metrics.machine.space_entry(request.link.netns);
        let whose = "the cores that send them".to_owned();
        TriedSteer { request, whose, target: SteerTarget::Nobody, space }
    };
    let steers: Vec<TriedSteer> = backlogs.iter().filter(set).map(off).collect();
    (!steers.is_empty()).then(|| TriedPlacement { steers, ..untouched() })
}

/// What a setting is tried with; why it is not.
fn value(metrics: &TestMetrics, setting: SteerSetting) -> Result<SteerValue, String> {
    if carrying(metrics).next().is_none() && setting != SteerSetting::NetdevMaxBacklog {
        return Err("the path of the test's data is not known".to_owned());
    }
    match setting {
        SteerSetting::Tso if !is_tcp(metrics) => Err("the test is not TCP".to_owned()),
        SteerSetting::Qdisc => {
            let default = metrics.machine.facts.host.policy.default_qdisc.as_deref();
            let known = default.filter(|kind| QDISC_KINDS[1..].contains(kind));
            // That one is a part of every kernel.
            Ok(SteerValue::Kind(known.unwrap_or(QDISC_KINDS[1]).to_owned()))
        }
        SteerSetting::NetdevMaxBacklog => {
            let dropped = |core: &CoreMetrics| core.load?.softnet_dropped_per_s;
            let drops: Option<f64> = metrics.machine.cores.iter().map(dropped).sum();
            match (metrics.machine.facts.host.policy.netdev_max_backlog, drops) {
                (None, _) | (_, None) => Err("what it is, or what the backlogs dropped, is not known here".to_owned()),
                (_, Some(0.0)) => Err("the backlog of each core took all packets".to_owned()),
                (Some(now), Some(_)) => Ok(SteerValue::Number(LEAST_LONGER.max(now.saturating_mul(2)))),
            }
        }
        _ => Ok(SteerValue::Number(1)),
    }
}

/// Why there is no link to change, in words.
fn as_it_is(setting: SteerSetting) -> &'static str {
    match setting {
        SteerSetting::Gro => "GRO, it is on, or cannot be turned on, where the path receives",
        SteerSetting::Tso => "TSO, it is on, or cannot be turned on, where the path sends",
        SteerSetting::Qdisc => "a qdisc, the sender's link has one, or takes none",
        _ => "netdev_max_backlog, it belongs to another network namespace",
    }
}
