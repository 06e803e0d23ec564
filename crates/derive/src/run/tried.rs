//! A search from its events: which placement each phase had, what its rate was, and what is to be said of all of them.

use super::CommandRun;
use crate::experiment::{
    Difference, LEAST_ROUNDS, PhaseLog, PhaseMeans, PlacementStanding, RankedPlacement, are_alike, ranking,
};
use crate::flow::Connection;
use crate::ledger::{Bin, FlowBasis, Ledger, Mean, known};
use crate::metrics::Metrics;
use crate::migration_cost::series;
use vnettop_sample::{
    CoreSet, PlacementClass, SearchStep, SteerSetting, SteerTarget, SteerValue, TestKind, TriedPlacement,
};

/// A phase with fewer known rates has no mean. They are shorter than those of a comparison, because there are more of them.
const LEAST_BINS: usize = 3;

/// No search has more: all of them are compared with each other.
const MOST_PLACEMENTS: usize = 64;

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// What the order of the phases was made from.
    pub seed: u64,
    /// Rounds in which some placement had a phase.
    pub rounds: u32,
    /// The placements that have a rate, the best first.
    pub ranking: Vec<SearchedPlacement>,
    /// Any two of them are surely within 3 % of each other.
    pub alike: bool,
    /// What was not tried and why, a sentence each.
    pub left_out: Vec<String>,
    /// The search ended before the command did, because there was nothing left to find out.
    pub is_over: bool,
    /// The kind of test that it was.
    pub test: TestKind,
    /// How long the command has to run for so many rounds that something can be said, seconds.
    pub least_s: f64,
}

/// A placement of the ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedPlacement {
    /// Its class, and its threads with their cores.
    pub tried: TriedPlacement,
    /// Phases that count.
    pub phases: usize,
    /// Mean rate over these phases, bits/s, with its interval; none of fewer than two.
    pub mean: f64,
    /// See `mean`.
    pub interval: Option<Difference>,
    /// Its rate against that of the best one, as a share.
    pub against_best: Option<Difference>,
    /// How it compares with the best placement.
    pub standing: PlacementStanding,
    /// It got no more phases after so many rounds.
    pub dropped_after: Option<u32>,
    /// Segments that TCP sent again in its phases, a second; none where no connection of TCP tells.
    pub retransmits_per_s: Option<f64>,
    /// What the whole machine used in its phases, cores' worth; none where that is not known.
    pub busy_cores: Option<f64>,
}

impl SearchedPlacement {
    /// Who is pinned where: name and role, tid, cores.
    #[must_use]
    pub fn pins(&self) -> Vec<(String, u32, CoreSet)> {
        let pin = |at: &vnettop_sample::PlacedThread| (at.label.clone(), at.thread.tid, CoreSet::single(at.core));
        self.tried.threads.iter().map(pin).collect()
    }

    /// Commands that steer its packets by hand.
    #[must_use]
    pub fn steer_lines(&self) -> Vec<String> {
        self.tried.steers.iter().map(|steer| steer.request.shell_line(&steer.space)).collect()
    }

    /// What keeps its settings over a restart of the machine, lines of files; what cannot be kept, a comment.
    #[must_use]
    pub fn lasting_lines(&self) -> Vec<String> {
        self.tried.steers.iter().flat_map(|steer| steer.request.lasting_lines(&steer.space)).collect()
    }

    /// Commands that pin these threads by hand: one `taskset -cp CORE TID` a thread.
    #[must_use]
    pub fn taskset_lines(&self) -> Vec<String> {
        self.tried.threads.iter().map(|at| format!("taskset -cp {} {}", at.core, at.thread.tid)).collect()
    }
}

impl SearchResult {
    /// The placement with the highest rate; none before there is a rate.
    #[must_use]
    pub fn best(&self) -> Option<&SearchedPlacement> {
        self.ranking.first()
    }

    /// The placement in which nothing is pinned.
    #[must_use]
    pub fn unpinned(&self) -> Option<&SearchedPlacement> {
        self.ranking.iter().find(|one| one.tried.is_untouched())
    }

    /// The placement that `p` proposes by its rule; none where that was not tried.
    #[must_use]
    pub fn rule(&self) -> Option<&SearchedPlacement> {
        self.ranking.iter().find(|one| one.tried.is_rule)
    }

    /// There were enough rounds for every placement that has not been dropped.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.ranking.len() > 1 && self.rounds >= LEAST_ROUNDS
    }

    /// Whether a placement is clearly worse than the best one by more than 3 %; false when surely none is, `None` when neither
    /// is sure.
    #[must_use]
    pub fn differs(&self) -> Option<bool> {
        let has = |standing| self.ranking.iter().any(|one| one.standing == standing);
        let known =
            if has(PlacementStanding::Worse) { Some(true) } else { (!has(PlacementStanding::Open)).then_some(false) };
        known.filter(|_| self.is_enough())
    }

    /// The rate of the best placement above that of unpinned, millionths; none where unpinned is the best, or was not measured.
    #[must_use]
    pub fn gain_ppm(&self) -> Option<i64> {
        let behind = self.unpinned()?.against_best?.estimate;
        #[allow(clippy::cast_possible_truncation, reason = "a share of a rate")]
        let ppm = ((1.0 / (1.0 + behind) - 1.0) * 1e6).round() as i64;
        Some(ppm)
    }

    /// What `p` is to propose for tests of this kind from now on: the best treatment where it beats untouched, unpinned where what
    /// `p` would propose by its rule is worse than the best and no pin beats unpinned. None where the rule may stay.
    #[must_use]
    pub fn found(&self) -> Option<BestTreatment> {
        let best = self.best().filter(|_| self.differs() == Some(true))?;
        let is_worse =
            |one: Option<&SearchedPlacement>| one.is_some_and(|one| one.standing == PlacementStanding::Worse);
        if !best.tried.is_untouched() && is_worse(self.unpinned()) {
            let first = best.tried.steers.first();
            let (of_cores, of_links): (Vec<_>, Vec<_>) =
                first.into_iter().partition(|steer| steer.request.setting.takes_cores());
            return Some(BestTreatment {
                class: best.tried.class,
                steered: of_cores.first().map(|steer| steer.target),
                tuned: of_links.first().map(|steer| (steer.request.setting, steer.request.value.clone())),
            });
        }
        let none = BestTreatment { class: PlacementClass::Unpinned, steered: None, tuned: None };
        is_worse(self.rule()).then_some(none)
    }
}

/// What a search found best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BestTreatment {
    /// The class of its pins; unpinned where none was better.
    pub class: PlacementClass,
    /// Whose core the packets were put onto.
    pub steered: Option<SteerTarget>,
    /// Which setting of the links on the path had which value.
    pub tuned: Option<(SteerSetting, SteerValue)>,
}

/// What the phases of a placement cost, time-weighted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PhaseCost {
    retransmits_per_s: Mean,
    busy_cores: Mean,
}

/// What the events of a search tell, collected as they come.
#[derive(Debug, Clone, Default)]
pub(super) struct SearchEvents {
    seed: u64,
    placements: Vec<TriedPlacement>,
    left_out: Vec<String>,
    test: TestKind,
    /// Phases with their placement and round.
    phases: PhaseLog<(usize, u32)>,
    /// By placement: after how many rounds it was dropped.
    dropped: Vec<Option<u32>>,
    /// By placement: what its phases cost.
    costs: Vec<PhaseCost>,
    /// By placement: its masks could not be set.
    failed: Vec<bool>,
    is_over: bool,
}

impl SearchEvents {
    /// Takes the next step.
    pub(super) fn step(&mut self, at_ns: u64, step: &SearchStep) {
        self.end_phase(at_ns);
        match step {
            SearchStep::Started { seed, placements, left_out, test } => {
                let placements = &placements[..placements.len().min(MOST_PLACEMENTS)];
                (self.seed, self.placements, self.left_out) = (*seed, placements.to_vec(), left_out.clone());
                (self.test, self.dropped) = (test.clone(), vec![None; placements.len()]);
                self.failed = vec![false; placements.len()];
                self.costs = vec![PhaseCost::default(); placements.len()];
                (self.phases, self.is_over) = (PhaseLog::default(), false);
            }
            SearchStep::Phase { placement, round } => {
                let placement = usize::try_from(*placement).unwrap_or(usize::MAX);
                if placement < self.placements.len() {
                    self.phases.begin(at_ns, (placement, *round));
                }
            }
            SearchStep::Dropped { placement, rounds } => {
                if let Some(dropped) = self.dropped.get_mut(usize::try_from(*placement).unwrap_or(usize::MAX)) {
                    *dropped = Some(*rounds);
                }
            }
            SearchStep::Failed { placement, why } => {
                let at = usize::try_from(*placement).unwrap_or(usize::MAX);
                if let Some(tried) = self.placements.get(at) {
                    self.failed[at] = true;
                    let what = if tried.steers.is_empty() { "not pinned" } else { "not tried" };
                    self.left_out.push(format!("{what}: {}, {why}", tried.words()));
                }
            }
            SearchStep::Ended => self.is_over = true,
        }
    }

    /// Takes what a tick cost into account, where it lies in one phase.
    pub(super) fn observe(&mut self, metrics: &Metrics, settle_ns: u64) {
        let Some((began_ns, elapsed_s)) = metrics.machine.began_ns().zip(metrics.machine.elapsed_s) else { return };
        let Some((placement, _)) = self.phases.settled(began_ns, settle_ns) else { return };
        let Some(cost) = self.costs.get_mut(placement) else { return };
        // What controls a test of datagrams is TCP too.
        let carriers = metrics.subject.flow.connections.iter().filter(|one| one.carries);
        let tcp = carriers.filter_map(Connection::tcp);
        let again = tcp.filter_map(|tcp| tcp.retransmits_per_s).reduce(|sum, one| sum + one);
        cost.retransmits_per_s.add(again, elapsed_s);
        let busy = metrics.machine.cores.iter().filter_map(|core| Some(core.shares()?.busy()));
        cost.busy_cores.add(busy.reduce(|sum, one| sum + one), elapsed_s);
    }

    /// A phase ends with whatever comes next.
    pub(super) fn end_phase(&mut self, at_ns: u64) {
        self.phases.end(at_ns);
    }

    /// The means of the phases, as far as these bins tell them.
    pub(super) fn means(
        &self,
        runs: &[CommandRun],
        rate: (&Ledger<Bin>, Option<&FlowBasis>),
        settle_ns: u64,
    ) -> PhaseMeans {
        let mut means = PhaseMeans::none(self.placements.len());
        let counted = runs.last().map(|run| self.phases.counted(run.span(), rate, settle_ns));
        for phase in counted.into_iter().flatten().filter(|phase| known(&phase.bins) >= LEAST_BINS) {
            let (placement, round) = phase.treatment;
            if let Some(mean) = Bin::mean(&phase.bins) {
                means.add(placement, round, mean);
            }
        }
        means
    }

    /// What the search has found by these means; none before it has started.
    pub(super) fn result(&self, means: &PhaseMeans, phase_ns: u64) -> Option<SearchResult> {
        if self.placements.is_empty() {
            return None;
        }
        let left = self.dropped.iter().zip(&self.failed).map(|(dropped, failed)| dropped.is_none() && !failed);
        let left: Vec<bool> = left.collect();
        let ranked = ranking(means, &left);
        let alike = are_alike(means, &ranked.iter().map(|one| one.placement).collect::<Vec<_>>());
        let ranking: Vec<SearchedPlacement> = ranked.into_iter().filter_map(|one| self.searched(means, one)).collect();
        let rounds = ranking.iter().map(|one| one.phases).max().unwrap_or(0);
        let least_s = self.placements.len() as f64 * f64::from(LEAST_ROUNDS + 1) * phase_ns as f64 / 1e9;
        Some(SearchResult {
            seed: self.seed,
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            ranking,
            alike,
            left_out: self.left_out.clone(),
            is_over: self.is_over,
            test: self.test.clone(),
            least_s,
        })
    }

    fn searched(&self, means: &PhaseMeans, ranked: RankedPlacement) -> Option<SearchedPlacement> {
        let RankedPlacement { placement, standing, against_best } = ranked;
        let of_phases: Vec<f64> = means.of(placement).collect();
        let mean = series::mean(&of_phases);
        Some(SearchedPlacement {
            tried: self.placements.get(placement)?.clone(),
            phases: of_phases.len(),
            mean,
            interval: Difference::of_mean(&of_phases),
            against_best,
            standing,
            dropped_after: self.dropped.get(placement).copied().flatten(),
            retransmits_per_s: self.costs.get(placement).and_then(|cost| cost.retransmits_per_s.value()),
            busy_cores: self.costs.get(placement).and_then(|cost| cost.busy_cores.value()),
        })
    }
}

#[cfg(test)]
mod tests;
