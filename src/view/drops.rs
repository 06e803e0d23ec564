//! Every packet that the kernel drops: a reason and function a line, what is dropped most now first, with what it means to
//! whose packets they are.

use super::Tone;
use super::canvas::fitted;
use super::format::{Count, Seconds, UNKNOWN};
use super::lines::{Line, sentences};
use super::text::namespace;
use crate::derive::Metrics;
use crate::derive::drops::{self, Drop};
use crate::derive::losses::place_of_drop::DropVerdict;
use crate::sample::{LinkKey, ProblemSource, Word};
use crate::state::{Mode, State};

/// Cells of the columns in their order but for the last, which has the rest: on a wide screen, on a narrow one, and on one
/// that has no room for NETNS.
const WIDE: [usize; 6] = [7, 10, 8, 24, 12, 12];
const NARROW: [usize; 6] = [6, 8, 8, 15, 8, 8];
const SMALL: [usize; 6] = [6, 8, 8, 16, 0, 10];

/// The list, or why there is none.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return sentences(Tone::Muted, "nothing is known yet", width) };
    let Some(list) = drops::list(&metrics.subject) else {
        return sentences(Tone::Muted, missing(state, metrics), width);
    };
    let everywhere =
        metrics.machine.kernel.as_ref().and_then(|kernel| kernel.drops.as_ref()).is_some_and(|all| all.everywhere);
    let whose = if everywhere { "on the whole machine" } else { "in the namespaces of the watched flows" };
    let legend = format!(
        "packets that the kernel dropped {whose} since vnettop started counting; * of a watched flow; refused: by a \
         rule; harmless: \
         nothing is lost"
    );
    let mut lines = sentences(Tone::Muted, &legend, width);
    if list.is_empty() {
        let since_ns = metrics.machine.tracer.and_then(|tracer| tracer.since_ns);
        let none = since_ns.map_or_else(
            || "none so far".to_owned(),
            |since_ns| {
                let for_s = Seconds(metrics.machine.at_ns.saturating_sub(since_ns) as f64 / 1e9);
                format!("none so far; they are counted for {for_s}")
            },
        );
        lines.extend(sentences(Tone::Normal, &none, width));
        return lines;
    }
    let width = usize::from(width);
    let titles = ["DROP/s", "ALL", "MEANS", "REASON", "NETNS", "LINK", "FUNCTION"].map(str::to_owned);
    lines.push(row(width, [Tone::Header; 7], &titles));
    lines.extend(list.iter().map(|drop| line(metrics, drop, width)));
    lines
}

fn missing(state: &State, metrics: &Metrics) -> &'static str {
    match state.settings().mode {
        Mode::Replay => "this recording has none: it was made without BPF",
        _ if metrics.machine.facts.problems.iter().any(|problem| problem.source == ProblemSource::Kernel) => {
            "not known: the BPF program that counts them does not run here; F shows why"
        }
        _ => "the BPF programs are being attached",
    }
}

fn line(metrics: &Metrics, drop: &Drop, width: usize) -> Line {
    let is_now = drop.packets_per_s.is_some_and(|rate| rate > 0.0);
    let tone = match drop.verdict {
        _ if !is_now => Tone::Muted,
        DropVerdict::Lost(_) => Tone::Bad,
        DropVerdict::Refused(_) => Tone::Warning,
        DropVerdict::Unclear | DropVerdict::Harmless => Tone::Normal,
    };
    let link = drop.netns.zip(drop.ifindex).map(|(netns, ifindex)| {
        let known = metrics.machine.link(LinkKey { netns, ifindex }).map(|link| link.facts.name.clone());
        known.unwrap_or_else(|| format!("link {}", ifindex.0))
    });
    let unknown = || UNKNOWN.to_string();
    let word = |word: &Option<std::sync::Arc<str>>| word.as_deref().map_or_else(unknown, str::to_owned);
    let own = if drop.of_flows { "*" } else { " " };
    let texts = [
        Count(drop.packets_per_s).to_string(),
        format!("{}{own}", exact(drop.packets)),
        drop.verdict.word().to_owned(),
        word(&drop.reason),
        drop.netns.map_or_else(unknown, |netns| namespace(metrics, netns)),
        link.unwrap_or_else(unknown),
        word(&drop.function),
    ];
    row(width, [tone, tone, tone, tone, Tone::Muted, tone, Tone::Muted], &texts)
}

fn row(width: usize, tones: [Tone; 7], texts: &[String; 7]) -> Line {
    let fixed = match width {
        90.. => WIDE,
        64.. => NARROW,
        _ => SMALL,
    };
    let used: usize = fixed.iter().filter(|&&cells| cells > 0).map(|cells| cells + 1).sum();
    let rest = [width.saturating_sub(used + 1)];
    let shown = fixed.into_iter().chain(rest).enumerate().filter(|(_, width)| *width > 0);
    let cell = |(at, width): (usize, usize)| {
        let text = &texts[at];
        (tones[at], if at < 2 { format!("{text:>width$} ") } else { format!("{} ", fitted(text, width)) })
    };
    shown.map(cell).collect()
}

/// A count as the tools print it, while there is room for all its digits.
fn exact(packets: u64) -> String {
    if packets < 10_000_000 { packets.to_string() } else { Count(Some(packets as f64)).to_string() }
}
