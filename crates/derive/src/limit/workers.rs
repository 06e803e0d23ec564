//! A thread between the ends that has no core of its own, or not enough of one: a guest's vCPU, a VMM, a VPN's daemon, a switch,
//! a proxy. What it cannot carry is lost before it, fills windows and buffers, and looks like many other things.

use super::cores::{self, always};
use super::lost;
use super::scene::{Scene, Thread, WorkerPlace, WorkerThread};
use super::{Limit, LimitKind, shaped};
use crate::figure::percent;
use crate::finding::loss::place_alone;
use vnettop_sample::Proto;

/// From this share of the time on a thread waits for a core so often that it is worth a word.
const WAITS: f64 = 0.1;
/// An end that could run for so much more of the time is what limits, not the worker.
const MORE: f64 = 0.05;
/// Share of a worker's CPU time on one core from which on that core is its own.
const HOME: f64 = 0.7;
/// A core with no more idle time is full; a program's workers fill it that use so much of it and wait so long, all together.
const FULL: f64 = 0.08;
const FILLS: f64 = 0.5;
/// One before which packets are lost needs no more of the core than this: others have the rest, and it waits.
const FILLS_LOSING: f64 = 0.1;
const CROWDED: f64 = 0.3;
/// A program that uses so much of a core has all of it.
const ALL: f64 = 0.85;
/// Lost share from which on a sender of datagrams sends more than is carried.
const LOST: f64 = 0.01;

/// The worker that could run all the time, or waits for a core, and whose end of the path could not; or a program whose workers
/// together fill one.
pub(super) fn starved(scene: &Scene) -> Option<Limit> {
    // What is lost elsewhere, or held back by a qdisc, is not lost because of a worker.
    if lost::worst(scene).is_some_and(|lost| !scene.workers.iter().any(|worker| lost::is_at(&worker.place, lost)))
        || shaped::held(scene).is_some()
    {
        return None;
    }
    // How busy a thread is that polls says nothing.
    let workers = || scene.workers.iter().filter(|worker| !worker.polls);
    let worst = |workers: Vec<WorkerThread>| {
        workers.into_iter().max_by(|one, other| {
            let (one, other) = (rank(scene, one), rank(scene, other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })
    };
    let alone = workers().filter(|worker| always(&worker.thread)).cloned().collect();
    let worker = worst(alone).or_else(|| worst(crowded(scene, workers())))?;
    // A sender of datagrams is as fast as it can be, whoever carries them: what is lost behind it tells.
    let is_udp = scene.proto == Some(Proto::Udp);
    let is_more = |end: &Thread| !(is_udp && end.sends) && end.cpu + end.wait > need(&worker) + MORE;
    let is_carried = is_udp
        && lost::worst(scene).is_none()
        && scene.missing.is_none_or(|missing| missing < LOST)
        && scene.threads.iter().any(|end| end.sends && always(end));
    (!is_carried && !scene.threads.iter().any(is_more)).then(|| limit(scene, &worker))
}

/// CPU time, and time that it waits for a core.
fn need(worker: &WorkerThread) -> f64 {
    worker.thread.cpu + worker.thread.wait
}

/// What a program's own socket or link has no room for tells whose threads are too slow.
fn rank(scene: &Scene, worker: &WorkerThread) -> (bool, f64) {
    (lost::worst(scene).is_some_and(|lost| lost::is_at(&worker.place, lost)), need(worker).min(1.0))
}

/// Programs with several workers that together fill a core, each as if it were one thread: those of a Go program share one
/// core when it has no more.
fn crowded<'a>(scene: &Scene, workers: impl Iterator<Item = &'a WorkerThread>) -> Vec<WorkerThread> {
    let mut programs: Vec<WorkerThread> = Vec::new();
    for worker in workers {
        match programs
            .iter_mut()
            .find(|one| (one.place.pid, &one.place.carrier) == (worker.place.pid, &worker.place.carrier))
        {
            None => programs.push(worker.clone()),
            Some(one) => {
                one.thread.cpu += worker.thread.cpu;
                one.thread.wait += worker.thread.wait;
                for &(core, cpu) in &worker.thread.cores {
                    match one.thread.cores.iter_mut().find(|(on, _)| *on == core) {
                        Some((_, all)) => *all += cpu,
                        None => one.thread.cores.push((core, cpu)),
                    }
                }
                one.count += 1;
            }
        }
    }
    programs.retain(|one| {
        let core = one.thread.home().and_then(|core| scene.core(core));
        let loses = lost::worst(scene).is_some_and(|lost| lost::is_at(&one.place, lost));
        let least = if loses { FILLS_LOSING } else { FILLS };
        let fills = core.is_some_and(|core| core.idle <= FULL && one.thread.on(core.number) >= least);
        one.count > 1 && fills && one.thread.wait >= CROWDED
    });
    programs
}

fn limit(scene: &Scene, worker: &WorkerThread) -> Limit {
    let WorkerThread { thread, noun, place: WorkerPlace { carrier, .. }, count, .. } = worker;
    let home = thread.home().filter(|&core| thread.on(core) >= HOME * thread.cpu);
    let on = home.map_or_else(|| "a core".to_owned(), |core| format!("core {core}"));
    let is_own = |other: &Thread| if *count > 1 { other.pid == thread.pid } else { other.tid == thread.tid };
    let beside = home.map(|core| cores::beside(scene, core, is_own)).filter(|text| !text.is_empty());
    let beside = beside.map_or_else(String::new, |who| format!(" ({who})"));
    let waits = match *count {
        // How long several threads wait is no share of anything: they wait for each other too.
        2.. if thread.cpu < ALL => format!(", which is full{beside}"),
        1 if thread.wait >= WAITS => format!(" and waits {} % of the time for it{beside}", percent(thread.wait)),
        _ => String::new(),
    };
    let because =
        lost::worst(scene).map_or_else(String::new, |lost| format!("; {} {}", lost::how_many(lost), place_alone(lost)));
    let who = if *count > 1 { format!("{count} threads use") } else { format!("{noun} {} uses", thread.tid) };
    let text = format!("{carrier} is the limit: its {who} {} % of {on}{waits}{because}", percent(thread.cpu));
    let mut numbers = vec![("thread", thread.cpu), ("wait", thread.wait)];
    numbers.extend(home.map(|core| ("core", f64::from(core))));
    let loses = lost::worst(scene).map(|lost| lost.place);
    let limit =
        Limit { loses, lost: because.clone(), ..Limit::new(LimitKind::Worker, text, numbers).named(&thread.label) };
    let limit = limit.because(format!("{carrier} takes no more: its {who} {} % of {on}{waits}", percent(thread.cpu)));
    Limit { core: home, pid: Some(thread.pid), tid: (*count == 1).then_some(thread.tid), ..limit }
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::super::scene::Core;
    use super::*;
    use crate::losses::{Loss, LossPlace};
    use vnettop_sample::{Ifindex, LinkKey};

    const TAP: LinkKey = LinkKey { netns: 1, ifindex: Ifindex(7) };

    fn thread(pid: u32, core: u32, (cpu, wait): (f64, f64)) -> Thread {
        let (label, cores) = (format!("iperf3 {pid}"), vec![(core, cpu)]);
        Thread { pid, tid: pid, label, cores, cpu, moved: false, wait, sends: pid == 50, receives: pid == 90 }
    }

    fn worker(tid: u32, core: u32, load: (f64, f64)) -> WorkerThread {
        WorkerThread {
            thread: Thread { pid: 7, tid, ..thread(7, core, load) },
            noun: "vCPU",
            place: WorkerPlace { carrier: "the guest web1".to_owned(), pid: 7, before: Some(TAP) },
            polls: false,
            count: 1,
        }
    }

    /// Two ends that wait for somebody, and these workers.
    fn scene(proto: Proto, workers: Vec<WorkerThread>) -> Scene {
        let core = |number, idle| Core { number, process: 1.0 - idle, softirq: 0.0, steal: 0.0, idle };
        Scene {
            seconds: 1.0,
            cores: vec![core(0, 0.5), core(1, 0.0)],
            threads: vec![thread(50, 0, (0.3, 0.0)), thread(90, 0, (0.2, 0.0))],
            workers,
            proto: Some(proto),
            rate_bits_per_s: Some(1e9),
            ..Scene::default()
        }
    }

    fn lost(place: LossPlace, link: Option<LinkKey>) -> Loss {
        Loss { place, link, packets: 500.0, share: Some(0.4), ..Loss::default() }
    }

    #[test]
    fn a_worker_that_has_too_little_of_a_core_is_what_limits() {
        let limit = judge(&scene(Proto::Tcp, vec![worker(8, 1, (0.21, 0.67))]));
        assert_eq!((limit.kind, limit.core, limit.pid, limit.tid), (LimitKind::Worker, Some(1), Some(7), Some(8)));
        assert!(
            limit.text.starts_with("the guest web1 is the limit: its vCPU 8 uses 21 % of core 1 and waits 67 %"),
            "{}",
            limit.text
        );
        let idle = judge(&scene(Proto::Tcp, vec![worker(8, 1, (0.4, 0.0))]));
        assert_ne!(idle.kind, LimitKind::Worker, "one with time to spare is not");
        let polls = WorkerThread { polls: true, ..worker(8, 1, (1.0, 0.0)) };
        assert_ne!(judge(&scene(Proto::Tcp, vec![polls])).kind, LimitKind::Worker, "nor one that polls");
        let mut full = scene(Proto::Tcp, vec![worker(8, 1, (0.88, 0.0))]);
        full.threads[0] = thread(50, 0, (1.0, 0.0));
        assert_ne!(judge(&full).kind, LimitKind::Worker, "nor where an end could run more");
    }

    #[test]
    fn only_what_is_lost_where_a_worker_takes_it_is_lost_because_of_it() {
        let with = |loss: Loss| {
            let mut scene = scene(Proto::Udp, vec![worker(8, 1, (0.5, 0.5))]);
            scene.losses_per_s = vec![loss];
            judge(&scene)
        };
        let limit = with(lost(LossPlace::Link, Some(TAP)));
        assert!(limit.kind == LimitKind::Worker && limit.text.contains("40 % of packets lost"), "{}", limit.text);
        assert_eq!(with(lost(LossPlace::Firewall, None)).kind, LimitKind::Loss, "a rule's are its own");
        let elsewhere = LinkKey { ifindex: Ifindex(9), ..TAP };
        assert_eq!(with(lost(LossPlace::Link, Some(elsewhere))).kind, LimitKind::Loss, "nor another link's");
        assert_ne!(with(lost(LossPlace::ReceiveBuffer, Some(TAP))).kind, LimitKind::Worker, "nor the receiver's");
        let mut carried = scene(Proto::Udp, vec![worker(8, 1, (0.5, 0.5))]);
        carried.threads[0] = thread(50, 0, (1.0, 0.0));
        carried.missing = Some(0.0);
        assert_ne!(judge(&carried).kind, LimitKind::Worker, "all of it arrives: the sender is as fast as it can be");
    }

    #[test]
    fn the_threads_of_a_program_that_share_one_core_are_one() {
        let each = |tid| worker(tid, 1, (0.3, 0.2));
        let limit = judge(&scene(Proto::Tcp, vec![each(8), each(9), each(10)]));
        assert_eq!((limit.kind, limit.core, limit.tid), (LimitKind::Worker, Some(1), None), "no single one");
        assert_eq!(limit.text, "the guest web1 is the limit: its 3 threads use 90 % of core 1");
        let apart = judge(&scene(Proto::Tcp, vec![worker(8, 0, (0.3, 0.2)), worker(9, 1, (0.3, 0.2))]));
        assert_ne!(apart.kind, LimitKind::Worker, "on two cores, one of them idle");
    }

    #[test]
    fn a_program_that_loses_packets_on_a_full_core_limits_however_little_of_it_it_gets() {
        let mut seen = scene(Proto::Udp, vec![worker(8, 1, (0.1, 0.3)), worker(9, 1, (0.05, 0.3))]);
        assert_ne!(judge(&seen).kind, LimitKind::Worker, "nothing is lost");
        seen.losses_per_s = vec![lost(LossPlace::Link, Some(TAP))];
        let limit = judge(&seen);
        assert_eq!(limit.kind, LimitKind::Worker, "{}", limit.text);
        assert!(limit.text.contains("its 2 threads use 15 % of core 1, which is full (others 85 %)"), "{}", limit.text);
    }

    #[test]
    fn while_a_worker_is_not_measured_yet_the_loss_before_it_says_so() {
        let mut seen = scene(Proto::Udp, Vec::new());
        seen.losses_per_s = vec![lost(LossPlace::Link, Some(TAP))];
        assert!(!judge(&seen).text.contains("not known yet") && !lost::is_awaited(&seen));
        seen.unmeasured = vec![worker(8, 1, (0.0, 0.0)).place];
        assert!(judge(&seen).text.ends_with("the threads behind it are is not known yet") && lost::is_awaited(&seen));
    }
}
