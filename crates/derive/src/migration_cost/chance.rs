//! Random numbers from a fixed seed: the same input gives the same interval and the same p-value on every machine, live
//! and replayed. Good enough to shuffle and resample; no secrets.

/// `SplitMix64` (Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The generator of this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in 0..1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0..`end`; 0 where there is nothing to choose.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.bits()) * (end as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_they_are_spread_as_they_should() {
        let (mut one, mut two) = (Chance::seeded(7), Chance::seeded(7));
        assert!((0..100).all(|_| one.bits() == two.bits()), "nothing but the seed decides");
        let draws = 20_000;
        let mean = (0..draws).map(|_| one.share()).sum::<f64>() / f64::from(draws);
        assert!((mean - 0.5).abs() < 0.01, "uniform: {mean}");
        let squares = (0..draws).map(|_| one.normal().powi(2)).sum::<f64>() / f64::from(draws);
        assert!((squares - 1.0).abs() < 0.05, "variance one: {squares}");
        assert!((0..1000).all(|_| one.below(3) < 3) && one.below(0) == 0, "never beyond the end");
    }
}
