//! Which keys do what on this screen: the KEYS table, with those keys in it that were chosen instead.

use super::{Action, Binding, Edit, KEYS, Key, KeyContext};
use std::collections::BTreeMap;

/// The keys that were chosen; every other action has those of [`KEYS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyMap(BTreeMap<&'static str, Vec<Key>>);

/// Names of what must be reachable while text is typed, where characters are text.
const WHILE_TYPING: [&str; 3] = ["accept", "erase", "cancel"];

impl KeyMap {
    /// Every name that keys can be chosen for, in the order of the table, with the keys it has.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &[Key])> {
        let first = |at: usize, name: &str| KEYS.iter().position(|row| row.name == name) == Some(at);
        let named = KEYS.iter().enumerate().filter(move |(at, row)| !row.name.is_empty() && first(*at, row.name));
        named.map(|(_, row)| (row.name, self.chosen(row).unwrap_or(row.keys)))
    }

    /// Chooses these keys for what has this name. Nothing is checked: see [`Self::conflict`].
    ///
    /// # Errors
    /// Nothing has this name.
    pub fn choose(&mut self, name: &str, keys: Vec<Key>) -> Result<(), String> {
        let row = KEYS.iter().find(|row| row.name == name && !name.is_empty()).ok_or("there is no such action")?;
        self.0.remove(row.name);
        if keys != row.keys {
            self.0.insert(row.name, keys);
        }
        Ok(())
    }

    /// Why these keys cannot be used: one of them would mean two things, or there would be no way out of a text.
    #[must_use]
    pub fn conflict(&self) -> Option<String> {
        for (at, row) in KEYS.iter().enumerate() {
            for key in self.keys(row) {
                let taken = KEYS[..at].iter().find(|other| {
                    other.name != row.name
                        && other.contexts.iter().any(|place| row.contexts.contains(place))
                        && self.has(other, *key)
                });
                if let Some(other) = taken {
                    return Some(self.taken_twice(*key, other, row));
                }
            }
        }
        let typed = |keys: &[Key]| keys.iter().all(|key| matches!(key, Key::Char(_)));
        let stuck = self.all().find(|(name, keys)| WHILE_TYPING.contains(name) && typed(keys));
        stuck.map(|(name, _)| format!("{name} needs a key that types no character: Enter, F2, Ctrl-G"))
    }

    fn taken_twice(&self, key: Key, one: &Binding, other: &Binding) -> String {
        let key = key.word();
        let (fixed, name) = if one.name.is_empty() { (one, other.name) } else { (other, one.name) };
        if fixed.name.is_empty() {
            return format!("{key} cannot be given to {name}: it always means '{}'", fixed.help);
        }
        // An action that was given the key by the file comes before one that has it by default.
        let chosen = |name: &str| self.0.contains_key(name);
        let (newer, older) = if chosen(one.name) { (one.name, other.name) } else { (other.name, one.name) };
        format!("{key} means both {newer} and {older}: give {older} another key, or none ({older} = [])")
    }

    /// What a key asks for where the keys now go; none where it is not valid.
    #[must_use]
    pub fn action_for(&self, key: Key, place: KeyContext) -> Option<Action> {
        let valid = |row: &&Binding| row.contexts.contains(&place) && self.has(row, key);
        match (place, key) {
            (KeyContext::Text, Key::Char(c)) => Some(Action::Edit(Edit::Insert(c))),
            _ => KEYS.iter().find(valid).map(|row| row.action),
        }
    }

    /// The footer of a place: the first key of each hinted binding, its word, and what it does.
    pub fn hints(&self, place: KeyContext) -> impl Iterator<Item = (Key, &'static str, Action)> {
        let hinted = KEYS.iter().filter(move |row| row.contexts.contains(&place) && !row.hint.is_empty());
        hinted.filter_map(|row| Some((*self.keys(row).next()?, row.hint, row.action)))
    }

    /// The key to name in a sentence; `–` where there is none.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        let keys = self.all().find(|(other, _)| *other == name).map(|(_, keys)| keys);
        keys.and_then(|keys| keys.first()).map_or_else(|| "–".to_owned(), ToString::to_string)
    }

    /// The key that now does what this one usually does in this place.
    #[must_use]
    pub fn now(&self, usual: &str, place: KeyContext) -> Option<String> {
        self.keys(usually(usual, place)?).next().map(ToString::to_string)
    }

    /// What the key of this name asks for in this place.
    #[must_use]
    pub fn action_named(&self, name: &str, place: KeyContext) -> Option<Action> {
        let mut here = KEYS.iter().filter(|row| row.contexts.contains(&place));
        here.find(|row| self.keys(row).any(|key| key.to_string() == name)).map(|row| row.action)
    }

    /// A line such as `Enter applies · ↑ ↓ scroll` with the keys in it that are in force in this place; what has none is left out.
    #[must_use]
    pub fn foot(&self, usual: &str, place: KeyContext) -> String {
        if self.0.is_empty() {
            return usual.to_owned();
        }
        let part = |part: &str| {
            let words: Vec<&str> = part.split(' ').collect();
            let bare = |word: &str| word.trim_end_matches(':').to_owned();
            let named = words.iter().take_while(|word| usually(&bare(word), place).is_some()).count();
            let now = |word: &&str| Some(format!("{}{}", self.now(&bare(word), place)?, &word[bare(word).len()..]));
            let mut reported: Vec<String> = words[..named].iter().filter_map(now).collect();
            let is_there = named == 0 || !reported.is_empty();
            reported.extend(words[named..].iter().map(ToString::to_string));
            is_there.then(|| reported.join(" "))
        };
        usual.split(" · ").filter_map(part).collect::<Vec<_>>().join(" · ")
    }

    /// The table for people: keys and what they do, one line for neighbours with the same words.
    #[must_use]
    pub fn help_lines(&self) -> Vec<(Vec<Key>, &'static str)> {
        let mut lines: Vec<(Vec<Key>, &'static str)> = Vec::new();
        for row in KEYS {
            for key in self.keys(row) {
                let at = lines.iter().position(|(_, help)| *help == row.help).unwrap_or_else(|| {
                    lines.push((Vec::new(), row.help));
                    lines.len() - 1
                });
                if !lines[at].0.contains(key) {
                    lines[at].0.push(*key);
                }
            }
        }
        lines
    }

    fn chosen(&self, row: &Binding) -> Option<&[Key]> {
        self.0.get(row.name).map(Vec::as_slice)
    }

    /// The keys of this row. A chosen key is left out where the default keys of the name have it and this row does not (← in a replay).
    fn keys<'a>(&'a self, row: &'a Binding) -> impl Iterator<Item = &'a Key> {
        let chosen = self.chosen(row);
        let usual =
            chosen.and_then(|_| KEYS.iter().find(|first| first.name == row.name)).map_or(row.keys, |first| first.keys);
        chosen.unwrap_or(row.keys).iter().filter(move |key| row.keys.contains(key) || !usual.contains(key))
    }

    fn has(&self, row: &Binding, key: Key) -> bool {
        self.keys(row).any(|other| *other == key)
    }
}

/// The row that usually has the key of this name in this place.
fn usually(name: &str, place: KeyContext) -> Option<&'static Binding> {
    KEYS.iter().find(|row| row.contexts.contains(&place) && row.keys.iter().any(|key| key.to_string() == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Motion, Seek};
    use strum::VariantArray;

    fn map(chosen: &[(&str, &[Key])]) -> KeyMap {
        let mut map = KeyMap::default();
        for (name, keys) in chosen {
            map.choose(name, keys.to_vec()).expect("it has that name");
        }
        map
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for &place in KeyContext::VARIANTS {
            let here: Vec<Key> =
                KEYS.iter().filter(|b| b.contexts.contains(&place)).flat_map(|b| b.keys.iter().copied()).collect();
            for key in &here {
                let times = here.iter().filter(|other| *other == key).count();
                assert_eq!(times, 1, "'{key}' has one meaning in {place:?}");
            }
        }
        assert_eq!(KeyMap::default().conflict(), None, "and the check of chosen keys agrees");
    }

    #[test]
    fn the_first_row_of_a_name_has_all_its_keys_and_every_other_lacks_only_what_means_something_else() {
        for row in KEYS.iter().filter(|row| !row.name.is_empty()) {
            let first = KEYS.iter().find(|other| other.name == row.name).expect("at least this one");
            assert!(row.keys.iter().all(|key| first.keys.contains(key)), "{}", row.name);
            for key in first.keys.iter().filter(|key| !row.keys.contains(key)) {
                let taken =
                    |place| KeyMap::default().action_for(*key, place).is_some_and(|action| action != row.action);
                assert!(row.contexts.iter().any(|&place| taken(place)), "{key} of {} is free elsewhere", row.name);
            }
        }
    }

    #[test]
    fn ctrl_c_quits_everywhere_and_letters_are_text_while_typing() {
        let keys = KeyMap::default();
        for &place in KeyContext::VARIANTS {
            assert_eq!(keys.action_for(Key::Ctrl('c'), place), Some(Action::Quit), "Ctrl-C quits from {place:?}");
        }
        let typed = keys.action_for(Key::Char('q'), KeyContext::Text);
        assert_eq!(typed, Some(Action::Edit(Edit::Insert('q'))), "q can be typed into a filter");
        let second = keys.action_for(Key::Char('p'), KeyContext::Proposal);
        assert_eq!(second, Some(Action::Accept), "the second p applies");
    }

    #[test]
    fn the_tables_for_people_name_every_key() {
        let lines = KeyMap::default().help_lines();
        for key in KEYS.iter().flat_map(|binding| binding.keys) {
            assert!(lines.iter().any(|(keys, _)| keys.contains(key)), "the manual's table names '{key}'");
        }
        assert!(lines.len() < KEYS.len(), "neighbours with the same words share a line");
    }

    #[test]
    fn a_chosen_key_takes_the_place_of_the_usual_one_everywhere() {
        let map = map(&[("quit", &[Key::F(10)]), ("propose", &[Key::Char('y')]), ("mark", &[])]);
        assert_eq!(map.conflict(), None);
        assert_eq!(map.action_for(Key::F(10), KeyContext::Main), Some(Action::Quit));
        assert_eq!(
            map.action_for(Key::F(10), KeyContext::Help),
            Some(Action::Cancel),
            "it leaves what lies over the panes"
        );
        assert_eq!(map.action_for(Key::Char('q'), KeyContext::Main), None, "q is free");
        assert_eq!(
            map.action_for(Key::Char('y'), KeyContext::Proposal),
            Some(Action::Accept),
            "the second one applies"
        );
        assert_eq!(map.action_for(Key::Char('m'), KeyContext::Main), None, "no key at all");
        assert!(map.hints(KeyContext::Main).any(|(key, word, _)| (key, word) == (Key::F(10), "quit")));
        assert_eq!(
            map.foot("p again: pin · ↑ ↓ scroll · Esc closes", KeyContext::Proposal),
            "y again: pin · ↑ ↓ scroll · Esc closes"
        );
        assert!(
            map.help_lines().iter().all(|(keys, help)| !help.contains("add a marker") && *keys != [Key::Char('q')])
        );
    }

    #[test]
    fn a_chosen_key_is_valid_wherever_its_action_is_and_arrows_keep_to_time_in_a_replay() {
        let moved = map(&[("left", &[Key::Left, Key::Char('e')]), ("next_test", &[Key::Char('y')])]);
        assert_eq!(moved.conflict(), None);
        for place in [KeyContext::Main, KeyContext::Replay] {
            assert_eq!(moved.action_for(Key::Char('e'), place), Some(Action::Move(Motion::Left)), "{place:?}");
            assert_eq!(moved.action_for(Key::Char('y'), place), Some(Action::NextTest), "{place:?}");
        }
        assert_eq!(moved.action_for(Key::Left, KeyContext::Main), Some(Action::Move(Motion::Left)));
        assert_eq!(moved.action_for(Key::Left, KeyContext::Replay), Some(Action::Seek(Seek::By(-5))));
        let taken = map(&[("left", &[Key::Char('[')])]).conflict().expect("[ goes back in a replay");
        assert!(taken.starts_with("[ means both left and seek_back"), "{taken}");
        let feet = map(&[("up", &[]), ("down", &[Key::Char('J')]), ("help_page", &[Key::F(2)])]);
        let foot = feet.foot("Tab other page · Esc closes · ↑ ↓ scroll", KeyContext::Help);
        assert_eq!(foot, "F2 other page · Esc closes · J scroll", "a key means what it means there");
        assert_eq!(feet.action_named("F2", KeyContext::Help), Some(Action::TurnHelpPage));
    }

    #[test]
    fn a_key_taken_twice_is_one_sentence_that_names_both() {
        let sentence = |chosen: &[(&str, &[Key])]| map(chosen).conflict().expect("it cannot be");
        assert_eq!(
            sentence(&[("units", &[Key::Char('s')])]),
            "s means both units and sort: give sort another key, or none (sort = [])"
        );
        assert!(sentence(&[("quit", &[Key::Ctrl('c'), Key::Char('c')])]).starts_with("c means both quit and card"));
        assert!(sentence(&[("mark", &[Key::Ctrl('c')])]).starts_with("Ctrl-C cannot be given to mark"));
        assert!(sentence(&[("cancel", &[Key::Char('e')])]).starts_with("cancel needs a key that types no character"));
        assert!(sentence(&[("accept", &[])]).starts_with("accept needs a key"));
    }
}
