//! Which links to read in this tick where there are very many: those that move on every tick, those that stand still
//! twice a second. A link that has stood still for two seconds moves nothing as far as anybody knows; when it starts,
//! its first rate comes up to half a second late and is the true mean of that time.
//!
//! A dump of 2,000 links takes 1.6 to 2.3 ms of CPU at ten ticks a second, when every counter has left the caches since
//! the tick before; that alone is the budget of a whole tick. It asks nobody anything.

use std::sync::Arc;
use vnettop_sample::{Ifindex, LinkCounters, LinkFacts};

/// Up to so many links a dump costs less than choosing.
const FEW: usize = 256;
/// A link that moved in this time is read on every tick.
const STILL_NS: u64 = 2_000_000_000;
/// How often every link is read.
const ROUND_NS: u64 = 500_000_000;
/// Asked for alone, a link costs some three times its share of a dump.
const DEARER: usize = 3;

/// The last row of every link, and when it last changed.
#[derive(Debug, Default)]
pub(super) struct IdleLinks {
    /// The links that the rows are of.
    links: Arc<Vec<Arc<LinkFacts>>>,
    /// Sorted by ifindex.
    rows: Vec<LinkCounters>,
    /// When each row last changed, `CLOCK_MONOTONIC`.
    moved_at_ns: Vec<u64>,
    /// When all were read.
    read_at_ns: u64,
}

impl IdleLinks {
    /// The links to ask for one by one; `None` when all have to be dumped.
    pub fn moving(&self, links: &Arc<Vec<Arc<LinkFacts>>>, now_ns: u64) -> Option<Vec<Ifindex>> {
        // The dumps come at their times although a tick is now and then a little early.
        let is_due = now_ns.saturating_sub(self.read_at_ns) >= ROUND_NS - ROUND_NS / 50;
        if is_due || self.rows.is_empty() || !Arc::ptr_eq(links, &self.links) {
            return None;
        }
        let moved_lately = |moved_at_ns: &u64| now_ns.saturating_sub(*moved_at_ns) < STILL_NS;
        let rows = self.rows.iter().zip(&self.moved_at_ns).filter(|(_, moved_at_ns)| moved_lately(moved_at_ns));
        let moving: Vec<Ifindex> = rows.map(|(row, _)| row.ifindex).collect();
        (moving.len() * DEARER <= self.rows.len()).then_some(moving)
    }

    /// One of the rows asked for.
    pub fn take(&mut self, row: LinkCounters) {
        let Ok(at) = self.rows.binary_search_by_key(&row.ifindex, |known| known.ifindex) else { return };
        if !same_counts(&self.rows[at], &row) {
            self.moved_at_ns[at] = row.at_ns;
        }
        self.rows[at] = row;
    }

    /// The last row of every link.
    pub fn rows(&self) -> &[LinkCounters] {
        &self.rows
    }

    /// What a whole dump brought; rows and links are sorted.
    pub fn replace(&mut self, links: &Arc<Vec<Arc<LinkFacts>>>, rows: &[LinkCounters], read_at_ns: u64) {
        if rows.len() <= FEW {
            *self = Self::default();
            return;
        }
        if Arc::ptr_eq(links, &self.links) && rows.len() == self.rows.len() {
            for ((old, new), moved_at_ns) in self.rows.iter().zip(rows).zip(&mut self.moved_at_ns) {
                if !same_counts(old, new) {
                    *moved_at_ns = new.at_ns;
                }
            }
        } else {
            self.links = Arc::clone(links);
            self.moved_at_ns = rows.iter().map(|row| row.at_ns).collect();
        }
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.read_at_ns = read_at_ns;
    }
}

/// Both rows have the same counts, whenever each was read.
pub(super) fn same_counts(old: &LinkCounters, new: &LinkCounters) -> bool {
    LinkCounters { at_ns: new.at_ns, ..*old } == *new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;
    use vnettop_sample::LinkKey;
    const TICK_NS: u64 = SECOND_NS / 10;

    /// A list of links; what is in it does not matter here.
    fn list() -> Arc<Vec<Arc<LinkFacts>>> {
        Arc::default()
    }

    /// Rows read at that time; `moves` has moved as many bytes as the time has nanoseconds.
    fn rows(count: u32, at_ns: u64, moves: u32) -> Vec<LinkCounters> {
        let row = |ifindex| LinkCounters {
            rx_bytes: if ifindex == moves { at_ns } else { 7 },
            ..LinkCounters::zero(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, at_ns)
        };
        (1..=count).map(row).collect()
    }

    #[test]
    fn links_that_move_are_read_on_every_tick_and_the_others_twice_a_second() {
        let (links, mut still) = (list(), IdleLinks::default());
        let mut asked = Vec::new();
        for now_ns in (SECOND_NS..4 * SECOND_NS).step_by(usize::try_from(TICK_NS).expect("short")) {
            let moving = still.moving(&links, now_ns);
            asked.push(moving.as_ref().map_or(300, Vec::len));
            match moving {
                None => still.replace(&links, &rows(300, now_ns, 5), now_ns),
                Some(moving) => {
                    for row in rows(300, now_ns, 5).into_iter().filter(|row| moving.contains(&row.ifindex)) {
                        still.take(row);
                    }
                }
            }
            assert_eq!(still.rows()[4].at_ns, now_ns, "a link that moves is never old");
            assert!(now_ns - still.rows()[0].at_ns < ROUND_NS, "one that stands still is soon read again");
        }
        assert_eq!(asked[..20], [300; 20], "in the first two seconds nobody knows who moves");
        assert_eq!(asked[20..30], [1, 1, 1, 1, 300, 1, 1, 1, 1, 300], "then only who moves is asked for in between");
    }

    #[test]
    fn few_links_many_that_move_and_a_new_list_of_links_are_dumped() {
        let at_ns = 10 * SECOND_NS;
        let asked = |count: u32, moves_to: u32, other_list: bool| {
            let (list, mut still) = (list(), IdleLinks::default());
            still.replace(&list, &rows(count, SECOND_NS, 0), SECOND_NS);
            let mut later = rows(count, at_ns, 0);
            later.iter_mut().take(moves_to as usize).for_each(|row| row.rx_bytes += 1);
            still.replace(&list, &later, at_ns);
            let list = if other_list { self::list() } else { list };
            still.moving(&list, at_ns + TICK_NS).map(|moving| moving.len())
        };
        assert_eq!(asked(300, 0, false), Some(0), "all stand still");
        assert_eq!(asked(300, 100, false), Some(100), "a third moves");
        assert_eq!(asked(300, 101, false), None, "more: a dump is cheaper");
        assert_eq!(asked(300, 1, true), None, "a link came, went or changed its name");
        assert_eq!(asked(256, 1, false), None, "few links");
    }
}
