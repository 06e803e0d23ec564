//! Tone → style: without colour by modifiers only, in the terminal's own sixteen colours, or from a palette for its background.

use super::palette::{DARK, LIGHT, Palette, TERMINAL, TERMINAL_ON_WHITE};
use crate::view::Tone;
use ratatui::style::{Modifier, Style};

/// How the terminal may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Which colours may be used.
    pub colors: Colors,
    /// Characters beyond ASCII may be used.
    pub utf8: bool,
}

/// Which colours a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// None: what matters is bold, underlined or reversed.
    None,
    /// The terminal's own sixteen, whatever they look like.
    Terminal,
    /// The colours of a palette, which looks the same everywhere.
    Palette(Palette),
}

impl Colors {
    /// The colours for a dark background or a light one, on a terminal that has `many` colours or sixteen.
    #[must_use]
    pub fn usual(is_dark: bool, many: bool) -> Self {
        match (is_dark, many) {
            (true, true) => Self::Palette(DARK),
            (false, true) => Self::Palette(LIGHT),
            (true, false) => Self::Terminal,
            (false, false) => Self::Palette(TERMINAL_ON_WHITE),
        }
    }

    /// It has 256 colours or more, by `TERM` and `COLORTERM`.
    #[must_use]
    pub fn are_many(term: Option<&str>, colorterm: Option<&str>) -> bool {
        term.is_some_and(|term| term.contains("256color") || term.contains("direct"))
            || colorterm.is_some_and(|colorterm| !colorterm.is_empty())
    }
}

/// Whether the background is dark, as some terminals tell in `COLORFGBG` (`15;0`); none where they do not.
#[must_use]
pub fn reported_dark(colorfgbg: Option<&str>) -> Option<bool> {
    match colorfgbg?.rsplit(';').next()?.parse() {
        Ok(0..=6 | 8_u8) => Some(true),
        Ok(7 | 15) => Some(false),
        _ => None,
    }
}

impl Theme {
    /// No colour at all.
    #[must_use]
    pub fn plain(utf8: bool) -> Self {
        Self { colors: Colors::None, utf8 }
    }

    /// The style of a tone.
    #[must_use]
    pub fn style(self, tone: Tone) -> Style {
        match self.colors {
            Colors::None => plain(tone),
            // Nothing is dimmed: a palette of little contrast, as Solarized's, has none to spare.
            Colors::Terminal => TERMINAL.style(tone),
            Colors::Palette(palette) => palette.style(tone),
        }
    }

    /// What lies over the selected row.
    #[must_use]
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

fn plain(tone: Tone) -> Style {
    let modifier = match tone {
        Tone::Normal
        | Tone::Title
        | Tone::Good
        | Tone::Curve(_)
        | Tone::CurveEdge(_)
        | Tone::LostEdge(_)
        | Tone::PlacedEdge(_)
        | Tone::Node(_) => {
            return Style::new();
        }
        Tone::Muted | Tone::Line | Tone::CurveDim | Tone::Placed | Tone::NodeDim(_) => Modifier::DIM,
        Tone::Moved(_) | Tone::OnCurve(_) => Modifier::REVERSED,
        Tone::Header
        | Tone::FocusedTitle
        | Tone::Key
        | Tone::Accent
        | Tone::Warning
        | Tone::Dip
        | Tone::DipEdge
        | Tone::NodeBright(_) => Modifier::BOLD,
        // Never reversed: a full block would be empty.
        Tone::Bad | Tone::Lost | Tone::Watched => Modifier::BOLD.union(Modifier::UNDERLINED),
    };
    Style::new().add_modifier(modifier)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ratatui::style::Color;

    pub const TONES: [Tone; 19] = [
        Tone::Normal,
        Tone::Muted,
        Tone::Header,
        Tone::Title,
        Tone::FocusedTitle,
        Tone::Accent,
        Tone::Key,
        Tone::Good,
        Tone::Warning,
        Tone::Bad,
        Tone::Watched,
        Tone::Curve(0),
        Tone::Curve(7),
        Tone::Dip,
        Tone::OnCurve(3),
        Tone::Node(3),
        Tone::NodeBright(3),
        Tone::NodeDim(3),
        Tone::Moved(3),
    ];

    #[test]
    fn without_colour_no_tone_has_one() {
        let theme = Theme::plain(true);
        for tone in TONES {
            let style = theme.style(tone);
            assert_eq!((style.fg, style.bg), (None, None), "{tone:?} is told by modifiers only");
        }
        assert_ne!(theme.style(Tone::Moved(3)), theme.style(Tone::Node(3)), "a move stands out too");
        assert_ne!(theme.style(Tone::Bad), theme.style(Tone::Normal), "what is bad still stands out");
        let hides = Modifier::REVERSED.union(Modifier::HIDDEN);
        assert!(!theme.style(Tone::Bad).add_modifier.intersects(hides), "the full blocks of softirqs are no holes");
    }

    #[test]
    fn of_the_terminals_own_colours_none_is_used_that_may_be_its_background() {
        let theme = Theme { colors: Colors::Terminal, utf8: true };
        for tone in TONES.into_iter().chain((0..6).map(Tone::Node)) {
            let refused = [Color::Black, Color::Gray, Color::DarkGray, Color::White, Color::Blue];
            assert!(!theme.style(tone).fg.is_some_and(|fg| refused.contains(&fg)), "{tone:?}");
            assert!(
                !theme.style(tone).add_modifier.contains(Modifier::DIM),
                "{tone:?} stays as readable as plain text"
            );
        }
    }

    #[test]
    fn the_background_is_what_the_terminal_tells() {
        let reported = |colorfgbg| reported_dark(Some(colorfgbg));
        assert_eq!(["15;0", "0;default;15", "0;7"].map(reported), [Some(true), Some(false), Some(false)]);
        assert_eq!(["a;b", ""].map(reported), [None; 2], "what cannot be read is nothing");
        assert_eq!(reported_dark(None), None, "nothing is told");
        assert_eq!(Colors::usual(true, false), Colors::Terminal, "sixteen are the terminal's own");
        assert!(Colors::are_many(Some("xterm"), Some("truecolor")) && !Colors::are_many(Some("linux"), None));
    }
}
