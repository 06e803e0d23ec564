//! Whether moves lower the rate, and what one costs. It blames only what passes three tests: the rate is low where moves
//! are, more than any shift of the moves against the rate makes it; it is low after moves and not before them, which a
//! machine that is merely busy does not show; and what it loses is worth a sentence. It never says what else may be.

pub mod chance;
mod exposure;
pub(crate) mod permute;
pub mod series;

use super::ledger::Bin;
use super::moves::{MoveClass, TracedMove};
use exposure::Slot;
use series::{Series, dot, mean, without_trend};

/// Which moves are held against the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// All of them.
    Any,
    /// To another last-level cache, node or socket.
    Nodes,
}

/// Moves lower the rate: by how much, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cause {
    /// Which moves.
    pub crossing: Crossing,
    /// How many of them a second.
    pub moves_per_s: f64,
    /// Mean rate of the bins with such a move in them or in the bin before, bits/s.
    pub rate_with: f64,
    /// Mean rate of all other bins, bits/s; the computed rate without moves when there are nearly no such bins.
    pub rate_without: f64,
    /// How long a move is felt, seconds: the one of [`LASTS`] bins that fits best, or longer where all of the rate is lost.
    pub lasts_s: f64,
    /// How much slower it is that long, share of the rate, at most 1.
    pub slowdown: f64,
    /// What one move on its own costs, bytes.
    pub bytes_per_move: f64,
    /// Share of the throughput that is lost to them.
    pub lost: f64,
    /// Share of the variance that they explain.
    pub explained: f64,
    /// How likely chance does as much (the larger of the two tests').
    pub p: f64,
}

/// How long a move may be felt, in bins.
pub const LASTS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// Fewer bins than this say nothing.
pub const LEAST_BINS: usize = 50;
/// Fewer moves than this say nothing.
const LEAST_MOVES: f64 = 5.0;
/// A change of the rate slower than so many bins to either side is a drift.
const DRIFT_REACH: usize = 15;
/// A p-value above this is chance.
const CHANCE: f64 = 0.01;
/// What is looked for at least: a slowdown, and a share of the variance.
const LEAST_SLOWDOWN: f64 = 0.05;
const LEAST_EXPLAINED: f64 = 0.05;
/// Least share of the slowdown found at moves that the comparison of after with before must find too.
const LEAST_AFTER: f64 = 0.5;
/// Blocks whose signs are turned: bins in each at least, and blocks at most.
const BLOCK_BINS: usize = 5;
const MOST_BLOCKS: usize = 40;
/// Untouched bins that make a mean.
const LEAST_UNTOUCHED: usize = 5;

impl Cause {
    /// What moves do to the rate of these bins, oldest first; none where nothing is shown. `traced` are the moves by
    /// instant, in the order of time; where they are fewer than the bins count, the bins' own figures are used.
    #[must_use]
    pub fn of(bins: &[Bin], traced: &[TracedMove]) -> Option<Self> {
        let series = Series::of(bins);
        if series.rates.len() < LEAST_BINS {
            return None;
        }
        let any = Suspicion::of(bins, &series, traced, Crossing::Any)?;
        let nodes = Suspicion::of(bins, &series, traced, Crossing::Nodes).filter(|nodes| nodes.moves < any.moves);
        let blamed = [Some(any), nodes].into_iter().flatten().filter_map(Suspicion::proved);
        blamed.max_by(|one, other| one.explained.total_cmp(&other.explained))
    }
}

/// The moves of a bin that count.
#[must_use]
pub fn moves_in(bin: &Bin, crossing: Crossing) -> f64 {
    match crossing {
        Crossing::Any => bin.moves.all() as f64 + bin.unclassed,
        Crossing::Nodes => bin.moves.far() as f64,
    }
}

/// Everything the tests of one kind of moves need.
struct Suspicion<'a> {
    bins: &'a [Bin],
    series: &'a Series,
    crossing: Crossing,
    moves: f64,
    /// Seconds.
    length_s: f64,
    rates: Vec<f64>,
    /// Share of each bin after a move, drift taken out, by [`LASTS`].
    touched: Vec<Vec<f64>>,
    /// After minus before, by [`LASTS`].
    turned: Vec<Vec<f64>>,
    /// Mean share after a move, by [`LASTS`].
    means: Vec<f64>,
}

impl<'a> Suspicion<'a> {
    fn of(bins: &'a [Bin], series: &'a Series, traced: &[TracedMove], crossing: Crossing) -> Option<Self> {
        let moves: f64 = bins.iter().map(|bin| moves_in(bin, crossing)).sum();
        if moves < LEAST_MOVES {
            return None;
        }
        let origin = bins[0].from_ns;
        let slots: Vec<Slot> = bins.iter().map(|bin| slot(bin, origin, crossing)).collect();
        let instants = instants(bins, traced, crossing, moves);
        let length_s = slots.iter().map(|slot| slot.to - slot.from).sum::<f64>() / slots.len() as f64;
        let known = |shares: &[f64]| series.at.iter().map(|&at| shares[at]).collect::<Vec<f64>>();
        let fast = |values: &[f64]| without_trend(values, &series.stretches, DRIFT_REACH);
        let mut suspicion = Self {
            bins,
            series,
            crossing,
            moves,
            length_s,
            rates: fast(&series.rates),
            touched: Vec::new(),
            turned: Vec::new(),
            means: Vec::new(),
        };
        for lasts in LASTS {
            let after = known(&exposure::after(&slots, instants.as_deref(), lasts * length_s));
            let before = known(&exposure::before(&slots, instants.as_deref(), lasts * length_s));
            let turned: Vec<f64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
            suspicion.means.push(mean(&after));
            suspicion.touched.push(fast(&after));
            suspicion.turned.push(fast(&turned));
        }
        Some(suspicion)
    }

    /// The verdict, where all tests are passed.
    fn proved(self) -> Option<Cause> {
        let spread = dot(&self.rates, &self.rates);
        let scales: Vec<f64> = self.touched.iter().map(|touched| dot(touched, touched).sqrt()).collect();
        let fit = |at: usize| dot(&self.rates, &self.touched[at]) / scales[at];
        let usable = (0..LASTS.len()).filter(|&at| scales[at] > 1e-6);
        let best = usable.min_by(|&one, &other| fit(one).total_cmp(&fit(other)))?;
        let loss = -fit(best) / scales[best];
        let base = mean(&self.series.rates) + loss * self.means[best];
        let slowdown = loss / base;
        let explained = fit(best).powi(2) / spread;
        if !(slowdown >= LEAST_SLOWDOWN && explained >= LEAST_EXPLAINED) {
            return None;
        }
        let turned = &self.turned[best];
        let loss_after = -2.0 * dot(&self.rates, turned) / dot(turned, turned);
        if loss_after.is_nan() || loss_after < LEAST_AFTER * loss {
            return None;
        }
        let p_turned = permute::flipped(&self.scores(turned));
        if p_turned > CHANCE {
            return None;
        }
        // The dear one last. Series that do not vary cannot be compared.
        let touched: Vec<Vec<f64>> =
            self.touched.iter().filter(|touched| dot(touched, touched) > 1e-12).cloned().collect();
        let scales: Vec<f64> = touched.iter().map(|touched| dot(touched, touched).sqrt()).collect();
        let chosen = touched.iter().position(|touched| *touched == self.touched[best])?;
        let p_shifted = permute::shifted(&self.rates, &touched, &scales, chosen);
        (p_shifted <= CHANCE).then(|| self.cause(best, base, slowdown, explained, p_shifted.max(p_turned)))
    }

    /// What each block of neighbours says about after against before.
    fn scores(&self, turned: &[f64]) -> Vec<f64> {
        let length = BLOCK_BINS.max(self.rates.len() / MOST_BLOCKS);
        let blocks = self.rates.chunks(length).zip(turned.chunks(length));
        blocks.map(|(rates, turned)| dot(rates, turned)).collect()
    }

    fn cause(&self, best: usize, base: f64, slowdown: f64, explained: f64, p: f64) -> Cause {
        let shortest_s = LASTS[best] * self.length_s;
        // No more than the whole rate can be lost: then it was lost for longer than was tried.
        let lasts_s = shortest_s * slowdown.max(1.0);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (&at, &rate) in self.series.at.iter().zip(&self.series.rates) {
            let here = moves_in(&self.bins[at], self.crossing) > 0.0;
            let earlier = at > 0 && moves_in(&self.bins[at - 1], self.crossing) > 0.0;
            if here || earlier { &mut with } else { &mut without }.push(rate);
        }
        let seconds = self.length_s * self.bins.len() as f64;
        Cause {
            crossing: self.crossing,
            moves_per_s: self.moves / seconds,
            rate_with: mean(&with),
            rate_without: if without.len() < LEAST_UNTOUCHED { base } else { mean(&without) },
            lasts_s,
            slowdown: slowdown.min(1.0),
            bytes_per_move: base * slowdown * shortest_s / 8.0,
            lost: slowdown * self.means[best],
            explained,
            p,
        }
    }
}

fn slot(bin: &Bin, origin: u64, crossing: Crossing) -> Slot {
    let since = |at_ns: u64| at_ns.saturating_sub(origin) as f64 / 1e9;
    // A bin without a length would divide by it.
    let (from, to) = (since(bin.from_ns), since(bin.to_ns.max(bin.from_ns + 1)));
    Slot { from, to, moves: moves_in(bin, crossing) }
}

/// The instants of the moves within these bins, seconds from their beginning; none where some are missing.
fn instants(bins: &[Bin], traced: &[TracedMove], crossing: Crossing, counted: f64) -> Option<Vec<f64>> {
    let (from, to) = (bins[0].from_ns, bins[bins.len() - 1].to_ns);
    let counts = |class: Option<MoveClass>| match crossing {
        Crossing::Any => true,
        Crossing::Nodes => matches!(class, Some(MoveClass::Node | MoveClass::Socket)),
    };
    let within = traced.iter().filter(|moved| (from..to).contains(&moved.at_ns) && counts(moved.class));
    let instants: Vec<f64> = within.map(|moved| (moved.at_ns - from) as f64 / 1e9).collect();
    // A move at the very edge of a bin may be counted in the other.
    let missing = (counted - instants.len() as f64).abs();
    (missing <= 1.0 + 0.02 * counted).then_some(instants)
}
