//! Two tests by rearrangement that leave each series as autocorrelated as it is: the one shifts the moves against the
//! rate, the other turns time around, block by block. Neither assumes a distribution.

use super::chance::Chance;
use super::series::dot;

/// Shifts tried: the smallest p-value is one in so many and one.
const SHIFTS: usize = 199;
/// Sign patterns tried.
const FLIPS: usize = 499;
/// A shift that puts the moves nearly where they are says nothing: this correlation with the unshifted is too much.
const SAME: f64 = 0.5;

/// How likely the lowest of these inner products with `rates` is as low by chance, when each series of `touched` is
/// shifted in a circle. All of them are shifted together, so having chosen the best of several costs what it must.
/// `scales` makes them comparable (the length of each); `chosen` is the one that was best.
pub(crate) fn shifted(rates: &[f64], touched: &[Vec<f64>], scales: &[f64], chosen: usize) -> f64 {
    let count = rates.len();
    let lowest = |shift: usize| {
        let products = touched.iter().zip(scales).map(|(touched, scale)| shifted_dot(rates, touched, shift) / scale);
        products.fold(f64::INFINITY, f64::min)
    };
    let observed = lowest(0);
    let itself = dot(&touched[chosen], &touched[chosen]);
    let (mut tried, mut as_low) = (0_u32, 0_u32);
    let shifts = SHIFTS.min(count.saturating_sub(1));
    for shift in (1..=shifts).map(|step| (step * count) / (shifts + 1)) {
        if shifted_dot(&touched[chosen], &touched[chosen], shift) > SAME * itself {
            continue;
        }
        tried += 1;
        as_low += u32::from(lowest(shift) <= observed);
    }
    f64::from(as_low + 1) / f64::from(tried + 1)
}

fn shifted_dot(a: &[f64], b: &[f64], shift: usize) -> f64 {
    let (head, tail) = b.split_at(b.len() - shift);
    dot(&a[shift..], head) + dot(&a[..shift], tail)
}

/// How likely the sum of these scores is as low by chance when each may as well have had the other sign.
pub(super) fn flipped(scores: &[f64]) -> f64 {
    let observed: f64 = scores.iter().sum();
    let mut chance = Chance::seeded(0x5eed);
    let mut as_low = 0_u32;
    for _ in 0..FLIPS {
        let mut bits = 0;
        let signed = scores.iter().enumerate().map(|(at, score)| {
            if at % 64 == 0 {
                bits = chance.bits();
            }
            bits = bits.rotate_left(1);
            if bits & 1 == 0 { *score } else { -score }
        });
        as_low += u32::from(signed.sum::<f64>() <= observed);
    }
    f64::from(as_low + 1) / (FLIPS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_dip_after_each_mark_is_found_and_chance_is_not() {
        let mut chance = Chance::seeded(1);
        let marks: Vec<f64> = (0..300).map(|_| f64::from(u8::from(chance.share() < 0.2))).collect();
        let noise: Vec<f64> = (0..300).map(|_| chance.normal()).collect();
        let dips: Vec<f64> = noise.iter().zip(&marks).map(|(noise, mark)| noise - 2.0 * mark).collect();
        let mean = super::super::series::mean(&marks);
        let marks: Vec<f64> = marks.iter().map(|mark| mark - mean).collect();
        assert!(shifted(&dips, std::slice::from_ref(&marks), &[1.0], 0) < 0.01, "planted");
        assert!(shifted(&noise, &[marks], &[1.0], 0) > 0.01, "not planted");
    }

    #[test]
    fn signs_that_agree_are_no_chance() {
        assert!(flipped(&[-1.0; 12]) < 0.01, "all low");
        assert!(flipped(&[1.0; 12]) > 0.9, "all high");
        assert!(flipped(&[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]) > 0.3, "undecided");
    }
}
