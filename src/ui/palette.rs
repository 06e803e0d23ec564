//! The colours of a dark and of a light background, from the 256 that terminals have beside their own sixteen: these look the same
//! everywhere, so that a test can compute how readable they are.

use crate::view::Tone;
use ratatui::style::{Color, Modifier, Style};

/// The colours of a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the tones")]
pub struct Palette {
    pub muted: Color,
    /// Borders and scales.
    pub line: Color,
    /// What is good, what warns, what is bad.
    pub good: Color,
    pub warning: Color,
    pub bad: Color,
    pub accent: Color,
    pub key: Color,
    pub watched: Color,
    /// The curve of a rate, from its highest rows to its foot.
    pub curve: [Color; 8],
    /// From the lowest to the highest rate of a column.
    pub curve_dim: Color,
    /// A ground: what was lost above a curve.
    pub lost: Color,
    /// The ground of a time in which something was pinned.
    pub placed: Color,
    /// NUMA nodes; neighbours differ.
    pub nodes: [Color; 6],
    /// NUMA nodes, weaker.
    pub nodes_dim: [Color; 6],
}

/// Colours by their number.
const fn numbered<const N: usize>(numbers: [u8; N]) -> [Color; N] {
    let mut colors = [Color::Reset; N];
    let mut at = 0;
    while at < N {
        colors[at] = Color::Indexed(numbers[at]);
        at += 1;
    }
    colors
}

/// Colours from one to another in equal steps.
const fn shades<const N: usize>(from: Rgb, to: Rgb) -> [Color; N] {
    #[allow(clippy::cast_possible_truncation, reason = "between two bytes")]
    const fn between(from: u8, to: u8, at: usize, steps: usize) -> u8 {
        ((from as usize * (steps - at) + to as usize * at) / steps) as u8
    }
    let mut colors = [Color::Reset; N];
    let mut at = 0;
    while at < N {
        let part = [
            between(from[0], to[0], at, N - 1),
            between(from[1], to[1], at, N - 1),
            between(from[2], to[2], at, N - 1),
        ];
        colors[at] = Color::Rgb(part[0], part[1], part[2]);
        at += 1;
    }
    colors
}

/// For black and nearly black.
pub(super) const DARK: Palette = Palette {
    muted: Color::Indexed(247),
    line: Color::Indexed(242),
    good: Color::Indexed(114),
    warning: Color::Indexed(221),
    bad: Color::Indexed(210),
    accent: Color::Indexed(80),
    key: Color::Indexed(179),
    watched: Color::Indexed(213),
    curve: shades([0x5f, 0xd7, 0xd7], [0x35, 0x79, 0xa3]),
    curve_dim: Color::Rgb(0x1f, 0x42, 0x52),
    lost: Color::Rgb(0xb4, 0x46, 0x50),
    placed: Color::Rgb(0x2a, 0x2a, 0x3c),
    nodes: numbered([80, 177, 111, 114, 179, 209]),
    nodes_dim: numbered([73, 140, 110, 108, 137, 173]),
};

/// For white and nearly white.
pub(super) const LIGHT: Palette = Palette {
    muted: Color::Indexed(240),
    line: Color::Indexed(246),
    good: Color::Indexed(22),
    warning: Color::Indexed(94),
    bad: Color::Indexed(124),
    accent: Color::Indexed(24),
    key: Color::Indexed(94),
    watched: Color::Indexed(90),
    curve: shades([0x00, 0x5f, 0x87], [0x45, 0x8a, 0xb0]),
    curve_dim: Color::Rgb(0xcd, 0xdf, 0xe8),
    lost: Color::Rgb(0xd9, 0x7f, 0x7f),
    placed: Color::Rgb(0xe9, 0xe6, 0xf2),
    nodes: numbered([24, 90, 19, 22, 94, 124]),
    nodes_dim: numbered([31, 133, 62, 65, 136, 131]),
};

/// The terminal's own. Neighbouring nodes differ; never blue, which few can read on black, nor grey: on many palettes both are
/// the background's.
const NODES: [Color; 6] = [Color::Cyan, Color::Magenta, Color::LightBlue, Color::Green, Color::Yellow, Color::Red];
pub(super) const TERMINAL: Palette = Palette {
    muted: Color::Reset,
    line: Color::Reset,
    good: Color::Green,
    warning: Color::Yellow,
    bad: Color::Red,
    accent: Color::Cyan,
    key: Color::Yellow,
    watched: Color::Magenta,
    curve: [Color::Cyan; 8],
    curve_dim: Color::Cyan,
    lost: Color::Red,
    placed: Color::Reset,
    nodes: NODES,
    nodes_dim: NODES,
};

/// Colours of the terminal's sixteen that are dark on most palettes: green, yellow and cyan cannot be read on white.
const NODES_ON_WHITE: [Color; 6] = [Color::Blue, Color::Magenta, Color::Reset, Color::Red, Color::Blue, Color::Magenta];
pub(super) const TERMINAL_ON_WHITE: Palette = Palette {
    muted: Color::Reset,
    line: Color::Reset,
    good: Color::Reset,
    warning: Color::Magenta,
    bad: Color::Red,
    accent: Color::Blue,
    key: Color::Blue,
    watched: Color::Magenta,
    curve: [Color::Blue; 8],
    curve_dim: Color::Blue,
    lost: Color::Red,
    placed: Color::Reset,
    nodes: NODES_ON_WHITE,
    nodes_dim: NODES_ON_WHITE,
};

/// A name with its colour, as theme files have them.
pub type NamedColor = (&'static str, fn(&mut Palette) -> &mut Color);

/// The colours that a theme file may name, beside the two lists of nodes.
pub const NAMED: [NamedColor; 7] = [
    ("muted", |palette| &mut palette.muted),
    ("good", |palette| &mut palette.good),
    ("warning", |palette| &mut palette.warning),
    ("bad", |palette| &mut palette.bad),
    ("accent", |palette| &mut palette.accent),
    ("key", |palette| &mut palette.key),
    ("watched", |palette| &mut palette.watched),
];

impl Palette {
    /// The palette for a dark background, or for a light one.
    #[must_use]
    pub fn usual(dark: bool) -> Self {
        if dark { DARK } else { LIGHT }
    }

    /// The palette for a terminal that has only the 256 numbered colours: each colour is replaced by the nearest of them.
    #[must_use]
    pub fn numbered(mut self) -> Self {
        let named = NAMED.map(|(_, color)| color);
        for color in named {
            *color(&mut self) = nearest(*color(&mut self));
        }
        (self.nodes, self.nodes_dim) = (self.nodes.map(nearest), self.nodes_dim.map(nearest));
        (self.curve_dim, self.placed) = match (self.curve_dim, self.placed) {
            // The nearest of both are alike.
            dark if dark == (DARK.curve_dim, DARK.placed) => (Color::Indexed(238), Color::Indexed(236)),
            (range, ground) => (nearest(range), nearest(ground)),
        };
        self.lost = nearest(self.lost);
        // The nearest of each shade are of other hues.
        self.curve = match self.curve {
            shades if shades == DARK.curve => numbered([80, 80, 74, 74, 74, 67, 67, 67]),
            shades if shades == LIGHT.curve => numbered([24, 24, 24, 24, 31, 31, 31, 31]),
            shades => shades.map(nearest),
        };
        self
    }

    /// What is too weak to be read on the usual backgrounds, black and Solarized's dark one or white and its light one: a name, its
    /// contrast there, and the least that is readable (WCAG 2: 4.5 : 1 for text, 3 : 1 for marks).
    #[must_use]
    pub fn weak(mut self, dark: bool) -> Vec<(&'static str, f64, f64)> {
        let backgrounds = if dark { [BLACK, SOLARIZED_DARK] } else { [WHITE, SOLARIZED_LIGHT] };
        let against = |color: Color| {
            let color = rgb(color)?;
            backgrounds.map(|background| contrast(color, background)).into_iter().reduce(f64::min)
        };
        let named = NAMED.map(|(name, color)| (name, *color(&mut self), 4.5));
        let nodes = self.nodes.map(|color| ("nodes", color, 4.5));
        let weak_nodes = self.nodes_dim.map(|color| ("nodes_weak", color, 3.0));
        let all = named.into_iter().chain(nodes).chain(weak_nodes);
        let reported = all.filter_map(|(name, color, least)| Some((name, against(color)?, least)));
        reported.filter(|(_, is, least)| is < least).collect()
    }

    /// Before the range of a column's rates, where that has a shade of its own.
    fn on_range(&self, style: Style) -> Style {
        if is_fixed(self.curve_dim) { style.bg(self.curve_dim) } else { style }
    }

    /// Behind the empty part of a time, where that has a ground of its own.
    fn on_placed(&self, style: Style) -> Style {
        if is_fixed(self.placed) { style.bg(self.placed) } else { style }
    }

    /// The style of a tone. Plain text and titles have the terminal's own colour.
    #[must_use]
    pub fn style(&self, tone: Tone) -> Style {
        let bold = Modifier::BOLD;
        let shade = |depth: u8| indexed(self.curve[usize::from(depth).min(self.curve.len() - 1)]);
        let node = |of: &[Color; 6], number: u8| indexed(of[usize::from(number) % of.len()]);
        match tone {
            Tone::Normal | Tone::Title => Style::new(),
            Tone::Header => Style::new().add_modifier(bold),
            Tone::Muted => indexed(self.muted),
            Tone::Line => indexed(self.line),
            Tone::FocusedTitle | Tone::Accent => indexed(self.accent).add_modifier(bold),
            Tone::Key => indexed(self.key),
            Tone::Good => indexed(self.good),
            // Blue beside the warning's yellow: they differ for every eye.
            Tone::LostEdge(depth) if is_fixed(self.lost) => shade(depth).bg(self.lost),
            Tone::Curve(depth) | Tone::LostEdge(depth) => shade(depth),
            Tone::OnCurve(depth) => shade(depth).add_modifier(Modifier::REVERSED),
            Tone::CurveDim => indexed(self.curve_dim),
            Tone::Lost => indexed(self.lost),
            Tone::Placed => self.on_placed(indexed(self.line)),
            Tone::PlacedEdge(depth) => self.on_placed(shade(depth)),
            Tone::CurveEdge(depth) => self.on_range(shade(depth)),
            Tone::DipEdge => self.on_range(indexed(self.warning).add_modifier(bold)),
            Tone::Warning | Tone::Dip => indexed(self.warning).add_modifier(bold),
            Tone::Bad => indexed(self.bad).add_modifier(bold),
            Tone::Watched => indexed(self.watched).add_modifier(bold.union(Modifier::UNDERLINED)),
            Tone::Node(number) => node(&self.nodes, number),
            Tone::NodeBright(number) | Tone::Moved(number) => node(&self.nodes, number).add_modifier(bold),
            Tone::NodeDim(number) => node(&self.nodes_dim, number),
        }
    }
}

/// A colour that is the same on every terminal, so that a weaker one of its kind is known to be weaker.
pub(super) const fn is_fixed(color: Color) -> bool {
    matches!(color, Color::Rgb(..) | Color::Indexed(16..))
}

fn indexed(color: Color) -> Style {
    Style::new().fg(color)
}

type Rgb = [u8; 3];

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
const SOLARIZED_DARK: Rgb = [0x00, 0x2b, 0x36];
const SOLARIZED_LIGHT: Rgb = [0xfd, 0xf6, 0xe3];

/// What a colour is on every terminal; none of the first sixteen, which differ from one to the next. Above them lies a cube of six
/// steps a colour, then greys.
fn rgb(color: Color) -> Option<Rgb> {
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match color {
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Indexed(number @ 16..232) => {
            Some([(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6].map(step))
        }
        Color::Indexed(number @ 232..) => Some([8 + 10 * (number - 232); 3]),
        _ => None,
    }
}

/// The numbered colour that differs least.
fn nearest(color: Color) -> Color {
    let Color::Rgb(..) = color else { return color };
    let Some(wanted) = rgb(color) else { return color };
    let distance = |number: &u8| -> u32 {
        let parts = rgb(Color::Indexed(*number)).unwrap_or_default();
        parts.into_iter().zip(wanted).map(|(part, wanted)| u32::from(part.abs_diff(wanted)).pow(2)).sum()
    };
    (16..=255).min_by_key(distance).map_or(color, Color::Indexed)
}

/// Black is read better on it than white.
#[must_use]
pub fn is_light(background: Rgb) -> bool {
    contrast(BLACK, background) > contrast(WHITE, background)
}

/// WCAG 2: 1 is the same, 21 is black on white.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let linear = |part: u8| match f64::from(part) / 255.0 {
        low if low <= 0.03928 => low / 12.92,
        high => ((high + 0.055) / 1.055).powf(2.4),
    };
    let luminance = |[r, g, b]: Rgb| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

#[cfg(test)]
mod tests {
    use super::super::theme::tests::TONES;
    use super::*;

    #[test]
    fn every_text_is_readable_on_the_backgrounds_of_its_palette() {
        let backgrounds = [(&DARK, [BLACK, SOLARIZED_DARK]), (&LIGHT, [WHITE, SOLARIZED_LIGHT])];
        for (palette, backgrounds) in
            backgrounds.into_iter().flat_map(|(palette, on)| [(*palette, on), (palette.numbered(), on)])
        {
            for background in backgrounds {
                for tone in (0..6)
                    .flat_map(|n| [Tone::Node(n), Tone::NodeBright(n), Tone::NodeDim(n), Tone::Moved(n)])
                    .chain(TONES)
                {
                    let style = palette.style(tone);
                    let Some(color) = style.fg else { continue };
                    let fixed = rgb(color).unwrap_or_else(|| panic!("{color} looks different on each terminal"));
                    // What is weak on purpose is a mark in a lane, or the foot of a curve.
                    let least =
                        if matches!(tone, Tone::NodeDim(_) | Tone::Curve(1..) | Tone::OnCurve(_)) { 3.0 } else { 4.5 };
                    let is = contrast(fixed, background);
                    assert!(
                        is >= least,
                        "{tone:?} is {color}, {is:.1} : 1 on {background:x?}, at least {least} is wanted"
                    );
                    assert!(!style.add_modifier.contains(Modifier::DIM), "{tone:?} would be weaker than computed");
                }
            }
        }
    }

    #[test]
    fn the_curve_is_seen_before_the_range_above_it_and_that_before_what_lies_behind() {
        let of = |color: Color| rgb(color).expect("the same everywhere");
        for (palette, backgrounds) in [(DARK, [BLACK, SOLARIZED_DARK]), (LIGHT, [WHITE, SOLARIZED_LIGHT])] {
            let each = [palette, palette.numbered()].into_iter().flat_map(|one| backgrounds.map(|on| (one, on)));
            for (palette, background) in each {
                let [curve, range, ground] =
                    [palette.curve[7], palette.curve_dim, palette.placed].map(|color| contrast(of(color), background));
                assert!(curve > 2.0 * range, "{curve:.2} and {range:.2} on {background:x?}");
                assert!(range > ground && ground > 1.04, "{range:.2} and {ground:.2} on {background:x?}");
                let lost = contrast(of(palette.lost), background);
                assert!(lost > 2.4, "an area that is lost, {lost:.2} on {background:x?}");
            }
        }
    }

    #[test]
    fn of_sixteen_colours_those_for_white_are_readable_there() {
        // What xterm's sixteen are where nobody has chosen others; plain text is black.
        let xterm = |color: Color| match color {
            Color::Red => [0xcd, 0, 0],
            Color::Magenta => [0xcd, 0, 0xcd],
            Color::Blue => [0, 0, 0xee],
            Color::Reset => BLACK,
            other => panic!("{other} is not readable on white"),
        };
        for tone in (0..6).flat_map(|n| [Tone::Node(n), Tone::NodeDim(n), Tone::Moved(n)]).chain(TONES) {
            let is = contrast(xterm(TERMINAL_ON_WHITE.style(tone).fg.unwrap_or(Color::Reset)), WHITE);
            assert!(is >= 4.5, "{tone:?}: {is:.1} : 1");
        }
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 0.01, "the most there is");
        assert!((contrast([0x76; 3], WHITE) - 4.54).abs() < 0.01, "a known grey");
        let known = [16, 231, 232, 114].map(|number| rgb(Color::Indexed(number)));
        assert_eq!(known, [[0; 3], [255; 3], [8; 3], [0x87, 0xd7, 0x87]].map(Some));
        assert_eq!(nearest(Color::Rgb(0x88, 0xd6, 0x87)), Color::Indexed(114), "on a terminal with 256 colours");
    }

    #[test]
    fn what_is_too_weak_is_told_by_its_name() {
        assert!(DARK.weak(true).is_empty() && LIGHT.weak(false).is_empty(), "those that come along are readable");
        let weak = Palette { muted: Color::Rgb(0x33, 0x33, 0x33), ..DARK }.weak(true);
        assert!(matches!(weak.as_slice(), [("muted", is, _)] if *is < 2.0), "{weak:?}");
    }
}
