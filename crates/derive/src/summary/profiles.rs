//! What cores did while they were profiled: a look at a core is of its last seconds, so those are added up that have no second in
//! common. What came after the last whole look is left out.

use crate::Metrics;
use crate::profile::{CoreActivity, CoreStacks, CoreStage, RulesOnLink, StageShare};
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{CoreId, ProfileClock};

/// Seconds are told apart as well as this, ns.
const SLACK_NS: u64 = 300_000_000;
/// Functions of a stage that are told.
const FUNCTIONS: usize = 5;
/// Stacks of a core that are kept: 200 bytes each.
const STACKS: usize = 2_000;

/// What a core did while it was profiled.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSummary {
    /// The core.
    pub core: CoreId,
    /// For how long, s.
    pub seconds: f64,
    /// Samples that were taken, and those that had no room.
    pub samples: u64,
    /// Samples that had no room.
    pub lost: u64,
    /// What they were taken by, last.
    pub clock: ProfileClock,
    /// Packets of the watched paths in that time, a second; none where none are known.
    pub packets_per_s: Option<f64>,
    /// The stages, the largest first, with their most frequent functions. The shares are those of the core's time.
    pub stages: Vec<StageShare>,
    /// How many rules of a firewall the packets of the watched paths meet, by namespace, as counted last; empty where none were
    /// counted.
    pub rules: Vec<RulesOnLink>,
    /// The stacks of that time.
    pub stacks: CoreStacks,
}

impl ProfileSummary {
    /// The name of a stage; behind that which goes through the rules, how many there are: `nft, conntrack (1,000 rules on r0)`.
    #[must_use]
    pub fn stage_name(&self, stage: &StageShare) -> String {
        format!("{}{}", stage.name(), stage.rules_in_words(&self.rules))
    }
}

/// Sums of one core.
#[derive(Debug, Clone)]
struct ProfiledCore {
    seconds: f64,
    samples: u64,
    lost: u64,
    clock: ProfileClock,
    /// Packets, and the seconds in which they are known.
    packets: (f64, f64),
    stages: BTreeMap<(CoreStage, Option<String>), StageSeconds>,
    rules: Vec<RulesOnLink>,
    stacks: CoreStacks,
    /// The end of what is added up, ns.
    to_ns: u64,
    /// The newest look, which is not yet: it may grow.
    newest: Option<Arc<CoreActivity>>,
}

impl Default for ProfiledCore {
    fn default() -> Self {
        Self {
            seconds: 0.0,
            samples: 0,
            lost: 0,
            clock: ProfileClock::default(),
            packets: (0.0, 0.0),
            stages: BTreeMap::new(),
            rules: Vec::new(),
            stacks: CoreStacks::new(STACKS),
            to_ns: 0,
            newest: None,
        }
    }
}

/// Seconds of a stage, and of its functions.
#[derive(Debug, Clone, Default)]
struct StageSeconds {
    seconds: f64,
    functions: BTreeMap<String, f64>,
}

/// Folds the profiles of a recording.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfilesTrack {
    cores: BTreeMap<CoreId, ProfiledCore>,
}

fn from_ns(activity: &CoreActivity) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a profile")]
    let length_ns = (activity.over_s.max(0.0) * 1e9) as u64;
    activity.to_ns.saturating_sub(length_ns)
}

impl ProfilesTrack {
    pub fn observe(&mut self, metrics: &Metrics) {
        if let Some(activity) = &metrics.machine.profile {
            self.cores.entry(activity.core).or_default().take(activity);
        }
    }

    pub fn summaries(&self) -> Vec<ProfileSummary> {
        self.cores.iter().filter_map(|(core, sums)| sums.summary(*core)).collect()
    }
}

impl ProfiledCore {
    fn take(&mut self, activity: &Arc<CoreActivity>) {
        if self.newest.as_ref().is_some_and(|newest| newest.to_ns == activity.to_ns) {
            return;
        }
        // It has left its first second behind, so it was as long as it gets.
        if let Some(full) = self.newest.take_if(|newest| from_ns(activity) > from_ns(newest) + SLACK_NS) {
            self.add(&full);
        }
        if from_ns(activity) + SLACK_NS >= self.to_ns {
            self.newest = Some(Arc::clone(activity));
        }
    }

    fn add(&mut self, activity: &CoreActivity) {
        let seconds = activity.over_s;
        self.seconds += seconds;
        self.samples += activity.samples;
        self.lost += activity.lost;
        self.clock = activity.clock;
        self.to_ns = activity.to_ns;
        if !activity.rules.is_empty() {
            self.rules.clone_from(&activity.rules);
        }
        if let Some(per_s) = activity.packets_per_s {
            self.packets = (self.packets.0 + per_s * seconds, self.packets.1 + seconds);
        }
        activity.stretches.iter().for_each(|stretch| self.stacks.add(stretch, &activity.own));
        for stage in &activity.stages {
            let sums = self.stages.entry((stage.stage, stage.program.clone())).or_default();
            sums.seconds += stage.share * seconds;
            for (function, share) in &stage.functions {
                *sums.functions.entry(function.clone()).or_default() += share * seconds;
            }
        }
    }

    fn summary(&self, core: CoreId) -> Option<ProfileSummary> {
        let mut all = self.clone();
        if let Some(newest) = all.newest.take() {
            all.add(&newest);
        }
        (all.seconds > 0.0).then(|| {
            let stage = |((stage, program), sums): (&(CoreStage, Option<String>), &StageSeconds)| {
                let mut functions: Vec<(String, f64)> =
                    sums.functions.iter().map(|(name, of)| (name.clone(), of / all.seconds)).collect();
                functions.sort_by(|one, other| other.1.total_cmp(&one.1));
                functions.truncate(FUNCTIONS);
                StageShare { stage: *stage, program: program.clone(), share: sums.seconds / all.seconds, functions }
            };
            let mut stages: Vec<StageShare> = all.stages.iter().map(stage).collect();
            stages.sort_by(|one, other| other.share.total_cmp(&one.share));
            ProfileSummary {
                core,
                seconds: all.seconds,
                samples: all.samples,
                lost: all.lost,
                clock: all.clock,
                packets_per_s: (all.packets.1 > 0.0).then(|| all.packets.0 / all.packets.1),
                stages,
                rules: all.rules,
                stacks: all.stacks,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(from_s: f64, to_s: f64, nft: f64) -> Arc<CoreActivity> {
        let stage = |stage, share, functions| StageShare { stage, program: None, share, functions };
        let functions = vec![("nft_do_chain".to_owned(), nft)];
        Arc::new(CoreActivity {
            core: 1,
            over_s: to_s - from_s,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a test")]
            to_ns: (to_s * 1e9) as u64,
            clock: ProfileClock::CpuClock,
            hz: 499,
            samples: 500,
            lost: 0,
            reader: 0.0,
            packets_per_s: Some(1e6),
            rules: Vec::new(),
            unnamed: None,
            stages: vec![stage(CoreStage::Nft, nft, functions), stage(CoreStage::Idle, 1.0 - nft, Vec::new())],
            stretches: Vec::new(),
            own: Arc::default(),
        })
    }

    #[test]
    fn no_second_is_counted_twice() {
        let mut core = ProfiledCore::default();
        for to_s in 1..=12_u32 {
            let to_s = f64::from(to_s);
            let from_s = (to_s - 5.0).max(0.0);
            // Half of the first five seconds, and none after that.
            let busy = (5.0 - from_s).max(0.0) * 0.5 / (to_s - from_s).max(1.0);
            core.take(&look(from_s, to_s, busy));
        }
        let summary = core.summary(1).expect("it was profiled");
        assert!((summary.seconds - 10.0).abs() < 0.01, "two looks of five seconds: {}", summary.seconds);
        let nft = summary.stages.iter().find(|stage| stage.stage == CoreStage::Nft).expect("it is there");
        assert!((nft.share - 0.25).abs() < 0.01, "{}", nft.share);
        assert_eq!(nft.functions.first().map(|(name, _)| name.as_str()), Some("nft_do_chain"));
    }

    #[test]
    fn a_short_profile_is_whole() {
        let mut core = ProfiledCore::default();
        (1..=3).for_each(|to_s| core.take(&look(0.0, f64::from(to_s), 0.5)));
        let summary = core.summary(1).expect("it was profiled");
        assert!((summary.seconds - 3.0).abs() < 0.01, "{}", summary.seconds);
        assert_eq!(ProfiledCore::default().summary(1), None, "nobody looked");
    }
}
