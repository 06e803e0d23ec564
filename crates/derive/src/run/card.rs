//! The card of a run: what was watched, how steady its rate was, what moved, what was dropped, and what a pin changed.
//! What could not be measured is a sentence in `missing`, never a figure.

use super::reported::figures;
use super::tried::SearchResult;
use super::{CommandRun, DataRoundTrips, Observation, OwnFigures, RunDrops, Seen};
use crate::experiment::{Card, CountedPhase, LEAST_PAIRS, LEAST_ROUNDS, Pair, of_side, pairs};
use crate::finding::{FindingId, MOVES_PER_S};
use crate::jitter::{Jitter, LEAST_BINS};
use crate::ledger::{Bin, FlowBasis, known};
use crate::moves::{Evidence, MovesByClass};
use crate::placement::Proposal;
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{CoreSet, Event, Host, PinMode, RunAsked, StretchSide, Unread};

/// Everything that is printed at the end of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunCard {
    /// What was asked for.
    pub asked: RunAsked,
    /// Whose benchmark it is; none in recordings that do not tell: everything watched.
    pub measured: Option<Measured>,
    /// The machine.
    pub host: Arc<Host>,
    /// Its cores.
    pub cores: usize,
    /// Every start of the command.
    pub runs: Vec<CommandRun>,
    /// The busy watched threads, by name and role.
    pub watched: Vec<WatchedThreads>,
    /// What the rate is the rate of.
    pub basis: Option<FlowBasis>,
    /// Why a link stands for the watched threads' own traffic, as the kernel answered; none where nothing failed.
    pub why_link: Option<String>,
    /// Spread of the rate while nothing was pinned by vnettop.
    pub jitter: Option<Jitter>,
    /// Moves of watched threads over the same bins.
    pub moves: Option<MovesSeen>,
    /// What iperf 3 reported itself of the tests that ended.
    pub reported: Vec<OwnFigures>,
    /// Why nothing is known of that, where the command is an iperf 3 that would report.
    pub unread: Option<Unread>,
    /// How long answers took on its connections; none of UDP, where no sender of theirs was watched, and of so little time that the
    /// rate has no spread either.
    pub round_trips: Option<DataRoundTrips>,
    /// Packets dropped while the command ran; none before its second sample.
    pub drops: Option<RunDrops>,
    /// What was found, and for how long.
    pub findings: Vec<Seen>,
    /// Seconds with a busy watched thread.
    pub busy_s: f64,
    /// What would be pinned, or why nothing would; none where it was not asked for.
    pub proposal: Option<Result<Proposal, String>>,
    /// Unpinned against pinned; none where it was not asked for.
    pub comparison: Option<PinComparison>,
    /// Which placement was best; none where it was not asked for, or before it started.
    pub search: Option<SearchResult>,
    /// The limits asked for.
    pub limits: Vec<CardLimit>,
    /// What could not be measured, and what to do about it: one sentence each.
    pub missing: Vec<String>,
}

/// Whose benchmark a card is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Measured {
    /// The command's own: its processes, and those at the other end of their connections.
    Command {
        /// A process at the other end that served others too; its connections are told apart, its threads are left out.
        shared: Option<u32>,
    },
    /// Everything watched, because no process of the command had a benchmark's connection.
    Everything {
        /// Its processes were known at all.
        knows_command: bool,
    },
    /// What the user named, and the command's process.
    Named,
}

/// Busy watched threads of one name and role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedThreads {
    /// `comm`.
    pub name: String,
    /// Role, as everywhere.
    pub role: &'static str,
    /// How many.
    pub threads: usize,
}

/// Moves of watched threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MovesSeen {
    /// Moves a second.
    pub per_s: f64,
    /// Moves whose class is known.
    pub by_class: MovesByClass,
    /// What they rest on.
    pub evidence: Evidence,
}

/// Unpinned against pinned phases.
#[derive(Debug, Clone, PartialEq)]
pub struct PinComparison {
    /// The figures; none of fewer than two pairs.
    pub card: Option<Card>,
    /// Who was pinned where: name, role, tid, cores.
    pub pins: Vec<(String, u32, CoreSet)>,
}

/// The most that is allowed, and what was measured; an unknown measurement counts as within the limit.
#[derive(Debug, Clone, Copy, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "said above")]
pub enum CardLimit {
    /// Limit of the coefficient of variation, a share.
    MaxCv { most: f64, measured: Option<f64> },
    /// Limit of packets dropped.
    MaxDrops { most: u64, measured: Option<u64> },
}

impl CardLimit {
    /// The most that is allowed: a share or packets.
    #[must_use]
    pub fn most(self) -> f64 {
        match self {
            Self::MaxCv { most, .. } => most,
            Self::MaxDrops { most, .. } => most as f64,
        }
    }

    /// What was measured: a share or packets; `None` when that is not known.
    #[must_use]
    pub fn measured(self) -> Option<f64> {
        match self {
            Self::MaxCv { measured, .. } => measured,
            Self::MaxDrops { measured, .. } => measured.map(|packets| packets as f64),
        }
    }

    /// More was measured than is allowed.
    #[must_use]
    pub fn is_broken(self) -> bool {
        self.measured().is_some_and(|measured| measured > self.most())
    }
}

pub(super) fn of(seen: &Observation, asked: &RunAsked) -> RunCard {
    let (bins, basis) = seen.tracks.best();
    let counted = |run: &CommandRun| seen.phases.counted(run.span(), (bins, basis), asked.settle_ns);
    let phases: Vec<_> = seen.known.runs.iter().flat_map(counted).collect();
    let (unpinned, pairs) = (of_side(&phases, StretchSide::Unpinned), pairs(&phases));
    let jitter = Jitter::of(&unpinned);
    let comparison = (asked.pin == PinMode::Compare && !asked.is_search()).then(|| comparison(seen, &pairs));
    let search = asked.is_search().then(|| seen.search.result(&seen.search_means(), asked.stretch_ns)).flatten();
    let moves = jitter.and_then(|_| moves(&unpinned, seen));
    let drops = seen.drops.known.then(|| seen.drops.clone());
    RunCard {
        asked: asked.clone(),
        watched: watched(seen),
        basis: basis.cloned(),
        jitter,
        moves,
        limits: limits(asked, jitter, comparison.as_ref(), drops.as_ref()),
        missing: missing(seen, asked, &phases, &pairs, search.as_ref()),
        reported: figures(&seen.known.reported, &seen.known.runs, bins, basis),
        unread: seen.known.unread.filter(|_| seen.known.reported.is_empty()),
        round_trips: jitter.and_then(|_| seen.trips.figures(&unpinned, &pairs)),
        drops,
        findings: findings(seen, moves.as_ref()),
        comparison,
        search,
        ..seen.known.clone()
    }
}

fn watched(seen: &Observation) -> Vec<WatchedThreads> {
    let mut counts = BTreeMap::<(&str, &'static str), usize>::new();
    for (name, role) in seen.busy.values() {
        *counts.entry((name, role)).or_default() += 1;
    }
    counts.into_iter().map(|((name, role), threads)| WatchedThreads { name: name.to_owned(), role, threads }).collect()
}

fn comparison(seen: &Observation, pairs: &[Pair]) -> PinComparison {
    let pin = |(thread, cores): (&vnettop_sample::ThreadId, &CoreSet)| {
        let label = seen.watched.get(thread).map_or_else(String::new, |(name, role)| format!("{name} {role}"));
        (label, thread.tid, cores.clone())
    };
    PinComparison { card: Card::of(pairs, &seen.others), pins: seen.pins.iter().map(pin).collect() }
}

/// What was found; how often threads moved is told of the whole run, not of its last moment, and not where all moves fell into
/// the time that is dropped for settling.
fn findings(seen: &Observation, moves: Option<&MovesSeen>) -> Vec<Seen> {
    let mut findings = seen.known.findings.clone();
    let stood = moves.is_some_and(|moves| moves.per_s <= 0.0);
    findings.retain(|seen| seen.finding.id != FindingId::Moves || !stood);
    let moving = findings.iter_mut().map(|seen| &mut seen.finding).find(|finding| finding.id == FindingId::Moves);
    if let Some((finding, moves)) = moving.zip(moves) {
        "busy threads migrate between cores (how often: above)".clone_into(&mut finding.text);
        finding.parts.why.clone_from(&finding.text);
        if let Some((_, per_s)) = finding.numbers.iter_mut().find(|(name, _)| *name == MOVES_PER_S) {
            *per_s = moves.per_s;
        }
    }
    findings
}

fn moves(bins: &[Bin], seen: &Observation) -> Option<MovesSeen> {
    let seconds: f64 = bins.iter().map(Bin::length_s).sum();
    let mut by_class = MovesByClass::default();
    bins.iter().flat_map(|bin| bin.moves.seen()).for_each(|(class, count)| by_class.add(class, count));
    let unclassed = bins.iter().map(|bin| bin.unclassed).sum::<f64>();
    let all = by_class.all() as f64 + unclassed;
    // Moves counted before the trace began do not matter when none of them fell into these bins.
    let evidence = match seen.evidence? {
        Evidence::Counted if seen.traced && unclassed < 0.5 => Evidence::Traced,
        evidence => evidence,
    };
    Some(MovesSeen { per_s: (seconds > 0.0).then(|| all / seconds)?, by_class, evidence })
}

/// Where pinned is compared with unpinned, the pinned side is what is held to the limit.
fn limits(
    asked: &RunAsked,
    jitter: Option<Jitter>,
    comparison: Option<&PinComparison>,
    drops: Option<&RunDrops>,
) -> Vec<CardLimit> {
    let side = comparison.map_or(jitter, |both| both.card.as_ref().map(|card| card.after.jitter));
    let cv = asked
        .max_cv_ppm
        .map(|ppm| CardLimit::MaxCv { most: ppm as f64 / 1e6, measured: side.and_then(|jitter| jitter.cv) });
    let dropped =
        asked.max_drops.map(|packets| CardLimit::MaxDrops { most: packets, measured: drops.map(RunDrops::total) });
    cv.into_iter().chain(dropped).collect()
}

/// The first thing that is missing on the way from a thread to a figure; what comes after it would be missing anyway.
fn missing(
    seen: &Observation,
    asked: &RunAsked,
    phases: &[CountedPhase<StretchSide>],
    pairs: &[Pair],
    search: Option<&SearchResult>,
) -> Vec<String> {
    let bins_of = |side| known(&of_side(phases, side));
    let (unpinned, pinned) = (bins_of(StretchSide::Unpinned), bins_of(StretchSide::Pinned));
    let settle_s = asked.settle_ns as f64 / 1e9;
    let few = |what: &str, bins: usize| {
        format!(
            "the {what} was too short: {bins} bins after the first {settle_s} s, at least {LEAST_BINS} needed; run longer, or lower --settle"
        )
    };
    let sentence = if seen.watched.is_empty() {
        let names = asked.watch.join(", ");
        format!("no watched thread was found ({names}): name the benchmark's program with --watch")
    } else if seen.busy.is_empty() && known(seen.tracks.best().0) == 0 {
        "no watched thread used more than 5 % of a core: name the working program with --watch".to_owned()
    } else if known(seen.tracks.best().0) == 0 {
        let why = seen.known.why_link.as_deref().unwrap_or(
            "neither their connections nor links of this namespace carried data; run vnettop where the benchmark's links are",
        );
        format!("the rate of the watched threads is not known: {why}")
    } else if let Some(why) =
        seen.not_pinned.as_ref().filter(|_| asked.takes_turns() && seen.pins.is_empty() && seen.steered == 0)
    {
        Event::nothing_was_pinned(why)
    } else if asked.is_search() {
        match search {
            Some(search) if search.is_enough() => return Vec::new(),
            Some(search) => format!(
                "the command was too short to rank placements: {} of {LEAST_ROUNDS} rounds; let it run for {:.0} s or longer",
                search.rounds, search.least_s
            ),
            None => "the command ended before the search started: let it run longer".to_owned(),
        }
    } else if unpinned < LEAST_BINS {
        few("unpinned part of the run", unpinned)
    } else if asked.pin != PinMode::Compare {
        return Vec::new();
    } else if seen.pins.is_empty() {
        never_pinned(seen, asked)
    } else if pinned < LEAST_BINS {
        few("pinned part of the run", pinned)
    } else if pairs.len() < 2 {
        format!(
            "{} of phases, and a verdict needs at least {LEAST_PAIRS}: run longer, or use a shorter --phase",
            if pairs.is_empty() { "no pair" } else { "one pair" }
        )
    } else {
        return Vec::new();
    };
    vec![sentence]
}

/// Why it was never time to pin anybody.
fn never_pinned(seen: &Observation, asked: &RunAsked) -> String {
    let stretch_s = asked.stretch_ns as f64 / 1e9;
    let ran_ns =
        seen.known.runs.iter().map(|run| run.to_ns.unwrap_or(run.from_ns).saturating_sub(run.from_ns)).sum::<u64>();
    if seen.busy.is_empty() {
        "nothing was pinned: no watched thread used more than 5 % of a core".to_owned()
    } else if asked.repeat > 1 {
        "no run was pinned long enough to compare".to_owned()
    } else if ran_ns >= 2 * asked.stretch_ns && seen.known.busy_s < stretch_s {
        format!(
            "nothing was pinned: the watched threads were busy for only {:.1} s, an unpinned phase takes {stretch_s} s; run longer, or use a shorter --phase",
            seen.known.busy_s
        )
    } else {
        format!(
            "the run ended before the first pinned phase: a pair of phases takes {} s; run longer, or \
             use a shorter --phase",
            stretch_s * 2.0
        )
    }
}
