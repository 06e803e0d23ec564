//! The time of a recording in equal columns; when it gets longer than they are, each becomes twice as long.

/// The shortest column, ns: that of a bin of the rate.
const SHORTEST_NS: u64 = 100_000_000;

/// Equal columns of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeColumns {
    origin_ns: u64,
    column_ns: u64,
    most: usize,
}

impl TimeColumns {
    pub(super) fn new(origin_ns: u64, most: usize) -> Self {
        Self { origin_ns, column_ns: SHORTEST_NS, most }
    }

    /// Where the first one begins, monotonic ns.
    #[must_use]
    pub fn origin_ns(self) -> u64 {
        self.origin_ns
    }

    /// Length of a column, seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.column_ns as f64 / 1e9
    }

    /// Seconds from the first column to an instant.
    #[must_use]
    pub fn at_s(self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.origin_ns) as f64 / 1e9
    }

    pub(super) fn has_room_to(self, to_ns: u64) -> bool {
        to_ns.saturating_sub(self.origin_ns) / self.column_ns < self.most as u64
    }

    pub(super) fn double(&mut self) {
        self.column_ns = self.column_ns.saturating_mul(2);
    }

    /// The columns that a time lies in, and how many seconds of it in each.
    pub(super) fn spans(self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (usize, f64)> {
        let (from, to) = (from_ns.saturating_sub(self.origin_ns), to_ns.saturating_sub(self.origin_ns));
        let columns = from / self.column_ns..to.div_ceil(self.column_ns).max(from / self.column_ns);
        columns.take(self.most).map(move |column| {
            let begin = column * self.column_ns;
            let ns = to.min(begin + self.column_ns).saturating_sub(from.max(begin));
            (usize::try_from(column).unwrap_or(usize::MAX), ns as f64 / 1e9)
        })
    }
}

/// Two columns in one; an odd last one stays alone.
pub(super) fn halve<T: Clone>(columns: &mut Vec<T>, merge: impl Fn(&mut T, &T)) {
    let halved = columns.chunks(2).map(|pair| {
        let mut one = pair[0].clone();
        pair[1..].iter().for_each(|other| merge(&mut one, other));
        one
    });
    *columns = halved.collect();
}

/// The column, made with everything before it where it is not there yet.
pub(super) fn column<T: Clone + Default>(columns: &mut Vec<T>, at: usize) -> &mut T {
    if columns.len() <= at {
        columns.resize(at + 1, T::default());
    }
    &mut columns[at]
}

/// What was counted in a sample, in the columns that it lies in.
pub(super) fn spread(columns: &mut Vec<f64>, counted: f64, spans: &[(usize, f64)]) {
    let whole_s: f64 = spans.iter().map(|(_, seconds)| seconds).sum();
    for &(at, seconds) in spans.iter().filter(|_| counted > 0.0 && whole_s > 0.0) {
        *column(columns, at) += counted * seconds / whole_s;
    }
}

/// Means of a figure by column of time.
#[derive(Debug, Clone, Default)]
pub(super) struct MeanColumns {
    sums: Vec<f64>,
    seconds: Vec<f64>,
}

impl MeanColumns {
    /// The figure of a sample, where it is known, in the columns that the sample lies in.
    pub fn add(&mut self, value: Option<f64>, spans: &[(usize, f64)]) {
        let Some(value) = value else { return };
        for &(at, seconds) in spans {
            *column(&mut self.sums, at) += value * seconds;
            *column(&mut self.seconds, at) += seconds;
        }
    }

    /// Two columns become one.
    pub fn halve(&mut self) {
        halve(&mut self.sums, |one, other| *one += other);
        halve(&mut self.seconds, |one, other| *one += other);
    }

    /// A column each; none where it is not known.
    pub fn values(&self) -> Vec<Option<f64>> {
        let mean = |(sum, seconds): (&f64, &f64)| (*seconds > 0.0).then(|| sum / seconds);
        self.sums.iter().zip(&self.seconds).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_the_columns_that_it_crosses_and_nothing_of_it_is_lost() {
        let columns = TimeColumns::new(1_000_000_000, 10);
        let spans: Vec<_> = columns.spans(1_050_000_000, 1_230_000_000).collect();
        assert_eq!(spans.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 2]);
        let sum: f64 = spans.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - 0.18).abs() < 1e-9, "{spans:?}");
        assert!(columns.has_room_to(1_999_999_999) && !columns.has_room_to(2_000_000_000));
        let mut longer = columns;
        longer.double();
        assert!(longer.has_room_to(2_999_999_999), "twice as long");
    }

    #[test]
    fn two_columns_become_one_and_an_odd_one_stays() {
        let mut sums = vec![1, 2, 3];
        halve(&mut sums, |one, other| *one += other);
        assert_eq!(sums, [3, 3]);
        *column(&mut sums, 3) += 1;
        assert_eq!(sums, [3, 3, 0, 1]);
    }

    #[test]
    fn a_mean_of_a_column_is_of_the_time_in_which_the_figure_is_known() {
        let mut means = MeanColumns::default();
        means.add(Some(10.0), &[(0, 0.5)]);
        means.add(None, &[(0, 0.5), (1, 1.0)]);
        means.add(Some(4.0), &[(2, 0.75)]);
        means.add(Some(8.0), &[(2, 0.25)]);
        assert_eq!(means.values(), [Some(10.0), None, Some(5.0)]);
        means.halve();
        assert_eq!(means.values(), [Some(10.0), Some(5.0)]);
    }
}
