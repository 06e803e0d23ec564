//! The settings of links that vnettop has changed and that stand, by the events of a run; whether the packets went where they
//! were put, as far as that is counted, and which settings something else has changed since.

use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreSet, Event, HopCores, HopWay, LinkFacts, LinkKey, Sample, SteerSetting, row_of};

/// Packets that were put somewhere are there within this time, ns.
const WITHIN_NS: u64 = 2_000_000_000;
/// After so long without a count nothing more is expected, ns.
const GIVEN_UP_NS: u64 = 5_000_000_000;
/// From this share of a link's packets on the asked cores they are there.
const THERE: f64 = 0.98;
/// More at once are no host's.
const MOST: usize = 1024;

/// Whether the packets of a link went where a steer puts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteerEffect {
    /// Not counted yet.
    Awaited,
    /// They are handled on the cores asked for.
    Moved,
    /// They are still handled on these cores too.
    Elsewhere(CoreSet),
    /// They were not counted: the kernel may not be asked, or none came by.
    Uncounted,
    /// The setting says of no core where packets go.
    NoCore,
}

/// A setting of a link that vnettop changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingSteer {
    /// The link.
    pub link: LinkKey,
    /// Its name; its number where it is not listed.
    pub name: String,
    /// Which setting.
    pub setting: SteerSetting,
    /// The text before vnettop changed it, of its first queue.
    pub old: String,
    /// The text that it has got, of its first queue.
    pub got: String,
    /// Whether it does what it is for.
    pub effect: SteerEffect,
    /// Cores that something else has set since in place of those; none while they stand.
    pub overridden: Option<CoreSet>,
    /// When it was set, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The queues that have it.
    queues: BTreeSet<u32>,
    /// It was seen in force among the settings that are read.
    is_seen: bool,
}

impl StandingSteer {
    /// What came of it, in one sentence; none while that is not known.
    #[must_use]
    pub fn effect_sentence(&self) -> Option<String> {
        let Self { name, got, setting, .. } = self;
        let setting: &'static str = setting.into();
        let cores = CoreSet::from_mask(got).unwrap_or_default();
        Some(match &self.effect {
            SteerEffect::Moved => {
                let plural = if cores.len() == 1 { "core" } else { "cores" };
                format!("packets that come to {name} are handled on {plural} {cores} now")
            }
            SteerEffect::Elsewhere(there) => {
                format!(
                    "{setting} of {name} is {got}, but its packets are still handled on cores {there}, not {cores} alone"
                )
            }
            SteerEffect::Uncounted => {
                format!("{setting} of {name} is {got}; the cores that handle its packets were not counted")
            }
            SteerEffect::Awaited | SteerEffect::NoCore => return None,
        })
    }

    /// What something else has done to it, that it is left alone, and what can be done.
    #[must_use]
    pub fn overridden_sentence(&self) -> Option<String> {
        let Self { name, got, setting, .. } = self;
        let setting: &'static str = setting.into();
        let now = self.overridden.as_ref()?.to_mask();
        Some(format!(
            "another program changed {setting} of {name} from {got} to {now}; find what sets it (tuned, udev, a network manager), then press p"
        ))
    }
}

/// Every steer that was not put back.
#[derive(Debug, Clone, Default)]
pub(super) struct Steers(BTreeMap<(LinkKey, SteerSetting), StandingSteer>);

impl Steers {
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Steered { file, old, got, at_ns, .. } => {
                let key = (file.link, file.setting);
                // The first queue speaks for all of them.
                if let Some(known) =
                    self.0.get_mut(&key).filter(|known| known.queues.first().is_some_and(|first| file.queue > *first))
                {
                    known.queues.insert(file.queue);
                    return;
                }
                if self.0.len() >= MOST {
                    return;
                }
                let same = |one: &str| {
                    one == old || CoreSet::from_mask(one).is_some_and(|set| CoreSet::from_mask(old) == Some(set))
                };
                let before = self.0.remove(&key).filter(|steer| same(&steer.got));
                let queues = before.iter().flat_map(|steer| steer.queues.clone()).chain([file.queue]).collect();
                // Without cores packets stay where they are sent.
                let has_cores = CoreSet::from_mask(got).is_some_and(|cores| !cores.is_empty());
                let is_watched = file.setting == SteerSetting::RpsCpus && has_cores;
                let effect = if is_watched { SteerEffect::Awaited } else { SteerEffect::NoCore };
                let steer = StandingSteer {
                    link: file.link,
                    name: file.link.ifindex.0.to_string(),
                    setting: file.setting,
                    old: before.map_or_else(|| old.clone(), |steer| steer.old),
                    got: got.clone(),
                    effect,
                    overridden: None,
                    at_ns: *at_ns,
                    queues,
                    is_seen: false,
                };
                self.0.insert(key, steer);
            }
            Event::Unsteered { file, .. } => {
                let key = (file.link, file.setting);
                if let Some(steer) = self.0.get_mut(&key) {
                    steer.queues.remove(&file.queue);
                    if steer.queues.is_empty() {
                        self.0.remove(&key);
                    }
                }
            }
            _ => {}
        }
    }

    /// What stands as of a sample, sorted by link and setting; those of links that are gone are forgotten.
    pub(super) fn observe(&mut self, next: &Sample) -> Vec<StandingSteer> {
        let links = &next.facts.links;
        if !links.is_empty() {
            self.0.retain(|(link, _), _| row_of(links, link, |facts| facts.key()).is_some());
        }
        for steer in self.0.values_mut() {
            let facts = row_of(links, &steer.link, |facts| facts.key());
            steer.name =
                facts.map_or_else(|| steer.name.clone(), |facts: &std::sync::Arc<LinkFacts>| facts.name.clone());
            if steer.setting == SteerSetting::RpsCpus {
                steer.look_at_settings(next);
                steer.look_at_packets(next);
            }
        }
        self.0.values().cloned().collect()
    }
}

impl StandingSteer {
    /// Whether its queues still have what they were given.
    fn look_at_settings(&mut self, next: &Sample) {
        let read = row_of(&next.facts.steering, &self.link, |settings| settings.link);
        let Some((now, gave)) = read.and_then(|read| read.rps.first()).zip(CoreSet::from_mask(&self.got)) else {
            return;
        };
        if *now == gave {
            (self.is_seen, self.overridden) = (true, None);
        } else if self.is_seen {
            self.overridden = Some(now.clone());
        }
    }

    /// Where its packets are handled, by a count that began after it was set.
    fn look_at_packets(&mut self, next: &Sample) {
        let hops = next.kernel.iter().flat_map(|kernel| &kernel.hops);
        let began = |hop: &HopCores| hop.at_ns?.checked_sub(hop.for_ns?);
        let is_fresh = |hop: &&HopCores| {
            hop.link == self.link
                && hop.way == HopWay::Received
                && began(hop).is_some_and(|from_ns| from_ns >= self.at_ns)
        };
        let asked = CoreSet::from_mask(&self.got).filter(|asked| !asked.is_empty());
        let since_ns = next.at_ns.saturating_sub(self.at_ns);
        let (Some(hop), Some(asked)) = (hops.into_iter().find(is_fresh).filter(|hop| !hop.cores.is_empty()), asked)
        else {
            if self.effect == SteerEffect::Awaited && since_ns >= GIVEN_UP_NS {
                self.effect = SteerEffect::Uncounted;
            }
            return;
        };
        let sum = |all: u64, (_, packets): &(u32, u64)| all.saturating_add(*packets);
        let all = hop.cores.iter().fold(0, sum);
        let there = hop.cores.iter().filter(|(core, _)| asked.contains(*core)).fold(0, sum);
        if there as f64 >= THERE * all as f64 {
            self.effect = SteerEffect::Moved;
        } else if since_ns >= WITHIN_NS {
            self.effect = SteerEffect::Elsewhere(hop.cores.iter().map(|(core, _)| *core).collect());
        }
    }
}

#[cfg(test)]
mod tests;
