//! Plots as SVG text that stands inside an HTML page: a role, a title and a description for who cannot see it, colours of the
//! page's style sheet (light and dark, paper), nothing that is fetched. What is drawn is given; nothing is computed here.

mod bars;
mod flame;
mod heat;
mod lines;
mod marks;
mod strips;

pub use bars::{BarPlot, BarRow, BarScale, bars};
pub use flame::{FlameFrame, flame};
pub use heat::{HeatPlot, HeatRow, heat};
pub use lines::{Lane, LinePlot, LineSeries, lines};
pub use marks::{PlotDone, PlotPhase};
pub use strips::{StripPlot, StripRow, StripRun, strips};

use maud::{PreEscaped, html};
use plotters::chart::{ChartContext, MeshStyle};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, RGBColor, SVGBackend, Text,
    TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle};

/// What is read where the plot cannot be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlotText {
    /// Its name, as it stands above it.
    pub title: String,
    /// What it shows, in a sentence or two with the figures that matter.
    pub description: String,
}

/// For how wide a page it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotWidth {
    /// A screen or paper.
    Wide,
    /// A phone.
    Narrow,
}

impl PlotWidth {
    /// Units of the drawing: about a pixel each.
    pub(super) fn units(self) -> u32 {
        match self {
            Self::Wide => 960,
            Self::Narrow => 380,
        }
    }

    fn labels(self) -> usize {
        match self {
            Self::Wide => 11,
            Self::Narrow => 6,
        }
    }

    fn label_area(self) -> u32 {
        match self {
            Self::Wide => 118,
            Self::Narrow => 98,
        }
    }

    /// Room for rows of these names, of which a part is cut where they would take most of the drawing.
    fn label_area_of<'a>(self, names: impl Iterator<Item = &'a String>) -> u32 {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let needed = u32::try_from(longest).unwrap_or(u32::MAX).saturating_mul(NAME_CHARACTER).saturating_add(10);
        needed.clamp(self.label_area(), (self.units() * 2 / 5).min(220))
    }
}

/// Width of a character of a row's name, as it is printed, rounded up.
const NAME_CHARACTER: u32 = 8;

/// A colour of the page: the style sheet says which it is in the light, in the dark and on paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PlotColor {
    /// That of the page's text.
    Text = 1,
    /// Lines that lead the eye.
    Grid,
    /// That of what is behind.
    Back,
    /// The rate, and what is as usual.
    Blue,
    /// What was done or changed.
    Orange,
    /// What was lost.
    Red,
    /// A core among several.
    Green,
    /// Migrations, and a core among several.
    Purple,
    /// A core among several.
    Teal,
    /// A core among several.
    Brown,
    /// Of too many to tell apart.
    Gray,
    /// A line that something is held against: that of too many, with gaps.
    Dashed,
}

/// Each with what it is in the page.
const COLORS: [(PlotColor, &str); 12] = [
    (PlotColor::Text, "currentColor"),
    (PlotColor::Grid, "var(--grid)"),
    (PlotColor::Back, "var(--back)"),
    (PlotColor::Blue, "var(--blue)"),
    (PlotColor::Orange, "var(--orange)"),
    (PlotColor::Red, "var(--red)"),
    (PlotColor::Green, "var(--green)"),
    (PlotColor::Purple, "var(--purple)"),
    (PlotColor::Teal, "var(--teal)"),
    (PlotColor::Brown, "var(--brown)"),
    (PlotColor::Gray, "var(--gray)"),
    (PlotColor::Dashed, "var(--gray)\" stroke-dasharray=\"6 4"),
];

impl PlotColor {
    /// What it is in the page.
    fn css(self) -> &'static str {
        COLORS.iter().find(|(color, _)| *color == self).map_or("currentColor", |(_, name)| name)
    }

    /// A colour that the library can write, and that nothing else has: replaced once it is drawn.
    fn rgb(self) -> RGBColor {
        RGBColor(1, 0, self as u8)
    }

    fn fill(self, opacity: f64) -> ShapeStyle {
        self.rgb().mix(opacity).filled()
    }

    fn line(self, width: u32) -> ShapeStyle {
        self.rgb().stroke_width(width)
    }
}

/// An axis of time: seconds, with the unit that suits its length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotTime {
    /// Where it begins, seconds.
    pub from_s: f64,
    /// Where it ends, seconds.
    pub to_s: f64,
}

/// An axis of so many seconds has minutes.
pub const MINUTES_FROM_S: f64 = 300.0;

impl PlotTime {
    fn unit(self) -> (f64, &'static str) {
        match self.to_s - self.from_s {
            7200.0.. => (3600.0, "time, h"),
            MINUTES_FROM_S.. => (60.0, "time, min"),
            _ => (1.0, "time, s"),
        }
    }

    /// Never without a length.
    fn range(self) -> std::ops::Range<f64> {
        let (scale, _) = self.unit();
        let from = if self.from_s.is_finite() { self.from_s } else { 0.0 };
        let to = if self.to_s.is_finite() { self.to_s } else { from };
        from / scale..to.max(from + 0.1) / scale
    }
}

type PlotArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type DrawnOrNot = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const FONT: &str = "sans-serif";
const TEXT: u32 = 13;
const ABOVE: u32 = 24;
const BELOW: u32 = 44;
const RIGHT: u32 = 14;

fn text_style<'a>() -> TextStyle<'a> {
    (FONT, TEXT).into_font().color(&PlotColor::Text.rgb())
}

/// Draws on an area of this size, and makes a part of a page of it.
fn svg(text: &PlotText, width: PlotWidth, height: u32, draw: impl FnOnce(&PlotArea<'_>) -> DrawnOrNot) -> String {
    let mut drawn = String::new();
    let ok = {
        let area = SVGBackend::with_string(&mut drawn, (width.units(), height)).into_drawing_area();
        draw(&area).and_then(|()| area.present())
    };
    let inner = drawn.split_once('>').map_or("", |(_, rest)| rest).trim_end().trim_end_matches("</svg>");
    let mut inner = inner.replace(" opacity=\"1\"", "").replace(" stroke=\"none\"", "").replace("/>\n", "/>");
    for (color, name) in COLORS {
        let RGBColor(red, green, blue) = color.rgb();
        inner = inner.replace(&format!("\"#{red:02X}{green:02X}{blue:02X}\""), &format!("\"{name}\""));
    }
    if ok.is_err() {
        inner = html! { text x="8" y="24" fill="currentColor" { "This plot could not be drawn." } }.into_string();
    }
    framed(text, width, height, &inner)
}

/// What is drawn as a part of a page.
fn framed(text: &PlotText, width: PlotWidth, height: u32, inner: &str) -> String {
    let class = if width == PlotWidth::Wide { "wide" } else { "narrow" };
    html! {
        svg class=(class) role="img" viewBox=(format!("0 0 {} {height}", width.units())) {
            title { (text.title) }
            desc { (text.description) }
            (PreEscaped(inner))
        }
    }
    .into_string()
}

/// Axes below and at the left; `y` is where it ends, and none where it has rows instead.
fn chart<'a>(
    area: &PlotArea<'a>,
    width: PlotWidth,
    (x, x_label): (PlotTime, bool),
    (y_to, y_label): (f64, Option<&str>),
) -> Result<Chart<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let (_, unit) = x.unit();
    axes(area, (width, width.label_area()), (x.range(), x_label.then_some(unit)), (y_to, y_label), &short)
}

/// A figure of an axis without needless digits.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn axes<'a>(
    area: &PlotArea<'a>,
    (width, label_area): (PlotWidth, u32),
    (x, x_label): (std::ops::Range<f64>, Option<&str>),
    (y_to, y_label): (f64, Option<&str>),
    x_figure: &dyn Fn(f64) -> String,
) -> Result<Chart<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(ABOVE)
        .margin_right(RIGHT)
        .set_left_and_bottom_label_area_size(0)
        .x_label_area_size(if x_label.is_some() { BELOW } else { 6 })
        .y_label_area_size(label_area)
        .build_cartesian_2d(x, 0.0..y_to)?;
    let (x_figure, y_figure) = (|at: &f64| x_figure(*at), |at: &f64| short(*at));
    let mut mesh: MeshStyle<'_, '_, _, _, _> = chart.configure_mesh();
    mesh.axis_style(PlotColor::Grid.line(1))
        .bold_line_style(PlotColor::Grid.line(1))
        .max_light_lines(0)
        .label_style(text_style())
        .axis_desc_style(text_style())
        .x_label_formatter(&x_figure)
        .y_label_formatter(&y_figure)
        .x_labels(if x_label.is_some() { width.labels() } else { 0 })
        .disable_x_mesh();
    match y_label {
        Some(label) => mesh.y_labels(6).y_desc(label),
        None => mesh.y_labels(0).disable_y_mesh(),
    };
    mesh.x_desc(x_label.unwrap_or_default()).draw()?;
    Ok(chart)
}

/// A word left of a row, as far as there is room.
fn row_label(area: &PlotArea<'_>, chart: &Chart<'_>, label_area: u32, at: (f64, f64), word: &str) -> DrawnOrNot {
    let most = (label_area / NAME_CHARACTER) as usize;
    let count = word.chars().count();
    let short: String = if count > most {
        word.chars().take(most.saturating_sub(1)).chain(std::iter::once('…')).collect()
    } else {
        word.to_owned()
    };
    let (x, y) = inside(area, chart.backend_coord(&at));
    let style = text_style().pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(short, (x - 6, y), style))
}

/// A place of the whole drawing, counted from the corner of a part of it.
fn inside(area: &PlotArea<'_>, (x, y): (i32, i32)) -> (i32, i32) {
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

#[cfg(test)]
mod tests;
