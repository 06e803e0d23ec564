//! The files of the flight recorder: written whole or not at all, never over one that is there; of those that were saved by themselves the
//! oldest go.

use crate::derive::TriggerKind;
use crate::sample::Word;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// Files of one second.
const MOST_OF_SECOND: u32 = 100;
const ENDING: &str = ".jsonl.zst";
/// How each name begins that a file has which was saved by itself.
const PREFIX: &str = "vnettop-on-";
/// What stands for a limit of `vnettop run` that was exceeded.
const GATE: &str = "vnettop-on-gate";
/// `20260102-030405`.
const STAMP: usize = 15;

/// Names of files that were saved by themselves.
pub(super) struct SavedName;

impl SavedName {
    /// The beginning of the name of what was saved for this.
    pub fn of(kind: TriggerKind) -> String {
        format!("{PREFIX}{}", kind.word())
    }

    /// The same of a limit of `vnettop run`.
    pub fn of_gate() -> &'static str {
        GATE
    }

    /// Whether a file has the name of one that was saved by itself.
    pub fn is_one(path: &Path) -> bool {
        path.file_name().and_then(|name| Self::time(name.to_str()?)).is_some()
    }

    /// Its time, as it is written in the name.
    fn time(name: &str) -> Option<&str> {
        let rest = name.strip_suffix(ENDING)?;
        let mut words = TriggerKind::VARIANTS.iter().map(|kind| Self::of(*kind)).chain([GATE.to_owned()]);
        let time = words.find_map(|word| rest.strip_prefix(&*word)?.strip_prefix('-'))?;
        let is_time = time.len() >= STAMP && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        is_time.then_some(time)
    }
}

/// Writes a new file beside its place and gives it its name when it is whole. Where the name is taken, it gets a number.
///
/// # Errors
/// It cannot be written; nothing is left of it then.
pub(in crate::app) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let beside = beside(path);
    let done = written(&beside, write).and_then(|()| {
        for number in 1..MOST_OF_SECOND {
            let path = if number == 1 { path.to_owned() } else { numbered(path, number) };
            match rename_new(&beside, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done.map(|()| path),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    });
    done.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Writes a new file of exactly this name.
///
/// # Errors
/// It is there, or cannot be written; nothing is left of it then.
pub(super) fn write_exactly(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let beside = beside(path);
    let done = written(&beside, write).and_then(|()| rename_new(&beside, path));
    done.inspect_err(|_| drop(fs::remove_file(&beside)))
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{}-{number}{ENDING}", name.trim_end_matches(ENDING)))
}

fn written(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    // What is recorded holds other users' command lines.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that knows no such flag.
        Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(from, to).and_then(|()| fs::remove_file(from)),
        done => Ok(done?),
    }
}

/// Removes the oldest files that were saved by themselves in the folder of this one, until at most so many files and bytes are left;
/// this one stays.
///
/// # Errors
/// The folder cannot be read, or a file not be removed.
pub(super) fn prune(newest: &Path, most_files: usize, most_bytes: u64) -> io::Result<()> {
    let Some(folder) = newest.parent() else { return Ok(()) };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(time) = name.to_str().and_then(SavedName::time) else { continue };
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_file() && meta.uid() == geteuid().as_raw() && entry.path() != newest {
            found.push((time.to_owned(), meta.len(), entry.path()));
        }
    }
    found.sort();
    let own = newest.metadata().map_or(0, |meta| meta.len());
    let mut bytes = found.iter().map(|(_, bytes, _)| bytes).sum::<u64>() + own;
    let mut files = found.len() + 1;
    for (_, size, path) in found {
        if files <= most_files.max(1) && bytes <= most_bytes {
            break;
        }
        fs::remove_file(path)?;
        (files, bytes) = (files - 1, bytes - size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut all: Vec<String> =
            entries.map(|entry| entry.expect("readable").file_name().into_string().expect("plain")).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_whole_or_not_there_and_never_over_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vnettop-on-dip-20260102-030405.jsonl.zst");
        let write = |text: &'static str| write_whole(&path, move |file| file.write_all(text.as_bytes()));
        assert_eq!(write("one").expect("writable"), path);
        let second = write("two").expect("writable");
        assert!(second.ends_with("vnettop-on-dip-20260102-030405-2.jsonl.zst") && SavedName::is_one(&second));
        assert_eq!(fs::read_to_string(&path).expect("there"), "one");
        let failed = write_whole(&path, |_| Err(io::Error::other("full")));
        assert!(failed.is_err() && names(folder.path()).len() == 2, "nothing is left: {:?}", names(folder.path()));
        let error = write_exactly(&path, |_| Ok(())).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn the_oldest_of_its_own_go_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let others = [
            "vnettop-20260101-000000.jsonl.zst",
            "vnettop-saved-20260101-000000.jsonl.zst",
            "vnettop-on-frob-20260101-000000.jsonl.zst",
            "vnettop-on-dip-20260101-000000.jsonl.zst.old",
            "vnettop-on-dip-mine.jsonl.zst",
        ];
        for name in others {
            fs::write(folder.path().join(name), "x").expect("writable");
        }
        let mut newest = PathBuf::new();
        for second in 10..40 {
            let kind = if second % 2 == 0 { TriggerKind::Dip } else { TriggerKind::LimitChange };
            let name = format!("{}-20260102-0304{second}{ENDING}", SavedName::of(kind));
            newest = write_whole(&folder.path().join(name), |file| file.write_all(&[0; 100])).expect("writable");
            prune(&newest, 5, 1_000_000).expect("they go");
        }
        assert_eq!(names(folder.path()).len(), others.len() + 5, "five are left");
        prune(&newest, 5, 250).expect("they go");
        let left = names(folder.path());
        assert_eq!(left.len(), others.len() + 2, "as many as have room: {left:?}");
        assert!(others.iter().all(|name| left.iter().any(|other| other == name)), "others stay: {left:?}");
        prune(&newest, 5, 1).expect("they go");
        assert!(newest.exists(), "the newest stays");
    }
}
