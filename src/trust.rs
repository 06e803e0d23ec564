//! Whose files are obeyed: what is written in a journal sets masks, and in a configuration says what vnettop does, so nobody may
//! have written it but the user of this vnettop, and root. It looks at what is open already, so that nothing can be put in
//! its place after it was looked at.

use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Why a directory or a file of it is not obeyed, as the end of a sentence that begins with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It is this user's.
    #[error("belongs to another user (uid {0}), so it is not used")]
    OtherUser(u32),
    /// Its mode, without what kind of file it is.
    #[error("is writable by others (mode {0:03o}), so it is not used")]
    Writable(u32),
}

/// None where it is obeyed.
#[must_use]
pub fn doubt(found: &Metadata) -> Option<Doubt> {
    doubt_of(found.uid(), found.mode(), geteuid().as_raw())
}

fn doubt_of(owner: u32, mode: u32, own: u32) -> Option<Doubt> {
    if ![own, 0].contains(&owner) {
        return Some(Doubt::OtherUser(owner));
    }
    (mode & 0o022 != 0).then_some(Doubt::Writable(mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_else_can_have_written_is_obeyed() {
        for (owner, own) in [(1000, 1000), (0, 1000), (0, 0)] {
            assert_eq!(doubt_of(owner, 0o40755, own), None, "what uid {owner} wrote is obeyed by uid {own}");
        }
        for (owner, own) in [(1000, 0), (1001, 1000), (65534, 0)] {
            assert_eq!(doubt_of(owner, 0o40700, own), Some(Doubt::OtherUser(owner)), "somebody else's");
        }
        for mode in [0o40777, 0o41777, 0o40770, 0o100_602] {
            assert_eq!(doubt_of(0, mode, 0), Some(Doubt::Writable(mode & 0o777)), "others may write there");
        }
    }
}
