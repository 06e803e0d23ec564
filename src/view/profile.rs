//! What one core does: a line a stage, with its share of the core's time as a bar and in percent, and what that is for each packet;
//! below each stage its functions, where they are asked for.

use super::Tone;
use super::canvas::fitted;
use super::format::{Count, Elapsed, Percent, Seconds, Share};
use super::lines::{Line, sentences};
use super::strip::eighths;
use crate::derive::profile::{CoreActivity, CoreStage, StageShare};
use crate::sample::{CoreId, ProblemSource, ProfileClock};
use crate::state::{Mode, State};

/// Cells of a stage's name, its share, and its time for each packet.
const NAME: usize = 26;
const SHARE: usize = 6;
const PER_PACKET: usize = 11;
/// Most and fewest cells of a bar.
const WIDEST_BAR: usize = 40;
const LEAST_BAR: usize = 8;
/// Functions of a stage that are listed.
const FUNCTIONS: usize = 5;

pub(super) fn foot(functions: bool) -> &'static str {
    if functions { "Enter stages only · Esc closes" } else { "Enter functions · Esc closes" }
}

/// The stages, or why there are none.
pub(super) fn lines(state: &State, (core, functions): (CoreId, bool), width: u16) -> Vec<Line> {
    let metrics = state.metrics();
    let profile = metrics.and_then(|metrics| metrics.machine.profile.as_deref());
    let Some(profile) = profile.filter(|profile| profile.core == core) else {
        return sentences(Tone::Muted, &missing(state, core), width);
    };
    let mut lines = sentences(Tone::Normal, &profile.text(), width);
    lines.extend(sentences(Tone::Muted, &legend(profile), width));
    if profile.lost > 0 {
        let text = format!("{} samples were lost: the shares are those of the rest", Count(Some(profile.lost as f64)));
        lines.extend(sentences(Tone::Warning, &text, width));
    }
    if let Some(why) = &profile.unnamed {
        lines.extend(sentences(Tone::Warning, why, width));
    }
    let cells = usize::from(width).saturating_sub(NAME + SHARE + PER_PACKET + 4);
    let bar = Some(cells.min(WIDEST_BAR)).filter(|&cells| cells >= LEAST_BAR);
    lines.push(head());
    for stage in &profile.stages {
        lines.push(row(profile, stage, bar));
        for (name, share) in stage.functions.iter().take(if functions { FUNCTIONS } else { 0 }) {
            let name = fitted(name, usize::from(width).saturating_sub(SHARE + 4));
            lines.push(vec![(Tone::Muted, format!("  {:>SHARE$} {name}", Percent(Some(*share)).to_string()))]);
        }
    }
    lines
}

fn head() -> Line {
    let name = fitted("WHAT IT DOES", NAME);
    vec![(Tone::Header, format!("{name} {:>SHARE$} {:>PER_PACKET$}", "% CORE", "PER PACKET"))]
}

fn row(profile: &CoreActivity, stage: &StageShare, bar: Option<usize>) -> Line {
    let tone = match stage.stage {
        CoreStage::Idle | CoreStage::Unknown => Tone::Muted,
        CoreStage::Program => Tone::Warning,
        _ => Tone::Normal,
    };
    let per_packet =
        stage.ns_per_packet(profile.packets_per_s).map_or_else(String::new, |ns| Elapsed(ns / 1e9).to_string());
    let share = Percent(Some(stage.share)).to_string();
    let mut line = vec![(tone, format!("{} {share:>SHARE$} {per_packet:>PER_PACKET$}", fitted(stage.name(), NAME)))];
    if let Some(cells) = bar {
        line.push((tone, format!("  {}", bar_of(stage.share, cells))));
    }
    line
}

/// A bar of so many cells for all of a core.
fn bar_of(share: f64, cells: usize) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to a few hundred")]
    let whole = (share.clamp(0.0, 1.0) * cells as f64).round() as usize;
    if whole == 0 && share > 0.0 { eighths(1).to_string() } else { eighths(8).to_string().repeat(whole) }
}

/// Of which time it is, by what, and what it costs.
fn legend(profile: &CoreActivity) -> String {
    let by = match profile.clock {
        ProfileClock::Cycles => "its cycles",
        ProfileClock::CpuClock => "a timer",
    };
    let packets = profile.packets_per_s.map_or_else(String::new, |per_s| format!("; {} packets/s", Count(Some(per_s))));
    format!(
        "the last {}, {} samples by {by}{packets}; reading them takes {} of a core",
        Seconds(profile.over_s),
        Count(Some(profile.samples as f64)),
        Share(profile.reader)
    )
}

fn missing(state: &State, core: CoreId) -> String {
    if state.settings().mode == Mode::Replay {
        return format!(
            "this recording has no profile of core {core} here; it was made without --profile and without this list"
        );
    }
    let problems = state.metrics().map(|metrics| &metrics.machine.facts.problems);
    let refused = format!("core {core} cannot be profiled");
    let refusal = problems
        .into_iter()
        .flat_map(|problems| problems.iter())
        .find(|problem| problem.source == ProblemSource::Kernel && problem.text.starts_with(&refused));
    refusal.map_or_else(
        || format!("core {core} is being profiled: first figures in a second"),
        |problem| problem.text.clone(),
    )
}
