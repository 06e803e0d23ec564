//! Which thread numbers the kernel is asked to tell the moves of: those watched, and those yet to be given. It reads nothing.

use crate::bpf::moves::TraceRequest;

/// How many numbers after the newest one are taken for threads that are yet to be born.
const UNBORN: u32 = 8192;
/// Below this no number is given again after the numbers have wrapped (`RESERVED_PIDS`).
const FIRST_AGAIN: u32 = 300;

/// The watched threads, and those that will be born after the number `newest`, where it is known.
pub(super) fn filter(watched: &[u32], newest: Option<u32>, pid_max: u32) -> TraceRequest {
    let unborn = newest.map_or([None, None], |newest| unborn(newest, pid_max));
    TraceRequest { tids: watched.iter().copied().collect(), unborn }
}

/// Whether the moves of this thread pass.
pub(super) fn holds(filter: &TraceRequest, tid: u32) -> bool {
    let is_unborn = || filter.unborn.iter().flatten().any(|&(first, last)| (first..=last).contains(&tid));
    filter.tids.contains(&tid) || is_unborn()
}

/// Whether so many numbers were given since `newest` that the filter made with it should be made again.
pub(super) fn is_worn(newest: u32, now: u32) -> bool {
    now.checked_sub(newest).is_none_or(|given| given > UNBORN / 2)
}

/// The numbers to be given after `newest`: one range, or two where they wrap.
fn unborn(newest: u32, pid_max: u32) -> [Option<(u32, u32)>; 2] {
    let first = newest.saturating_add(1);
    let last = newest.saturating_add(UNBORN);
    let again = last.saturating_sub(pid_max);
    let before = (first <= pid_max).then_some((first, last.min(pid_max)));
    [before, (again > 0).then_some((FIRST_AGAIN, FIRST_AGAIN + again))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_the_watched_threads_and_those_yet_to_be_born() {
        let asked = filter(&[40, 50, 51, 52], Some(100), 32768);
        assert_eq!(asked.unborn, [Some((101, 8292)), None], "what comes after the newest number");
        assert!(holds(&asked, 40) && holds(&asked, 51) && holds(&asked, 101), "what is named passes");
        assert!(!holds(&asked, 41) && !holds(&asked, 100) && !holds(&asked, 8293), "what is not named does not");
        assert!(!holds(&filter(&[], None, 32768), 1), "nothing watched is not everything");
    }

    #[test]
    fn numbers_that_are_about_to_wrap_are_covered_on_both_ends() {
        let asked = filter(&[], Some(32_700), 32_768);
        assert!(holds(&asked, 32_701) && holds(&asked, 32_768) && holds(&asked, 300), "before and after the wrap");
        assert!(!holds(&asked, 299) && !holds(&asked, 32_700), "reserved and old numbers are not asked for");
        assert!(is_worn(32_700, 310), "after a wrap it is made again");
        assert!(!is_worn(1_000, 1_010) && is_worn(1_000, 6_000), "otherwise when half of the numbers are given");
    }
}
