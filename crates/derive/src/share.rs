//! A part of a whole, as a share.

/// Share of a whole that its part is, 0 to 1; none of nothing. Counters of both are not read at one instant: what is in the part
/// and not yet in the whole, as packets that were sent in the tick before, is of the whole as well.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    let whole = whole.max(part);
    (whole > 0.0).then(|| part / whole)
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
    fn of_nothing_there_is_none() {
        assert_eq!(share(0.0, 0.0), None);
        assert_eq!(share(1.0, 4.0), Some(0.25));
        assert_eq!(share(3.0, 2.0), Some(1.0), "one was sent before");
    }
}
