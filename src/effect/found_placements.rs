//! What searches have found, for later vnettops: a file beside the journals, one JSON line for each kind of test. Like a journal
//! it is obeyed only where nobody else may have written it. Removing the file forgets all of them.

use super::journal::{self, JournalError, LockError};
use crate::sample::{FoundPlacement, TestKind};
use crate::trust;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The file's name in the directory of journals.
pub const FOUND_FILE: &str = "found-placements.jsonl";
/// More kinds of tests are forgotten, the oldest first.
const MOST: usize = 200;
/// What is longer was not written by a vnettop.
const MOST_BYTES: u64 = 1 << 20;

/// What searches have found, the oldest first; none where there is no such file.
///
/// # Errors
/// The file or its directory belongs to somebody else, or others may write to it; or it cannot be read.
pub fn found_placements(dir: &Path) -> Result<Vec<FoundPlacement>, JournalError> {
    let path = dir.join(FOUND_FILE);
    let unread = |error| JournalError::Unread(path.clone(), error);
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unread(error)),
    };
    for (name, meta) in [(dir, fs::metadata(dir)), (&*path, file.metadata())] {
        let meta = meta.map_err(|error| JournalError::Unread(name.to_owned(), error))?;
        if let Some(doubt) = trust::doubt(&meta) {
            return Err(LockError::Doubted(name.to_owned(), doubt).into());
        }
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(unread)?;
    // A line that makes no sense is left out: what it said is found again by the next search.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Remembers what was found for a kind of test, or with `None` that its rule may stay, in place of what was known of it.
///
/// # Errors
/// The file cannot be read or written, or its directory is not for this user.
pub fn remember_placement(dir: &Path, test: &TestKind, found: Option<&FoundPlacement>) -> Result<(), JournalError> {
    let unwritten = |error| JournalError::Unwritten(dir.join(FOUND_FILE), error);
    if found.is_some() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unwritten)?;
    }
    // What another vnettop has found in the same moment is not lost.
    let _lock = journal::lock(dir)?;
    let mut known = found_placements(dir)?;
    let before = known.len();
    known.retain(|one| one.test != *test);
    if found.is_none() && known.len() == before {
        return Ok(());
    }
    known.extend(found.cloned());
    known.drain(..known.len().saturating_sub(MOST));
    let mut lines = Vec::new();
    for one in &known {
        serde_json::to_writer(&mut lines, one).map_err(|error| unwritten(error.into()))?;
        lines.push(b'\n');
    }
    // Whole or not at all: a reader never sees half of it.
    let fresh = dir.join(format!("{FOUND_FILE}.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh);
    let written = options.and_then(|mut file| file.write_all(&lines).and_then(|()| file.sync_data()));
    let placed = written.and_then(|()| fs::rename(&fresh, dir.join(FOUND_FILE)));
    placed.inspect_err(|_| drop(fs::remove_file(&fresh))).map_err(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::PlacementClass;
    use std::os::unix::fs::PermissionsExt;

    fn found(streams: u32, class: PlacementClass) -> FoundPlacement {
        let test = TestKind { streams, ..TestKind::default() };
        FoundPlacement {
            test,
            class,
            steered: None,
            tuned: None,
            gain_ppm: Some(120_000),
            day: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn the_last_finding_of_each_kind_of_test_is_remembered_until_it_is_withdrawn() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().join("vnettop");
        assert_eq!(found_placements(&dir).expect("no file is no error"), [], "nothing was found yet");
        let (one, two) = (found(1, PlacementClass::SameCluster), found(2, PlacementClass::SameCore));
        let again = found(1, PlacementClass::OtherNode);
        for found in [&one, &two, &again] {
            remember_placement(&dir, &found.test, Some(found)).expect("it is written");
        }
        assert_eq!(found_placements(&dir).expect("read"), [two.clone(), again.clone()], "one of each kind");
        remember_placement(&dir, &again.test, None).expect("it is written");
        assert_eq!(found_placements(&dir).expect("read"), [two], "and what no longer holds is forgotten");
        let files = fs::read_dir(&dir).expect("there").count();
        assert_eq!(files, 1, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_others_may_write_to_is_not_obeyed() {
        let dir = tempfile::tempdir().expect("a directory");
        let one = found(1, PlacementClass::SameCluster);
        remember_placement(dir.path(), &one.test, Some(&one)).expect("it is written");
        let path = dir.path().join(FOUND_FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("the mode is set");
        let error = found_placements(dir.path()).expect_err("not obeyed").to_string();
        assert!(error.contains("is writable by others"), "and it says why: {error}");
    }
}
