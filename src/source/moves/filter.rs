//! Which thread numbers the kernel is asked to tell the moves of, as a filter of `sched:sched_migrate_task`.
//! It may be coarser than what is watched, never finer; it reads and writes no file.

use std::fmt::Write;

/// The kernel refuses a filter of a page and more, and tests it one range after the other on every move of the machine.
const MOST_RANGES: usize = 64;
/// How many numbers after the newest one are taken for threads that are yet to be born.
const UNBORN: u32 = 8192;
/// Below this no number is given again after the numbers have wrapped (`RESERVED_PIDS`).
const FIRST_AGAIN: u32 = 300;

/// Thread numbers as ranges, both ends included, sorted and apart from each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filter {
    ranges: Vec<(u32, u32)>,
}

impl Filter {
    /// The watched threads, and those that will be born after the number `newest`, where it is known.
    pub(super) fn new(watched: &[u32], newest: Option<u32>, pid_max: u32) -> Self {
        let mut ranges: Vec<(u32, u32)> = watched.iter().map(|&tid| (tid, tid)).collect();
        ranges.extend(newest.into_iter().flat_map(|newest| unborn(newest, pid_max)));
        ranges.sort_unstable();
        let mut gaps: Vec<u32> = ranges.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].1)).collect();
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        // What is not further apart than this becomes one range: neighbours always, others where there are too many.
        let joined = gaps.get(MOST_RANGES - 1).copied().unwrap_or(0).max(1);
        let mut filter = Self::default();
        for (first, last) in ranges {
            match filter.ranges.last_mut() {
                Some(before) if first.saturating_sub(before.1) <= joined => before.1 = before.1.max(last),
                _ => filter.ranges.push((first, last)),
            }
        }
        filter
    }

    /// Whether the moves of this thread pass.
    pub(super) fn holds(&self, tid: u32) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= tid);
        after > 0 && tid <= self.ranges[after - 1].1
    }

    /// The same as the kernel wants it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for &(first, last) in &self.ranges {
            let or = if text.is_empty() { "" } else { "||" };
            let _ = match last - first {
                0 => write!(text, "{or}pid=={first}"),
                _ => write!(text, "{or}(pid>={first}&&pid<={last})"),
            };
        }
        // An empty filter would let everything pass.
        if text.is_empty() { "pid==0".to_owned() } else { text }
    }
}

/// Whether so many numbers were given since `newest` that the filter made with it should be made again.
pub(super) fn is_worn(newest: u32, now: u32) -> bool {
    now.checked_sub(newest).is_none_or(|given| given > UNBORN / 2)
}

/// The numbers to be given after `newest`: one range, or two where they wrap.
fn unborn(newest: u32, pid_max: u32) -> impl Iterator<Item = (u32, u32)> {
    let first = newest.saturating_add(1);
    let last = newest.saturating_add(UNBORN);
    let again = last.saturating_sub(pid_max);
    let before = (first <= pid_max).then_some((first, last.min(pid_max)));
    before.into_iter().chain((again > 0).then_some((FIRST_AGAIN, FIRST_AGAIN + again)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_the_watched_threads_and_those_yet_to_be_born() {
        let filter = Filter::new(&[40, 50, 51, 52], Some(100), 32768);
        assert_eq!(filter.text(), "pid==40||(pid>=50&&pid<=52)||(pid>=101&&pid<=8292)", "neighbours are one range");
        assert!(filter.holds(40) && filter.holds(51) && filter.holds(101), "what is named passes");
        assert!(!filter.holds(41) && !filter.holds(100) && !filter.holds(8293), "what is not named does not");
        assert_eq!(Filter::new(&[], None, 32768).text(), "pid==0", "nothing watched is not everything");
    }

    #[test]
    fn numbers_that_are_about_to_wrap_are_covered_on_both_ends() {
        let filter = Filter::new(&[], Some(32_700), 32_768);
        assert!(filter.holds(32_701) && filter.holds(32_768) && filter.holds(300), "before and after the wrap");
        assert!(!filter.holds(299) && !filter.holds(32_700), "reserved and old numbers are not asked for");
        assert!(is_worn(32_700, 310), "after a wrap it is made again");
        assert!(!is_worn(1_000, 1_010) && is_worn(1_000, 6_000), "otherwise when half of the numbers are given");
    }

    #[test]
    fn a_thousand_threads_still_fit_into_a_page_and_none_is_left_out() {
        let watched: Vec<u32> = (0..1000).map(|n| 4_000_000 + n * n % 7919 * 3).collect();
        let mut sorted = watched.clone();
        sorted.sort_unstable();
        let filter = Filter::new(&sorted, Some(4_100_000), 4_194_304);
        assert!(filter.text().len() < 4000, "the kernel takes less than a page: {}", filter.text().len());
        assert!(sorted.iter().all(|&tid| filter.holds(tid)), "a coarse filter lets every watched thread pass");
    }
}
