//! Matches traced migrations to watched threads. A migration of a thread that nobody watches (yet) waits 3 s for the
//! discovery to find that thread, then it is dropped. A thread that ended before it was found is handed on with its
//! process. It reads nothing.

use crate::bpf::moves::RawMove;
use std::collections::BTreeMap;
use vnettop_sample::{Move, ShortLived};

/// How long a move waits: a thread is found a few ticks after its birth, and may take its name some time after that.
pub(super) const WAIT_NS: u64 = 3_000_000_000;
/// How many moves may wait.
const MOST_WAITING: usize = 8192;

/// Moves between the kernel and the sample.
#[derive(Debug, Default)]
pub(super) struct PendingMoves {
    /// Moves read from the kernel and not handed on yet.
    pub waiting: Vec<RawMove>,
    /// The watched threads of the reading before, sorted: one that ended since then moved before.
    before: Vec<u32>,
    /// Moves that could not wait any longer though their thread may still be found, or would have been watched.
    pub crowded_out: u64,
    /// Moves of numbers nobody watches, since the filter was last made.
    pub strangers: usize,
}

/// Sorted numbers of threads that are watched now, and of those that were at the reading before.
struct WatchedTids<'a>(&'a [u32], &'a [u32]);

impl WatchedTids<'_> {
    fn has(&self, tid: u32) -> bool {
        self.0.binary_search(&tid).is_ok() || self.1.binary_search(&tid).is_ok()
    }
}

impl PendingMoves {
    /// The newest move of each number that nobody watches now (sorted) or did at the reading before.
    pub(super) fn of_unknown(&self, watched: &[u32]) -> Vec<RawMove> {
        let known = WatchedTids(watched, &self.before);
        newest(self.waiting.iter().filter(|one| !known.has(one.tid))).into_values().collect()
    }

    /// The moves up to `until_ns` of the threads watched now (sorted) or at the reading before, and all of those that `ended`
    /// (sorted) before they were found, in the order of time. What is later is left for the next time: a core that was read early
    /// may still have an earlier one. What `is_wanted` of numbers that nobody found is lost in the end.
    pub(super) fn claim(
        &mut self,
        watched: &[u32],
        until_ns: u64,
        ended: &[ShortLived],
        is_wanted: impl Fn(&RawMove) -> bool,
    ) -> Vec<Move> {
        let before = std::mem::replace(&mut self.before, watched.to_vec());
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let known = WatchedTids(watched, &before);
        let has_ended = |tid: u32| ended.binary_search_by_key(&tid, |one| one.tid).is_ok();
        let waits = |one: &RawMove| one.at_ns.saturating_add(WAIT_NS) > until_ns;
        // A child has its parent's name until it takes its own: the last one counts.
        let is_unfound = |one: &RawMove| !waits(one) && is_wanted(one);
        let last = if self.waiting.iter().any(is_unfound) { newest(&self.waiting) } else { BTreeMap::new() };
        let mut claimed = Vec::new();
        let (mut strangers, mut unfound) = (0, 0);
        self.waiting.retain(|one| {
            let is_due = one.at_ns <= until_ns;
            let RawMove { at_ns, tid, from, to, .. } = *one;
            if known.has(tid) || has_ended(tid) {
                let tells = is_due || !known.has(tid);
                claimed.extend(tells.then_some(Move { at_ns, tid, from, to }));
                return !tells;
            }
            strangers += usize::from(!waits(one));
            unfound += u64::from(is_unfound(one) && last.get(&tid).is_some_and(&is_wanted));
            waits(one)
        });
        self.strangers += strangers;
        self.crowded_out += unfound;
        self.drop_oldest();
        claimed.sort_unstable_by_key(|one| (one.at_ns, one.tid));
        claimed
    }

    fn drop_oldest(&mut self) {
        let Some(more) = self.waiting.len().checked_sub(MOST_WAITING).filter(|&more| more > 0) else { return };
        self.waiting.sort_unstable_by_key(|one| one.at_ns);
        self.waiting.drain(..more);
        self.crowded_out += more as u64;
        self.strangers += more;
    }
}

/// The newest move of each number.
fn newest<'a>(moves: impl IntoIterator<Item = &'a RawMove>) -> BTreeMap<u32, RawMove> {
    let mut newest: BTreeMap<u32, RawMove> = BTreeMap::new();
    for one in moves {
        let last = newest.entry(one.tid).or_insert(*one);
        if last.at_ns <= one.at_ns {
            *last = *one;
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::moves::MovedProcess;

    fn raw(at_ns: u64, tid: u32) -> RawMove {
        RawMove { at_ns, tid, from: 0, to: 1, process: Some(MovedProcess::new(tid, 1, b"forky")) }
    }

    fn moved(at_ns: u64, tid: u32) -> Move {
        Move { at_ns, tid, from: 0, to: 1 }
    }

    impl PendingMoves {
        fn reported(&mut self, watched: &[u32], until_ns: u64) -> Vec<Move> {
            self.claim(watched, until_ns, &[], |_| false)
        }
    }

    #[test]
    fn a_thread_that_ended_before_it_was_found_is_told_whole() {
        let mut pending = PendingMoves::default();
        pending.waiting.extend([raw(10, 7), raw(30, 8), raw(12, 8), raw(11, 9)]);
        let unknown: Vec<_> = pending.of_unknown(&[7]).iter().map(|one| (one.tid, one.at_ns)).collect();
        assert_eq!(unknown, [(8, 30), (9, 11)], "the newest of each");
        let ended = [ShortLived { pid: 8, tid: 8, name: "forky".into() }];
        let reported = pending.claim(&[7], 20, &ended, |_| false);
        assert_eq!(reported, [moved(10, 7), moved(12, 8), moved(30, 8)], "none comes later");
        assert_eq!(pending.waiting, [raw(11, 9)], "whose thread may still be found");
        pending.claim(&[7], WAIT_NS + 20, &[], |one| one.tid == 9);
        assert_eq!(pending.crowded_out, 1, "one that would have been watched is lost");
        let called = |name: &[u8]| Some(MovedProcess::new(9, 1, name));
        pending.waiting = vec![raw(WAIT_NS, 9), RawMove { process: called(b"other"), ..raw(WAIT_NS + 1, 9) }];
        pending.claim(&[7], 3 * WAIT_NS, &[], |one| one.process == called(b"forky"));
        assert_eq!(pending.crowded_out, 1, "one that took another name after its first move is not");
    }

    #[test]
    fn a_thread_found_later_gets_its_first_moves_in_the_order_of_time() {
        let mut pending = PendingMoves::default();
        pending.waiting.extend([raw(30, 7), raw(10, 8), raw(20, 7), raw(25, 9)]);
        assert_eq!(pending.reported(&[9], 25), [moved(25, 9)], "only the watched thread's, up to now");
        assert_eq!(pending.reported(&[7, 9], 40), [moved(20, 7), moved(30, 7)], "found later, told from the first");
        assert_eq!(pending.reported(&[7, 9], WAIT_NS + 41), [], "nothing is told twice");
        assert_eq!((pending.waiting.len(), pending.strangers), (0, 1), "whom nobody watches is dropped");
    }

    #[test]
    fn a_thread_that_ended_is_told_until_its_end_and_a_later_move_waits() {
        let mut pending = PendingMoves::default();
        pending.reported(&[7], 5);
        pending.waiting.extend([raw(8, 7), raw(12, 7)]);
        assert_eq!(pending.reported(&[7], 10), [moved(8, 7)], "what is later than the reading waits for the next");
        assert_eq!(pending.reported(&[], 20), [moved(12, 7)], "its last move came before its end");
        pending.waiting.push(raw(22, 7));
        assert_eq!(pending.reported(&[], 30), [], "its number may be somebody else's by then");
    }

    #[test]
    fn a_crowd_of_strangers_is_bounded_and_told() {
        let mut pending = PendingMoves::default();
        pending.waiting.extend((0..9000).map(|n| raw(n, 5)));
        pending.reported(&[], 9000);
        assert_eq!((pending.waiting.len(), pending.crowded_out), (MOST_WAITING, 9000 - 8192), "the oldest go first");
        assert_eq!(pending.waiting[0].at_ns, 9000 - 8192, "the newest stay");
    }
}
