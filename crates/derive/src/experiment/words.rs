//! What a card says, in words: the verdict with what it rests on, and how it was made. The same on every face.

use super::interval::Significance;
use super::{CONFIDENCE, Card, Difference, LEAST_PAIRS, Verdict};
use crate::figure::Unit;
use vnettop_sample::Word;

/// Other programs' load differs from so many cores' worth on, if it is also this share of the greater.
const OTHER_CORES: f64 = 0.3;
const OTHER_SHARE: f64 = 0.25;

impl Card {
    /// The verdict, why, and what speaks against it, one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let other = self.other_load().map_or_else(String::new, |text| format!("; {text}"));
        format!("{}: {}{other}", self.verdict.word(), self.why())
    }

    /// Other programs used clearly more or less of the machine on one side, so that the difference may be their doing; none where
    /// they did not, where it is not known, or where nothing differs.
    fn other_load(&self) -> Option<String> {
        let (before, after) = self.before.others.zip(self.after.others)?;
        let differs = (after - before).abs();
        let is_open = matches!(self.verdict, Verdict::NoDifference | Verdict::Inconclusive);
        (!is_open && differs >= OTHER_CORES && differs >= OTHER_SHARE * before.max(after))
            .then(|| format!("other programs may be the cause: {before:.1} cores before, {after:.1} after"))
    }

    /// What the verdict rests on.
    #[must_use]
    pub fn why(&self) -> String {
        let spread = match self.cv_significance() {
            Significance::More => "the spread rose",
            Significance::Less => "the spread fell",
            Significance::Same => "the spread stayed",
            Significance::Open => "the spread is uncertain",
        };
        let mean = match self.mean_significance() {
            Significance::More => "the mean rose".to_owned(),
            Significance::Less => "the mean fell".to_owned(),
            Significance::Same => "the mean stayed within 3 %".to_owned(),
            Significance::Open => format!("the mean is uncertain ({})", self.range()),
        };
        match self.verdict {
            Verdict::NoDifference => "mean and spread stayed within 3 % of the mean".to_owned(),
            Verdict::Inconclusive => self.why_inconclusive(),
            Verdict::Worse
                if self.mean_significance() == Significance::Less && self.cv_significance() != Significance::More =>
            {
                mean
            }
            Verdict::Worse if self.mean_significance() != Significance::Less => spread.to_owned(),
            _ => format!("{mean}, {spread}"),
        }
    }

    pub(super) fn why_inconclusive(&self) -> String {
        if self.pairs() < LEAST_PAIRS {
            let pieces = self.piece_s().map_or_else(String::new, |length_s| format!(" of {length_s} s"));
            return format!("{} pairs of phases{pieces}, at least {LEAST_PAIRS} needed", self.pairs());
        }
        match self.cv.filter(|_| self.mean_significance() == Significance::Same) {
            Some(cv) => {
                let points = |share: f64| signed(&format!("{:+.1}", share * 100.0));
                format!("the mean stayed within 3 %, the CV changed by {} to {} pp", points(cv.from), points(cv.to))
            }
            None => format!("the change may be anything {}; a longer test narrows it", self.range()),
        }
    }

    /// `from −4.1 to +0.9 Gbit/s`
    fn range(&self) -> String {
        let unit = Unit::of(self.mean.from.abs().max(self.mean.to.abs()));
        let rate = |bits: f64| signed(&format!("{}{}", if bits > 0.0 { "+" } else { "" }, unit.figure(bits)));
        format!("from {} to {} {}", rate(self.mean.from), rate(self.mean.to), unit.word)
    }

    /// What it made of the rate: `it slower`, `no difference`; `None` where that stayed open.
    #[must_use]
    pub fn effect(&self) -> Option<&'static str> {
        let is_slower = self.mean_significance() == Significance::Less;
        Some(match self.verdict {
            Verdict::SteadierAndFaster => "it steadier and faster",
            Verdict::Steadier => "it steadier",
            Verdict::Faster => "it faster",
            Verdict::NoDifference => "no difference",
            Verdict::Worse if !is_slower => "it less steady",
            Verdict::Worse if self.cv_significance() == Significance::More => "it slower and less steady",
            Verdict::Worse => "it slower",
            Verdict::Inconclusive => return None,
        })
    }

    /// The verdict with the difference of the means, from the whole of it to the verdict alone:
    /// `steadier and faster, +8.9 Gbit/s (99 % interval: +5.1 to +12.7)`.
    #[must_use]
    pub fn headlines(&self) -> [String; 3] {
        let Difference { estimate, from, to } = self.mean;
        let unit = Unit::of(estimate.abs().max(from.abs()).max(to.abs()));
        let rate = |bits: f64| signed(&format!("{}{}", if bits > 0.0 { "+" } else { "" }, unit.figure(bits)));
        // A mean that rose does not stand beside `worse`.
        let by_spread = self.verdict == Verdict::Worse && self.mean_significance() != Significance::Less;
        let words = if by_spread { "less steady" } else { self.verdict.word() };
        // The difference of the two means as they are shown.
        let [before, after] = [&self.before, &self.after].map(|side| unit.rounded(side.jitter.mean));
        let shown = if (after - before).abs() > 0.0 { after - before } else { estimate };
        let short = format!("{words}, {} {}", rate(shown), unit.word);
        let whole = format!("{short} ({:.0} % interval: {} to {})", CONFIDENCE * 100.0, rate(from), rate(to));
        [whole, short, words.to_owned()]
    }

    /// How long the pieces are that stand for phases, s, where there was one pin.
    fn piece_s(&self) -> Option<u64> {
        Some(self.piece_ns? / 1_000_000_000)
    }

    /// How it was made, in one line. `settle_s` is what was dropped of each phase, where they took turns.
    #[must_use]
    pub fn method(&self, settle_s: f64) -> String {
        let phases = if let Some(piece_s) = self.piece_s() {
            format!("one period before against one after, in windows of {piece_s} s")
        } else {
            format!("adjacent phases without their first {settle_s} s, ordered so that drift cancels out")
        };
        format!(
            "{phases}: ratio of the means, t interval from {} paired differences, at {:.0} %",
            self.pairs(),
            CONFIDENCE * 100.0
        )
    }
}

fn signed(text: &str) -> String {
    if matches!(text, "-0" | "+0") { "0".to_owned() } else { text.replace('-', "−") }
}
