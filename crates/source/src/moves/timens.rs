//! The kernel's clock against ours: inside a time namespace (Linux 5.5) `CLOCK_MONOTONIC` is shifted, and traces, which the
//! kernel keeps outside of it, are not. It reads one file and shifts moves.

use crate::Roots;
use crate::bpf::moves::RawMove;

/// What our `CLOCK_MONOTONIC` has more than the kernel's own, ns; 0 outside of time namespaces and before Linux 5.5.
pub(super) fn offset_ns(roots: &Roots) -> i64 {
    std::fs::read_to_string(roots.proc.join("self/timens_offsets")).ok().and_then(|text| monotonic(&text)).unwrap_or(0)
}

/// `monotonic     -100     500000000`: seconds, rounded down, and nanoseconds.
fn monotonic(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Gives these moves, told in the kernel's time, ours.
pub(super) fn shift(moves: &mut [RawMove], offset_ns: i64) {
    for one in moves {
        one.at_ns = one.at_ns.saturating_add_signed(offset_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_inside_a_time_namespace_has_the_time_of_its_sample() {
        let text = "monotonic      100000         5\nboottime      100000         0\n";
        assert_eq!(monotonic(text), Some(100_000_000_000_005), "seconds and nanoseconds");
        assert_eq!(monotonic("monotonic         -1 999999999\n"), Some(-1), "a clock may go after the kernel's");
        for text in ["", "boottime 1 0\n", "monotonic\n", "monotonic x 0\n", "monotonic 9223372036854775807 0\n"] {
            assert_eq!(monotonic(text), None, "{text:?} tells nothing");
        }
        let mut moves = [RawMove { at_ns: 7, tid: 1, from: 0, to: 1, process: None }];
        shift(&mut moves, 100);
        assert_eq!(moves[0].at_ns, 107, "later by what the clock has more");
        shift(&mut moves, -200);
        assert_eq!(moves[0].at_ns, 0, "and nothing is before the beginning");
    }
}
