//! What holds a test's packets longest, and whose fault it is: a thread that has no core, a softirq that starts late, a qdisc, a
//! program between two links. A wait is told once, at its cause: a packet that waits in a socket for a reader that waits for a
//! core, waits for the core.

use super::remedy::WaitsFor;
use super::stage::{Stage, StageKey};
use super::{LatencyGround, Spread, StageLatency, TestLatency, place, remedy};
use crate::cores::CoreMetrics;
use crate::figure::{percent, time};
use crate::workers::Worker;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{PathPoint, PointKind, ThreadId, WaitedFor, quoted};

/// The 99th percentile from which on a stage is worth a sentence, s.
const WORTH_S: f64 = 1e-3;
/// What explains a stage is as long as so much of its 99th percentile.
const EXPLAINS: f64 = 0.5;
/// The waits of a thread explain so much of the mean of the packets' at least.
const MATTERS: f64 = 0.25;
/// Waits shorter than this part of the packets' have nothing to do with them.
const FREE: f64 = 0.1;
/// From this part of the 99th percentile on the median says how long packets wait.
const EVERY: f64 = 0.5;
/// A core of which the hypervisor takes so much is not the kernel's to give.
const STOLEN: f64 = 0.05;

/// What came between two readings. First who was waited for longest at a time: so many more packets came meanwhile that the time
/// counts twice.
pub(super) fn longest(
    now: &BTreeMap<(ThreadId, u32), WaitedFor>,
    before: &BTreeMap<(ThreadId, u32), WaitedFor>,
) -> Vec<WaitedFor> {
    let more = |(key, now): (&(ThreadId, u32), &WaitedFor)| {
        let (ns, count) = before.get(key).map_or((0, 0), |before| (before.ns, before.count));
        let (ns, count) = (now.ns.checked_sub(ns)?, now.count.checked_sub(count)?);
        (ns > 0).then(|| WaitedFor { ns, count, ..now.clone() })
    };
    let mut all: Vec<WaitedFor> = now.iter().filter_map(more).collect();
    let weight = |one: &WaitedFor| one.ns as f64 * one.ns as f64 / one.count.max(1) as f64;
    all.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    all
}

/// What holds the packets longest.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyCause {
    /// Where they wait.
    pub key: StageKey,
    /// What makes them wait, where that is another stage.
    pub by: Option<StageKey>,
    /// The thread that waits for a core, and for whom, where that is it.
    pub waited: Option<(ThreadId, Option<WaitedFor>)>,
    /// Another core for that thread may help: others run on the one it waits for.
    pub pin_may_help: bool,
    /// The sentence.
    pub text: String,
    /// What to do about it; `None` where nothing is known that fits.
    pub remedy: Option<String>,
    /// The numbers behind it.
    pub numbers: Vec<(&'static str, f64)>,
}

/// The cause; `None` where nothing takes a millisecond.
pub(super) fn of(scene: &LatencyScene<'_>) -> Option<LatencyCause> {
    let latency = scene.latency;
    let worth = |one: &&StageLatency| one.now.is_some_and(|now| now.p99_s >= WORTH_S);
    let slowest = |is_one: fn(&StageKey) -> bool| {
        let stages = latency.stages.iter().filter(|one| is_one(&one.key)).filter(worth);
        let longest = |one: &StageLatency| one.now.map_or((0.0, 0.0), |now| (now.p99_s, now.mean_s));
        stages.max_by(|one, other| {
            let (one, other) = (longest(one), longest(other));
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        })
    };
    if let Some(stage) = slowest(StageKey::is_of_packets) {
        return scene.of_packets(stage);
    }
    // No packet waits for it, as of a sender that others keep from sending.
    let thread = slowest(|key| matches!(key.stage, Stage::Wakeup(_)))?;
    let (Stage::Wakeup(id), Some(now)) = (thread.key.stage, thread.now) else { return None };
    let waits = scene.thread(id, &figures(now));
    Some(told(thread, None, waits.text.clone()).because_of(waits))
}

impl LatencyCause {
    fn with(self, remedy: Option<String>) -> Self {
        Self { remedy, ..self }
    }

    fn because_of(self, waits: ThreadWaits) -> Self {
        Self { waited: Some((waits.thread, waits.by)), pin_may_help: waits.pin_may_help, remedy: waits.remedy, ..self }
    }
}

/// A thread that waits for a core.
struct ThreadWaits {
    thread: ThreadId,
    by: Option<WaitedFor>,
    text: String,
    pin_may_help: bool,
    remedy: Option<String>,
}

/// What the sentence is made of.
pub(super) struct LatencyScene<'a> {
    pub ground: LatencyGround<'a>,
    pub latency: &'a TestLatency,
    /// Threads whose quota was used up again and again in the last second.
    pub throttled: BTreeSet<ThreadId>,
    /// For how long threads were looked at in it, s.
    pub threads_for_s: f64,
}

impl LatencyScene<'_> {
    /// What makes packets wait in a stage.
    fn of_packets(&self, stage: &StageLatency) -> Option<LatencyCause> {
        let now = stage.now?;
        match stage.key.stage {
            Stage::Qdisc(link) => {
                let text = format!(
                    "packets wait {} in {} of {}",
                    figures(now),
                    self.latency.qdisc(link),
                    place::link(self.ground, link)
                );
                Some(told(stage, None, text).with(remedy::for_stage((self.ground, self.latency), stage.key, None)))
            }
            Stage::Socket => {
                let readers =
                    self.ground.threads.iter().map(|thread| thread.sample.id).filter(|id| self.latency.reads(*id));
                if let Some((cause, waits)) = self.starved(readers, now) {
                    let text = format!("packets wait {} in the receiver's socket: {}", figures(now), waits.text);
                    return Some(told(stage, Some(cause), text).because_of(waits));
                }
                let (reader, does) = self.reader(now);
                let text = format!("packets wait {} in the receiver's socket: {does}", figures(now));
                Some(told(stage, None, text).with(remedy::for_stage((self.ground, self.latency), stage.key, reader)))
            }
            Stage::Hop { from, to } => Some(self.of_hop(stage, now, from, to)),
            _ => None,
        }
    }

    fn of_hop(&self, stage: &StageLatency, now: Spread, from: PathPoint, to: PathPoint) -> LatencyCause {
        if let Some((path, at)) = place::carrier(self.ground, from, to) {
            let carrier = &path.carriers[at];
            let workers = self.ground.workers.iter().filter(|worker| worker.is_of(carrier)).map(Worker::id);
            let takes = format!("packets wait {} in {}", figures(now), carrier.name);
            if let Some((cause, waits)) = self.starved(workers, now) {
                return told(stage, Some(cause), format!("{takes}: {}", waits.text)).because_of(waits);
            }
            let own = self.ground.workers.iter().filter(|worker| worker.is_of(carrier)).map(Worker::id);
            let text =
                if self.are_free(own, now) { format!("{takes}, whose threads do not wait for a core") } else { takes };
            return told(stage, None, text).with(Some(remedy::for_carrier(carrier)));
        }
        let (from_name, to_name) = (self.name(from), self.name(to));
        let takes = format!("packets take {} from {from_name} to {to_name}", figures(now));
        let napi = self.ground.workers.iter().filter(|worker| to.link.is_some() && worker.napi_of() == to.link);
        if let Some((cause, waits)) = self.starved(napi.map(Worker::id), now) {
            return told(stage, Some(cause), format!("{takes}: {}", waits.text)).because_of(waits);
        }
        match self.late_softirq(stage, now).filter(|_| to.what == PointKind::Received) {
            Some((late, text)) => told(stage, Some(late), text),
            None => told(stage, None, takes),
        }
    }

    fn name(&self, point: PathPoint) -> String {
        point.link.map_or_else(|| "the socket".to_owned(), |link| place::link(self.ground, link))
    }

    /// A core whose softirqs start so late that it explains these waits, in words.
    fn late_softirq(&self, stage: &StageLatency, now: Spread) -> Option<(&StageLatency, String)> {
        let late = self.latency.stages.iter().filter(|one| matches!(one.key.stage, Stage::Softirq(_)));
        let late = late.filter(|one| one.key.is_back == stage.key.is_back);
        let p99 = |one: &StageLatency| one.now.map_or(0.0, |now| now.p99_s);
        let late = late.max_by(|one, other| p99(one).total_cmp(&p99(other)))?;
        let (Stage::Softirq(core), Some(spread)) = (late.key.stage, late.now) else { return None };
        let text = || format!("receive softirqs start {} late on core {core}", figures(spread));
        (p99(late) >= EXPLAINS * now.p99_s).then(|| (late, text()))
    }

    /// The thread of these that waits longest for a core, where that explains these waits.
    fn starved(&self, threads: impl Iterator<Item = ThreadId>, now: Spread) -> Option<(&StageLatency, ThreadWaits)> {
        let waits = threads.filter_map(|id| self.latency.stage(Stage::Wakeup(id)));
        let waits = waits.filter_map(|one| Some((one, one.now?)));
        let (stage, spread) = waits.max_by(|one, other| one.1.max_s.total_cmp(&other.1.max_s))?;
        let Stage::Wakeup(id) = stage.key.stage else { return None };
        // One wait of a thread is one of every packet that comes meanwhile: of half of it, on the average.
        let mean_s = stage.recent.squares() / 2.0 / self.threads_for_s.max(0.01);
        (spread.max_s >= EXPLAINS * now.p99_s && mean_s >= MATTERS * now.mean_s)
            .then(|| (stage, self.thread(id, &format!("up to {}", time(spread.max_s)))))
    }

    /// These threads got a core as soon as they could run, as far as a latency of this size goes; false where that is not known.
    /// A wait is counted when it ends: of one that has not run at all it is not known.
    fn are_free(&self, mut threads: impl Iterator<Item = ThreadId>, now: Spread) -> bool {
        let mut is_any = false;
        let are_all = threads.all(|id| {
            is_any = true;
            let waits = self.latency.stage(Stage::Wakeup(id)).and_then(|one| one.now);
            waits.is_some_and(|waits| waits.max_s < FREE * now.p99_s)
        });
        is_any && are_all
    }

    /// Who does not read, and how that is.
    fn reader(&self, now: Spread) -> (Option<ThreadId>, String) {
        let gap = |id: ThreadId| self.latency.stage(Stage::ReadGap(id)).and_then(|one| Some((id, one.now?)));
        let readers = self.ground.threads.iter().map(|one| one.sample.id).filter(|id| self.latency.reads(*id));
        let longest = readers.filter_map(gap).max_by(|one, other| one.1.max_s.total_cmp(&other.1.max_s));
        let Some((id, gaps)) = longest else { return (None, "its reader is slow".to_owned()) };
        let who = self.latency.thread(self.ground, id);
        let free = if self.are_free([id].into_iter(), now) { ", not for want of a core" } else { "" };
        (Some(id), format!("the {who} stopped reading for up to {}{free}", time(gaps.max_s)))
    }

    /// A thread that waits for a core, and for whom.
    fn thread(&self, id: ThreadId, how_long: &str) -> ThreadWaits {
        let by = self.latency.waited_for.iter().find(|one| one.thread == id);
        let who = format!("the {}", self.latency.thread(self.ground, id));
        let for_any = || (WaitsFor::Others, format!("{who} waits {how_long} for a core"));
        let (why, text) = by.map_or_else(for_any, |by| self.why((id, &who), how_long, by));
        let (pin_may_help, remedy) = (why == WaitsFor::Others, remedy::for_thread(why, by));
        ThreadWaits { thread: id, by: by.cloned(), text, pin_may_help, remedy }
    }

    /// Why it waits, in a sentence too: who keeps it waiting stands first.
    fn why(&self, (id, who): (ThreadId, &str), how_long: &str, by: &WaitedFor) -> (WaitsFor, String) {
        let core = by.core;
        let shares = self.ground.machine.core(core).and_then(CoreMetrics::shares);
        let stolen = shares.map_or(0.0, |shares| shares.steal);
        if self.throttled.contains(&id) {
            let quota = self.quota(id);
            let text = format!("{who} is stopped for {how_long}: the CPU quota of its cgroup{quota} is used up");
            return (WaitsFor::Quota, text);
        }
        let waits = format!("{who} waits {how_long}");
        if by.own_real_time > 0 && by.real_time == 0 {
            let instead = if by.by == 0 { "nobody" } else { &*by.name };
            let why = "it is real-time, and throttled (rt_runtime_us)";
            return (WaitsFor::RealTime, format!("{waits} for core {core}: {why}; {instead} runs there"));
        }
        if stolen >= STOLEN {
            let share = percent(stolen);
            let text = format!("{waits} for core {core}, of which the hypervisor takes {share} % (steal)");
            return (WaitsFor::Host, text);
        }
        if by.by == 0 {
            return (WaitsFor::Nobody, format!("{waits}, though core {core} is idle"));
        }
        let how = if by.real_time > 0 { format!(" (real-time, priority {})", by.real_time) } else { String::new() };
        (WaitsFor::Others, format!("{} {}{how} keeps {who} off core {core} for {how_long}", quoted(&by.name), by.pid))
    }

    /// How much of a core a thread's quota is.
    fn quota(&self, id: ThreadId) -> String {
        let quota = self.ground.threads.iter().find(|one| one.sample.id == id).and_then(|one| one.sample.quota);
        let cores = quota.map(|quota| quota.quota_us as f64 / quota.period_us.max(1) as f64);
        cores.map_or_else(String::new, |cores| format!(" ({} % of a core)", percent(cores)))
    }
}

fn told(stage: &StageLatency, by: Option<&StageLatency>, text: String) -> LatencyCause {
    let now = stage.now;
    let figure = |of: fn(Spread) -> f64| now.map_or(0.0, of);
    let numbers = vec![("p50_us", 1e6 * figure(|now| now.p50_s)), ("p99_us", 1e6 * figure(|now| now.p99_s))];
    LatencyCause {
        key: stage.key,
        by: by.map(|by| by.key),
        waited: None,
        pin_may_help: false,
        text,
        remedy: None,
        numbers,
    }
}

/// The figures of a sentence: first how long every packet waits, where most do; one where both are the same.
fn figures(spread: Spread) -> String {
    let (median, p99) = (time(spread.p50_s), time(spread.p99_s));
    match spread.p50_s >= EVERY * spread.p99_s {
        true if median == p99 => median,
        true => format!("{median} (median; p99 {p99})"),
        false => format!("{p99} (p99; median {median})"),
    }
}
