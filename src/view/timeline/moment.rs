//! What was at the selected time, in one line: how long ago, the rate, migrations by thread and class, losses and their place, what
//! was done.

use super::axis::Axis;
use crate::derive::history::History;
use crate::derive::moves::{MoveClass, MovesByClass};
use crate::derive::{Metrics, ThreadMetrics};
use crate::sample::Word;
use crate::state::Units;
use crate::view::Tone;
use crate::view::format::{Count, Scale, Seconds};
use crate::view::lines::Line;
use crate::view::text::plural;

/// The pieces of the line, in the order they stand, for the column that begins at an instant.
pub(super) fn line(metrics: &Metrics, history: &History, axis: &Axis<'_>, at_ns: u64) -> Line {
    let ago_s = axis.timeline.bins.last().map_or(0, |bin| bin.to_ns).saturating_sub(at_ns) as f64 / 1e9;
    let mut pieces = vec![(Tone::FocusedTitle, format!("−{ago_s:.1} s ")), rate(axis, at_ns)];
    let mut tell = |tone, text: String| pieces.push((tone, format!(" · {text}")));
    // The times of the bins themselves, which need not begin where their column does.
    let times = axis.bins_of_column(at_ns).map(|bin| (bin.from_ns, bin.to_ns));
    let (from_ns, to_ns) = times.reduce(|all, bin| (all.0, bin.1)).unwrap_or((at_ns, at_ns + axis.column_ns));
    let (tone, text) = migrations(metrics, history, axis, (at_ns, from_ns, to_ns));
    tell(tone, text);
    for lost in axis.losses(from_ns, to_ns).take(1) {
        let among = Seconds((lost.to_ns.saturating_sub(lost.from_ns) as f64 / 1e8).round() / 10.0);
        tell(Tone::Bad, format!("{} lost within {among} ({})", Count(Some(lost.packets)), lost.place));
    }
    for incident in axis.timeline.incidents.iter().filter(|one| (at_ns..at_ns + axis.column_ns).contains(&one.at_ns)) {
        let word = incident.kind.word();
        let threads = plural(incident.count, "thread");
        tell(
            Tone::Accent,
            if incident.kind.is_of_threads() { format!("{word} of {threads}") } else { word.to_owned() },
        );
    }
    pieces
}

/// The mean of the column's bins, and between which rates they are where they differ.
fn rate(axis: &Axis<'_>, at_ns: u64) -> (Tone, String) {
    let rates: Vec<f64> = axis.bins_of_column(at_ns).filter_map(|bin| bin.bits_per_s).collect();
    if rates.is_empty() {
        return (Tone::Muted, "rate not known".to_owned());
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let (low, high) = rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    let scale = Scale::of(high, Units::Bits);
    let mut text = scale.with_unit(mean);
    if rates.len() > 1 {
        text = format!("{text} ({} to {})", scale.number(low), scale.number(high));
    }
    (Tone::Title, text)
}

/// `3 migrations (server 2 node, client 1 llc)`
fn migrations(
    metrics: &Metrics,
    history: &History,
    axis: &Axis<'_>,
    (at_ns, from_ns, to_ns): (u64, u64, u64),
) -> (Tone, String) {
    let (mut all, mut unclassed) = (0, 0.0);
    for bin in axis.bins_of_column(at_ns) {
        all += bin.moves.seen().map(|(_, count)| count).sum::<u64>();
        unclassed += bin.unclassed;
    }
    if all == 0 && unclassed > 0.0 {
        return (Tone::Warning, format!("≈ {} migrations, their instant is not known", Count(Some(unclassed))));
    }
    if all == 0 {
        return (Tone::Muted, "no migration".to_owned());
    }
    let count = plural(all, "migration");
    let threads: Vec<&ThreadMetrics> = metrics.subject.threads.iter().collect();
    let whose = threads.iter().filter_map(|thread| {
        let moves = of_thread(metrics, history, thread, from_ns, to_ns).words();
        let role = thread.sample.role();
        let is_alone = threads.iter().filter(|other| other.sample.role() == role).count() == 1;
        let name = if is_alone { role.to_owned() } else { format!("{role} {}", thread.sample.id.tid) };
        (!moves.is_empty()).then(|| format!("{name} {}", moves.join(" ")))
    });
    let whose: Vec<String> = whose.collect();
    if whose.is_empty() { (Tone::Warning, count) } else { (Tone::Warning, format!("{count} ({})", whose.join(", "))) }
}

/// The moves of one thread from an instant on, before another.
fn of_thread(metrics: &Metrics, history: &History, thread: &ThreadMetrics, from_ns: u64, to_ns: u64) -> MovesByClass {
    let mut moves = MovesByClass::default();
    let Some(track) = history.thread(thread.sample.id) else { return moves };
    let mut before = None;
    for (at_ns, core) in track.trail(from_ns.saturating_sub(1)).take_while(|&(at_ns, _)| at_ns < to_ns) {
        let class = before
            .filter(|_| at_ns >= from_ns)
            .and_then(|from| MoveClass::of(&metrics.machine.facts.topology, from, core));
        if let Some(class) = class {
            moves.add(class, 1);
        }
        before = Some(core);
    }
    moves
}
