//! What of the machine needs more than two samples: each link's rate second by second, each thread's cores and moves.

use super::late_booked::LateBooked;
use super::links::LinkMetrics;
use super::moves::{MoveClass, MovesByClass};
use std::collections::{HashMap, VecDeque};
use vnettop_sample::{CoreId, LinkKey, Move, Sample, ThreadId, ThreadSample, Topology, row_of};

/// Seconds of rate kept for every link that ever moved anything.
pub const LINK_SECONDS: usize = 600;
/// Samples of core kept for every thread.
pub const THREAD_SAMPLES: usize = 240;
/// Moves kept for every thread with their instants.
pub const THREAD_MOVES: usize = 4096;
/// What a list shows of migrations is of this time, ns: in a shorter one there is none most of the time.
pub const LATELY_NS: u64 = 10_000_000_000;

/// The strips and trails of everything now present.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Sorted by key, one for every link of the newest metrics.
    links: Vec<LinkTrack>,
    threads: HashMap<ThreadId, ThreadTrack>,
    /// Seconds (monotonic, whole) of the bin now being filled.
    second: Option<u64>,
    /// Late ticks of vnettop so far, and when the last of them was, monotonic ns.
    late_ticks: u64,
    late_at_ns: Option<u64>,
    /// Seconds that were finished since the start, so that a link that never moved needs no memory to know how many bins it has.
    pub seconds: usize,
}

/// A link's larger direction, one bin a second; the newest last. Empty until the link moves something.
#[derive(Debug, Clone)]
struct LinkTrack {
    key: LinkKey,
    born: u64,
    bins: VecDeque<f32>,
    born_bin: usize,
    sum: f64,
    seconds: f64,
}

/// Where a thread ran, sample by sample, and the moves that showed.
#[derive(Debug, Clone, Default)]
pub struct ThreadTrack {
    /// The core at each sample, newest last.
    pub cores: VecDeque<CoreId>,
    /// Moves known one by one: traced ones, and changes of core between two samples that no trace shows.
    pub seen_moves: u64,
    /// These moves by class.
    pub by_class: MovesByClass,
    /// Class of the last one.
    pub last_class: Option<MoveClass>,
    /// Shares of the last tick in which it ran and in which it waited for a core, at most 1 together.
    pub cpu: Option<f64>,
    /// See `cpu`.
    pub wait: Option<f64>,
    ran: LateBooked,
    waited: LateBooked,
    /// Where it was first seen, then each move: monotonic ns and the core from then on. Newest last.
    path: VecDeque<(u64, CoreId)>,
}

impl ThreadTrack {
    /// Where it was from an instant on: when it came to each core, and the core, oldest first. The first may lie before
    /// that instant: it is where the thread was then.
    pub fn trail(&self, from_ns: u64) -> impl Iterator<Item = (u64, CoreId)> {
        let later = self.path.partition_point(|&(at_ns, _)| at_ns <= from_ns);
        self.path.range(later.saturating_sub(1)..).copied()
    }

    /// The cores at so many samples, the newest first.
    pub fn last(&self, samples: usize) -> impl Iterator<Item = &CoreId> {
        self.cores.iter().rev().take(samples)
    }

    /// Takes the time of a tick: what was booked in it, and what before it and had no room there.
    fn take_time(&mut self, old: Option<&ThreadSample>, new: &ThreadSample) {
        let elapsed_ns = old.and_then(|old| new.at_ns.checked_sub(old.at_ns)).filter(|&ns| ns > 0);
        let ran_ns = old.and_then(|old| new.cpu_ns.checked_sub(old.cpu_ns));
        let waited_ns = old.and_then(|old| new.wait_ns?.checked_sub(old.wait_ns?));
        let Some(elapsed_ns) = elapsed_ns else {
            (self.cpu, self.wait, self.ran, self.waited) = Default::default();
            return;
        };
        let ran_ns = ran_ns.map(|ran_ns| self.ran.take(ran_ns, elapsed_ns));
        let room_ns = elapsed_ns - ran_ns.unwrap_or(0);
        let waited_ns = waited_ns.map(|waited_ns| self.waited.take(waited_ns, room_ns));
        let share = |ns: u64| ns as f64 / elapsed_ns as f64;
        (self.cpu, self.wait) = (ran_ns.map(share), waited_ns.map(share));
    }

    /// How many moves are known to have happened from one instant (without it) to another (with it).
    #[must_use]
    pub fn moves_in(&self, from_ns: u64, to_ns: u64) -> usize {
        // The first entry is where it was first seen: no move.
        let until = |at_ns: u64| self.path.partition_point(|&(moved_ns, _)| moved_ns <= at_ns).saturating_sub(1);
        until(to_ns) - until(from_ns.min(to_ns))
    }

    /// Moves a second in the last ten seconds before an instant, or since the thread was first seen; `None` of one just seen.
    #[must_use]
    pub fn moves_lately(&self, now_ns: u64) -> Option<f64> {
        let from_ns = now_ns.saturating_sub(LATELY_NS).max(self.path.front()?.0);
        let seconds = now_ns.checked_sub(from_ns).filter(|span_ns| *span_ns > 0)? as f64 / 1e9;
        Some(self.moves_in(from_ns, now_ns) as f64 / seconds)
    }

    /// Takes the traced moves of this thread, in the order of time.
    fn trace<'a>(&mut self, moves: impl Iterator<Item = &'a Move>, topology: &Topology) {
        for one in moves {
            if self.path.is_empty() {
                self.arrive(one.at_ns.saturating_sub(1), one.from);
            }
            let (last_ns, last_core) = self.path.back().copied().unwrap_or_default();
            // An unseen move took the thread to the core that this move starts from.
            if last_ns <= one.at_ns && last_core != one.from {
                self.count(topology, last_core, one.from);
            }
            self.count(topology, one.from, one.to);
            self.arrive(one.at_ns, one.to);
        }
    }

    /// Adds the core of a sample. A core that differs from the traced path counts as a move between samples.
    fn sample(&mut self, thread: &ThreadSample, topology: &Topology) {
        let before = self.path.partition_point(|&(from_ns, _)| from_ns <= thread.at_ns).checked_sub(1);
        match before.map(|at| self.path[at].1) {
            None if self.path.is_empty() => self.arrive(thread.at_ns, thread.core),
            Some(from) if from != thread.core => {
                self.count(topology, from, thread.core);
                self.arrive(thread.at_ns, thread.core);
            }
            _ => {}
        }
        if self.cores.len() == THREAD_SAMPLES {
            self.cores.pop_front();
        }
        self.cores.push_back(thread.core);
    }

    fn count(&mut self, topology: &Topology, from: CoreId, to: CoreId) {
        self.seen_moves += 1;
        self.last_class = MoveClass::of(topology, from, to);
        if let Some(class) = self.last_class {
            self.by_class.add(class, 1);
        }
    }

    /// Nearly always at the end; a move that was written late goes where it belongs.
    fn arrive(&mut self, at_ns: u64, core: CoreId) {
        if self.path.len() == THREAD_MOVES {
            self.path.pop_front();
        }
        if self.path.back().is_none_or(|&(last_ns, _)| last_ns <= at_ns) {
            self.path.push_back((at_ns, core));
        } else {
            let at = self.path.partition_point(|&(from_ns, _)| from_ns <= at_ns);
            self.path.insert(at, (at_ns, core));
        }
    }
}

impl History {
    /// A thread's trail.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> Option<&ThreadTrack> {
        self.threads.get(&id)
    }

    /// A tick of vnettop was late within the last so many seconds.
    #[must_use]
    pub fn was_late(&self, now_ns: u64, within_s: u64) -> bool {
        self.late_at_ns.is_some_and(|late_ns| now_ns.saturating_sub(late_ns) < within_s * 1_000_000_000)
    }

    /// The last `count` finished seconds of a link, bits/s in its larger direction, oldest first; none before it was born
    /// or where the rate was unknown.
    #[must_use]
    pub fn link_strip(&self, key: LinkKey, born: u64, count: usize) -> Vec<Option<f32>> {
        let track = row_of(&self.links, &key, |track| track.key).filter(|track| track.born == born);
        let Some(track) = track else { return vec![None; count] };
        let lived = self.seconds.saturating_sub(track.born_bin).min(count);
        let mut strip = vec![None; count - lived];
        let idle = lived.saturating_sub(track.bins.len());
        strip.extend(std::iter::repeat_n(Some(0.0), idle));
        let newest = track.bins.len().saturating_sub(lived);
        strip.extend(track.bins.iter().skip(newest).map(|&bits| (bits >= 0.0).then_some(bits)));
        strip
    }

    /// Notes where each thread is now; called before the thread metrics are derived.
    pub(super) fn observe_threads(&mut self, previous: Option<&Sample>, next: &Sample) {
        let same_stream = previous.is_some();
        self.threads.retain(|id, _| same_stream && next.threads.iter().any(|thread| thread.id == *id));
        // By thread, and in the order of time for each.
        let mut moves: Vec<&Move> = next.trace.iter().flat_map(|trace| &trace.moves).collect();
        moves.sort_by_key(|one| one.tid);
        for thread in &next.threads {
            let track = self.threads.entry(thread.id).or_default();
            let first = moves.partition_point(|one| one.tid < thread.id.tid);
            track
                .trace(moves[first..].iter().copied().take_while(|one| one.tid == thread.id.tid), &next.facts.topology);
            track.sample(thread, &next.facts.topology);
            let same_number = |old: &ThreadSample| (old.id.pid, old.id.tid);
            let old = previous.and_then(|previous| row_of(&previous.threads, &same_number(thread), same_number));
            track.take_time(old.filter(|old| old.id == thread.id), thread);
        }
    }

    /// Adds each link's rate to the bin of its second; closes bins when the second turns.
    pub(super) fn observe_links(&mut self, next: &Sample, elapsed_s: Option<f64>, links: &[LinkMetrics]) {
        if next.own.late_ticks > self.late_ticks {
            self.late_at_ns = Some(next.at_ns);
        }
        self.late_ticks = next.own.late_ticks;
        let second = next.at_ns / 1_000_000_000;
        let turned = self.second.is_some_and(|current| current != second);
        if turned {
            self.seconds += 1;
            self.links.iter_mut().for_each(LinkTrack::close);
        }
        self.second = Some(second);
        self.follow(links);
        let Some(elapsed_s) = elapsed_s else { return };
        for (track, link) in self.links.iter_mut().zip(links) {
            if let Some(bits) = link.rates.and_then(|rates| rates.peak_bits_per_s()) {
                track.sum += bits * elapsed_s;
                track.seconds += elapsed_s;
            }
        }
    }

    /// Makes the tracks those of the links now present, in the same order; nothing to do in a quiet tick.
    fn follow(&mut self, links: &[LinkMetrics]) {
        let same =
            |(track, link): (&LinkTrack, &LinkMetrics)| track.key == link.facts.key() && track.born == link.facts.born;
        if self.links.len() == links.len() && self.links.iter().zip(links).all(same) {
            return;
        }
        let mut old = std::mem::take(&mut self.links).into_iter().peekable();
        for link in links {
            while old.next_if(|track| track.key < link.facts.key()).is_some() {}
            let kept = old.next_if(|track| track.key == link.facts.key()).filter(|track| track.born == link.facts.born);
            self.links.push(kept.unwrap_or_else(|| LinkTrack::new(link.facts.key(), link.facts.born, self.seconds)));
        }
    }
}

/// Stands for "unknown" inside a strip; never leaves this file.
const UNKNOWN: f32 = -1.0;

impl LinkTrack {
    fn new(key: LinkKey, born: u64, born_bin: usize) -> Self {
        Self { key, born, bins: VecDeque::new(), born_bin, sum: 0.0, seconds: 0.0 }
    }

    /// Ends the bin: its mean rate, or unknown when no rate was known in it.
    fn close(&mut self) {
        let mean = if self.seconds > 0.0 { self.sum / self.seconds } else { f64::from(UNKNOWN) };
        (self.sum, self.seconds) = (0.0, 0.0);
        if self.bins.is_empty() && mean == 0.0 {
            return;
        }
        if self.bins.len() == LINK_SECONDS {
            self.bins.pop_front();
        }
        #[allow(clippy::cast_possible_truncation, reason = "a strip needs three digits")]
        self.bins.push_back(mean as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_never_waits_longer_than_its_tick_and_no_wait_is_forgotten() {
        let id = ThreadId { pid: 7, tid: 7, start: 1 };
        let at = |tick: u64, cpu_ms: u64, wait_ms: u64| {
            let plain = ThreadSample { id, at_ns: tick * 500_000_000, ..ThreadSample::default() };
            let thread = ThreadSample { cpu_ns: cpu_ms * 1_000_000, wait_ns: Some(wait_ms * 1_000_000), ..plain };
            Sample { at_ns: thread.at_ns, threads: vec![thread], ..Sample::default() }
        };
        // It waits for 1.2 s, is booked so when it runs again, and waits no more.
        let booked = [(100, 0), (100, 0), (120, 1200), (220, 1200), (320, 1200), (420, 1200), (520, 1200)];
        let (mut history, mut previous, mut shares) = (History::default(), None, Vec::new());
        for (tick, (cpu_ms, wait_ms)) in (1..).zip(booked) {
            let next = at(tick, cpu_ms, wait_ms);
            history.observe_threads(previous.as_ref(), &next);
            let track = history.thread(id).expect("it is there");
            shares.extend(track.cpu.zip(track.wait));
            previous = Some(next);
        }
        assert!(shares.iter().all(|(cpu, wait)| cpu + wait <= 1.0 + 1e-12), "at most its time: {shares:?}");
        let waited_s: f64 = shares.iter().map(|(_, wait)| wait * 0.5).sum();
        assert!((waited_s - 1.2).abs() < 1e-9, "the sum stays: {waited_s} s, {shares:?}");
    }
}
