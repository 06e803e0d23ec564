//! Shares over time, a row each: the fuller the darker.

use super::marks::draw_done;
use super::{ABOVE, BELOW, PlotColor, PlotDone, PlotText, PlotTime, PlotWidth, chart, row_label, svg};
use plotters::prelude::Rectangle;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatRow {
    /// What it is of.
    pub label: String,
    /// Shares of 1 by column, from the beginning of the axis on; none where it is not known.
    pub cells: Vec<Option<f64>>,
}

/// A heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatPlot {
    /// Time.
    pub x: PlotTime,
    /// Length of a column, seconds.
    pub column_s: f64,
    /// From the top.
    pub rows: Vec<HeatRow>,
    /// Its colour.
    pub color: PlotColor,
    /// What was done.
    pub done: PlotDone,
}

/// Steps of darkness that are told apart; a share below the first one is not drawn.
const STEPS: f64 = 10.0;

/// Draws it.
#[must_use]
pub fn heat(text: &PlotText, width: PlotWidth, plot: &HeatPlot) -> String {
    let rows = u32::try_from(plot.rows.len()).unwrap_or(u32::MAX).max(1);
    let row_height = match rows {
        0..=16 => 20,
        // As high as a label: each row has its own.
        _ => 14,
    };
    let (scale, _) = plot.x.unit();
    let end = plot.x.range().end;
    svg(text, width, ABOVE + rows * row_height + BELOW, |area| {
        let top = f64::from(rows);
        let mut chart = chart(area, width, (plot.x, true), (top, None))?;
        for (nth, row) in plot.rows.iter().enumerate() {
            let base = top - nth as f64 - 1.0;
            let steps: Vec<Option<u32>> = row.cells.iter().map(|share| step(*share)).collect();
            let mut at = 0;
            for run in steps.chunk_by(|one, other| one == other) {
                let (from, to) = (at as f64 * plot.column_s, (at + run.len()) as f64 * plot.column_s);
                at += run.len();
                let Some(step) = run[0].filter(|step| *step > 0) else { continue };
                let cell = [(from / scale, base), ((to / scale).min(end), base + 1.0)];
                let style = plot.color.fill(f64::from(step) / STEPS);
                chart.draw_series(std::iter::once(Rectangle::new(cell, style)))?;
            }
            row_label(area, &chart, width.label_area(), (plot.x.range().start, base + 0.5), &row.label)?;
        }
        draw_done(area, &mut chart, (plot.x, top), &plot.done, (true, false))
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and ten")]
fn step(share: Option<f64>) -> Option<u32> {
    share.filter(|share| share.is_finite()).map(|share| (share.clamp(0.0, 1.0) * STEPS).round() as u32)
}
