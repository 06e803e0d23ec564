//! Whose moves are told: those of watched threads at once; those of numbers nobody watches (yet) wait a while for the
//! census to find their thread, then they are dropped. It reads nothing.

use crate::sample::Move;

/// How long a move waits: a thread is found a few ticks after its birth, and may take its name some time after that.
pub(super) const WAIT_NS: u64 = 3_000_000_000;
/// How many moves may wait.
const MOST_WAITING: usize = 8192;

/// Moves between the kernel and the sample.
#[derive(Debug, Default)]
pub(super) struct PendingMoves {
    /// Told by the kernel, not by us.
    pub waiting: Vec<Move>,
    /// The watched threads of the reading before, sorted: one that ended since then moved before.
    before: Vec<u32>,
    /// Moves that could not wait any longer though their thread may still be found.
    pub crowded_out: u64,
    /// Moves of numbers nobody watches, since the filter was last made.
    pub strangers: usize,
}

impl PendingMoves {
    /// The moves up to `until_ns` of the threads watched now (sorted) or at the reading before, in the order of time.
    /// What is later is left for the next time: a core that was read early may still have an earlier one.
    pub(super) fn claim(&mut self, watched: &[u32], until_ns: u64) -> Vec<Move> {
        let before = std::mem::replace(&mut self.before, watched.to_vec());
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let is_watched = |tid: u32| watched.binary_search(&tid).is_ok() || before.binary_search(&tid).is_ok();
        let mut claimed = Vec::new();
        let mut strangers = 0;
        self.waiting.retain(|one| {
            let is_due = one.at_ns <= until_ns;
            if is_watched(one.tid) {
                claimed.extend(is_due.then_some(*one));
                return !is_due;
            }
            let waits = one.at_ns.saturating_add(WAIT_NS) > until_ns;
            strangers += usize::from(!waits);
            waits
        });
        self.strangers += strangers;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(at_ns: u64, tid: u32) -> Move {
        Move { at_ns, tid, from: 0, to: 1 }
    }

    #[test]
    fn a_thread_found_later_gets_its_first_moves_in_the_order_of_time() {
        let mut pending = PendingMoves::default();
        pending.waiting.extend([moved(30, 7), moved(10, 8), moved(20, 7), moved(25, 9)]);
        assert_eq!(pending.claim(&[9], 25), [moved(25, 9)], "only the watched thread's, up to now");
        assert_eq!(pending.claim(&[7, 9], 40), [moved(20, 7), moved(30, 7)], "found later, told from the first");
        assert_eq!(pending.claim(&[7, 9], WAIT_NS + 41), [], "nothing is told twice");
        assert_eq!((pending.waiting.len(), pending.strangers), (0, 1), "whom nobody watches is dropped");
    }

    #[test]
    fn a_thread_that_ended_is_told_until_its_end_and_a_later_move_waits() {
        let mut pending = PendingMoves::default();
        pending.claim(&[7], 5);
        pending.waiting.extend([moved(8, 7), moved(12, 7)]);
        assert_eq!(pending.claim(&[7], 10), [moved(8, 7)], "what is later than the reading waits for the next");
        assert_eq!(pending.claim(&[], 20), [moved(12, 7)], "its last move came before its end");
        pending.waiting.push(moved(22, 7));
        assert_eq!(pending.claim(&[], 30), [], "its number may be somebody else's by then");
    }

    #[test]
    fn a_crowd_of_strangers_is_bounded_and_told() {
        let mut pending = PendingMoves::default();
        pending.waiting.extend((0..9000).map(|n| moved(n, 5)));
        pending.claim(&[], 9000);
        assert_eq!((pending.waiting.len(), pending.crowded_out), (MOST_WAITING, 9000 - 8192), "the oldest go first");
        assert_eq!(pending.waiting[0].at_ns, 9000 - 8192, "the newest stay");
    }
}
