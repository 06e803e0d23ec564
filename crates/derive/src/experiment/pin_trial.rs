//! From a pin to its card: which bins are before and which are after, while the second window fills.

use super::{Card, LEAST_BINS, OtherLoad, Pair};
use crate::ledger::{Bin, Ledger, known};
use vnettop_sample::Event;

/// Time after a pin that belongs to neither window, ns.
pub const SETTLING_NS: u64 = 2_000_000_000;
/// Least time after the pin that a card needs, settling dropped, ns.
pub const LEAST_AFTER_NS: u64 = 10_000_000_000;
/// Most time after the pin that a card looks at, settling dropped, ns.
pub const MOST_AFTER_NS: u64 = 30_000_000_000;
/// What stands for a phase where one stretch is compared with another, ns, at least: see [`piece_ns`].
const LEAST_PIECE_NS: u64 = 2_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// A card that is still filling is made anew so often, ns.
const RENEW_NS: u64 = 1_000_000_000;

/// The last pin, and the card that comes of it. Fed with every tick.
#[derive(Debug, Clone, Default)]
pub struct PinTrial {
    pin: Option<PinPress>,
    /// The last pin or restore before that one, ns: earlier bins were under other masks.
    changed_at_ns: u64,
    /// The card of the last pin that has one.
    pub card: Option<Card>,
}

/// Events of one press lie between two ticks, or in ticks that follow each other.
#[derive(Debug, Clone, Copy)]
struct PinPress {
    /// The tick before the first of its events, ns.
    before_ns: u64,
    /// The tick after the last of them, ns.
    at_ns: u64,
    /// Bins before this instant are of another machine, ns.
    since_ns: u64,
    renewed_at_ns: u64,
    over: bool,
}

impl PinTrial {
    /// Takes the tick into account: what was done in it, from the tick before (`CLOCK_MONOTONIC`, ns) to this one.
    pub fn tick(&mut self, done: &[Event], before_ns: u64, at_ns: u64, bins: &Ledger<Bin>, others: &Ledger<OtherLoad>) {
        if done.iter().any(|event| matches!(event, Event::Restored { .. } | Event::Unsteered { .. })) {
            self.end(before_ns, bins, others);
            self.changed_at_ns = at_ns;
        }
        if done.iter().any(|event| matches!(event, Event::Pinned { .. } | Event::Steered { .. })) {
            self.pin(before_ns, at_ns, bins, others);
        }
        let Some(pin) = self.pin.filter(|pin| !pin.over && at_ns >= pin.renewed_at_ns + RENEW_NS) else { return };
        self.renew(pin, at_ns, bins, others);
    }

    fn pin(&mut self, before_ns: u64, at_ns: u64, bins: &Ledger<Bin>, others: &Ledger<OtherLoad>) {
        let joined = self.pin.filter(|pin| !pin.over && before_ns < pin.at_ns + SETTLING_NS);
        if joined.is_none() {
            self.end(before_ns, bins, others);
            self.card = None;
        }
        let first = joined.map_or(before_ns, |pin| pin.before_ns);
        let since_ns = joined.map_or(self.changed_at_ns, |pin| pin.since_ns);
        self.pin = Some(PinPress { before_ns: first, at_ns, since_ns, renewed_at_ns: at_ns, over: false });
        self.changed_at_ns = at_ns;
    }

    /// Closes the window after the pin, with what it has.
    fn end(&mut self, at_ns: u64, bins: &Ledger<Bin>, others: &Ledger<OtherLoad>) {
        if let Some(pin) = self.pin.filter(|pin| !pin.over) {
            self.renew(pin, at_ns, bins, others);
        }
        if let Some(pin) = &mut self.pin {
            pin.over = true;
        }
    }

    fn renew(&mut self, pin: PinPress, at_ns: u64, bins: &Ledger<Bin>, others: &Ledger<OtherLoad>) {
        let from_ns = pin.at_ns + SETTLING_NS;
        let to_ns = at_ns.min(from_ns + MOST_AFTER_NS);
        let over = at_ns >= from_ns + MOST_AFTER_NS;
        self.pin = Some(PinPress { renewed_at_ns: at_ns, over, ..pin });
        let within = |from_ns, to_ns| bins.within(from_ns, to_ns).copied().collect::<Vec<Bin>>();
        // The bins at the edges are cut: a window of ten seconds may lack most of two.
        if to_ns.saturating_sub(from_ns) < LEAST_AFTER_NS {
            return;
        }
        let after = within(from_ns, to_ns);
        let settled = if pin.since_ns > 0 { pin.since_ns + SETTLING_NS } else { 0 };
        let before = within(settled.max(pin.before_ns.saturating_sub(MOST_AFTER_NS)), pin.before_ns);
        let piece_ns = piece_ns(usual_length_ns(&before).max(usual_length_ns(&after)));
        let made = Card::of(&pairs(&before, &after, piece_ns), others);
        let of_pin = |card| Card { pinned_at_ns: Some(pin.at_ns), piece_ns: Some(piece_ns), ..card };
        self.card = made.map(of_pin).or(self.card.take());
    }
}

/// What stands for a phase, ns, where a bin is so long: two seconds, more where those hold too few bins. Datagrams and links have
/// one a tick. Half a bin more than needed, because ticks are not evenly spaced; whole seconds.
#[must_use]
pub fn piece_ns(bin_ns: u64) -> u64 {
    let needed_ns = bin_ns.saturating_mul(LEAST_BINS as u64).saturating_add(bin_ns / 2);
    needed_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS).max(LEAST_PIECE_NS)
}

/// How long a benchmark must run before a pin and after it for a card to come, ns, where a bin is so long.
#[must_use]
pub fn needed_ns(bin_ns: u64) -> [u64; 2] {
    let pieces_ns = 2 * piece_ns(bin_ns);
    [pieces_ns, SETTLING_NS + LEAST_AFTER_NS.max(pieces_ns.saturating_add(bin_ns))]
}

/// The median length of these bins, ns; 0 of none.
fn usual_length_ns(bins: &[Bin]) -> u64 {
    let mut lengths: Vec<u64> = bins.iter().map(Bin::length_ns).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}

/// Both stretches in pieces, counted from the pin on: equal windows, because a longer one has seen more of what is rare.
pub(super) fn pairs(before: &[Bin], after: &[Bin], piece_ns: u64) -> Vec<Pair> {
    let (Some(end), Some(begin)) = (before.last(), after.first()) else { return Vec::new() };
    let piece = |bins: &[Bin], nth: &dyn Fn(&Bin) -> u64, which: u64| -> Vec<Bin> {
        bins.iter().filter(|bin| nth(bin) == which).copied().collect()
    };
    let back = |bin: &Bin| end.to_ns.saturating_sub(bin.to_ns) / piece_ns;
    let on = |bin: &Bin| bin.from_ns.saturating_sub(begin.from_ns) / piece_ns;
    let length = |first: &Bin, last: &Bin| last.to_ns.saturating_sub(first.from_ns);
    let whole = length(&before[0], end).min(length(begin, after.last().unwrap_or(begin))) / piece_ns;
    let pairs = (0..whole).map(|which| [piece(before, &back, which), piece(after, &on, which)]);
    pairs.filter(|pair| pair.iter().all(|bins| known(bins) >= LEAST_BINS)).collect()
}
