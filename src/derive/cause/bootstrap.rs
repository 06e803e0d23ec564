//! Means and spreads of resampled series. Blocks of neighbours are drawn whole, in a circle within their stretch, never
//! across a gap, because neighbouring bins resemble each other (Politis and Romano's circular blocks).

use super::chance::Chance;
use super::series::{Series, block_length};
use std::ops::Range;

/// Shorter blocks are no better and cost more draws.
const SHORTEST: usize = 5;

/// A series ready to be resampled: sums of its prefixes make a block's sum two subtractions.
#[derive(Debug)]
pub struct Resampler {
    sums: Vec<(f64, f64)>,
    stretches: Vec<Range<usize>>,
    block: usize,
    mean: f64,
}

/// Mean and variance of one resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Variance (n - 1).
    pub variance: f64,
}

impl Moments {
    /// Deviation over mean; none where the mean is not above 0.
    #[must_use]
    pub fn cv(&self) -> Option<f64> {
        (self.mean > 0.0).then(|| self.variance.max(0.0).sqrt() / self.mean)
    }
}

impl Resampler {
    /// For the known rates of a series.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let values = &series.rates;
        let mean = super::series::mean(values);
        let mut sums = Vec::with_capacity(values.len() + 1);
        sums.push((0.0, 0.0));
        // Around the mean, so that the squares keep their digits.
        sums.extend(values.iter().scan((0.0, 0.0), |sum, value| {
            *sum = (sum.0 + (value - mean), sum.1 + (value - mean).powi(2));
            Some(*sum)
        }));
        // Dips make the squares more alike than the rates themselves.
        let squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
        let block = block_length(values, &series.stretches).max(block_length(&squares, &series.stretches));
        // The best length for the variance itself makes intervals that are too narrow; a longer one is safer.
        let block = (2 * block - 1).max(SHORTEST).min((values.len() / 6).max(1));
        Self { sums, stretches: series.stretches.clone(), block, mean }
    }

    /// Neighbours drawn together.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block
    }

    /// By how much an interval of resampled figures is to be widened: blocks of a circle vary less than the process does,
    /// and few blocks know their own spread as badly as few numbers do (Student).
    #[must_use]
    pub fn widening(&self) -> f64 {
        let count = (self.sums.len() - 1) as f64;
        let others = (count / self.block as f64 - 1.0).max(1.0);
        (1.0 + 1.0 / others).sqrt() * (1.0 + 1.5 / others)
    }

    /// One resample of the same size.
    pub fn draw(&self, chance: &mut Chance) -> Moments {
        let count = self.sums.len() - 1;
        let (mut left, mut sum, mut squares) = (count, 0.0, 0.0);
        while left > 0 {
            let at = chance.below(count);
            let stretch = self.stretch_of(at);
            let length = self.block.min(left).min(stretch.len());
            let straight = length.min(stretch.end - at);
            for part in [at..at + straight, stretch.start..stretch.start + (length - straight)] {
                sum += self.sums[part.end].0 - self.sums[part.start].0;
                squares += self.sums[part.end].1 - self.sums[part.start].1;
            }
            left -= length;
        }
        let count = count as f64;
        let off = sum / count;
        Moments { mean: self.mean + off, variance: (squares - off * off * count) / (count - 1.0).max(1.0) }
    }

    fn stretch_of(&self, at: usize) -> Range<usize> {
        let after = self.stretches.partition_point(|stretch| stretch.end <= at);
        self.stretches[after].clone()
    }
}
