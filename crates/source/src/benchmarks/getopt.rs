//! Arguments taken apart as `getopt_long` does: `-uR`, `-P8`, `-P 8`, `--parallel=8`, `--para 8`, operands in between,
//! `--` at the end. It knows no option's meaning.

/// The options of a program.
pub(super) struct Grammar {
    /// Short options as `getopt` takes them: `p:` has a value, `u` has none.
    pub short: &'static str,
    /// Long options as `getopt(1)` takes them: `port:` has a value, `cntl-ka::` has one only behind `=`.
    pub long: &'static str,
    /// Long options that mean something here, each with the letter that it stands for.
    pub letters: &'static [(&'static str, char)],
}

impl Grammar {
    /// The options in their order, each by its letter, with its value. What means nothing here is left out.
    pub fn options<'a>(&self, arguments: &'a [String]) -> Vec<(char, &'a str)> {
        let mut options = Vec::new();
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next().filter(|&argument| argument != "--") {
            if let Some(long) = argument.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let Some((takes_value, letter)) = self.long(name) else { continue };
                let value = if takes_value { value.or_else(|| rest.next()) } else { value };
                options.extend(letter.map(|letter| (letter, value.unwrap_or_default())));
            } else if let Some(letters) = argument.strip_prefix('-') {
                self.short(letters, &mut rest, &mut options);
            }
        }
        options
    }

    /// Finds a long option by its name or the beginning of it: of several, the one that all others begin with or share a letter with.
    /// Gives whether the option takes the next argument for its value, and its letter.
    fn long(&self, name: &str) -> Option<(bool, Option<char>)> {
        let begins = || self.long.split(',').filter(|long| long.starts_with(name));
        let bare = |long: &'static str| long.trim_end_matches(':');
        let letter = |name| self.letters.iter().find(|(long, _)| *long == name).map(|(_, letter)| *letter);
        let exact = begins().find(|long| bare(long) == name);
        let of = exact.or_else(|| {
            let shortest = begins().min_by_key(|long| bare(long).len())?;
            let is_same =
                |other| bare(other).starts_with(bare(shortest)) || letter(bare(other)) == letter(bare(shortest));
            begins().all(is_same).then_some(shortest)
        })?;
        Some((of.ends_with(':') && !of.ends_with("::"), letter(bare(of))))
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
