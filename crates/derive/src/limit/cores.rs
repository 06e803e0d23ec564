//! Full cores: with whose work, and whether that is what a test waits for.
//!
//! A core that is full holds a test back only where a thread of the test waits for it, or where the test fills it: its threads
//! or its packets' softirqs. Work of others at a lower priority fills a core too, and takes nothing from a test that does not wait for it.

mod effect;
mod gain;
pub(crate) mod words;

use super::scene::{Core, Scene, Thread};
use super::{Limit, LimitKind};
use crate::figure::{decimal, percent};
use crate::losses::LossPlace;
use crate::share;
use vnettop_sample::{CoreId, Runner};
use words::{programs, whole_percents, within};

/// A core with no more idle time than this is full: clock ticks are coarse, and a thread sleeps a moment between two packets.
pub(crate) const IDLE: f64 = 0.08;
/// A core is also full with up to this share of idle time if a thread of the test that lives there could always run.
const IDLE_BETWEEN: f64 = 0.25;
/// A thread that runs or waits to run for this share of the time always has something to do.
const ALWAYS: f64 = 0.85;
/// A thread that moved has its home where it ran most; that one is full only if the thread, and the core, was at work there for so
/// much of the thread's time: of the core that it has just come to all its time is counted.
const STAYS: f64 = 0.9;
/// Share of time waiting for a core from which a thread counts as starved, though the other end then gives it less to do.
const LATE: f64 = 0.3;
/// Share of the time in which it would run, and of all time, that a reader waits whose socket overflows meanwhile: it sleeps as
/// soon as that is empty.
const HELD_UP: [f64; 2] = [0.3, 0.1];
/// Least running plus waiting time of a starved thread, share: a thread that has little to do may wait, and nothing is lost by
/// it.
const OFTEN: f64 = 0.6;
/// A receiver at work for so much of the time has much to do.
const MUCH: f64 = 0.4;
/// A core counts as filled by the test if the test's work takes `OWN` of it and a thread of the test waits for it, or if
/// softirqs alone take `OWN`; from `ALONE` on no waiting thread is needed.
const OWN: f64 = 0.5;
const ALONE: f64 = 0.85;
/// What programs are called together that are not named.
const OTHER_PROGRAMS: &str = "others";
/// The same with threads or softirqs of the test among them.
const THE_REST: &str = "other";

/// A part of a core: whose, its share, its name.
type CorePart = (LimitKind, f64, String);
/// From this share of a core on others take it from a thread that waits for so much of the time.
const OTHERS: f64 = 0.2;
const WAITS: f64 = 0.1;
/// A smaller part of a core is not named.
const LEAST: f64 = 0.05;
/// More parts do not fit into a line; the others are one.
const MOST_NAMED: usize = 3;
const NOTHING: f64 = 0.005;
/// A cap of the clock closer to the top than this share is none.
const CAPPED: f64 = 0.98;

/// A full core, and what fills it; shares of its time.
struct Full<'a> {
    core: &'a Core,
    /// The test's threads there, most first, each with its part; and its softirqs.
    threads: Vec<(&'a Thread, f64)>,
    softirq: f64,
    others: f64,
    /// A thread of the test that could always run.
    starves: Option<&'a Thread>,
    /// The one that waits for it longest, and for which share of the time.
    waits: Option<&'a Thread>,
    wait: f64,
}

/// The core that holds the test back; none where no core does.
pub(super) fn full(scene: &Scene) -> Option<Limit> {
    let full: Vec<Full<'_>> = scene.cores.iter().filter_map(|core| Full::of(scene, core)).collect();
    // Where the window of the receiver is full, or packets are lost in its buffer, it is the receiver that is slower.
    let is_behind = scene.tcp.and_then(|tcp| tcp.busy).is_some_and(|busy| busy.rwnd >= 0.3)
        || scene.losses_per_s.first().is_some_and(|lost| lost.place == LossPlace::ReceiveBuffer);
    let rank = |full: &Full<'_>| {
        let slower = |thread: &Thread| if is_behind { thread.receives } else { thread.sends };
        let is_slower = full.threads.iter().any(|(thread, part)| *part >= LEAST && slower(thread));
        (full.kind() == LimitKind::Others, is_slower, full.own())
    };
    let worst = full.iter().max_by(|one, other| {
        let (one, other) = (rank(one), rank(other));
        (one.0, one.1).cmp(&(other.0, other.1)).then(one.2.total_cmp(&other.2))
    });
    worst.map(|full| full.limit(scene)).or_else(|| moving(scene))
}

/// What fills the core of this number, if it is full.
pub(super) fn of(scene: &Scene, core: CoreId) -> Option<Limit> {
    Full::of(scene, scene.core(core)?).map(|full| full.limit(scene))
}

/// The receiving thread, if it always runs or waits to run; none otherwise.
pub(super) fn receiver(scene: &Scene) -> Option<&Thread> {
    scene.threads.iter().find(|thread| thread.receives && always(thread))
}

/// What fills the core that a receiving thread waits for, where others have much of it.
pub(super) fn taken_from_receiver(scene: &Scene) -> Option<Limit> {
    let waits = scene.threads.iter().filter(|thread| thread.receives && is_held_up(thread));
    let cores = waits.filter_map(|thread| scene.core(thread.home()?)).filter(|core| core.idle <= IDLE);
    let mut full = cores.map(|core| Full::seen(scene, core));
    full.find(|full| full.others >= OTHERS).map(|full| full.limit(scene))
}

/// A thread of the test could always run.
pub(super) fn starves(scene: &Scene) -> bool {
    scene.threads.iter().any(always)
}

/// A thread that receives is at work most of the time, or much of it while one that sends could always run: no window of its own is
/// what they wait for.
pub(super) fn is_slow(scene: &Scene) -> bool {
    let is_starved = scene.threads.iter().any(|thread| thread.sends && always(thread));
    let least = if is_starved { MUCH } else { OFTEN };
    scene.threads.iter().any(|thread| thread.receives && thread.cpu >= least)
}

/// The thread waits for much of the time in which it would run.
fn is_held_up(thread: &Thread) -> bool {
    let [part, least] = HELD_UP;
    thread.wait >= least.max(part * (thread.cpu + thread.wait))
}

/// The fullest core that is full of those on which its packets are handled or its workers live.
pub(super) fn full_between(scene: &Scene) -> Option<(CoreId, f64)> {
    let is_between = |core: CoreId| {
        let lives = |worker: &super::scene::WorkerThread| worker.thread.home() == Some(core);
        scene.handling.contains(core) || scene.workers.iter().any(|worker| !worker.polls && lives(worker))
    };
    let cores = scene.cores.iter().filter(|core| core.idle <= IDLE && is_between(core.number));
    let core = cores.min_by(|one, other| one.idle.total_cmp(&other.idle))?;
    Some((core.number, 1.0 - core.idle))
}

/// The fullest of the cores that threads of the test have their home on: its busy share, and how long its threads wait for it.
pub(super) fn nearest(scene: &Scene) -> Option<(CoreId, f64, f64)> {
    let lives = |core: CoreId| scene.threads.iter().filter(move |thread| thread.home() == Some(core));
    let cores = scene.cores.iter().filter(|core| lives(core.number).next().is_some());
    let core = cores.min_by(|one, other| one.idle.total_cmp(&other.idle))?;
    let wait = lives(core.number).map(|thread| thread.wait).fold(0.0, f64::max);
    Some((core.number, 1.0 - core.idle, wait))
}

/// The core of [`nearest`], if it is full.
pub(super) fn fullest(scene: &Scene) -> Option<(CoreId, f64, f64)> {
    nearest(scene).filter(|(_, busy, _)| 1.0 - busy <= IDLE)
}

/// A full core that a thread of the test waits for so much of the time, where nothing else is found.
pub(super) fn waited_for(scene: &Scene) -> Option<Limit> {
    let (core, _, wait) = fullest(scene)?;
    let full = Full::seen(scene, scene.core(core)?);
    (wait >= LATE || full.waits.is_some_and(is_held_up)).then(|| full.limit(scene))
}

/// Who else is on that core, most first: programs, threads of the test, softirqs, each with its share.
pub(super) fn beside(scene: &Scene, core: CoreId, is_own: impl Fn(&Thread) -> bool) -> String {
    let Some(core) = scene.core(core) else { return String::new() };
    let mut seen = Full::seen(scene, core);
    seen.threads.retain(|(thread, _)| !is_own(thread));
    let parts = seen.parts(scene, LimitKind::Others, &seen.strangers(scene));
    let words = parts.iter().take(2).map(|(_, share, who)| format!("{who} {} %", percent(*share)));
    words.collect::<Vec<_>>().join(", ")
}

/// A thread that always has something to do.
pub(super) fn always(thread: &Thread) -> bool {
    let could_run = thread.cpu + thread.wait;
    could_run >= ALWAYS || (thread.wait >= LATE && could_run >= OFTEN)
}

/// A thread that never stops and is moved from core to core, none of which is full.
fn moving(scene: &Scene) -> Option<Limit> {
    let thread = scene.threads.iter().max_by(|one, other| one.cpu.total_cmp(&other.cpu))?;
    (thread.cpu >= ALWAYS).then(|| {
        let Thread { label, tid, .. } = thread;
        let text = format!("{label} (tid {tid}) fills one core at a time: {} %", percent(thread.cpu));
        let numbers = vec![("thread", thread.cpu), ("wait", thread.wait)];
        let limit = Limit::new(LimitKind::OwnThread, text, numbers).named(&thread.label);
        Limit { pid: Some(thread.pid), tid: Some(thread.tid), ..limit }
    })
}

impl<'a> Full<'a> {
    /// The core as a full one; `None` when it is not full.
    fn of(scene: &'a Scene, core: &'a Core) -> Option<Self> {
        let full = Self::seen(scene, core);
        let own = full.own();
        let takes_all = own >= ALONE || full.softirq >= OWN || (own >= OWN && full.wait >= WAITS);
        let busy = core.process + core.softirq;
        let stays = |thread: &Thread| thread.on(core.number).min(busy) >= STAYS * thread.cpu;
        let holds = |thread: &Thread| thread.wait >= WAITS || !thread.moved || stays(thread);
        let starves = full.starves.is_some_and(holds);
        let is_full = (core.idle <= IDLE && takes_all) || (core.idle <= IDLE_BETWEEN && starves);
        is_full.then_some(full)
    }

    /// What is on a core, full or not.
    fn seen(scene: &'a Scene, core: &'a Core) -> Self {
        let workers = || scene.workers.iter().filter(|worker| !worker.polls).map(|worker| &worker.thread);
        let here = || scene.threads.iter().chain(workers()).filter(|thread| thread.on(core.number) > 0.0);
        let cpu: f64 = here().map(|thread| thread.on(core.number)).sum();
        // Whether a thread's CPU time has softirq time in it depends on the kernel's configuration (IRQ_TIME_ACCOUNTING).
        let process = cpu.min(core.process);
        let part = if core.process > f64::EPSILON { process / core.process } else { 0.0 };
        let sends = here().any(|thread| thread.sends);
        let softirq = match scene.handling.contains(core.number) {
            true => core.softirq,
            // What a sender sends is carried on in softirq on its own core; what comes in is on its receiver's at times.
            false if sends || core.softirq < LEAST => core.softirq * part,
            false => core.softirq * part.min(cpu),
        };
        let (own, others) = share::own_and_others([core.process, core.softirq], [cpu, softirq]);
        let scale = if cpu > 0.0 { (own - softirq).max(0.0) / cpu } else { 0.0 };
        let mut threads: Vec<(&Thread, f64)> = here().map(|thread| (thread, thread.on(core.number) * scale)).collect();
        threads.sort_by(|one, other| other.1.total_cmp(&one.1));
        let lives = here().filter(|thread| thread.home() == Some(core.number));
        let starves = lives.filter(|thread| always(thread)).max_by(|one, other| one.wait.total_cmp(&other.wait));
        let home = here().filter(|thread| thread.home() == Some(core.number));
        let waits = home.max_by(|one, other| one.wait.total_cmp(&other.wait));
        let wait = waits.map_or(0.0, |thread| thread.wait);
        Self { core, threads, softirq, others, starves, waits, wait }
    }

    /// Share of the core that is the test's.
    fn own(&self) -> f64 {
        self.threads.iter().map(|(_, part)| part).sum::<f64>() + self.softirq
    }

    fn kind(&self) -> LimitKind {
        let waits = self.wait >= WAITS;
        // A thread that wants the whole core loses what others take, even if it keeps more than half.
        match () {
            () if self.core.steal >= OTHERS && self.core.steal >= self.others => LimitKind::Steal,
            () if self.others >= OTHERS && waits => LimitKind::Others,
            () if self.softirq > self.own() / 2.0 => LimitKind::OwnSoftirq,
            () => LimitKind::OwnThread,
        }
    }

    /// Who else runs there, most first; the kernel's thread for softirqs does what is counted as such.
    fn strangers<'b>(&self, scene: &'b Scene) -> Vec<(&'b Runner, f64)> {
        let is_own = |runner: &Runner| {
            let is_end = scene.threads.iter().any(|thread| thread.pid == runner.pid);
            is_end || scene.workers.iter().any(|worker| !worker.polls && worker.thread.tid == runner.tid)
        };
        let is_here = |runner: &&Runner| runner.core == self.core.number && !is_own(runner) && !runner.is_ksoftirqd();
        let share = |runner: &Runner| (runner.cpu_ns as f64 / runner.over_ns.max(1) as f64).min(self.others);
        // The threads of one program are one.
        let mut programs: Vec<(&Runner, f64)> = Vec::new();
        for runner in scene.runners.iter().filter(is_here) {
            match programs.iter_mut().find(|(known, _)| known.pid == runner.pid) {
                Some((_, all)) => *all = (*all + share(runner)).min(self.others),
                None => programs.push((runner, share(runner))),
            }
        }
        programs.sort_by(|one, other| other.1.total_cmp(&one.1));
        within(programs, self.others)
    }

    /// What fills the core, each with its share and its name, most first; what names the limit comes before.
    fn parts(&self, scene: &Scene, kind: LimitKind, strangers: &[(&Runner, f64)]) -> Vec<CorePart> {
        // The number only where the name is that of several: a narrow screen has no room for it.
        let alone = |thread: &Thread| scene.threads.iter().filter(|other| other.label == thread.label).count() == 1;
        let name = |thread: &Thread| {
            if alone(thread) { thread.label.clone() } else { format!("{} (tid {})", thread.label, thread.tid) }
        };
        let of_thread = |&(thread, part): &(&Thread, f64)| (LimitKind::OwnThread, part, name(thread));
        let mut parts: Vec<CorePart> = self.threads.iter().map(of_thread).collect();
        parts.push((LimitKind::OwnSoftirq, self.softirq, "test softirqs".to_owned()));
        parts.retain(|(_, share, _)| *share >= LEAST);
        if kind == LimitKind::Others && parts.len() > 1 {
            parts = vec![(LimitKind::OwnThread, self.own(), "this test".to_owned())];
        } else if let ([(_, _, name), (_, softirq, _)], true) = (parts.as_slice(), self.counts_softirqs()) {
            // Its time as everyone shows it, with what it has of them.
            let name = format!("{name} ({} % in test softirqs)", percent(*softirq));
            parts = vec![(kind, self.own(), name)];
        }
        parts.push((LimitKind::Steal, self.core.steal, "taken by the hypervisor".to_owned()));
        let programs = programs(strangers);
        let named = programs.iter().take(2).filter(|(_, share)| *share >= LEAST);
        parts.extend(named.map(|(name, share)| (LimitKind::Others, *share, name.clone())));
        let named: f64 = parts.iter().filter(|part| part.0 == LimitKind::Others).map(|part| part.1).sum();
        parts.push((LimitKind::Others, self.others - named, OTHER_PROGRAMS.to_owned()));
        parts.retain(|(_, share, _)| *share >= LEAST);
        // Programs that have a name come before those that have none.
        let order = |part: &CorePart| (part.0 != kind, part.0 == LimitKind::Others && part.2 == OTHER_PROGRAMS);
        parts.sort_by(|one, other| order(one).cmp(&order(other)).then(other.1.total_cmp(&one.1)));
        parts
    }

    /// The parts that a line has room for, one of them the test's own; all together they are what is used of the core.
    fn whole(&self, mut parts: Vec<CorePart>) -> Vec<CorePart> {
        let is_own = |part: &CorePart| matches!(part.0, LimitKind::OwnThread | LimitKind::OwnSoftirq);
        let mut rest = parts.split_off(parts.len().min(MOST_NAMED));
        if !parts.iter().any(is_own)
            && let Some(at) = rest.iter().position(is_own)
        {
            let least = parts.iter().rposition(|part| part.2 == OTHER_PROGRAMS).unwrap_or(MOST_NAMED - 1);
            rest.push(std::mem::replace(&mut parts[least], rest[at].clone()));
            rest.remove(at);
        }
        let used = self.core.process + self.core.softirq + self.core.steal;
        let left = used - parts.iter().map(|part| part.1).sum::<f64>();
        if left >= NOTHING {
            let of_others =
                self.others - parts.iter().filter(|part| part.0 == LimitKind::Others).map(|part| part.1).sum::<f64>();
            if let Some(others) = parts.iter_mut().find(|part| part.2 == OTHER_PROGRAMS) {
                others.1 += left;
            } else {
                let name = if of_others < left / 2.0 { THE_REST } else { OTHER_PROGRAMS };
                parts.push((LimitKind::Others, left, name.to_owned()));
            }
        }
        parts
    }

    /// The time of the only thread of the test there has the softirqs in it that interrupted it.
    fn counts_softirqs(&self) -> bool {
        let mut busy = self.threads.iter().filter(|(_, part)| *part >= LEAST);
        let first = busy.next().filter(|_| busy.next().is_none() && self.softirq >= LEAST);
        first.is_some_and(|(thread, part)| thread.on(self.core.number) >= part + self.softirq / 2.0)
    }

    fn limit(&self, scene: &Scene) -> Limit {
        let kind = self.kind();
        let strangers = self.strangers(scene);
        let parts = self.whole(self.parts(scene, kind, &strangers));
        let own_thread: f64 = self.threads.iter().map(|(_, part)| part).sum();
        let busy = self.core.process + self.core.softirq;
        let shares: Vec<f64> = parts.iter().map(|(_, share, _)| *share).collect();
        let named = parts.iter().zip(whole_percents(&shares));
        let words: Vec<String> = named.map(|((_, _, who), share)| format!("{share} % {who}")).collect();
        let capped = scene.clock_khz.filter(|(limit, most)| *limit < CAPPED * most);
        let clock =
            capped.map_or_else(String::new, |(limit, most)| format!(" at {:.1} of {:.1} GHz", limit / 1e6, most / 1e6));
        // That it is of the last second is what LIMIT means.
        let over = if scene.seconds < 1.95 { String::new() } else { format!(" over {} s", decimal(scene.seconds)) };
        let text = format!(
            "core {} is {} % busy{over}{clock}: {}",
            self.core.number,
            percent(busy + self.core.steal),
            words.join(", ")
        );
        let mut numbers = vec![
            ("core", f64::from(self.core.number)),
            ("busy", busy),
            ("own_threads", own_thread),
            ("own_softirq", self.softirq),
            ("others", self.others),
            ("steal", self.core.steal),
            ("wait", self.wait),
        ];
        numbers.extend(gain::figure(scene).filter(|_| kind != LimitKind::Steal));
        let is_own = matches!(kind, LimitKind::OwnThread | LimitKind::OwnSoftirq);
        let limit = Limit::new(if is_own && capped.is_some() { LimitKind::Frequency } else { kind }, text, numbers);
        let waits = self.wait().filter(|_| matches!(kind, LimitKind::Others | LimitKind::Steal));
        let limit = Limit { because: self.because(kind, &strangers), waits, ..limit };
        let (name, pid) = match kind {
            LimitKind::Others => strangers.first().map(|(runner, _)| (runner.name.clone(), runner.pid)),
            LimitKind::OwnThread => self.threads.first().map(|(thread, _)| (thread.label.clone(), thread.pid)),
            _ => None,
        }
        .unzip();
        let own = self.threads.first().filter(|_| kind == LimitKind::OwnThread);
        Limit { core: Some(self.core.number), name, pid, tid: own.map(|(thread, _)| thread.tid), ..limit }
    }
}

#[cfg(test)]
mod tests;
