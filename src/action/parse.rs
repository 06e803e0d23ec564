//! `--keys` strings: plain characters are keys, names stand in angle brackets.

use super::{Key, KeyStep};

/// Every name there is, with what it stands for.
const NAMES: [(&str, KeyStep); 18] = [
    ("tab", KeyStep::Press(Key::Tab)),
    ("backtab", KeyStep::Press(Key::BackTab)),
    ("enter", KeyStep::Press(Key::Enter)),
    ("esc", KeyStep::Press(Key::Esc)),
    ("up", KeyStep::Press(Key::Up)),
    ("down", KeyStep::Press(Key::Down)),
    ("left", KeyStep::Press(Key::Left)),
    ("right", KeyStep::Press(Key::Right)),
    ("pgup", KeyStep::Press(Key::PageUp)),
    ("pgdn", KeyStep::Press(Key::PageDown)),
    ("home", KeyStep::Press(Key::Home)),
    ("end", KeyStep::Press(Key::End)),
    ("space", KeyStep::Press(Key::Char(' '))),
    ("bs", KeyStep::Press(Key::Backspace)),
    ("c-c", KeyStep::Press(Key::Ctrl('c'))),
    ("c-u", KeyStep::Press(Key::Ctrl('u'))),
    ("c-z", KeyStep::Press(Key::Ctrl('z'))),
    ("lt", KeyStep::Press(Key::Char('<'))),
];

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
    NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, step)| *step)
}

fn unknown(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(20).collect();
    let known: Vec<String> = NAMES.iter().map(|(known, _)| format!("<{known}>")).collect();
    format!("'<{name}' is no key name: there are {} and <tick>, which waits for the next sample", known.join(" "))
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

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_keys(&text);
        }
    }
}
