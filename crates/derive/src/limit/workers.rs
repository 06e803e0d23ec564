//! A thread between the ends that has no core of its own, or not enough of one: a guest's vCPU, a VMM, a VPN's daemon, a switch,
//! a proxy. What it cannot carry is lost before it, fills windows and buffers, and looks like many other things.

use super::cores::{self, always};
use super::lost;
use super::scene::{Scene, WorkerThread};
use super::{Limit, LimitKind};
use crate::figure::percent;
use crate::finding::loss::place_alone;
use crate::losses::{Loss, LossPlace};
use vnettop_sample::Proto;

/// From this share of the time on a thread waits for a core so often that it is worth a word.
const WAITS: f64 = 0.1;
/// An end that could run for so much more of the time is what limits, not the worker.
const MORE: f64 = 0.05;
/// Share of a worker's CPU time on one core from which on that core is its own.
const HOME: f64 = 0.7;
/// Lost share from which on a sender of datagrams sends more than is carried.
const LOST: f64 = 0.01;

/// The worker that could run all the time, or waits for a core, and whose end of the path could not.
pub(super) fn starved(scene: &Scene) -> Option<Limit> {
    let need = |worker: &WorkerThread| worker.thread.cpu + worker.thread.wait;
    // How busy a thread is that polls says nothing.
    let starved = scene.workers.iter().filter(|worker| !worker.polls && always(&worker.thread));
    // What a program's own socket has no room for tells whose threads are too slow.
    let is_full = |worker: &WorkerThread| {
        let lost = lost::worst(scene).and_then(|lost| lost.name.as_deref());
        lost.is_some_and(|name| name == worker.carrier)
    };
    let rank = |worker: &WorkerThread| (is_full(worker), need(worker));
    let worker = starved.max_by(|one, other| {
        let (one, other) = (rank(one), rank(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    })?;
    // What the receiver's own socket has no room for came through all of them.
    let is_behind = |lost: &Loss| lost.place == LossPlace::ReceiveBuffer && !lost.is_of_vpn();
    if lost::worst(scene).is_some_and(is_behind) {
        return None;
    }
    // A sender of datagrams is as fast as it can be, whoever carries them: what is lost behind it tells.
    let is_udp = scene.proto == Some(Proto::Udp);
    let is_more = |end: &&super::scene::Thread| !(is_udp && end.sends) && end.cpu + end.wait > need(worker) + MORE;
    let is_carried = is_udp
        && lost::worst(scene).is_none()
        && scene.missing.is_none_or(|missing| missing < LOST)
        && scene.threads.iter().any(|end| end.sends && always(end));
    (!is_carried && !scene.threads.iter().any(|end| is_more(&end))).then(|| limit(scene, worker))
}

fn limit(scene: &Scene, worker: &WorkerThread) -> Limit {
    let WorkerThread { thread, noun, carrier, .. } = worker;
    let home = thread.home().filter(|&core| thread.on(core) >= HOME * thread.cpu);
    let on = home.map_or_else(|| "a core".to_owned(), |core| format!("core {core}"));
    let waits = if thread.wait >= WAITS {
        let beside = home.map(|core| cores::beside(scene, core, thread.tid)).filter(|text| !text.is_empty());
        let beside = beside.map_or_else(String::new, |who| format!(" ({who})"));
        format!(" and waits {} % of the time for it{beside}", percent(thread.wait))
    } else {
        String::new()
    };
    let because =
        lost::worst(scene).map_or_else(String::new, |lost| format!("; {} {}", lost::how_many(lost), place_alone(lost)));
    let text = format!(
        "{carrier} is the limit: its {noun} {} uses {} % of {on}{waits}{because}",
        thread.tid,
        percent(thread.cpu)
    );
    let mut numbers = vec![("thread", thread.cpu), ("wait", thread.wait)];
    numbers.extend(home.map(|core| ("core", f64::from(core))));
    let limit = Limit::new(LimitKind::Worker, text, numbers).named(&thread.label);
    Limit { core: home, pid: Some(thread.pid), ..limit }
}
