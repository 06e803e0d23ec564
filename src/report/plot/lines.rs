//! A figure over time, with lanes below it on the same axis.

use super::marks::draw_done;
use super::{
    BELOW, Chart, DrawnOrNot, PlotArea, PlotColor, PlotDone, PlotText, PlotTime, PlotWidth, chart, inside, row_label,
    svg, text_style,
};
use plotters::prelude::{PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSeries {
    /// Its colour.
    pub color: PlotColor,
    /// Seconds and value; the line is broken where the value is not known.
    pub points: Vec<(f64, Option<f64>)>,
    /// Smallest and largest value around each point, where one point stands for several; empty else.
    pub band: Vec<(f64, f64, f64)>,
}

/// Events over time as bars in a row: the higher the more.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// What it counts.
    pub name: String,
    /// Its colour.
    pub color: PlotColor,
    /// From, to (seconds) and how many a second.
    pub bars: Vec<(f64, f64, f64)>,
    /// What its highest bar stands for, with the unit; empty where it has none.
    pub highest: String,
}

/// A plot of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePlot {
    /// Time.
    pub x: PlotTime,
    /// The figure with its unit.
    pub y_label: String,
    /// Where its axis ends; it begins with 0.
    pub y_to: f64,
    /// The figures.
    pub series: Vec<LineSeries>,
    /// What is below them.
    pub lanes: Vec<Lane>,
    /// A value that the figure is held against, and what it is: a line, if it is on the axis.
    pub level: Option<(f64, String)>,
    /// What was done.
    pub done: PlotDone,
}

/// As high as two lines of its label.
const LANE: u32 = 38;

/// Draws it.
#[must_use]
pub fn lines(text: &PlotText, width: PlotWidth, plot: &LinePlot) -> String {
    let upper = if width == PlotWidth::Wide { 250 } else { 210 };
    let lanes = u32::try_from(plot.lanes.len()).unwrap_or(0);
    let height = if lanes == 0 { upper + BELOW } else { upper + super::ABOVE + lanes * LANE + BELOW };
    let (scale, _) = plot.x.unit();
    let y_to = if plot.y_to.is_finite() && plot.y_to > 0.0 { plot.y_to } else { 1.0 };
    svg(text, width, height, |area| {
        let (main, below) = area.split_vertically(if lanes == 0 { height } else { upper });
        let mut rates = chart(&main, width, (plot.x, lanes == 0), (y_to, Some(&plot.y_label)))?;
        draw_done(&main, &mut rates, (plot.x, y_to), &plot.done, (true, true))?;
        for series in &plot.series {
            if series.band.len() > 1 {
                let low = series.band.iter().map(|(at, low, _)| (at / scale, *low));
                let high = series.band.iter().rev().map(|(at, _, high)| (at / scale, *high));
                let outline: Vec<_> = low.chain(high).collect();
                rates.draw_series(std::iter::once(Polygon::new(outline, series.color.fill(0.25))))?;
            }
            for part in series.points.split(|(_, value)| value.is_none_or(|value| !value.is_finite())) {
                let points: Vec<_> = part.iter().filter_map(|(at, value)| Some((at / scale, (*value)?))).collect();
                rates.draw_series(std::iter::once(PathElement::new(points, series.color.line(2))))?;
            }
        }
        if let Some((level, word)) = plot.level.as_ref().filter(|(level, _)| *level <= y_to) {
            draw_level(&main, &mut rates, plot, (*level, word))?;
        }
        if lanes == 0 {
            return Ok(());
        }
        let rows = f64::from(lanes);
        let mut counts = chart(&below, width, (plot.x, true), (rows, None))?;
        draw_done(&below, &mut counts, (plot.x, rows), &plot.done, (false, true))?;
        for (nth, lane) in (0..lanes).zip(&plot.lanes) {
            let base = rows - f64::from(nth) - 1.0;
            let most =
                lane.bars.iter().map(|(_, _, count)| *count).filter(|count| count.is_finite()).fold(0.0, f64::max);
            let bar = |&(from, to, count): &(f64, f64, f64)| {
                let top = base + (0.15 + 0.7 * count / most).min(0.9);
                Rectangle::new([(from / scale, base), (to / scale, top)], lane.color.fill(1.0))
            };
            counts.draw_series(lane.bars.iter().filter(|(_, _, count)| *count > 0.0).map(bar))?;
            let line = PathElement::new(
                vec![(plot.x.range().start, base), (plot.x.range().end, base)],
                PlotColor::Grid.line(1),
            );
            counts.draw_series(std::iter::once(line))?;
            let left = plot.x.range().start;
            let name_at = if lane.highest.is_empty() { 0.45 } else { 0.68 };
            row_label(&below, &counts, width.label_area(), (left, base + name_at), &lane.name)?;
            row_label(&below, &counts, width.label_area(), (left, base + 0.26), &lane.highest)?;
        }
        Ok(())
    })
}

/// About the width of a character, units of the drawing, and the height of a line.
const CHARACTER: i32 = 7;
const LINE: i32 = 17;
/// Places from the end of a line towards its middle that its word may have, and how far they are apart, units of the drawing.
const PLACES: i32 = 10;
const APART: i32 = 24;
/// How much of what is behind a word is covered.
const COVER: f64 = 0.6;

/// A thin line across the chart, with its word at its end, above it or below, where least is drawn.
fn draw_level(area: &PlotArea<'_>, chart: &mut Chart<'_>, plot: &LinePlot, (level, word): (f64, &str)) -> DrawnOrNot {
    let (scale, _) = plot.x.unit();
    let ends = [plot.x.range().start, plot.x.range().end].map(|at| (at, level));
    chart.draw_series(std::iter::once(PathElement::new(ends.to_vec(), PlotColor::Dashed.line(1))))?;
    let place = |at: f64, value: f64| inside(area, chart.backend_coord(&(at / scale, value)));
    let bands = plot.series.iter().flat_map(|one| &one.band).flat_map(|&(at, low, high)| [(at, low), (at, high)]);
    let points = plot.series.iter().flat_map(|one| &one.points).filter_map(|&(at, value)| Some((at, value?)));
    let drawn: Vec<(i32, i32)> = points.chain(bands).map(|(at, value)| place(at, value)).collect();
    let (right, line) = inside(area, chart.backend_coord(&ends[1]));
    let (_, floor) = inside(area, chart.backend_coord(&(ends[1].0, 0.0)));
    let width = i32::try_from(word.chars().count()).unwrap_or(0) * CHARACTER;
    let places = (0..PLACES).flat_map(|nth| [line - LINE, line].map(|top| (right - nth * APART, top)));
    // Near the end, and never over the axis.
    let (left, _) = inside(area, chart.backend_coord(&ends[0]));
    let is_near = |at: i32| right - at <= (right - left) / 4 && at - width - 4 >= left;
    let free = places.filter(|&(at, top)| top + LINE <= floor && is_near(at)).map(|(right, top)| {
        let is_behind =
            |(x, y): &&(i32, i32)| (right - width - 4..=right).contains(x) && (top..=top + LINE).contains(y);
        (drawn.iter().filter(is_behind).count(), right, top)
    });
    // Of equal ones the first, which is nearest to the end.
    let Some((behind, right, top)) = free.min_by_key(|(behind, _, _)| *behind) else { return Ok(()) };
    if behind > 0 {
        let cover = [(right - width - 4, top + 1), (right, top + LINE - 1)];
        area.draw(&Rectangle::new(cover, PlotColor::Back.fill(COVER)))?;
    }
    let style = text_style().pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(word.to_owned(), (right - 2, top + LINE / 2), style))
}
