//! How much of each bin lies within some time after a move, or before one: what the rate is held against. Where the
//! instants of the moves are known it is exact, where only their number in each bin is, it is what to expect of it.

/// A bin, seconds from any origin, and how many moves fell into it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slot {
    pub from: f64,
    pub to: f64,
    pub moves: f64,
}

/// Points of a bin at which the chance of being touched is looked at.
const POINTS: u8 = 4;

/// The share of each slot within `lasts` seconds after a move. `instants`, sorted, are those of the moves, where known.
pub(super) fn after(slots: &[Slot], instants: Option<&[f64]>, lasts: f64) -> Vec<f64> {
    match instants {
        Some(instants) => touched(slots, instants, lasts),
        None => slots.iter().enumerate().map(|(at, slot)| expected(&slots[..=at], *slot, lasts)).collect(),
    }
}

/// The share of each slot within `lasts` seconds before a move: the same with time running backwards.
pub(super) fn before(slots: &[Slot], instants: Option<&[f64]>, lasts: f64) -> Vec<f64> {
    let mirrored: Vec<Slot> =
        slots.iter().rev().map(|slot| Slot { from: -slot.to, to: -slot.from, moves: slot.moves }).collect();
    let instants: Option<Vec<f64>> = instants.map(|instants| instants.iter().rev().map(|instant| -instant).collect());
    let mut shares = after(&mirrored, instants.as_deref(), lasts);
    shares.reverse();
    shares
}

/// Exactly: the union of the times after each move, cut to each slot.
fn touched(slots: &[Slot], instants: &[f64], lasts: f64) -> Vec<f64> {
    let mut first = 0;
    let share = |slot: &Slot| {
        while first < instants.len() && instants[first] + lasts <= slot.from {
            first += 1;
        }
        let (mut covered, mut until) = (0.0, slot.from);
        for &instant in instants[first..].iter().take_while(|&&instant| instant < slot.to) {
            let (from, to) = (instant.max(until), (instant + lasts).min(slot.to));
            if to > from {
                covered += to - from;
                until = to;
            }
        }
        covered / (slot.to - slot.from)
    };
    slots.iter().map(share).collect()
}

/// What to expect of moves that fell anywhere within their slots. `slots` ends with `slot`.
fn expected(slots: &[Slot], slot: Slot, lasts: f64) -> f64 {
    let earliest = slot.from - lasts;
    let reach = slots.iter().rev().take_while(|other| other.to > earliest).count();
    let near = &slots[slots.len() - reach..];
    if near.iter().all(|other| other.moves <= 0.0) {
        return 0.0;
    }
    let untouched = |point: u8| {
        let at = slot.from + (slot.to - slot.from) * (f64::from(point) + 0.5) / f64::from(POINTS);
        let missed = |other: &Slot| missed(*other, at - lasts, at);
        near.iter().map(missed).product::<f64>()
    };
    1.0 - (0..POINTS).map(untouched).sum::<f64>() / f64::from(POINTS)
}

/// The chance that none of the slot's moves fell between two instants.
fn missed(slot: Slot, from: f64, to: f64) -> f64 {
    let overlap = (slot.to.min(to) - slot.from.max(from)).max(0.0);
    if overlap <= 0.0 || slot.moves <= 0.0 {
        return 1.0;
    }
    let outside = (1.0 - overlap / (slot.to - slot.from)).max(0.0);
    // Most slots have one move, and a power is dear.
    #[allow(clippy::float_cmp, reason = "a count that is exactly one")]
    if slot.moves == 1.0 { outside } else { outside.powf(slot.moves) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(moves: &[f64]) -> Vec<Slot> {
        let slot = |(at, &moves): (usize, &f64)| Slot { from: at as f64 * 0.1, to: (at + 1) as f64 * 0.1, moves };
        moves.iter().enumerate().map(slot).collect()
    }

    fn near(got: &[f64], wanted: &[f64]) -> bool {
        got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 0.02)
    }

    #[test]
    fn known_instants_touch_exactly_what_follows_them() {
        let slots = slots(&[0.0, 2.0, 0.0, 0.0]);
        let shares = after(&slots, Some(&[0.12, 0.15]), 0.1);
        assert!(near(&shares, &[0.0, 0.8, 0.5, 0.0]), "from 0.12 to 0.25: {shares:?}");
        let shares = before(&slots, Some(&[0.12, 0.15]), 0.1);
        assert!(near(&shares, &[0.8, 0.5, 0.0, 0.0]), "from 0.02 to 0.15: {shares:?}");
    }

    #[test]
    fn unknown_instants_touch_what_is_to_be_expected() {
        let shares = after(&slots(&[0.0, 1.0, 0.0, 0.0]), None, 0.1);
        assert!(near(&shares, &[0.0, 0.5, 0.5, 0.0]), "half of its bin and half of the next: {shares:?}");
        let shares = after(&slots(&[1.0, 1.0, 0.0, 0.0]), None, 0.1);
        assert!(near(&shares, &[0.5, 5.0 / 6.0, 0.5, 0.0]), "two overlap by a third: {shares:?}");
        let shares = before(&slots(&[0.0, 0.0, 3.0]), None, 0.2);
        assert!(near(&shares, &[0.75, 1.0, 0.75]), "three moves, the time before them: {shares:?}");
    }
}
