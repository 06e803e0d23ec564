//! The background that a terminal tells when it is asked (OSC 11). The answer comes among the keys, and crossterm takes it for keys:
//! Alt-], then its characters, then Alt-\ or Ctrl-G. What does not go on like an answer is what somebody typed.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

/// Asks a terminal for its background: nothing is answered by one that does not know the question.
pub const QUESTION: &str = "\x1b]11;?\x1b\\";

/// `11;rgba:ffff/ffff/ffff/ffff`, and a little more.
const LONGEST: usize = 32;

/// Takes the answer out of what is typed.
#[derive(Debug, Default)]
pub struct Background {
    /// What came of it since it began.
    answer: Option<String>,
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundReply {
    /// No part of an answer.
    Other,
    /// A part of it, or the end of one that tells nothing.
    Part,
    /// The end of it: red, green and blue of the background.
    Color([u8; 3]),
}

impl Background {
    /// Takes in the next event.
    pub fn receive(&mut self, event: &Event) -> BackgroundReply {
        let Event::Key(KeyEvent { code, modifiers, .. }) = event else { return BackgroundReply::Other };
        let (alt, ctrl) = (modifiers.contains(KeyModifiers::ALT), modifiers.contains(KeyModifiers::CONTROL));
        let Some(mut answer) = self.answer.take() else {
            if *code != KeyCode::Char(']') || !alt {
                return BackgroundReply::Other;
            }
            self.answer = Some(String::new());
            return BackgroundReply::Part;
        };
        match code {
            KeyCode::Char('\\') if alt => color(&answer).map_or(BackgroundReply::Part, BackgroundReply::Color),
            KeyCode::Char('g') if ctrl => color(&answer).map_or(BackgroundReply::Part, BackgroundReply::Color),
            KeyCode::Esc => color(&answer).map_or(BackgroundReply::Other, BackgroundReply::Color),
            KeyCode::Char(c) if !alt && !ctrl => {
                answer.push(*c);
                if !may_go_on(&answer) {
                    return BackgroundReply::Other;
                }
                self.answer = Some(answer);
                BackgroundReply::Part
            }
            _ => BackgroundReply::Other,
        }
    }
}

fn may_go_on(answer: &str) -> bool {
    const START: &str = "11;rgb";
    let rest = answer.strip_prefix(START);
    let is_color = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '/');
    answer.len() <= LONGEST && rest.map_or(START.starts_with(answer), |rest| rest.chars().all(is_color))
}

/// `11;rgb:RRRR/GGGG/BBBB`, of one to four digits each; some terminals add how opaque it is (`rgba:`).
fn color(answer: &str) -> Option<[u8; 3]> {
    let parts = answer.strip_prefix("11;rgb")?;
    let mut parts = parts.strip_prefix("a:").or(parts.strip_prefix(':'))?.split('/');
    let mut part = || {
        let digits = parts.next().filter(|digits| (1..=4).contains(&digits.len()))?;
        let most = (1_u32 << (4 * digits.len())) - 1;
        u8::try_from(u32::from_str_radix(digits, 16).ok()? * 255 / most).ok()
    };
    Some([part()?, part()?, part()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events that crossterm makes of bytes.
    fn events(bytes: &str) -> Vec<Event> {
        let mut chars = bytes.chars();
        let mut events = Vec::new();
        while let Some(c) = chars.next() {
            let (code, modifiers) = match c {
                '\x1b' => match chars.next() {
                    Some(next) => (KeyCode::Char(next), KeyModifiers::ALT),
                    None => (KeyCode::Esc, KeyModifiers::NONE),
                },
                '\x07' => (KeyCode::Char('g'), KeyModifiers::CONTROL),
                c => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            events.push(Event::Key(KeyEvent::new(code, modifiers)));
        }
        events
    }

    /// The background told, and how many of the events are keys all the same.
    fn received(bytes: &str) -> (Option<[u8; 3]>, usize) {
        let mut background = Background::default();
        let received: Vec<BackgroundReply> = events(bytes).iter().map(|event| background.receive(event)).collect();
        let color = received
            .iter()
            .find_map(|received| if let BackgroundReply::Color(color) = received { Some(*color) } else { None });
        (color, received.iter().filter(|received| **received == BackgroundReply::Other).count())
    }

    #[test]
    fn answers_of_terminals_are_no_keys() {
        let white = Some([255; 3]);
        assert_eq!(received("\x1b]11;rgb:ffff/ffff/ffff\x1b\\"), (white, 0), "xterm");
        assert_eq!(received("\x1b]11;rgb:ffff/ffff/ffff\x07"), (white, 0), "with a bell at its end");
        assert_eq!(received("\x1b]11;rgb:ff/ff/ff\x1b"), (white, 0), "an end that comes in two parts");
        assert_eq!(received("\x1b]11;rgba:0000/2b2b/3636/ffff\x1b\\"), (Some([0, 0x2b, 0x36]), 0), "not opaque");
        assert_eq!(received("j\x1b]11;rgb:0/2b/363\x1b\\q"), (Some([0, 0x2b, 53]), 2), "between two keys");
    }

    #[test]
    fn what_only_looks_like_an_answer_is_typed() {
        assert_eq!(received("\x1b]q"), (None, 1), "a key after Alt-]");
        assert_eq!(received("\x1b]11;rgb:z"), (None, 1));
        assert_eq!(
            received("\x1b]11;rgb:fffff/0/0\x1b\\q"),
            (None, 1),
            "five digits are no color, and what follows is a key"
        );
        assert_eq!(received("\x1b]11;rgb:\x1b\\q"), (None, 1));
        assert_eq!(received(&format!("\x1b]11;rgb:{}", "0".repeat(40))).0, None, "an answer without end");
        assert_eq!(received("q]11;"), (None, 5), "no escape, no answer");
    }
}
