//! Shares over time, a row each: the fuller the darker.

use super::marks::draw_done;
use super::{
    ABOVE, BELOW, DrawnOrNot, PlotArea, PlotColor, PlotDone, PlotText, PlotTime, PlotWidth, axes, row_label, short,
    svg, text_style,
};
use plotters::prelude::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

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
    let above = ABOVE + rows * row_height + BELOW;
    svg(text, width, above + SCALE, |whole| {
        let (area, below) = whole.split_vertically(above);
        let area = &area;
        let top = f64::from(rows);
        let label_area = width.label_area_of(plot.rows.iter().map(|row| &row.label));
        let (x, (_, unit)) = (plot.x.range(), plot.x.unit());
        let mut chart = axes(area, (width, label_area), (x, Some(unit)), (top, None), &short)?;
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
            row_label(area, &chart, label_area, (plot.x.range().start, base + 0.5), &row.label)?;
        }
        draw_done(area, &mut chart, (plot.x, top), &plot.done, (true, false))?;
        draw_scale(&below, width, plot.color)
    })
}

/// Height of the scale, and width of one of its steps.
const SCALE: u32 = 26;
const SCALE_STEP: i32 = 16;

/// How dark a share is: each step in its shade, with the shares at both ends.
fn draw_scale(area: &PlotArea<'_>, width: PlotWidth, color: PlotColor) -> DrawnOrNot {
    let left = i32::try_from(width.label_area()).unwrap_or(0) + 28;
    let word = |text: &'static str, x: i32, at: HPos| {
        area.draw(&Text::new(text, (x, 9), text_style().pos(Pos::new(at, VPos::Center))))
    };
    let mut x = left;
    for step in 0..=10_u8 {
        area.draw(&Rectangle::new([(x, 2), (x + SCALE_STEP, 16)], color.fill(f64::from(step) / STEPS)))?;
        x += SCALE_STEP;
    }
    area.draw(&Rectangle::new([(left, 2), (x, 16)], PlotColor::Grid.line(1)))?;
    word("0 %", left - 6, HPos::Right)?;
    word("100 %", x + 6, HPos::Left)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and ten")]
fn step(share: Option<f64>) -> Option<u32> {
    share.filter(|share| share.is_finite()).map(|share| (share.clamp(0.0, 1.0) * STEPS).round() as u32)
}
