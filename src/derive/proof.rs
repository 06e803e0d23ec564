//! The card after a pin: before and after over equal windows, the difference with its interval, and a verdict in words.
//! It compares bins and says what it found; it pins nothing, and it takes nothing back.

mod trial;

use super::cause::Crossing;
use super::cause::bootstrap::{Moments, Resampler};
use super::cause::chance::Chance;
use super::cause::moves_in;
use super::cause::series::Series;
use super::flow::Bin;
use super::jitter::Jitter;

pub use trial::{LEAST_AFTER_NS, MOST_AFTER_NS, SETTLING_NS, Trial};

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Less spread and a higher mean.
    SteadierAndFaster,
    /// Less spread, the mean not lower by more than 3 %.
    Steadier,
    /// A higher mean, the spread as it was.
    Faster,
    /// Neither the spread nor the mean differs by more than chance makes it.
    NoDifference,
    /// More spread, or a mean lower by more than 3 %.
    Worse,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SteadierAndFaster => "steadier and faster",
            Self::Steadier => "steadier",
            Self::Faster => "faster, not steadier",
            Self::NoDifference => "no difference",
            Self::Worse => "worse",
        }
    }
}

/// A difference (after minus before) with its 95 % confidence interval, in the unit of what differs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the figure and the two ends of its interval")]
pub struct Difference {
    pub is: f64,
    pub from: f64,
    pub to: f64,
}

/// One side of the card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Spread of the rate.
    pub jitter: Jitter,
    /// Moves of watched threads a second; none where they are not counted.
    pub moves_per_s: Option<f64>,
}

/// Before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// When the pin was, `CLOCK_MONOTONIC`, ns; none where stretches with and without it took turns.
    pub pinned_at_ns: Option<u64>,
    /// Before the pin.
    pub before: Side,
    /// After it, settling time dropped.
    pub after: Side,
    /// Of the means, bits/s.
    pub mean: Difference,
    /// Of the coefficients of variation.
    pub cv: Option<Difference>,
    /// In words.
    pub verdict: Verdict,
}

/// A window before a pin that is shorter than this is said to be short, seconds. Bins at its edges are cut.
const LEAST_BEFORE_S: f64 = 9.0;
/// Resamples behind an interval.
const RESAMPLES: usize = 1_000;
/// A mean lower by more than this share is worse, however steady it is.
const TOLERABLE_DROP: f64 = 0.03;
/// The verdict looks at two figures and at both ends of each, so it asks 99 % of either: equal processes then differ by
/// chance in fewer than one card of twenty.
const VERDICT_TAIL: f64 = 0.005;
const SHOWN_TAIL: f64 = 0.025;

impl Card {
    /// Compares two sets of bins; none while either has too few. Each stretch of neighbouring bins is resampled in
    /// blocks, because neighbouring bins resemble each other.
    #[must_use]
    pub fn of(before: &[Bin], after: &[Bin]) -> Option<Self> {
        let (before_side, after_side) = (Side::of(before)?, Side::of(after)?);
        let mut draws = Draws::of(&Series::of(before), &Series::of(after));
        let mean_is = after_side.jitter.mean - before_side.jitter.mean;
        let cv_is = Some((before_side.jitter.cv?, after_side.jitter.cv?)).map(|(before, after)| after - before);
        let mean = difference(&mut draws.means, mean_is, draws.widening);
        let cv = cv_is.map(|is| difference(&mut draws.cvs, is, draws.widening));
        let verdict = verdict(before_side.jitter.mean, mean, cv);
        let shown = |(difference, _): (Difference, Difference)| difference;
        Some(Self {
            pinned_at_ns: None,
            before: before_side,
            after: after_side,
            mean: shown(mean),
            cv: cv.map(shown),
            verdict,
        })
    }

    /// Why the verdict sees no difference in a figure whose shown interval leaves out 0; none where they agree.
    #[must_use]
    pub fn doubt(&self) -> Option<&'static str> {
        let differs = |of: Difference| of.from > 0.0 || of.to < 0.0;
        if self.verdict != Verdict::NoDifference {
            None
        } else if differs(self.mean) && self.mean.is < 0.0 && is_tolerable(self.before.jitter.mean, self.mean) {
            Some("a mean lower by no more than 3 % counts as none")
        } else if differs(self.mean) {
            Some("the mean differs at 95 %, the verdict asks for 99 %")
        } else {
            self.cv.is_some_and(differs).then_some("the spread differs at 95 %, the verdict asks for 99 %")
        }
    }

    /// The window before the pin is shorter than a card asks for after it: another ten seconds could look otherwise.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.pinned_at_ns.is_some() && self.before.jitter.window_s < LEAST_BEFORE_S
    }

    /// Which of the two makes it worse.
    #[must_use]
    pub fn why_worse(&self) -> &'static str {
        let slower = self.mean.is < -TOLERABLE_DROP * self.before.jitter.mean && self.mean.to < 0.0;
        let unsteadier = self.cv.is_some_and(|cv| cv.from > 0.0);
        match (unsteadier, slower) {
            (true, true) => "the spread rose and the mean fell by more than 3 %",
            (_, true) => "the mean fell by more than 3 %",
            _ => "the spread rose",
        }
    }

    /// The verdict with its figures, one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let base = self.before.jitter.mean;
        let percent = |bits: f64| signed(bits / base * 100.0);
        let Difference { is, from, to } = self.mean;
        let mean = format!("mean {} % (95 %: {} to {})", percent(is), percent(from), percent(to));
        let share = |side: &Side| side.jitter.cv.map_or_else(|| "–".to_owned(), |cv| format!("{:.0} %", cv * 100.0));
        let doubt = self.doubt().map_or_else(String::new, |doubt| format!("; {doubt}"));
        format!("{}: {mean}, CV {} → {}{doubt}", self.verdict.words(), share(&self.before), share(&self.after))
    }
}

fn signed(percent: f64) -> String {
    let whole = format!("{percent:+.0}");
    if whole == "-0" || whole == "+0" { "0".to_owned() } else { whole.replace('-', "−") }
}

impl Side {
    fn of(bins: &[Bin]) -> Option<Self> {
        let jitter = Jitter::of(bins)?;
        let known = || bins.iter().filter(|bin| bin.bits_per_s.is_some());
        let moves: f64 = known().map(|bin| moves_in(bin, Crossing::Any)).sum();
        let seconds: f64 = known().map(|bin| bin.to_ns.saturating_sub(bin.from_ns) as f64 / 1e9).sum();
        Some(Self { jitter, moves_per_s: (seconds > 0.0).then(|| moves / seconds) })
    }
}

/// Differences of resamples.
struct Draws {
    means: Vec<f64>,
    cvs: Vec<f64>,
    widening: f64,
}

impl Draws {
    fn of(before: &Series, after: &Series) -> Self {
        let (before, after) = (Resampler::of(before), Resampler::of(after));
        let mut chance = Chance::seeded(0xca4d);
        let mut draws = Self {
            means: Vec::with_capacity(RESAMPLES),
            cvs: Vec::with_capacity(RESAMPLES),
            widening: before.widening().max(after.widening()),
        };
        for _ in 0..RESAMPLES {
            let (one, other): (Moments, Moments) = (before.draw(&mut chance), after.draw(&mut chance));
            draws.means.push(other.mean - one.mean);
            draws.cvs.extend(other.cv().zip(one.cv()).map(|(other, one)| other - one));
        }
        draws
    }
}

/// The 95 % interval that is shown, and the wider one that the verdict asks for.
fn difference(draws: &mut [f64], is: f64, widening: f64) -> (Difference, Difference) {
    draws.sort_by(f64::total_cmp);
    let interval = |tail: f64| {
        let end = |share: f64| match draws.len() {
            0 => is,
            count => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank within the slice")]
                let rank = (share * (count - 1) as f64).round() as usize;
                is + (draws[rank] - is) * widening
            }
        };
        Difference { is, from: end(tail), to: end(1.0 - tail) }
    };
    (interval(SHOWN_TAIL), interval(VERDICT_TAIL))
}

fn is_tolerable(base: f64, mean: Difference) -> bool {
    mean.is >= -TOLERABLE_DROP * base
}

/// The rule: it is better only if the spread falls and the mean does not drop by more than 3 %.
fn verdict(base: f64, mean: (Difference, Difference), cv: Option<(Difference, Difference)>) -> Verdict {
    let mean = mean.1;
    let tolerable = is_tolerable(base, mean);
    let steadier = cv.is_some_and(|(_, cv)| cv.to < 0.0);
    let unsteadier = cv.is_some_and(|(_, cv)| cv.from > 0.0);
    if unsteadier || (mean.to < 0.0 && !tolerable) {
        Verdict::Worse
    } else if steadier && mean.from > 0.0 {
        Verdict::SteadierAndFaster
    } else if steadier && tolerable {
        Verdict::Steadier
    } else if mean.from > 0.0 {
        Verdict::Faster
    } else {
        Verdict::NoDifference
    }
}

#[cfg(test)]
mod tests;
