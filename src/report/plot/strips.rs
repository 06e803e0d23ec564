//! What something was over time, a row each: runs with a name and a colour, and marks where it changed in between.

use super::marks::draw_done;
use super::{ABOVE, BELOW, PlotColor, PlotDone, PlotText, PlotTime, PlotWidth, chart, row_label, svg, text_style};
use plotters::prelude::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A time during which it was the same.
#[derive(Debug, Clone, PartialEq)]
pub struct StripRun {
    /// From, seconds.
    pub from_s: f64,
    /// To, seconds.
    pub to_s: f64,
    /// What it was: written where it has room.
    pub word: String,
    /// Its colour.
    pub color: PlotColor,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct StripRow {
    /// What it is of.
    pub label: String,
    /// In the order of time.
    pub runs: Vec<StripRun>,
    /// When something happened to it, seconds.
    pub ticks: Vec<f64>,
}

/// Strips below each other.
#[derive(Debug, Clone, PartialEq)]
pub struct StripPlot {
    /// Time.
    pub x: PlotTime,
    /// From the top.
    pub rows: Vec<StripRow>,
    /// What was done.
    pub done: PlotDone,
}

const ROW: u32 = 26;

/// Draws them.
#[must_use]
pub fn strips(text: &PlotText, width: PlotWidth, plot: &StripPlot) -> String {
    let rows = u32::try_from(plot.rows.len()).unwrap_or(u32::MAX).max(1);
    let (scale, _) = plot.x.unit();
    svg(text, width, ABOVE + rows * ROW + BELOW, |area| {
        let top = f64::from(rows);
        let mut chart = chart(area, width, (plot.x, true), (top, None))?;
        for (nth, row) in plot.rows.iter().enumerate() {
            let base = top - nth as f64 - 1.0;
            for run in &row.runs {
                let to = (run.to_s / scale).min(plot.x.range().end);
                let cell = [(run.from_s / scale, base + 0.12), (to, base + 0.72)];
                chart.draw_series(std::iter::once(Rectangle::new(cell, run.color.fill(0.55))))?;
                let (left, y) = chart.backend_coord(&(run.from_s / scale, base + 0.42));
                let (right, _) = chart.backend_coord(&(to, base + 0.42));
                let cells = i32::try_from(run.word.chars().count()).unwrap_or(i32::MAX / 9);
                if right - left > cells * 8 + 4 {
                    let style = text_style().pos(Pos::new(HPos::Center, VPos::Center));
                    area.draw(&Text::new(run.word.clone(), (i32::midpoint(left, right), y), style))?;
                }
            }
            for at in &row.ticks {
                let line = vec![(at / scale, base + 0.74), (at / scale, base + 0.98)];
                chart.draw_series(std::iter::once(PathElement::new(line, PlotColor::Red.line(1))))?;
            }
            row_label(area, &chart, width.label_area(), (plot.x.range().start, base + 0.42), &row.label)?;
        }
        draw_done(area, &mut chart, (plot.x, top), &plot.done, (true, false))
    })
}
