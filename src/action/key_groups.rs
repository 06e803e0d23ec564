//! The groups in which people read the keys: what a test needs first, and within a group the more important first.

use super::{KEYS, Key, KeyMap};

/// Group → the names of its actions ([`super::Binding::name`]), in the order of the help. Keys without a name belong to the view.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Test",
        &[
            "propose",
            "undo",
            "card",
            "paths",
            "drops",
            "findings",
            "latency",
            "profile",
            "next_test",
            "previous_test",
            "exact_softirqs",
        ],
    ),
    ("Pins", &["choose_cores", "auto_pin"]),
    (
        "Time",
        &[
            "toggle_thread",
            "pause",
            "time_back",
            "time_forward",
            "time_more",
            "time_less",
            "faster",
            "slower",
            "seek_back",
            "seek_forward",
            "next_event",
            "previous_event",
            "seek_start",
            "seek_end",
            "step_back",
            "step",
        ],
    ),
    (
        "View",
        &[
            "help",
            "help_page",
            "quit",
            "cancel",
            "next_pane",
            "previous_pane",
            "bands",
            "zoom",
            "open_links",
            "open_cores",
            "open_threads",
            "open_test",
            "details",
            "up",
            "down",
            "left",
            "right",
            "page_up",
            "page_down",
            "first",
            "last",
            "filter",
            "sort",
            "reverse_sort",
            "idle",
            "tree",
            "units",
            "next_host",
            "next_theme",
            "accept",
            "erase",
            "erase_all",
            "stop",
        ],
    ),
    ("Files", &["report", "save_card", "save_last", "record", "mark", "save_settings"]),
];

/// A line of the help: keys, and what they do.
pub type HelpLine = (Vec<Key>, &'static str);

/// The table for people in its groups: title and lines.
#[must_use]
pub fn help_groups(keys: &KeyMap) -> Vec<(&'static str, Vec<HelpLine>)> {
    let place = |help: &str| {
        let name = KEYS.iter().find(|row| row.help == help).map_or("", |row| row.name);
        let of = |names: &[&str]| names.iter().position(|other| *other == name);
        GROUPS.iter().position(|(title, names)| of(names).is_some() || name.is_empty() && *title == "View").map(
            |group| {
                let names = GROUPS[group].1;
                (group, of(names).unwrap_or(names.len()))
            },
        )
    };
    let mut lines: Vec<(Option<(usize, usize)>, HelpLine)> =
        keys.help_lines().into_iter().map(|line| (place(line.1), line)).collect();
    lines.sort_by_key(|(place, _)| *place);
    let title = |group: usize| GROUPS[group].0;
    let mut groups: Vec<(&'static str, Vec<HelpLine>)> = Vec::new();
    for (place, line) in lines {
        let title = place.map_or("View", |(group, _)| title(group));
        match groups.last_mut().filter(|(last, _)| *last == title) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((title, vec![line])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_in_one_group_and_what_a_test_needs_comes_first() {
        for row in KEYS.iter().filter(|row| !row.name.is_empty()) {
            let times = GROUPS.iter().filter(|(_, names)| names.contains(&row.name)).count();
            assert_eq!(times, 1, "{} is in one group", row.name);
        }
        let groups = help_groups(&KeyMap::default());
        let titles: Vec<&str> = groups.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, ["Test", "Pins", "Time", "View", "Files"]);
        let first: Vec<String> = groups[0]
            .1
            .iter()
            .filter(|(keys, _)| keys.len() == 1)
            .take(5)
            .map(|(keys, _)| keys[0].to_string())
            .collect();
        assert_eq!(first, ["p", "U", "c", "v", "d"]);
        let all: usize = groups.iter().map(|(_, lines)| lines.len()).sum();
        assert_eq!(all, KeyMap::default().help_lines().len(), "no line is lost");
    }
}
