//! The socket at which a vnettop is asked for what it has kept: of the same user only. It never writes a file for another program; the
//! recording goes through the socket, and whoever asks writes it.

use super::runtime_folder::made;
use super::{SharedRing, why_nothing};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::Duration;

/// What each answer begins with; another number is another protocol.
pub(super) const GREETING: &str = "vnettop-save-1";
/// Asks what this vnettop does.
pub(super) const WHO: &[u8] = b"who \n";
/// Asks for what is kept.
pub(super) const SAVE: &[u8] = b"save\n";
/// How long whoever asks may say nothing, or take nothing.
const PATIENCE: Duration = Duration::from_secs(5);
/// The name of a socket after its process.
pub(super) const ENDING: &str = ".sock";

/// The socket, which is removed with this value.
pub(super) struct SaveSocket {
    path: PathBuf,
}

impl SaveSocket {
    /// Opens it in the first folder that can have it, and answers on a thread of its own; none where no folder can.
    pub fn open(folders: &[PathBuf], what: &'static str, ring: &SharedRing) -> Option<Self> {
        let (path, listener) = folders.iter().find_map(|folder| listen(folder).ok())?;
        let ring = ring.clone();
        let answers = move || {
            for stream in listener.incoming() {
                // Whoever asked is gone.
                let _ = stream.and_then(|stream| answer(&stream, what, &ring));
            }
        };
        let socket = Self { path };
        Builder::new().name("save socket".to_owned()).spawn(answers).ok().map(|_| socket)
    }
}

impl Drop for SaveSocket {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

fn listen(folder: &Path) -> io::Result<(PathBuf, UnixListener)> {
    made(folder)?;
    remove_stale(folder);
    let path = folder.join(format!("{}{ENDING}", std::process::id()));
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((path, listener))
}

/// Removes the sockets of vnettops that were killed. One with the number of this process is of another that had it before, unless it
/// answers: then that runs in another namespace of processes.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_socket = path.to_str().is_some_and(|path| path.ends_with(ENDING));
        let is_refused =
            || UnixStream::connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_socket && is_refused() {
            let _ = fs::remove_file(&path);
        }
    }
}

fn answer(stream: &UnixStream, what: &str, ring: &SharedRing) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut to = BufWriter::new(stream);
    // Whoever is refused has been read too: what is left unread at the end takes the answer with it.
    let mut asked = [0; SAVE.len()];
    { stream }.read_exact(&mut asked)?;
    let own = geteuid();
    if socket_peercred(stream)?.uid != own {
        writeln!(to, "{GREETING} refused it belongs to another user (uid {})", own.as_raw())?;
        return to.flush();
    }
    let pid = std::process::id();
    if asked == WHO {
        writeln!(to, "{GREETING} is {pid} {what}")?;
        return to.flush();
    }
    if asked != SAVE {
        writeln!(to, "{GREETING} refused it is of another version")?;
        return to.flush();
    }
    let (kept, bounds, why) = {
        let mut ring = ring.lock();
        (ring.kept(0)?, ring.bounds(), why_nothing(&ring))
    };
    let Some(kept) = kept else {
        writeln!(to, "{GREETING} refused {why}")?;
        return to.flush();
    };
    let mut counted = CountedBytes(0);
    kept.write_to(&mut counted)?;
    let bound = if kept.is_shortened() { bounds.most_bytes } else { 0 };
    writeln!(to, "{GREETING} kept {pid} {} {} {bound}", counted.0, kept.length_ns())?;
    kept.write_to(&mut to)?;
    to.flush()
}

/// How many bytes something has.
struct CountedBytes(u64);

impl Write for CountedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
