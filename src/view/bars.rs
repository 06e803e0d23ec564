//! One bar a core: its number, how busy it is, and the parts of that in glyphs that can be told apart without colour.

use super::canvas::Canvas;
use super::format::{Percent, UNKNOWN};
use super::{Tone, table};
use crate::action::{Action, Pane};
use crate::derive::cores::Shares;
use crate::derive::{CoreMetrics, Metrics};
use crate::sample::CoreSet;
use crate::state::State;

/// A bar narrower than this says nothing.
const LEAST_WIDTH: u16 = 20;
/// Mark, number, busy share, flag and brackets.
const BESIDE_BAR: u16 = 14;

/// The parts of a bar in their order, softirq first; the lightest shade (`░`) would look idle.
pub(super) const PARTS: [(char, &str, Tone); 5] = [
    ('█', "softirq", Tone::Bad),
    ('▌', "irq", Tone::Warning),
    ('▓', "sys", Tone::Accent),
    ('▒', "user", Tone::Good),
    ('x', "steal", Tone::Warning),
];

/// In how many columns every core has its bar; none when they do not fit.
pub(super) fn columns(cores: usize, width: u16, rows: u16) -> Option<u16> {
    let needed = cores.div_ceil(usize::from(rows).max(1));
    let columns = u16::try_from(needed).ok()?.max(1);
    (width / columns >= LEAST_WIDTH || columns == 1).then_some(columns)
}

/// Draws these cores from row `top` on, column by column; returns the rows used.
pub(super) fn prepare(
    canvas: &mut Canvas,
    state: &State,
    metrics: &Metrics,
    watched: &CoreSet,
    (top, columns): (u16, u16),
    shown: &[usize],
) -> u16 {
    let rows = shown.len().div_ceil(usize::from(columns)).max(1);
    let width = canvas.area.width / columns;
    for (at, &index) in shown.iter().enumerate() {
        let (column, y) = (at / rows, at % rows);
        let (Ok(column), Ok(y)) = (u16::try_from(column), u16::try_from(y)) else { break };
        let y = top + y;
        let core = &metrics.machine.cores[index];
        let area = (column * width, y, width);
        bar(canvas, area, core, flag(metrics, watched, core));
        let is_selected = state.cores.selection.id() == Some(core.place.core);
        table::row(canvas, area, is_selected, state.focus == Pane::Cores, Action::SelectCore(core.place.core));
    }
    u16::try_from(rows).unwrap_or(u16::MAX).min(canvas.area.height)
}

/// `t` where a busy watched thread is, `i` where the scheduler puts none.
pub(super) fn flag(metrics: &Metrics, watched: &CoreSet, core: &CoreMetrics) -> char {
    if watched.contains(core.place.core) {
        't'
    } else if metrics.machine.facts.topology.isolated.contains(core.place.core) {
        'i'
    } else {
        ' '
    }
}

fn bar(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), core: &CoreMetrics, flag: char) {
    canvas.right(x + 1, y, 3, Tone::Normal, core.place.core);
    let shares = core.shares();
    match shares {
        _ if !core.place.online => drop(canvas.left(x + 6, y, width - 6, Tone::Muted, "offline")),
        None => canvas.right(x + 5, y, 4, Tone::Muted, UNKNOWN),
        Some(shares) => {
            let busy = shares.busy();
            canvas.right(x + 5, y, 4, busy_tone(busy), format_args!("{}%", Percent(Some(busy))));
            parts(canvas, (x + 12, y, width.saturating_sub(BESIDE_BAR)), &shares);
        }
    }
    if core.place.online {
        canvas.glyph(x + 10, y, Tone::Watched, flag);
        canvas.glyph(x + 11, y, Tone::Muted, '[');
        canvas.glyph(x + width - 2, y, Tone::Muted, ']');
    }
}

/// The parts end where their sum ends, so that rounding never makes a bar too long.
fn parts(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), shares: &Shares) {
    let values = [shares.softirq, shares.irq, shares.system, shares.user, shares.steal];
    let (mut sum, mut from) = (0.0, 0);
    for ((glyph, _, tone), share) in PARTS.into_iter().zip(values) {
        sum += share;
        let to = cells(sum, width);
        canvas.run(x + from, y, to - from, tone, glyph);
        from = to;
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=width")]
fn cells(share: f64, width: u16) -> u16 {
    (share.clamp(0.0, 1.0) * f64::from(width)).round() as u16
}

/// What the glyphs mean.
pub(super) fn legend(canvas: &mut Canvas, y: u16) {
    let mut x = 1;
    for (glyph, word, tone) in PARTS {
        canvas.glyph(x, y, tone, glyph);
        x += 1 + canvas.left(x + 1, y, canvas.area.width, Tone::Muted, word) + 1;
    }
}

/// How loud the busy share of a core is.
pub(super) fn busy_tone(share: f64) -> Tone {
    match share {
        ..0.02 => Tone::Muted,
        ..0.60 => Tone::Good,
        ..0.90 => Tone::Warning,
        _ => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_take_as_few_columns_as_they_can() {
        assert_eq!(columns(2, 34, 5), Some(1), "two cores below each other");
        assert_eq!(columns(16, 60, 8), Some(2), "sixteen in two columns");
        assert_eq!(columns(128, 60, 10), None, "128 do not fit");
    }
}
