//! What is said of the settings of links that were changed: once, when it is known whether packets went where they were put, and
//! once, when something else has changed them back.

use crate::derive::{Metrics, StandingSteer, SteerEffect};
use crate::sample::{LinkKey, SteerSetting};
use std::collections::BTreeMap;

/// Where packets went is counted for so long after a change, ns.
const COUNTED_NS: u64 = 5_000_000_000;

/// What was said of each steer.
#[derive(Debug, Default)]
pub struct SteerNotices {
    said: BTreeMap<(LinkKey, SteerSetting), Said>,
    /// When the newest was set, `CLOCK_MONOTONIC`, ns.
    newest_ns: Option<u64>,
}

#[derive(Debug, Default)]
struct Said {
    effect: Option<SteerEffect>,
    is_overridden: bool,
}

impl SteerNotices {
    /// Sentences that are new, each with whether it is a warning.
    pub(super) fn observe(&mut self, metrics: &Metrics) -> Vec<(bool, String)> {
        let steers = &metrics.machine.steers;
        let of_cores = steers.iter().filter(|steer| steer.setting.chooses_cores());
        self.newest_ns = of_cores.map(|steer| steer.at_ns).max();
        self.said.retain(|key, _| steers.iter().any(|steer| (steer.link, steer.setting) == *key));
        steers.iter().flat_map(|steer| self.sentences(steer)).collect()
    }

    fn sentences(&mut self, steer: &StandingSteer) -> Vec<(bool, String)> {
        let said = self.said.entry((steer.link, steer.setting)).or_default();
        let mut new = Vec::new();
        if said.effect.as_ref() != Some(&steer.effect)
            && let Some(sentence) = steer.effect_sentence()
        {
            new.push((steer.effect != SteerEffect::Moved, sentence));
        }
        said.effect = Some(steer.effect.clone());
        let overridden = steer.overridden_sentence();
        if !said.is_overridden {
            new.extend(overridden.clone().map(|sentence| (true, sentence)));
        }
        said.is_overridden = overridden.is_some();
        new
    }

    /// Packets are to be counted on their cores: something was changed a moment ago.
    #[must_use]
    pub(super) fn awaits(&self, now_ns: Option<u64>) -> bool {
        let since_ns = self.newest_ns.zip(now_ns).map(|(newest_ns, now_ns)| now_ns.saturating_sub(newest_ns));
        since_ns.is_some_and(|since_ns| since_ns < COUNTED_NS)
    }
}
