//! Words of a command line that somebody may paste into a shell.

/// A word as a shell takes it: a link or a namespace may be called almost anything. Control characters are left out.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-@".contains(&byte);
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    let is_one = !word.is_empty() && word.bytes().all(is_plain);
    if is_one { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn what_is_plain_stays_and_what_is_not_is_quoted() {
        assert_eq!(shell_word("veth0.12@x"), "veth0.12@x");
        assert_eq!(shell_word("a;b"), "'a;b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!((shell_word(""), shell_word("a\nb")), ("''".to_owned(), "ab".to_owned()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_shell_reads_it_as_the_word_that_it_was(word in "[ -~]{0,12}") {
            let out = Command::new("sh").arg("-c").arg(format!("printf %s {}", shell_word(&word))).output().expect("sh");
            prop_assert_eq!(String::from_utf8_lossy(&out.stdout).into_owned(), word);
        }
    }
}
