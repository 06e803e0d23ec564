//! A window of time, and what of ticks lies in it. A tick that reaches over an edge of the window counts with the part of it that
//! lies within, whatever is added up or averaged: over windows that join each other nothing is counted twice or left out.

/// From one instant to another, `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeSpan {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What was counted or read over a time.
pub trait Ticked {
    /// That time.
    fn span(&self) -> TimeSpan;
}

/// A mean of what is known.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Of the values, each times its weight.
    pub sum: f64,
    pub weight: f64,
}

impl Mean {
    pub fn add(&mut self, value: Option<f64>, weight: f64) {
        if let Some(value) = value {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    pub fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

impl TimeSpan {
    /// So much time until an instant.
    pub fn until(to_ns: u64, length_ns: u64) -> Self {
        Self { from_ns: to_ns.saturating_sub(length_ns), to_ns }
    }

    fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The time that both have, ns.
    fn common_ns(self, other: Self) -> f64 {
        self.to_ns.min(other.to_ns).saturating_sub(self.from_ns.max(other.from_ns)) as f64
    }

    /// The time that both have, s.
    pub fn common_s(self, other: Self) -> f64 {
        self.common_ns(other) / 1e9
    }

    /// Which part of a tick lies within, 0 to 1; one that takes no time lies where it ends.
    pub fn part_of(self, tick: Self) -> f64 {
        if tick.length_ns() == 0 {
            return f64::from(u8::from(self.from_ns < tick.to_ns && tick.to_ns <= self.to_ns));
        }
        self.common_ns(tick) / tick.length_ns() as f64
    }

    /// What was counted within, by how much each tick counted: the sum, over the time in which that is known, s.
    pub fn counted<'a, T: Ticked + 'a>(
        self,
        ticks: impl IntoIterator<Item = &'a T>,
        of: impl Fn(&'a T) -> Option<f64>,
    ) -> Mean {
        let mut all = Mean::default();
        for tick in ticks {
            let Some(count) = of(tick) else { continue };
            all.sum += count * self.part_of(tick.span());
            all.weight += self.common_s(tick.span());
        }
        all
    }

    /// The mean within of what holds throughout each tick: a rate, a share of time.
    pub fn mean<'a, T: Ticked + 'a>(
        self,
        ticks: impl IntoIterator<Item = &'a T>,
        of: impl Fn(&'a T) -> Option<f64>,
    ) -> Option<f64> {
        let mut mean = Mean::default();
        ticks.into_iter().for_each(|tick| mean.add(of(tick), self.common_ns(tick.span())));
        mean.value()
    }

    /// Mean share within the span, 0 to 1; `None` when nothing is counted. `of` gives the share and the whole of each tick, which
    /// weighs with its whole times the part of it that lies in the span.
    pub fn share<'a, T: Ticked + 'a>(
        self,
        ticks: impl IntoIterator<Item = &'a T>,
        of: impl Fn(&'a T) -> Option<(f64, f64)>,
    ) -> Option<f64> {
        let mut mean = Mean::default();
        for tick in ticks {
            let Some((share, whole)) = of(tick) else { continue };
            mean.add(Some(share), whole * self.part_of(tick.span()));
        }
        mean.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tick, its count and of how many that is.
    #[derive(Debug, Clone, Copy)]
    struct One(TimeSpan, f64, f64);

    impl Ticked for One {
        fn span(&self) -> TimeSpan {
            self.0
        }
    }

    /// Ticks that follow each other, of these lengths, ns, with so many of so many counted in each.
    fn ticks(of: &[(u64, u32, u32)]) -> Vec<One> {
        let mut from_ns = 1_000;
        let tick = |&(length_ns, count, others): &(u64, u32, u32)| {
            let span = TimeSpan { from_ns, to_ns: from_ns + length_ns };
            from_ns = span.to_ns;
            One(span, f64::from(count), f64::from(count) + f64::from(others))
        };
        of.iter().map(tick).collect()
    }

    #[test]
    fn a_tick_counts_with_the_part_of_it_that_lies_in_the_window() {
        let all = ticks(&[(4_000, 400, 1_600), (1_000, 10, 90)]);
        let window = TimeSpan::until(6_000, 2_000);
        let counted = window.counted(&all, |one| Some(one.1));
        assert!((counted.sum - 110.0).abs() < 1e-9, "a quarter of the first and all of the second: {counted:?}");
        assert!((counted.weight - 2e-6).abs() < 1e-15, "{counted:?}");
        let share = window.share(&all, |one| Some((one.1 / one.2, one.2)));
        assert!(share.is_some_and(|share| (share - 110.0 / 600.0).abs() < 1e-12), "{share:?}");
        let level = window.mean(&all, |one| Some(one.1));
        assert_eq!(level, Some(205.0), "each held for half of the time");
        assert_eq!(TimeSpan::until(900, 100).mean(&all, |one| Some(one.1)), None, "nothing is known of it");
    }

    proptest! {
        #[test]
        fn windows_that_join_have_together_what_was_counted(
            of in proptest::collection::vec((0_u64..5_000_000_000, 0_u32..1_000_000, 0_u32..1_000_000), 1..40),
            edges in proptest::collection::vec(0_u64..200_000_000_000, 0..12),
        ) {
            let all = ticks(&of);
            let end_ns = all.last().map_or(0, |one| one.0.to_ns);
            let mut edges: Vec<u64> = edges.into_iter().chain([0, end_ns]).filter(|&edge| edge <= end_ns).collect();
            edges.sort_unstable();
            let windows = edges.windows(2).map(|edge| TimeSpan { from_ns: edge[0], to_ns: edge[1] });
            let (mut sum, mut seconds) = (0.0, 0.0);
            for window in windows {
                let counted = window.counted(&all, |one| Some(one.1));
                sum += counted.sum;
                seconds += counted.weight;
                let share = window.share(&all, |one| (one.2 > 0.0).then(|| (one.1 / one.2, one.2)));
                prop_assert!(share.is_none_or(|share| (-1e-12..=1.0 + 1e-12).contains(&share)), "{share:?}");
            }
            let whole: f64 = of.iter().map(|one| f64::from(one.1)).sum();
            let length_s = (end_ns - 1_000) as f64 / 1e9;
            prop_assert!((sum - whole).abs() <= 1e-9 * whole.max(1.0), "{sum} of {whole}");
            prop_assert!((seconds - length_s).abs() <= 1e-9 * length_s.max(1.0), "{seconds} s of {length_s} s");
        }
    }
}
