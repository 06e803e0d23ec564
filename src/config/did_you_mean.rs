//! Words for a sentence about what somebody wrote: what it was, and what was probably meant.

/// The end of a sentence about an unknown name: what was probably meant, else `otherwise`.
pub(super) fn hint<'a>(text: &str, known: impl Iterator<Item = &'a str>, otherwise: impl FnOnce() -> String) -> String {
    nearest(text, known).map_or_else(otherwise, |word| format!("did you mean '{word}'?"))
}

/// What was probably meant.
pub(super) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // As clap does for options; a text longer than any name matches none.
    let text = (text.len() <= 64).then(|| text.to_lowercase())?;
    let scored = known.map(|word| (strsim::jaro_winkler(&text, word), word)).filter(|(score, _)| *score > 0.8);
    scored.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, word)| word)
}

/// What somebody wrote, short enough for a sentence.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(39).chain(['…']).collect() }
}
