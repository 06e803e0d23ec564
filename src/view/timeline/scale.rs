//! The scale of the rates: where it ends, and which rows have a line and a round figure.

/// A scale over so many rows of a graph, its zero in the row below them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RateScale {
    /// The rate that the uppermost row stands for, bits/s.
    pub top: f64,
    rows: u16,
    /// Rows between two lines, and the rate between them, bits/s.
    apart: u16,
    step: f64,
}

/// Figures that are easy to add up.
const STEPS: [f64; 5] = [1.0, 2.0, 2.5, 3.0, 5.0];
/// A lower graph has one line, at its end, and any figure that is short.
const LEAST_FOR_LINES: u16 = 6;
const SHORT: [f64; 11] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
/// Lines nearer to each other, and more of them, say no more.
const LEAST_APART: u16 = 3;
const MOST_LINES: u16 = 6;
/// A scale may end so much higher than the lowest that is possible, for lines that are read more easily.
const SPARE: f64 = 1.12;

impl RateScale {
    /// The lines are equally far apart in rows and in rates, and the scale is as low as that allows: a curve fills its graph. With the
    /// same height, a line at its end and about four of them are better.
    pub fn of(most: f64, rows: u16) -> Self {
        let most = most.max(1.0);
        let apart = if rows < LEAST_FOR_LINES {
            rows.max(1)..=rows.max(1)
        } else {
            LEAST_APART.max(rows.div_ceil(MOST_LINES))..=rows
        };
        let all: Vec<Self> = apart.map(|apart| Self::with(most, rows, apart)).collect();
        let lowest = all.iter().map(|scale| scale.top).fold(f64::INFINITY, f64::min);
        let low = all.into_iter().filter(|scale| scale.top <= SPARE * lowest);
        low.min_by_key(Self::awkwardness).unwrap_or_default()
    }

    /// The lowest one whose lines are so many rows apart.
    fn with(most: f64, rows: u16, apart: u16) -> Self {
        let least = most * f64::from(apart) / f64::from(rows.max(1));
        let power = 10.0_f64.powf(least.log10().floor());
        let round = if rows < LEAST_FOR_LINES { SHORT.as_slice() } else { &STEPS };
        let steps = round.iter().map(|step| step * power);
        // What a product of powers of ten has in its last bit is not a rate above the end.
        let step = steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power);
        Self { top: step * f64::from(rows) / f64::from(apart), rows, apart, step }
    }

    fn lines(&self) -> u16 {
        self.rows / self.apart.max(1)
    }

    /// From three to five lines are well enough.
    fn awkwardness(&self) -> (u16, bool, u16) {
        let off = self.lines().abs_diff(4);
        (off.saturating_sub(1), !self.rows.is_multiple_of(self.apart.max(1)), off)
    }

    /// The rate of the line in a row, bits/s.
    pub fn line_at(&self, y: u16) -> Option<f64> {
        let above_zero = self.rows.checked_sub(y).filter(|rows| *rows > 0)?;
        above_zero.is_multiple_of(self.apart).then(|| self.step * f64::from(above_zero / self.apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of a scale in Gbit/s, with their rows.
    fn lines(most: f64, rows: u16) -> Vec<(u16, f64)> {
        let scale = RateScale::of(most * 1e9, rows);
        assert!(scale.top >= most * 1e9, "{most} is on the scale");
        (0..rows).filter_map(|y| Some((y, scale.line_at(y)? / 1e9))).collect()
    }

    #[test]
    fn lines_stand_at_round_figures_that_are_equally_far_apart() {
        assert_eq!(lines(35.7, 8), [(0, 40.0), (4, 20.0)]);
        assert_eq!(lines(35.7, 16), [(0, 40.0), (4, 30.0), (8, 20.0), (12, 10.0)]);
        assert_eq!(lines(12.2, 17), [(1, 12.0), (5, 9.0), (9, 6.0), (13, 3.0)]);
        assert_eq!(lines(0.6, 16), [(1, 0.6), (6, 0.4), (11, 0.2)]);
    }

    #[test]
    fn a_low_graph_has_one_line_at_its_end() {
        assert_eq!(lines(34.8, 3), [(0, 40.0)]);
    }

    #[test]
    fn whatever_the_rate_and_the_height_the_curve_fills_most_of_them() {
        for rows in 1..60 {
            for most in [1.0, 1.01, 1.7, 2.3, 3.6, 4.1, 5.2, 6.3, 7.7, 9.99] {
                let scale = RateScale::of(most * 1e9, rows);
                let found = lines(most, rows);
                assert!((1..=7).contains(&found.len()), "{most} in {rows} rows: {found:?}");
                assert!(most * 1e9 >= 0.66 * scale.top, "{most} in {rows} rows: to {}", scale.top);
            }
        }
        assert_eq!(RateScale::of(0.0, 8).top.to_string(), "1", "nothing at all has a scale too");
    }
}
