//! The colours of a dark and of a light background, from the 256 that terminals have beside their own sixteen: these look the same
//! everywhere, so that a test can compute how readable they are.

use crate::view::Tone;
use ratatui::style::{Color, Modifier, Style};

/// Colours by their number, 16 to 255.
#[derive(Debug)]
pub(super) struct Palette {
    muted: u8,
    /// What is good, what warns, what is bad.
    good: u8,
    warning: u8,
    bad: u8,
    accent: u8,
    key: u8,
    watched: u8,
    /// Of neighbouring nodes.
    nodes: [u8; 6],
    /// The same, weaker.
    nodes_dim: [u8; 6],
}

/// For black and nearly black.
pub(super) const DARK: Palette = Palette {
    muted: 247,
    good: 114,
    warning: 221,
    bad: 210,
    accent: 80,
    key: 179,
    watched: 213,
    nodes: [80, 177, 111, 114, 179, 209],
    nodes_dim: [73, 140, 110, 108, 137, 173],
};

/// For white and nearly white.
pub(super) const LIGHT: Palette = Palette {
    muted: 240,
    good: 22,
    warning: 94,
    bad: 124,
    accent: 24,
    key: 94,
    watched: 90,
    nodes: [24, 90, 19, 22, 94, 124],
    nodes_dim: [31, 133, 62, 65, 136, 131],
};

impl Palette {
    /// The style of a tone. Plain text and titles have the terminal's own colour.
    pub fn style(&self, tone: Tone) -> Style {
        let bold = Modifier::BOLD;
        let node = |of: &[u8; 6], number: u8| indexed(of[usize::from(number) % of.len()]);
        match tone {
            Tone::Normal | Tone::Title => Style::new(),
            Tone::Header => Style::new().add_modifier(bold),
            Tone::Muted => indexed(self.muted),
            Tone::FocusedTitle | Tone::Accent => indexed(self.accent).add_modifier(bold),
            Tone::Key => indexed(self.key),
            Tone::Good => indexed(self.good),
            Tone::Warning => indexed(self.warning).add_modifier(bold),
            Tone::Bad => indexed(self.bad).add_modifier(bold),
            Tone::Watched => indexed(self.watched).add_modifier(bold.union(Modifier::UNDERLINED)),
            Tone::Node(number) => node(&self.nodes, number),
            Tone::NodeBright(number) => node(&self.nodes, number).add_modifier(bold),
            Tone::NodeDim(number) => node(&self.nodes_dim, number),
            Tone::Moved(number) => node(&self.nodes, number).add_modifier(Modifier::REVERSED),
        }
    }
}

fn indexed(number: u8) -> Style {
    Style::new().fg(Color::Indexed(number))
}

#[cfg(test)]
mod tests {
    use super::super::theme::tests::TONES;
    use super::*;

    type Rgb = [u8; 3];

    const BLACK: Rgb = [0, 0, 0];
    const WHITE: Rgb = [255, 255, 255];
    const SOLARIZED_DARK: Rgb = [0x00, 0x2b, 0x36];
    const SOLARIZED_LIGHT: Rgb = [0xfd, 0xf6, 0xe3];

    /// What a number stands for: a cube of six steps a colour, then greys.
    fn rgb(number: u8) -> Rgb {
        let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
        match number {
            0..16 => panic!("{number} looks different on each terminal"),
            16..232 => [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6].map(step),
            232.. => [8 + 10 * (number - 232); 3],
        }
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

    #[test]
    fn every_text_is_readable_on_the_backgrounds_of_its_palette() {
        let backgrounds = [(&DARK, [BLACK, SOLARIZED_DARK]), (&LIGHT, [WHITE, SOLARIZED_LIGHT])];
        for (palette, backgrounds) in backgrounds {
            for background in backgrounds {
                for tone in (0..6)
                    .flat_map(|n| [Tone::Node(n), Tone::NodeBright(n), Tone::NodeDim(n), Tone::Moved(n)])
                    .chain(TONES)
                {
                    let style = palette.style(tone);
                    let Some(Color::Indexed(number)) = style.fg else { continue };
                    // What is weak on purpose is a mark in a lane.
                    let least = if matches!(tone, Tone::NodeDim(_)) { 3.0 } else { 4.5 };
                    let is = contrast(rgb(number), background);
                    assert!(
                        is >= least,
                        "{tone:?} is {number}, {is:.1} : 1 on {background:x?}, at least {least} is wanted"
                    );
                    assert!(!style.add_modifier.contains(Modifier::DIM), "{tone:?} would be weaker than computed");
                }
            }
        }
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 0.01, "the most there is");
        assert!((contrast([0x76; 3], WHITE) - 4.54).abs() < 0.01, "a known grey");
        assert_eq!([rgb(16), rgb(231), rgb(232), rgb(114)], [[0; 3], [255; 3], [8; 3], [0x87, 0xd7, 0x87]]);
    }
}
