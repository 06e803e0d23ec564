//! Figures beside each other as horizontal bars, each with the interval that it lies in.

use super::{ABOVE, BELOW, PlotColor, PlotText, PlotWidth, RIGHT, axes, row_label, short, svg, text_style};
use plotters::prelude::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct BarRow {
    /// What it is of.
    pub label: String,
    /// The figure; none where it is not known.
    pub value: Option<f64>,
    /// Between which values it lies; none where that is not known.
    pub interval: Option<(f64, f64)>,
    /// What it is held against: a line through the row where the axis reaches so far.
    pub nominal: Option<f64>,
    /// As it is written beside the bar.
    pub words: String,
    /// Its colour.
    pub color: PlotColor,
}

/// How far a bar reaches by its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BarScale {
    /// Twice as far is twice as much.
    #[default]
    Linear,
    /// As far again is ten times as much: figures that are far apart are read beside each other.
    Logarithmic,
}

/// Bars below each other.
#[derive(Debug, Clone, PartialEq)]
pub struct BarPlot {
    /// Whether its axis starts with 0, or with a power of ten.
    pub scale: BarScale,
    /// The figure with its unit.
    pub x_label: String,
    /// From the top.
    pub rows: Vec<BarRow>,
}

/// An axis is made as long as this times its longest bar for what that is held against, and no longer.
const STRETCH: f64 = 3.0;

impl BarPlot {
    /// The rows whose nominal value lies beyond the axis.
    pub fn beyond(&self) -> impl Iterator<Item = &BarRow> {
        let reach = self.reach();
        self.rows.iter().filter(move |row| row.nominal.is_some_and(|nominal| nominal > reach))
    }

    fn reach(&self) -> f64 {
        STRETCH * largest(&self.rows, |row| row.value)
    }
}

fn largest(rows: &[BarRow], of: fn(&BarRow) -> Option<f64>) -> f64 {
    rows.iter().filter_map(of).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

const ROW: u32 = 30;
/// About the width of a character, units of the drawing.
const CHARACTER: f64 = 7.6;

/// Values as places on an axis.
#[derive(Debug, Clone, Copy)]
struct BarAxis {
    scale: BarScale,
    /// Of a logarithmic one the power of ten that it starts with.
    power: i32,
    /// Where its last figure stands: behind it are words.
    last: f64,
}

impl BarAxis {
    #[allow(clippy::cast_possible_truncation, reason = "a power of ten of a finite number")]
    fn of(plot: &BarPlot) -> Self {
        let values = plot.rows.iter().flat_map(|row| row.value.into_iter().chain(row.interval.map(|(from, _)| from)));
        let least = values.filter(|value| value.is_finite() && *value > 0.0).fold(f64::MAX, f64::min);
        let power = if least < f64::MAX { least.log10().floor() as i32 } else { 0 };
        let axis = Self { scale: plot.scale, power, last: f64::MAX };
        let ends = largest(&plot.rows, |row| row.interval.map(|(_, to)| to).or(row.value));
        Self { last: axis.place(ends).ceil(), ..axis }
    }

    fn place(self, value: f64) -> f64 {
        match self.scale {
            BarScale::Linear => value,
            BarScale::Logarithmic if value > 0.0 => (value.log10() - f64::from(self.power)).max(0.0),
            BarScale::Logarithmic => 0.0,
        }
    }

    fn row(self, row: &BarRow) -> BarRow {
        let place = |value: f64| self.place(value);
        let interval = row.interval.map(|(from, to)| (place(from), place(to)));
        BarRow { value: row.value.map(place), interval, nominal: row.nominal.map(place), ..row.clone() }
    }

    /// What stands at a place of it.
    #[allow(clippy::cast_possible_truncation, reason = "a few powers of ten")]
    fn figure(self, place: f64) -> String {
        match self.scale {
            BarScale::Linear => short(place),
            // Between two powers nothing stands.
            BarScale::Logarithmic if (place - place.round()).abs() > 1e-6 || place > self.last + 0.5 => String::new(),
            BarScale::Logarithmic => format!("{}", 10_f64.powi(self.power + place.round() as i32)),
        }
    }
}

/// Draws them.
#[must_use]
pub fn bars(text: &PlotText, width: PlotWidth, plot: &BarPlot) -> String {
    let axis = BarAxis::of(plot);
    let plot = BarPlot { rows: plot.rows.iter().map(|row| axis.row(row)).collect(), ..plot.clone() };
    let rows = u32::try_from(plot.rows.len()).unwrap_or(u32::MAX).max(1);
    let most = largest(&plot.rows, |row| row.value);
    let ends = largest(&plot.rows, |row| row.interval.map(|(_, to)| to));
    let longest = match plot.scale {
        // An interval that says nothing does not press the bars together: it is cut off.
        BarScale::Linear => ends.clamp(most, most * 1.5),
        BarScale::Logarithmic => ends.max(most),
    };
    let nominals = plot.rows.iter().filter_map(|row| row.nominal).filter(|&nominal| nominal <= plot.reach());
    let farthest = nominals.fold(longest, f64::max);
    // Room for what is written behind the longest one.
    let label_area = width.label_area_of(plot.rows.iter().map(|row| &row.label));
    let across = f64::from(width.units() - label_area - RIGHT);
    let words = plot.rows.iter().map(|row| row.words.chars().count()).max().unwrap_or(0) as f64 * CHARACTER + 18.0;
    let room = (across / (across - words).max(across / 4.0)).max(1.3);
    let to = if longest > 0.0 { (longest * room).max(farthest * 1.02) } else { 1.0 };
    svg(text, width, ABOVE + rows * ROW + BELOW, |area| {
        let top = f64::from(rows);
        let mut chart =
            axes(area, (width, label_area), (0.0..to, Some(&plot.x_label)), (top, None), &|at| axis.figure(at))?;
        // Words beside an interval stand below each other behind all of them: none is taken for the end of one.
        let has_interval = plot.rows.iter().any(|row| row.interval.is_some());
        let free = if has_interval && plot.scale == BarScale::Linear { longest } else { 0.0 };
        for (nth, row) in plot.rows.iter().enumerate() {
            let base = top - nth as f64 - 1.0;
            row_label(area, &chart, label_area, (0.0, base + 0.5), &row.label)?;
            let value = row.value.filter(|value| value.is_finite()).unwrap_or(0.0).max(0.0);
            let bar = Rectangle::new([(0.0, base + 0.2), (value, base + 0.8)], row.color.fill(0.7));
            chart.draw_series(std::iter::once(bar))?;
            if let Some(nominal) = row.nominal.filter(|&nominal| nominal <= to) {
                let line =
                    PathElement::new(vec![(nominal, base + 0.06), (nominal, base + 0.94)], PlotColor::Text.line(2));
                chart.draw_series(std::iter::once(line))?;
            }
            let mut end = value.max(free);
            if let Some((from, to)) = row.interval.filter(|(from, to)| from.is_finite() && to.is_finite()) {
                let seen = to.min(longest);
                end = end.max(seen);
                let line = |points| PathElement::new(points, PlotColor::Text.line(2));
                let cap = |at: f64| line(vec![(at, base + 0.35), (at, base + 0.65)]);
                let mut whiskers = vec![line(vec![(from, base + 0.5), (seen, base + 0.5)]), cap(from)];
                whiskers.extend((to <= longest).then(|| cap(to)));
                chart.draw_series(whiskers)?;
            }
            let (x, y) = chart.backend_coord(&(end, base + 0.5));
            let style = text_style().pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(row.words.clone(), (x + if has_interval { 12 } else { 6 }, y), style))?;
        }
        Ok(())
    })
}
