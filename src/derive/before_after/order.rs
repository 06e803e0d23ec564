//! Whose turn it is, unpinned or pinned, where phases take turns.

/// Whether a phase is pinned, by its number from 0: U P P U P U U P, P U U P U P P U, and so on (Thue and Morse). In plain turns
/// the pinned phases would come later than their neighbours each time, so that a rate that drifts would pass for their gain, and
/// other work that comes and goes in step with the turns would fall on one kind. Here a steady drift cancels after four phases, a
/// bent one after eight, and no two phases that follow each other are of one kind more than twice.
#[must_use]
pub fn is_pinned(phase: u32) -> bool {
    phase.count_ones() % 2 == 1
}
