//! Arguments taken apart as `getopt_long` does: `-uR`, `-P8`, `-P 8`, `--parallel=8`, `--para 8`, operands in between,
//! `--` at the end. It knows no option's meaning.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    No,
    /// Behind it, or the next argument.
    Yes,
    /// Only behind `=`.
    Perhaps,
}

/// The options of a program.
pub(super) struct Grammar {
    /// As `getopt` takes them: `p:` has a value, `u` has none.
    pub short: &'static str,
    /// Name, value, and the letter it stands for.
    pub long: &'static [(&'static str, Value, char)],
}

impl Grammar {
    /// The options in their order, each by its letter, with its value. What is no option of the program is left out.
    pub fn options<'a>(&self, arguments: &'a [String]) -> Vec<(char, &'a str)> {
        let mut options = Vec::new();
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next().filter(|&argument| argument != "--") {
            if let Some(long) = argument.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let Some((takes, letter)) = self.long(name) else { continue };
                let value = if takes == Value::Yes { value.or_else(|| rest.next()) } else { value };
                options.push((letter, value.unwrap_or_default()));
            } else if let Some(letters) = argument.strip_prefix('-') {
                self.short(letters, &mut rest, &mut options);
            }
        }
        options
    }

    /// A whole name, or the beginning of one: of several, the one that all of them begin with.
    fn long(&self, name: &str) -> Option<(Value, char)> {
        let begins = || self.long.iter().filter(|(long, ..)| long.starts_with(name));
        let exact = begins().find(|(long, ..)| *long == name);
        let of = exact.or_else(|| {
            let shortest = begins().min_by_key(|(long, ..)| long.len())?;
            let is_same = |other: &(&str, Value, char)| other.0.starts_with(shortest.0) || other.2 == shortest.2;
            begins().all(is_same).then_some(shortest)
        });
        of.map(|&(_, takes, letter)| (takes, letter))
    }

    /// Letters behind one dash: the first with a value takes what is left, or the next argument.
    fn short<'a>(
        &self,
        letters: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
        options: &mut Vec<(char, &'a str)>,
    ) {
        for (at, letter) in letters.char_indices() {
            let Some(known) = self.short.find(letter).filter(|_| letter != ':') else { continue };
            if !self.short[known + letter.len_utf8()..].starts_with(':') {
                options.push((letter, ""));
                continue;
            }
            let behind = &letters[at + letter.len_utf8()..];
            let value = if behind.is_empty() { rest.next().unwrap_or_default() } else { behind };
            options.push((letter, value));
            return;
        }
    }
}
