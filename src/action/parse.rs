//! `--keys` strings: plain characters are keys, names stand in angle brackets.

use super::{Key, KeyStep};
use std::fmt;

/// The names of keys in such a string; `lt` is `<`, the others are as [`parse_key`] knows them.
const NAMES: [&str; 18] = [
    "tab", "backtab", "enter", "esc", "up", "down", "left", "right", "pgup", "pgdn", "home", "end", "space", "bs",
    "c-c", "c-u", "c-z", "lt",
];

/// How a key is written where keys are chosen, with what people write instead of it; a character stands for itself.
const KEY_NAMES: [(Key, &[&str]); 18] = [
    (Key::Enter, &["Enter", "Return"]),
    (Key::Esc, &["Esc", "Escape"]),
    (Key::Tab, &["Tab"]),
    (Key::BackTab, &["Shift-Tab", "BackTab"]),
    (Key::Up, &["Up"]),
    (Key::Down, &["Down"]),
    (Key::Left, &["Left"]),
    (Key::Right, &["Right"]),
    (Key::PageUp, &["PgUp", "PageUp"]),
    (Key::PageDown, &["PgDn", "PageDown"]),
    (Key::Home, &["Home"]),
    (Key::End, &["End"]),
    (Key::Backspace, &["Backspace", "BS"]),
    (Key::Insert, &["Ins", "Insert"]),
    (Key::Delete, &["Del", "Delete"]),
    (Key::Char(' '), &["Space"]),
    (Key::F(1), &["F1"]),
    (Key::Ctrl('a'), &["Ctrl-A"]),
];

impl Key {
    /// As it is written where keys are chosen: [`parse_key`] of this is the key again.
    #[must_use]
    pub fn word(self) -> String {
        self.name().map_or_else(|| self.to_string(), str::to_owned)
    }

    fn name(self) -> Option<&'static str> {
        KEY_NAMES.iter().find(|(key, _)| *key == self).map(|(_, names)| names[0])
    }
}

/// As it stands on the screen: the arrows are arrows.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.write_str("↑"),
            Self::Down => f.write_str("↓"),
            Self::Left => f.write_str("←"),
            Self::Right => f.write_str("→"),
            Self::Ctrl(c) => write!(f, "Ctrl-{}", c.to_ascii_uppercase()),
            Self::F(number) => write!(f, "F{number}"),
            Self::Char(c) if *c != ' ' => write!(f, "{c}"),
            named => f.write_str(named.name().unwrap_or_default()),
        }
    }
}

/// One key as people write it: `q`, `Space`, `Ctrl-U`, `PgUp`, `F1`.
///
/// # Errors
/// One sentence that lists the names there are.
pub fn parse_key(text: &str) -> Result<Key, String> {
    let mut characters = text.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        // What has no cell of its own could not be shown in the help.
        if !only.is_control() && unicode_width::UnicodeWidthChar::width(only).is_some_and(|width| width > 0) {
            return Ok(Key::Char(only));
        }
    }
    let is = |name: &&str| text.eq_ignore_ascii_case(name);
    if let Some((key, _)) = KEY_NAMES.iter().find(|(_, names)| names.iter().any(is)) {
        return Ok(*key);
    }
    let lower = text.to_ascii_lowercase();
    if let Some(letter) = lower.strip_prefix("ctrl-").or_else(|| lower.strip_prefix("c-"))
        && let [letter @ b'a'..=b'z'] = letter.as_bytes()
    {
        return Ok(Key::Ctrl(char::from(*letter)));
    }
    if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse().ok())
        && (1..=12).contains(&number)
    {
        return Ok(Key::F(number));
    }
    let known: Vec<&str> = KEY_NAMES.iter().map(|(_, names)| names[0]).collect();
    Err(format!(
        "'{}' is not a key: write a character, or one of {} (F1 to F12, Ctrl-A to Ctrl-Z)",
        cut(text),
        known.join(" ")
    ))
}

/// What was typed, safe and short enough for a sentence.
fn cut(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(20).collect()
}

/// The steps of a `--keys` string, as in `"/veth<enter>s<tick>"`.
///
/// # Errors
/// One sentence that lists the names there are, when a `<…>` is none of them or does not end.
pub fn parse_keys(text: &str) -> Result<Vec<KeyStep>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first != '<' {
            steps.push(KeyStep::Press(Key::Char(first)));
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (name, after) = rest[1..].split_once('>').ok_or_else(|| unknown(&rest[1..]))?;
        steps.push(named(name).ok_or_else(|| unknown(name))?);
        rest = after;
    }
    Ok(steps)
}

fn named(name: &str) -> Option<KeyStep> {
    if name.eq_ignore_ascii_case("tick") {
        return Some(KeyStep::Tick);
    }
    let known = NAMES.iter().find(|known| name.eq_ignore_ascii_case(known))?;
    let key = if *known == "lt" { Key::Char('<') } else { parse_key(known).ok()? };
    Some(KeyStep::Press(key))
}

fn unknown(name: &str) -> String {
    let name = cut(name);
    let known: Vec<String> = NAMES.iter().map(|known| format!("<{known}>")).collect();
    format!("'<{name}' is not a key: use one of {} or <tick>, which waits for a sample", known.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_characters_and_names_become_steps_in_order() {
        let steps = parse_keys("a/<tab><TICK><lt><c-c>é").expect("all of these exist");
        let keys = [Key::Char('a'), Key::Char('/'), Key::Tab];
        assert_eq!(steps[..3], keys.map(KeyStep::Press), "plain characters and a name");
        assert_eq!(steps[3], KeyStep::Tick, "names may be in upper case");
        let keys = [Key::Char('<'), Key::Ctrl('c'), Key::Char('é')];
        assert_eq!(steps[4..], keys.map(KeyStep::Press), "the angle bracket has a name, other scripts are plain");
    }

    #[test]
    fn an_unknown_or_unfinished_name_is_one_sentence_that_lists_what_exists() {
        for text in ["<enterr>", "x<", "<>", "<a\u{1b}[31m>"] {
            let error = parse_keys(text).expect_err("no such name");
            assert!(error.contains("<enter>") && error.contains("<tick>"), "'{text}' says what exists: {error}");
            assert!(!error.contains('\u{1b}'), "the sentence carries no escape code");
        }
    }

    #[test]
    fn every_key_is_written_so_that_it_can_be_read_again() {
        let keys = KEY_NAMES.iter().map(|(key, _)| *key);
        for key in keys.chain([Key::Char('q'), Key::Char('é'), Key::Ctrl('u'), Key::F(12)]) {
            assert_eq!(parse_key(&key.word()), Ok(key), "{}", key.word());
        }
        assert_eq!(parse_key("pagedown"), Ok(Key::PageDown), "in any case, by any usual name");
        for wrong in ["", "F13", "F0", "Ctrl-", "Ctrl-1", "qq", "\u{1b}", "\u{200b}"] {
            let sentence = parse_key(wrong).expect_err("no such key");
            assert!(sentence.contains("PgUp") && !sentence.contains('\u{1b}'), "{wrong:?}: {sentence}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_keys(&text);
            let _ = parse_key(&text);
        }
    }
}
