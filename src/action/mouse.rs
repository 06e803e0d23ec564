//! What the mouse does, for people: the help and docs/screen.md are made from it. Everything of it can be done with keys too.

/// What is done with the mouse, and what comes of it.
pub const MOUSE: &[(&str, &str)] = &[
    ("click", "on a row: select it; on a pane: the focus; on the finding: every finding"),
    ("a word below", "a click on a key and its word, at the bottom or on a box, presses the key"),
    ("a key here", "a click on a key in this list closes the help and presses it"),
    ("beside a box", "a click closes it"),
    ("wheel", "the selection of the pane below the pointer, or the lines of a box"),
    ("the bar", "in a replay: a click jumps there, on a mark to its event; - + ▶ are keys"),
];
