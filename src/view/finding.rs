//! What there is to say: what the last thing done has left, sources that could not be read, findings, and the next step.

use super::Tone;
use super::canvas::{Area, Canvas};
use super::text::{plural, wrap};
use crate::derive::Metrics;
use crate::state::State;

/// A sentence never takes more lines than this.
const MOST_LINES: usize = 3;

/// The sentences, most pressing first, and how many there was no room for.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let sentences = sentences(state);
    let width = area.width;
    let mut y = 0;
    for (at, (tone, text)) in sentences.iter().enumerate() {
        let rows = area.height - y;
        if rows == 0 {
            break;
        }
        let later = sentences.len() - at - 1;
        let most = MOST_LINES.min(usize::from(rows).saturating_sub(later).max(1));
        let lines = wrap(text, width);
        let more = if rows == 1 && later > 0 { format!(" (+{later} more)") } else { String::new() };
        let room = width.saturating_sub(u16::try_from(more.len()).unwrap_or(0));
        for (row, line) in lines.iter().take(most).enumerate() {
            let rest =
                if row + 1 == most && lines.len() > most { format!("{line} {}", lines[most]) } else { line.clone() };
            let last = usize::from(y + 1) == usize::from(area.height);
            let used = canvas.left(0, y, if last { room } else { width }, *tone, rest);
            if last && !more.is_empty() {
                canvas.left(used, y, width, Tone::Muted, &more);
            }
            y += 1;
        }
    }
    canvas
}

fn sentences(state: &State) -> Vec<(Tone, String)> {
    let notices = state.notices.list().iter();
    let mut all: Vec<(Tone, String)> =
        notices.map(|notice| (if notice.warning { Tone::Warning } else { Tone::Good }, notice.text.clone())).collect();
    let Some(metrics) = state.metrics() else { return all };
    let problems = metrics.problems.iter();
    all.extend(problems.map(|problem| (Tone::Warning, format!("{}: {}", problem.source, problem.text))));
    for finding in &metrics.findings {
        let key = finding.key.map_or_else(String::new, |key| format!("[{key}] "));
        all.push((Tone::Normal, format!("{key}{}", finding.text)));
    }
    all.extend(next_step(state, metrics).map(|text| (Tone::Muted, text)));
    if all.is_empty() {
        all.push((Tone::Muted, "nothing to report".to_owned()));
    }
    all
}

/// What can be done now.
fn next_step(state: &State, metrics: &Metrics) -> Option<String> {
    let pins = state.pins();
    if pins > 0 {
        return Some(format!("{} pinned by vnettop · U puts the masks back", plural(pins, "thread")));
    }
    let busy = metrics.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu >= 0.05)).count();
    let offered = metrics.findings.iter().any(|finding| finding.key == Some('p'));
    (busy > 0 && !offered).then(|| format!("p proposes cores for the {}", plural(busy, "busy thread")))
}
