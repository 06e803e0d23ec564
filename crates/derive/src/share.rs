//! A part of a whole, as a share.

/// Share of a whole that its part is, 0 to 1; none of nothing. Counters of both are not read at one instant: what is in the part
/// and not yet in the whole, as packets that were sent in the tick before, is of the whole as well.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    let whole = whole.max(part);
    (whole > 0.0).then(|| part / whole)
}

/// What of a core's time is the test's own, and what others have; shares of it. `used` is the time of processes and of softirqs, `own`
/// the CPU time of the test's threads there and its part of the softirqs. Whether a thread's time has softirq time in it depends
/// on the kernel's configuration (`IRQ_TIME_ACCOUNTING`), so the larger reading counts.
pub(crate) fn own_and_others(used: [f64; 2], own: [f64; 2]) -> (f64, f64) {
    let ([process, softirq], [cpu, own_softirq]) = (used, own);
    let busy = process + softirq;
    let own = cpu.max(cpu.min(process) + own_softirq).min(busy);
    (own, busy - own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_one_at_most(part in 0.0..1e12, whole in 0.0..1e12) {
            if let Some(share) = share(part, whole) {
                prop_assert!((0.0..=1.0).contains(&share), "{part} of {whole}: {share}");
            }
        }
    }

    #[test]
    fn a_core_is_shared_out_without_a_rest() {
        let close = |(own, others): (f64, f64), wanted: (f64, f64)| {
            assert!((own - wanted.0).abs() < 1e-9 && (others - wanted.1).abs() < 1e-9, "{own}, {others}: {wanted:?}");
        };
        close(own_and_others([0.3, 0.7], [0.95, 0.7]), (1.0, 0.0));
        close(own_and_others([0.8, 0.0], [0.16, 0.0]), (0.16, 0.64));
        close(own_and_others([0.2, 0.0], [0.5, 0.0]), (0.2, 0.0));
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(share(0.0, 0.0), None);
        assert_eq!(share(1.0, 4.0), Some(0.25));
        assert_eq!(share(3.0, 2.0), Some(1.0), "one was sent before");
    }
}
