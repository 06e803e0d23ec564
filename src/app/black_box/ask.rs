//! `vnettop save`: asks a vnettop of the same user for what it has kept, and writes it.

use super::runtime_folder::is_private;
use super::saved_file::{write_exactly, write_whole};
use super::socket::{ENDING, GREETING, SAVE, WHO};
use super::{KeepError, place, shortened, stamp};
use crate::clock::wall_ms;
use crate::record::RecordError;
use crate::report::recording::length;
use crate::text::clean;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first line of an answer is shorter.
const LONGEST_LINE: u64 = 1024;
/// Vnettops that are named in a sentence.
const MOST_NAMED: usize = 8;

/// Which vnettop is asked, and where what it has kept goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedVnettop {
    /// Its process; none: the only one that runs.
    pub pid: Option<u32>,
    /// The file; none: a new one in the folder of `R`.
    pub output: Option<PathBuf>,
    /// Where sockets are looked for.
    pub folders: Vec<PathBuf>,
    /// The folder of `R`.
    pub kept_in: Option<PathBuf>,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody can be asked.
    #[error("no vnettop of this user can be asked: none runs, or with --no-socket")]
    Nobody,
    /// This one cannot be asked.
    #[error("{0} cannot be asked: it is no vnettop, or one with --no-socket or --keep 0")]
    NotThere(u32),
    /// There is no such process.
    #[error("there is no process {0}")]
    Gone(u32),
    /// It is another user's.
    #[error("vnettop {0} belongs to another user (uid {1}): only that user can save it")]
    OtherUser(u32, u32),
    /// There are several.
    #[error("several vnettops run, vnettop save PID asks one: {}", .0.join(", "))]
    Several(Vec<String>),
    /// It does not answer.
    #[error("vnettop {0} does not answer: {1}")]
    Silent(u32, io::Error),
    /// It answers that it has nothing.
    #[error("vnettop {0} saved nothing: {1}")]
    Refused(u32, String),
    /// The file is there already.
    #[error(transparent)]
    Exists(RecordError),
    /// The file cannot be written.
    #[error("cannot write recording {}: {}", .0.display(), .1)]
    Unwritten(PathBuf, #[source] io::Error),
    /// There is no folder for it.
    #[error(transparent)]
    NoPlace(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl From<KeepError> for AskError {
    fn from(error: KeepError) -> Self {
        Self::NoPlace(Box::new(error))
    }
}

/// Asks, and writes the answer to a file; the sentence of it.
///
/// # Errors
/// Nobody can be asked, or the file cannot be written.
pub fn ask(asked: &AskedVnettop) -> Result<String, AskError> {
    let (pid, socket) = chosen(asked)?;
    let silent = |error| AskError::Silent(pid, error);
    let mut answer = opened(&socket, SAVE).map_err(silent)?;
    let line = first_line(&mut answer).map_err(silent)?;
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(&"kept"), Some(bytes), Some(length_ns), Some(bound)) = (words.first(), number(2), number(3), number(4))
    else {
        return Err(AskError::Refused(pid, line.trim_start_matches("refused ").to_owned()));
    };
    let copy = |file: &mut dyn Write| match io::copy(&mut answer.take(bytes), file)? {
        copied if copied == bytes => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "vnettop ended in the middle of its answer")),
    };
    let path = if let Some(path) = &asked.output {
        write_exactly(path, |file| copy(file)).map(|()| path.clone()).map_err(|error| (path.clone(), error))
    } else {
        let path = place(asked.kept_in.as_deref(), &format!("vnettop-saved-{}.jsonl.zst", stamp(wall_ms())))?;
        write_whole(&path, |file| copy(file)).map_err(|error| (path, error))
    };
    let path = path.map_err(|(path, error)| match error.kind() {
        io::ErrorKind::AlreadyExists => AskError::Exists(RecordError::Exists(path)),
        _ => AskError::Unwritten(path, error),
    })?;
    let lasts = length(length_ns as f64 / 1e9);
    let bound = usize::try_from(bound).ok().filter(|bound| *bound > 0).map(shortened).unwrap_or_default();
    Ok(format!("saved {lasts} of vnettop {pid} to {}{bound}", path.display()))
}

/// Whom to ask: the process and its socket.
fn chosen(asked: &AskedVnettop) -> Result<(u32, PathBuf), AskError> {
    let own = own_sockets(&asked.folders);
    if let Some(pid) = asked.pid {
        return own.into_iter().find(|(other, _)| *other == pid).ok_or_else(|| {
            match fs::metadata(format!("/proc/{pid}")).map(|found| found.uid()) {
                Err(_) => AskError::Gone(pid),
                Ok(uid) if uid != geteuid().as_raw() => AskError::OtherUser(pid, uid),
                Ok(_) => AskError::NotThere(pid),
            }
        });
    }
    let mut running = Vec::new();
    for (pid, socket) in own {
        let answer = opened(&socket, WHO).and_then(|mut answer| first_line(&mut answer));
        match answer {
            Ok(line) => running.push((pid, socket, line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => drop(fs::remove_file(&socket)),
            // It may be stopped; whoever names it hears so.
            Err(_) => running.push((pid, socket, "does not answer".to_owned())),
        }
    }
    match running.len() {
        0 => Err(AskError::Nobody),
        1 => Ok(running.remove(0)).map(|(pid, socket, _)| (pid, socket)),
        _ => {
            let named = running.iter().take(MOST_NAMED).map(|(pid, _, what)| format!("{pid} ({what})"));
            Err(AskError::Several(named.collect()))
        }
    }
}

/// The sockets in folders that only this user can enter, by process.
fn own_sockets(folders: &[PathBuf]) -> Vec<(u32, PathBuf)> {
    let is_own = |folder: &&PathBuf| folder.symlink_metadata().is_ok_and(|found| is_private(&found));
    let mut all = Vec::new();
    for folder in folders.iter().filter(is_own) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_suffix(ENDING)?.parse().ok());
            all.extend(pid.map(|pid| (pid, entry.path())));
        }
    }
    all.sort();
    all
}

/// Asks at a socket that is of this user.
fn opened(socket: &Path, question: &[u8]) -> io::Result<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(socket)?;
    if socket_peercred(&stream)?.uid != geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    Ok(BufReader::new(stream))
}

/// The first line without its greeting.
fn first_line(answer: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut line = Vec::new();
    answer.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    let line = clean(line.trim_ascii_end());
    let rest = line.strip_prefix(GREETING).and_then(|rest| rest.strip_prefix(' '));
    rest.map(str::to_owned).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it says something else"))
}
