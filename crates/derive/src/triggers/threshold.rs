//! `KIND:THRESHOLD` as people write it.

use super::{Trigger, TriggerKind};
use crate::jitter::DIP;
use std::str::FromStr;
use strum::VariantArray;
use vnettop_sample::Word;

/// Why a text says nothing that can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// There is no such kind.
    #[error("give dip, loss, latency, limit-change or migration-burst")]
    Kind,
    /// A dip's share.
    #[error("give a dip's share of the median, for example dip:50%")]
    Share,
    /// A number of packets or migrations.
    #[error("give how many within a second, for example loss:100")]
    Count,
    /// A latency.
    #[error("give a latency with its unit, for example latency:10ms")]
    Latency,
    /// How long a limit has held.
    #[error("give the seconds for which the previous limit has held, as in limit-change:5")]
    Held,
}

/// The threshold where none is given.
fn usual(kind: TriggerKind) -> f64 {
    match kind {
        TriggerKind::Dip => DIP,
        TriggerKind::Loss => 1.0,
        TriggerKind::Latency => 0.01,
        TriggerKind::LimitChange => 3.0,
        TriggerKind::MigrationBurst => 10.0,
    }
}

fn threshold(kind: TriggerKind, text: &str) -> Result<f64, TriggerError> {
    match kind {
        TriggerKind::Dip => {
            let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
            within(number, 0.01 * whole, 0.99 * whole).map(|share| share / whole).ok_or(TriggerError::Share)
        }
        TriggerKind::Loss | TriggerKind::MigrationBurst => within(text, 1.0, 1e9).ok_or(TriggerError::Count),
        TriggerKind::Latency => {
            let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
            let found = units.iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?, s)));
            let (number, s) = found.ok_or(TriggerError::Latency)?;
            within(number, 1e-6 / s, 10.0 / s).map(|number| number * s).ok_or(TriggerError::Latency)
        }
        TriggerKind::LimitChange => within(text.trim_end_matches('s'), 1.0, 3600.0).ok_or(TriggerError::Held),
    }
}

fn within(number: &str, least: f64, most: f64) -> Option<f64> {
    number.trim().parse().ok().filter(|number| (least..=most).contains(number))
}

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let (word, threshold) = text.split_once(':').map_or((text, None), |(word, after)| (word, Some(after)));
        let kind = TriggerKind::VARIANTS.iter().find(|kind| kind.word() == word).copied().ok_or(TriggerError::Kind)?;
        let threshold = threshold.map_or(Ok(usual(kind)), |text| self::threshold(kind, text))?;
        Ok(Self { kind, threshold })
    }
}
