//! How much more a test would carry if none of its threads had to wait for a core: an estimate, by the CPU time that a bit takes now.
//!
//! Measured over a pair of veth beside strangers of several priorities on one end's core, in 62 looks at nine tests: what came when
//! the strangers were stopped was from 0.9 to 1.3 times what the estimate had said. With writes of 1400 bytes it was 0.6 of it, where
//! a bit takes more CPU time as soon as nothing waits; with four streams in one thread 1.6 times, so of several it is not made.

use super::super::scene::{Scene, Thread};
use super::{Full, LEAST, OTHERS, WAITS};
use crate::held_back::GAIN_BITS_PER_S;
use vnettop_sample::Proto;

/// Less than so much more is no gain that can be told from chance.
const LEAST_GAIN: f64 = 1.1;

/// A thread at an end: what it uses of its core, softirqs included, and what it could use if it need not wait.
struct EndShare {
    used: f64,
    room: f64,
}

/// As a figure of the limit, bits/s; none where not one stream and two threads carry the packets, or not both ends are seen, or both
/// wait for strangers.
pub(super) fn figure(scene: &Scene) -> Option<(&'static str, f64)> {
    let rate = scene.rate_bits_per_s.filter(|_| scene.proto == Some(Proto::Tcp) && scene.streams == 1)?;
    let mut more = ends(scene)?.iter().map(|end| end.room / end.used).fold(f64::INFINITY, f64::min) * rate;
    let set = scene.held.iter().filter_map(|qdisc| qdisc.set_bits_per_s);
    let bounds = set.chain(scene.asked_bits_per_s).chain(scene.claim.as_ref().map(|claim| claim.speed_bits_per_s));
    more = bounds.fold(more, f64::min);
    (more.is_finite() && more >= LEAST_GAIN * rate).then_some((GAIN_BITS_PER_S, more - rate))
}

fn ends(scene: &Scene) -> Option<[EndShare; 2]> {
    let works = |thread: &&Thread| thread.cpu >= LEAST;
    let busy: Vec<&Thread> = scene.threads.iter().filter(works).collect();
    let &[one, other] = busy.as_slice() else { return None };
    let cores = [one.home()?, other.home()?];
    let is_elsewhere = |core: &super::Core| {
        core.softirq >= LEAST && !cores.contains(&core.number) && scene.handling.contains(core.number)
    };
    let is_seen = scene.workers.iter().all(|worker| worker.thread.cpu < LEAST)
        && !scene.cores.iter().any(is_elsewhere)
        && (one.sends && other.receives || one.receives && other.sends)
        && !(one.moved || other.moved);
    let is_shared = cores[0] == cores[1];
    // Of two that share a core both wait, of others one.
    let waiting = busy.iter().filter(|thread| thread.wait >= WAITS).count();
    if !is_seen || waiting != 1 + usize::from(is_shared) {
        return None;
    }
    Some([share(scene, one, is_shared)?, share(scene, other, is_shared)?])
}

fn share(scene: &Scene, thread: &Thread, is_shared: bool) -> Option<EndShare> {
    let full = Full::seen(scene, scene.core(thread.home()?)?);
    // Of two that share a core each waits for the other alone.
    if is_shared && full.others + full.core.steal >= OTHERS {
        return None;
    }
    let part = full.threads.iter().find(|(one, _)| one.tid == thread.tid)?.1;
    let softirq = if thread.sends || !is_shared { full.softirq } else { 0.0 };
    let used = (part + softirq).max(thread.cpu);
    let room = if thread.wait >= WAITS { used + thread.wait } else { 1.0 - full.others - full.core.steal };
    Some(EndShare { used, room: room.min(1.0) })
}
