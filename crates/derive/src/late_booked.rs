//! Time that the kernel books later than it passes.

/// What is left over of time that is booked late. The kernel books the time that a thread waited for a core when it runs again,
/// and reads its counters a little later than the clock: in one tick more may be booked than the tick is long. That belongs to a
/// tick beside it, so it is carried to the next one that has room. Nothing of it is lost and no share is above 1.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LateBooked {
    over_ns: u64,
}

impl LateBooked {
    /// What of it was in a tick that has so much room, ns.
    pub fn take(&mut self, booked_ns: u64, room_ns: u64) -> u64 {
        let open_ns = self.over_ns.saturating_add(booked_ns);
        let taken_ns = open_ns.min(room_ns);
        self.over_ns = open_ns - taken_ns;
        taken_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_booked_late_is_never_more_than_a_tick_and_stays_the_same_sum(
            booked in proptest::collection::vec((0_u64..3_000_000_000, 1_u64..2_000_000_000), 1..60),
        ) {
            let (mut late, mut sum) = (LateBooked::default(), 0);
            for &(booked_ns, room_ns) in &booked {
                let taken_ns = late.take(booked_ns, room_ns);
                prop_assert!(taken_ns <= room_ns);
                sum += taken_ns;
            }
            let whole: u64 = booked.iter().map(|one| one.0).sum();
            prop_assert_eq!(sum + late.over_ns, whole);
            let room_ns = whole;
            prop_assert_eq!(sum + late.take(0, room_ns), whole, "it comes as soon as there is room");
        }
    }
}
