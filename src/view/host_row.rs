//! A host among several, as their common screen has it.

use crate::state::State;

/// A host as the screen of all has it.
pub struct HostRow<'a> {
    /// As it was named to vnettop.
    pub name: &'a str,
    /// Its own state.
    pub state: &'a State,
}
