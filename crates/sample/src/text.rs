//! Text that comes from outside is cleaned where it enters, so that nothing behind has to think of it; and text that goes out is broken
//! into lines.

use std::borrow::Cow;

/// Bytes from outside as text that changes nothing on a screen but its own cell: invalid UTF-8, control characters and
/// characters that steer (bidirectional marks, zero-width, line separators) each become `?`.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let steers = |c: char| {
        c.is_control()
            || c == char::REPLACEMENT_CHARACTER
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    String::from_utf8_lossy(bytes).chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

/// A sentence without the numbers that Rust puts behind the words of an error of the system, as in `(os error 2)`.
#[must_use]
pub fn without_error_numbers(sentence: &str) -> String {
    let mut parts = sentence.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        match part[end..].strip_prefix(')') {
            Some(rest) if end > 0 => plain.push_str(rest),
            _ => plain.extend([" (os error ", part]),
        }
    }
    plain
}

/// So many characters of a text at most; that there are more is shown.
#[must_use]
pub fn shortened(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The name of a program as a sentence has it: in quotes where it could pass for several, or for words of the sentence, as
/// `init (pid 1)` or `sshd 812`. Whoever runs a program names it as they like.
#[must_use]
pub fn quoted(name: &str) -> Cow<'_, str> {
    if name.contains([' ', '(', ')', ',', ';', '"']) {
        format!("\"{}\"", name.replace('"', "'")).into()
    } else {
        name.into()
    }
}

/// Breaks a text at spaces into lines that measure at most so much; a word that measures more stays whole.
#[must_use]
pub fn wrap(text: &str, width: usize, measure: impl Fn(&str) -> usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if measure(line) + 1 + measure(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Words that begin a command in parentheses.
const COMMANDS: [&str; 8] = ["ip ", "echo ", "taskset ", "sysctl ", "tc ", "ethtool ", "sh ", "tee "];

/// What comes before a command in parentheses, the command with them, and what comes behind.
#[must_use]
pub fn around_command(text: &str) -> Option<(&str, &str, &str)> {
    let begins = |text: &str| COMMANDS.iter().any(|command| text.starts_with(command));
    let at = text.match_indices(" (").map(|(at, _)| at).find(|at| begins(&text[at + 2..]))?;
    let (before, from) = (&text[..at], &text[at + 1..]);
    let (command, rest) = from.split_at(closing(from)?);
    Some((before, command, rest))
}

/// Bytes of what these parentheses hold, with them; `None` where they do not close.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return Some(at + letter.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_not_printed_whole() {
        assert_eq!(shortened("x".repeat(100_000), 2000).chars().count(), 2001, "what is left, and the sign of more");
        assert_eq!(shortened("网络".to_owned(), 1), "网…", "characters, not bytes");
        assert_eq!(shortened("网络".to_owned(), 2), "网络");
    }

    #[test]
    fn a_name_passes_for_nothing_else() {
        assert_eq!(["rustc", "kworker/0:1", "网络"].map(quoted), ["rustc", "kworker/0:1", "网络"]);
        assert_eq!(["sshd 812", "no-one"].map(quoted), ["\"sshd 812\"", "no-one"]);
        assert_eq!(["init (pid 1)", "a, b", "a\", b"].map(quoted), ["\"init (pid 1)\"", "\"a, b\"", "\"a', b\""]);
    }

    #[test]
    fn the_number_of_an_error_is_not_shown_and_nothing_else_is_lost() {
        let of = without_error_numbers;
        assert_eq!(of("a: No such file (os error 2)"), "a: No such file");
        assert_eq!(of("a: Busy (os error 16); b: Gone (os error 2), c"), "a: Busy; b: Gone, c");
        for text in ["", "plain", "a (os error )", "a (os error x)", "a (os error 2"] {
            assert_eq!(of(text), text);
        }
        let io = std::io::Error::from_raw_os_error(2).to_string();
        assert!(!of(&io).contains("os error") && of(&io).len() > 5, "{io}");
    }

    #[test]
    fn escape_codes_and_steering_characters_lose_their_power() {
        assert_eq!(clean(b"\x1b[31mred\x07"), "?[31mred?", "no control character is left");
        assert_eq!(clean("a\u{202e}b\u{200b}c\u{9b}".as_bytes()), "a?b?c?", "nothing that steers is left");
        assert_eq!(clean(&[0xff, b'x']), "?x", "bytes that are no UTF-8 are told");
        assert_eq!(clean("网络0".as_bytes()), "网络0", "wide characters are text");
    }
}
