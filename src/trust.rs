//! Whose files are obeyed: what is written in a journal sets masks, and in a configuration says what vnettop does, so nobody may
//! have written it but the user of this vnettop, and root. It looks at what is open already, so that nothing can be put in
//! its place after it was looked at.

use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Why a directory or a file of it is not obeyed, as the end of a sentence that begins with its name; none where it is.
#[must_use]
pub fn doubt(found: &Metadata) -> Option<String> {
    doubt_of(found.uid(), found.mode(), geteuid().as_raw())
}

fn doubt_of(owner: u32, mode: u32, own: u32) -> Option<String> {
    if ![own, 0].contains(&owner) {
        return Some(format!("belongs to another user (uid {owner}), so it is not used"));
    }
    let written_by_others = mode & 0o022 != 0;
    written_by_others.then(|| format!("is writable by others (mode {:03o}), so it is not used", mode & 0o777))
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
            let why = doubt_of(owner, 0o40700, own).expect("somebody else's");
            assert!(why.contains(&format!("another user (uid {owner})")), "{why}");
        }
        for mode in [0o40777, 0o41777, 0o40770, 0o100_602] {
            let why = doubt_of(0, mode, 0).expect("others may write there");
            assert!(why.contains(&format!("(mode {:o})", mode & 0o777)), "{why}");
        }
    }
}
