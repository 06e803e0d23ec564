//! Words for a sentence about what somebody wrote: what it was, and what was probably meant.

/// The end of a sentence about an unknown name: what was probably meant, else `otherwise`.
pub(crate) fn hint<'a>(text: &str, known: impl Iterator<Item = &'a str>, otherwise: impl FnOnce() -> String) -> String {
    nearest(text, known).map_or_else(otherwise, |word| format!("did you mean '{word}'?"))
}

/// What was probably meant.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // As clap does for options; a text longer than any name matches none.
    let text = (text.len() <= 64).then(|| text.to_lowercase())?;
    // Jaro sees two exchanged letters of a short word as two wrong ones.
    let is_slip = |word: &str| word.len() > 2 && strsim::osa_distance(&text, word) == 1;
    let score = |word: &str| if is_slip(word) { 0.99 } else { strsim::jaro_winkler(&text, word) };
    let scored = known.map(|word| (score(word), word)).filter(|(score, _)| *score > 0.8);
    scored.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, word)| word)
}

/// What somebody wrote, short enough for a sentence.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(39).chain(['…']).collect() }
}
