//! Sockets of other programs: looked at, never connected to. Their directories may be another user's, so a thread looks
//! that may be left behind.

use super::words;
use crate::ovs::SocketPlace;
use crate::untrusted_reader;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use vnettop_sample::{SocketFound, SocketState};

/// What is there.
pub(super) fn look(place: SocketPlace) -> SocketFound {
    let path = place.path.clone();
    let looked = untrusted_reader::ask(path.display(), move || match place.socket() {
        Ok(Some(socket)) => (socket.path.clone(), may_open(&socket.path)),
        Ok(None) => (place.path, SocketState::Absent),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (place.path, SocketState::Denied),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => (place.path, SocketState::Absent),
        Err(error) => (place.path, SocketState::Unknown(words(error))),
    });
    let late = || (path, SocketState::Unknown("looking at it took too long".to_owned()));
    let (path, state) = looked.unwrap_or_else(late);
    SocketFound { path, state }
}

/// Who connects must be allowed to write.
fn may_open(path: &Path) -> SocketState {
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => SocketState::MayOpen,
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => SocketState::Denied,
        Err(error) => SocketState::Unknown(words(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_looked_at_and_not_connected_to() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| SocketPlace { path: root.path().join(name), asked: false };
        assert_eq!(look(at("none.sock")).state, SocketState::Absent);
        let listener = std::os::unix::net::UnixListener::bind(root.path().join("a.sock")).expect("it binds");
        assert_eq!(look(at("a.sock")).state, SocketState::MayOpen);
        listener.set_nonblocking(true).expect("settable");
        assert!(listener.accept().is_err(), "nobody has connected");
        std::fs::write(root.path().join("file"), "").expect("writable");
        assert!(matches!(look(at("file")).state, SocketState::Unknown(_)), "a file is no socket");
        assert_eq!(look(at("file/db.sock")).state, SocketState::Absent, "nothing can be below a file");
    }
}
