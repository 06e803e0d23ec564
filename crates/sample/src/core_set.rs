//! A set of cores, written as the kernel writes it (`0-3,8-11:2`), of any width.

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, ToSmallVec};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// A set of cores. Width is not part of its value: trailing zero words are dropped, so equality is set equality.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CoreSet {
    /// Up to 128 cores need no memory of their own: every watched thread has three sets, copied on each tick.
    words: SmallVec<[u64; 2]>,
}

/// Why a text is not a list of cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a list of cores: write it as the kernel does, for example 0-3,8")]
pub struct CoreSetError {
    text: String,
}

/// More than any kernel can have (`NR_CPUS` ends at 8192); keeps a hostile list from taking all memory.
pub const MOST_CORES: u32 = 65_536;

/// Words that the sets of one line may have: a million sets of 256 cores. Eight bytes of text (`65535`) can ask for a thousand.
const MOST_WORDS_OF_LINE: usize = 4 << 20;

thread_local! {
    /// What is left of them, while a line is read.
    static WORDS_LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Reads a line that a stranger may have written: sets in it that would take far more memory than its text are refused.
pub fn within_memory<T>(read: impl FnOnce() -> T) -> T {
    let before = WORDS_LEFT.replace(Some(MOST_WORDS_OF_LINE));
    let done = read();
    WORDS_LEFT.set(before);
    done
}

impl CoreSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of one core.
    #[must_use]
    pub fn single(core: u32) -> Self {
        let mut set = Self::new();
        set.insert(core);
        set
    }

    /// From the words of an affinity mask, least significant first.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Self {
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        Self { words: words[..used].to_smallvec() }
    }

    /// The words of the mask, least significant first, without trailing zero words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a core.
    pub fn insert(&mut self, core: u32) {
        let word = core as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (core % 64);
    }

    /// Whether the core is in the set.
    #[must_use]
    pub fn contains(&self, core: u32) -> bool {
        self.words.get(core as usize / 64).is_some_and(|word| word >> (core % 64) & 1 == 1)
    }

    /// How many cores.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// No core at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest core.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The cores, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .zip(0u32..)
            .flat_map(|(&word, index)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit))
    }

    /// The cores in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let words: SmallVec<[u64; 2]> = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self::from_words(&words)
    }

    /// Whether both have the same of these cores.
    #[must_use]
    pub fn equals_within(&self, other: &Self, cores: &Self) -> bool {
        self == other || self.intersection(cores) == other.intersection(cores)
    }

    /// From a mask as sysfs prints it (`rps_cpus`, `xps_cpus`): words of 32 cores in hexadecimal, the highest first, with
    /// commas between; `None` when the text is no mask.
    #[must_use]
    pub fn from_mask(text: &str) -> Option<Self> {
        let mut cores = Self::new();
        for (at, word) in text.rsplit(',').enumerate() {
            let word = u32::from_str_radix(word, 16).ok()?;
            let first = u32::try_from(at).ok()?.checked_mul(32).filter(|first| first + 32 <= MOST_CORES)?;
            (0..32).filter(|bit| word >> bit & 1 == 1).for_each(|bit| cores.insert(first + bit));
        }
        Some(cores)
    }

    /// The mask as sysfs takes it: words of 32 cores in hexadecimal, the highest first, with commas between.
    #[must_use]
    pub fn to_mask(&self) -> String {
        let bits =
            |first: u32| (0..32).filter(|bit| self.contains(first + bit)).fold(0_u32, |word, bit| word | 1 << bit);
        let highest = self.iter().last().unwrap_or(0) / 32;
        let lower = (0..highest).rev().map(|at| format!(",{:08x}", bits(at * 32)));
        std::iter::once(format!("{:x}", bits(highest * 32))).chain(lower).collect()
    }

    /// Every core of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.intersection(other) == *self
    }
}

impl FromIterator<u32> for CoreSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cores: I) -> Self {
        let mut set = Self::new();
        cores.into_iter().for_each(|core| set.insert(core));
        set
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cores = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cores.next() {
            let mut last = first;
            while cores.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoreSet({self})")
    }
}

impl FromStr for CoreSet {
    type Err = CoreSetError;

    /// Parses the kernel's list syntax: `0-3,8`, with an optional stride as in `0-15:2`. Empty is the empty set.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CoreSetError { text: text.chars().filter(|c| !c.is_control()).take(60).collect() };
        let (mut set, mut named) = (Self::new(), 0);
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (range, step) = match part.split_once(':') {
                Some((range, step)) => (range, step.trim().parse().map_err(|_| wrong())?),
                None => (part, 1usize),
            };
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first: u32 = first.trim().parse().map_err(|_| wrong())?;
            let last: u32 = last.trim().parse().map_err(|_| wrong())?;
            if first > last || last >= MOST_CORES || step == 0 {
                return Err(wrong());
            }
            // No list of the kernel names a core twice.
            named += (last - first) as usize / step + 1;
            if named > MOST_CORES as usize {
                return Err(wrong());
            }
            (first..=last).step_by(step).for_each(|core| set.insert(core));
        }
        Ok(set)
    }
}

impl TryFrom<String> for CoreSet {
    type Error = CoreSetError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let set: Self = text.parse()?;
        let left = WORDS_LEFT.get().map(|left| left.checked_sub(set.words.len()));
        WORDS_LEFT.set(left.map(Option::unwrap_or_default));
        // As its words are: the text says nothing wrong by itself.
        if left == Some(None) {
            Err(CoreSetError { text: "more cores than any machine's".to_owned() })
        } else {
            Ok(set)
        }
    }
}

impl From<CoreSet> for String {
    fn from(set: CoreSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_written_as_the_kernel_writes_them() {
        for text in ["", "0", "0-3", "0-3,8,10-11", "127", "5,91"] {
            let set: CoreSet = text.parse().expect("a kernel list parses");
            assert_eq!(set.to_string(), text, "a list reads back as it was written");
        }
        let strided: CoreSet = "8-12:2".parse().expect("a stride parses");
        assert_eq!(strided.to_string(), "8,10,12", "a stride names every second core");
    }

    #[test]
    fn a_line_of_wide_sets_takes_no_memory() {
        let wide = |sets: usize| serde_json::from_str::<Vec<CoreSet>>(&format!("[{}\"0\"]", "\"65535\",".repeat(sets)));
        assert!(within_memory(|| wide(4_000)).is_ok(), "as many as all links of a machine may have");
        let error = within_memory(|| wide(5_000)).expect_err("40 MB of words out of 40 kB of text");
        assert!(error.to_string().contains("more cores than any machine's"), "{error}");
        assert!(wide(5_000).is_ok(), "what vnettop itself reads is not of a stranger");
    }

    #[test]
    fn what_is_not_a_list_is_one_clear_sentence() {
        let twice = "0-65535,".repeat(100_000);
        for text in ["x", "3-1", "0-", "-", "0,,1", "0-99999999", "0-3:0", "0x3", twice.trim_end_matches(',')] {
            let error = text.parse::<CoreSet>().expect_err("not a list");
            assert!(error.to_string().contains("for example 0-3,8"), "'{text}' says what to write instead: {error}");
        }
    }

    #[test]
    fn equality_is_set_equality_whatever_the_width() {
        assert_eq!(CoreSet::from_words(&[1, 0, 0]), CoreSet::single(0), "trailing zero words do not count");
        assert_eq!(CoreSet::single(200).first(), Some(200), "cores beyond 64 are kept");
    }

    #[test]
    fn a_mask_is_read_from_its_last_word_on() {
        let read = |text: &str| CoreSet::from_mask(text).map(|cores| cores.to_string());
        assert_eq!(read("0").as_deref(), Some(""), "nobody");
        assert_eq!(read("3").as_deref(), Some("0-1"), "two cores");
        assert_eq!(read("00000001,80000000").as_deref(), Some("31-32"), "words of 32 cores");
        for text in ["x", "", "0x2", "1,", "100000000"] {
            assert_eq!(read(text), None, "'{text}' is no mask");
        }
    }

    proptest! {
        #[test]
        fn any_set_survives_its_own_mask(cores in proptest::collection::vec(0u32..600, 0..40)) {
            let set: CoreSet = cores.into_iter().collect();
            prop_assert_eq!(CoreSet::from_mask(&set.to_mask()), Some(set));
        }

        #[test]
        fn no_mask_panics(text in "\\PC{0,30}") {
            let _ = CoreSet::from_mask(&text);
        }

        #[test]
        fn any_set_survives_its_own_text(cores in proptest::collection::vec(0u32..600, 0..40)) {
            let set: CoreSet = cores.into_iter().collect();
            prop_assert_eq!(set.to_string().parse::<CoreSet>(), Ok(set));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            let _ = text.parse::<CoreSet>();
        }
    }
}
