//! `--keys` strings: plain characters are keys, names stand in angle brackets.

use super::{Key, Step};

/// Every name there is, with what it stands for.
const NAMES: [(&str, Step); 18] = [
    ("tab", Step::Press(Key::Tab)),
    ("backtab", Step::Press(Key::BackTab)),
    ("enter", Step::Press(Key::Enter)),
    ("esc", Step::Press(Key::Esc)),
    ("up", Step::Press(Key::Up)),
    ("down", Step::Press(Key::Down)),
    ("left", Step::Press(Key::Left)),
    ("right", Step::Press(Key::Right)),
    ("pgup", Step::Press(Key::PageUp)),
    ("pgdn", Step::Press(Key::PageDown)),
    ("home", Step::Press(Key::Home)),
    ("end", Step::Press(Key::End)),
    ("space", Step::Press(Key::Char(' '))),
    ("bs", Step::Press(Key::Backspace)),
    ("c-c", Step::Press(Key::Ctrl('c'))),
    ("c-u", Step::Press(Key::Ctrl('u'))),
    ("c-z", Step::Press(Key::Ctrl('z'))),
    ("lt", Step::Press(Key::Char('<'))),
];

/// The steps of a `--keys` string, as in `"/veth<enter>s<tick>"`.
///
/// # Errors
/// One sentence that lists the names there are, when a `<…>` is none of them or does not end.
pub fn parse_keys(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first != '<' {
            steps.push(Step::Press(Key::Char(first)));
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (name, after) = rest[1..].split_once('>').ok_or_else(|| unknown(&rest[1..]))?;
        steps.push(named(name).ok_or_else(|| unknown(name))?);
        rest = after;
    }
    Ok(steps)
}

fn named(name: &str) -> Option<Step> {
    if name.eq_ignore_ascii_case("tick") {
        return Some(Step::Tick);
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
        assert_eq!(steps[..3], keys.map(Step::Press), "plain characters and a name");
        assert_eq!(steps[3], Step::Tick, "names may be in upper case");
        let keys = [Key::Char('<'), Key::Ctrl('c'), Key::Char('é')];
        assert_eq!(steps[4..], keys.map(Step::Press), "the angle bracket has a name, other scripts are plain");
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
