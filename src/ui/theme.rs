//! Tone → style. Colours are the terminal's own sixteen, so they follow its theme; without colour, modifiers only.

use crate::view::Tone;
use ratatui::style::{Color, Modifier, Style};

/// How the terminal may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours may be used.
    pub color: bool,
    /// Characters beyond ASCII may be used.
    pub utf8: bool,
}

/// Neighbouring nodes differ.
const NODES: [Color; 6] = [Color::Cyan, Color::Magenta, Color::Blue, Color::Green, Color::Yellow, Color::Red];

impl Theme {
    /// The style of a tone.
    #[must_use]
    pub fn style(self, tone: Tone) -> Style {
        if self.color { colored(tone) } else { plain(tone) }
    }

    /// What lies over the selected row.
    #[must_use]
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

fn colored(tone: Tone) -> Style {
    let style = Style::new();
    match tone {
        Tone::Normal => style,
        Tone::Muted => style.fg(Color::DarkGray),
        Tone::Header => style.fg(Color::Gray).add_modifier(Modifier::BOLD),
        Tone::Title => style.fg(Color::Gray),
        Tone::FocusedTitle | Tone::Accent => style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
        Tone::Key => style.fg(Color::Yellow),
        Tone::Good => style.fg(Color::Green),
        Tone::Warning => style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Tone::Bad => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Watched => style.fg(Color::Magenta).add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
        Tone::Node(number) => style.fg(node(number)),
        Tone::NodeBright(number) => style.fg(node(number)).add_modifier(Modifier::BOLD),
        Tone::NodeDim(number) => style.fg(node(number)).add_modifier(Modifier::DIM),
        Tone::Moved(number) => style.fg(node(number)).add_modifier(Modifier::REVERSED),
    }
}

fn node(number: u8) -> Color {
    NODES[usize::from(number) % NODES.len()]
}

fn plain(tone: Tone) -> Style {
    let modifier = match tone {
        Tone::Normal | Tone::Title | Tone::Good | Tone::Node(_) => return Style::new(),
        Tone::Muted | Tone::NodeDim(_) => Modifier::DIM,
        Tone::Moved(_) => Modifier::REVERSED,
        Tone::Header | Tone::FocusedTitle | Tone::Key | Tone::Accent | Tone::Warning | Tone::NodeBright(_) => {
            Modifier::BOLD
        }
        Tone::Bad => Modifier::BOLD.union(Modifier::REVERSED),
        Tone::Watched => Modifier::BOLD.union(Modifier::UNDERLINED),
    };
    Style::new().add_modifier(modifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TONES: [Tone; 15] = [
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
        Tone::Node(3),
        Tone::NodeBright(3),
        Tone::NodeDim(3),
        Tone::Moved(3),
    ];

    #[test]
    fn without_colour_no_tone_has_one() {
        let theme = Theme { color: false, utf8: true };
        for tone in TONES {
            let style = theme.style(tone);
            assert_eq!((style.fg, style.bg), (None, None), "{tone:?} is told by modifiers only");
        }
        assert_ne!(theme.style(Tone::Moved(3)), theme.style(Tone::Node(3)), "a move stands out too");
        assert_ne!(theme.style(Tone::Bad), theme.style(Tone::Normal), "what is bad still stands out");
    }
}
