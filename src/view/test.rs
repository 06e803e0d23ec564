//! The tests, where there are several: one line each, the one that the screen is about marked.

use super::Tone;
use super::canvas::{Area, Canvas};
use super::flow;
use super::format::{Count, Seconds, Share, UNKNOWN, speed};
use super::text::plural;
use crate::action::Action;
use crate::derive::{Metrics, Test};
use crate::state::{State, losing, rows};

/// Rows that the list takes; none where there is nothing to choose.
pub(super) fn wanted_rows(state: &State, height: u16) -> u16 {
    let tests = state.metrics().map_or(0, |metrics| metrics.tests.len());
    let most = if height < 30 { 3 } else { 6 };
    if tests < 2 { 0 } else { u16::try_from(tests).unwrap_or(u16::MAX).min(most) }
}

/// As many as there is room for, the selected one among them; the last line tells how many more there are.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics().filter(|_| area.height > 0) else { return canvas };
    let rows = rows(metrics);
    let selected = rows.iter().position(|test| state.is_about(test));
    let height = usize::from(area.height);
    let room = if rows.len() > height { height - 1 } else { height };
    let first = selected.map_or(0, |selected| (selected + 1).saturating_sub(room.max(1)));
    for (y, (at, test)) in (0..).zip(rows.iter().enumerate().skip(first).take(room)) {
        row(&mut canvas, y, test, Some(at) == selected, metrics);
    }
    if rows.len() > room {
        let key = state.keys().now("T", state.context()).unwrap_or_default();
        let hidden =
            rows.iter().enumerate().filter(|(at, _)| !(first..first + room).contains(at)).map(|(_, test)| test);
        let losing: Vec<f64> = hidden.filter_map(|test| losing(test)).collect();
        let (tone, worst) = match losing.iter().copied().reduce(f64::max) {
            Some(share) if losing.len() == 1 => (Tone::Warning, format!("; 1 of them loses {}", Share(share))),
            Some(share) => (Tone::Warning, format!("; {} of them lose up to {}", losing.len(), Share(share))),
            None => (Tone::Muted, String::new()),
        };
        let more = format!("  {} more{worst}: {key}", plural(rows.len() - room, "test"));
        canvas.left(1, area.height - 1, area.width, tone, more);
    }
    canvas
}

/// Mark and number, who with whom, and at the right what it carries, what it lost, how long.
fn row(canvas: &mut Canvas, y: u16, test: &Test, is_selected: bool, metrics: &Metrics) {
    let tone = match (is_selected, test.ended_ns) {
        (true, _) => Tone::FocusedTitle,
        (_, None) => Tone::Normal,
        _ => Tone::Muted,
    };
    let width = canvas.area.width;
    let figures = figures(test, metrics);
    let right = u16::try_from(super::canvas::cells(&figures)).unwrap_or(width).min(width);
    let mark = if is_selected { '▸' } else { ' ' };
    let left = width.saturating_sub(right + 3);
    canvas.left(1, y, left, tone, format_args!("{mark}test {}  {}", test.number, test.words()));
    canvas.right(width.saturating_sub(right + 1), y, right, tone, figures);
    canvas.spot(0, y, width, Action::SelectTest(test.number));
}

fn figures(test: &Test, metrics: &Metrics) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| UNKNOWN.to_owned(), speed);
    let lost = Count(Some(test.lost));
    let seconds = |to_ns: u64| Seconds((to_ns.saturating_sub(test.began_ns) as f64 / 1e9).round());
    match test.ended_ns {
        None => {
            let (_, word) = flow::state_of(&test.metrics, &test.conclusions);
            let now = rate(test.metrics.rate_now());
            // How much of it is lost says more than how many.
            let lost =
                if test.lost > 0.0 && losing(test).is_none() { format!(" · {lost} lost") } else { String::new() };
            format!("{word} · now {now}{lost} · {}", seconds(metrics.machine.at_ns))
        }
        Some(_) => {
            format!(
                "mean {} · {lost} lost · {} · ended",
                rate(test.mean.map(|mean| mean.bits_per_s)),
                seconds(test.metrics.machine.at_ns)
            )
        }
    }
}
