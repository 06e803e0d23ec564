//! The file that outlives a killed vnettop: one JSON line for each mask and each setting of a link about to be set, given and
//! put back. It only writes its own file; reading those of others is in `past`. A file is made at the first pin or steer and
//! removed with the last.

pub(super) mod begun;
pub(super) mod others;
pub(super) mod past;
pub(super) mod steer_lines;

use super::NumberSpaces;
use crate::sample::{CoreSet, SteeredFile, ThreadId};
use crate::trust::{self, Doubt};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steer_lines::SteerIntent;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Entry {
    /// The first line: whose journal it is.
    Begun {
        /// The vnettop that writes.
        #[serde(flatten)]
        owner: PinOwner,
        /// The boot it runs in.
        boot: String,
        /// Where the numbers of this journal hold.
        #[serde(flatten)]
        spaces: NumberSpaces,
        /// It pins and unpins in turn: every thread named here is its own until it ends.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        compares: bool,
    },
    /// A mask is about to be set.
    Pin {
        #[serde(flatten)]
        thread: ThreadId,
        /// Name and role, for people.
        label: String,
        /// The mask before vnettop touched the thread first, or what someone else has set since.
        old: CoreSet,
        asked: CoreSet,
        /// Wall clock, milliseconds since 1970; for people.
        wall_ms: u64,
        /// `CLOCK_MONOTONIC`, ns: which of two vnettops pinned a thread first.
        at_ns: u64,
    },
    /// It was set; the kernel gave this.
    Pinned {
        #[serde(flatten)]
        thread: ThreadId,
        got: CoreSet,
    },
    /// It was not set.
    Failed {
        #[serde(flatten)]
        thread: ThreadId,
    },
    /// The old mask is in force again, or the thread is gone.
    Restored {
        #[serde(flatten)]
        thread: ThreadId,
    },
    /// A file of a link's setting is about to be written.
    Steer(SteerIntent),
    /// It was written; the text read back.
    Steered {
        #[serde(flatten)]
        file: SteeredFile,
        got: String,
    },
    /// It was not written.
    SteerFailed {
        #[serde(flatten)]
        file: SteeredFile,
    },
    /// Its old text is in force again, or the link is gone.
    Unsteered {
        #[serde(flatten)]
        file: SteeredFile,
    },
}

/// One vnettop, unmistakable within a boot.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PinOwner {
    pub(super) pid: u32,
    /// Field 22 of its stat.
    pub(super) start: u64,
}

/// The append-only file of one vnettop.
#[derive(Debug)]
pub struct Journal {
    dir: Option<PathBuf>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines.
    len: u64,
}

/// Where journals are kept: `$XDG_STATE_HOME/vnettop`, else `$HOME/.local/state/vnettop`. Takes the environment as a
/// function, so that it reads none itself.
/// None where neither variable holds an absolute path.
pub fn journal_dir(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("vnettop"))
}

/// Why the journal of pins cannot be kept, or others' journals cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// [`journal_dir`] is `None`.
    #[error("neither XDG_STATE_HOME nor HOME is set: set one to a directory that you can write")]
    NoDirectory,
    /// The directory cannot be made, or a file in it not be made or written.
    #[error("{}: {}; set XDG_STATE_HOME to a directory that you can write", .0.display(), .1)]
    Unwritten(PathBuf, #[source] io::Error),
    /// The directory is not for pinning in.
    #[error("{0}; set XDG_STATE_HOME to a directory of your own")]
    Lock(#[from] LockError),
    /// What tells this vnettop from others cannot be read.
    #[error("cannot read vnettop's own process data ({0}); is /proc mounted?")]
    OwnerUnknown(#[source] io::Error),
    /// The journals of the directory cannot be listed.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unread(PathBuf, #[source] io::Error),
    /// That of another vnettop that runs, by its pid.
    #[error(
        "cannot read the pins of another vnettop (pid {}) in {}: {}; stop it, or run this one as its user",
        .0, .1.display(), .2
    )]
    OtherUnread(u32, PathBuf, #[source] io::Error),
}

/// Why a directory of journals cannot be locked or trusted.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It cannot be opened.
    #[error("cannot open {}: {}", .0.display(), .1)]
    Unopened(PathBuf, #[source] io::Error),
    /// The directory's owner cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unread(PathBuf, #[source] io::Error),
    /// Others may have written what is in it.
    #[error("{} {}", .0.display(), .1)]
    Doubted(PathBuf, #[source] Doubt),
    /// Another program holds the lock.
    #[error("another program has held the lock on {} for 2 s: try again, or see lslocks(8)", .0.display())]
    Held(PathBuf),
}

impl Journal {
    /// A journal that will be kept in `dir`; nothing is opened before the first pin.
    #[must_use]
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, open: None }
    }

    /// Where journals are kept.
    pub(super) fn dir(&self) -> Result<&Path, JournalError> {
        self.dir.as_deref().ok_or(JournalError::NoDirectory)
    }

    /// Makes the directory and waits until no other vnettop is about to pin or to undo.
    pub(super) fn lock(&self) -> Result<Option<File>, JournalError> {
        let dir = self.dir()?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unwritten(dir))?;
        Ok(lock(dir)?)
    }

    /// Writes these lines and waits until they are on the disk; makes the file, beginning with `begun`, if there is none.
    pub(super) fn intend(
        &mut self,
        begun: impl FnOnce() -> Result<Entry, JournalError>,
        pins: &[Entry],
    ) -> Result<(), JournalError> {
        if let Some(open) = &mut self.open {
            return open.append(pins, true).map_err(unwritten(&open.path));
        }
        let dir = self.dir()?;
        let begun = begun()?;
        let mut open = Open::create(dir, &begun).map_err(unwritten(dir))?;
        let lines = [std::slice::from_ref(&begun), pins].concat();
        if let Err(error) = open.append(&lines, true) {
            let _ = std::fs::remove_file(&open.path);
            return Err(JournalError::Unwritten(open.path, error));
        }
        self.open = Some(open);
        Ok(())
    }

    /// Adds what came of an intention. It is not waited for, and may fail: the intention alone is enough to undo.
    pub(super) fn note(&mut self, entry: Entry) {
        if let Some(open) = &mut self.open {
            let _ = open.append(&[entry], false);
        }
    }

    /// Removes the file: nothing of it is in force any more.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let _ = std::fs::remove_file(open.path);
        }
    }
}

impl Open {
    /// The name holds pid and start time, so that even a journal whose first line is damaged tells whose it is.
    fn create(dir: &Path, begun: &Entry) -> io::Result<Self> {
        let Entry::Begun { owner, .. } = begun else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let mut tries = 0;
        loop {
            let path = dir.join(past::file_name(*owner, tries));
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path, len: 0 }),
                // A journal of another boot, left by a process with the same pid and start time, is in the way.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// One write for all lines; a write that failed halfway is taken back, so that only a crash can leave a torn line.
    fn append(&mut self, entries: &[Entry], durable: bool) -> io::Result<()> {
        let text = lines(entries)?;
        let written = self.file.write_all(&text).and_then(|()| if durable { self.file.sync_data() } else { Ok(()) });
        match &written {
            Ok(()) => self.len += text.len() as u64,
            Err(_) => drop(self.file.set_len(self.len)),
        }
        written
    }
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    |error| JournalError::Unwritten(path.to_owned(), error)
}

/// No vnettop needs the lock of a directory for longer, unless it was stopped meanwhile.
const LOCKED: Duration = Duration::from_secs(2);
const LOCK_TRIED_EVERY: Duration = Duration::from_millis(10);

/// Keeps other vnettops from beginning to pin or to undo until the returned file is dropped: only until then do their journals
/// and the threads' masks belong together. It is held while a journal is read and written. `None` on a file system without
/// locks: two vnettops in the same millisecond are not told apart there.
///
/// Asked for again and again, because waiting for a lock has no end, and neither has opening a fifo.
pub(super) fn lock(dir: &Path) -> Result<Option<File>, LockError> {
    let named = || dir.to_owned();
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NONBLOCK).open(dir) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LockError::Unopened(named(), error)),
    };
    let found = file.metadata().map_err(|error| LockError::Unread(named(), error))?;
    if let Some(doubt) = trust::doubt(&found) {
        return Err(LockError::Doubted(named(), doubt));
    }
    let end = Instant::now() + LOCKED;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOCK_TRIED_EVERY),
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(named())),
        }
    }
}

fn lines(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut text, entry)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Adds lines to a journal of the past, after some of it was undone.
pub(super) fn add_to(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    // Whatever a crash left of a last line ends here.
    file.write_all(b"\n")?;
    file.write_all(&lines(entries)?)?;
    file.sync_data()
}
