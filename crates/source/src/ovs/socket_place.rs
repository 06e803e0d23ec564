//! Where databases of Open vSwitch may be: its own directories, those of its environment, those asked for.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where every Open vSwitch puts its sockets unless told otherwise.
const RUN: [&str; 2] = ["/run/openvswitch", "/var/run/openvswitch"];
/// Its socket there.
const SOCKET: &str = "db.sock";
/// What tells its programs to use another directory.
const ENVIRONMENT: [&str; 2] = ["OVS_RUNDIR", "OVS_DBDIR"];

/// One socket that may be there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SocketPlace {
    /// A socket, or the directory it is in.
    pub path: PathBuf,
    /// Somebody named it: that nothing is there is worth a word.
    pub asked: bool,
}

/// A socket that is there, and which file it is: one may be found in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PresentSocket {
    pub path: PathBuf,
    pub file: (u64, u64),
}

/// Every place to look at, given the environment and what the command line names.
pub fn places(environment: impl Fn(&str) -> Option<OsString>, asked: &[PathBuf]) -> Vec<SocketPlace> {
    // Mostly the same directory by two names: one look a second is enough.
    let real = |path: &str| Path::new(path).parent().and_then(|parent| parent.canonicalize().ok());
    let runs = if real(RUN[0]) == real(RUN[1]) { &RUN[..1] } else { &RUN };
    let usual = runs.iter().map(PathBuf::from);
    let reported = ENVIRONMENT.iter().filter_map(|name| environment(name)).filter(|path| !path.is_empty());
    let usual = usual
        .chain(reported.map(PathBuf::from))
        .map(|directory| SocketPlace { path: directory.join(SOCKET), asked: false });
    let asked = asked.iter().map(|path| SocketPlace { path: path.clone(), asked: true });
    let mut all: Vec<SocketPlace> = Vec::new();
    for place in asked.chain(usual) {
        if all.iter().all(|known| known.path != place.path && known.path.join(SOCKET) != place.path) {
            all.push(place);
        }
    }
    all
}

impl SocketPlace {
    /// The socket; none where nothing is. One system call where nothing is.
    ///
    /// # Errors
    /// Something else is there, or it may not be looked at.
    pub(crate) fn socket(&self) -> io::Result<Option<PresentSocket>> {
        let mut path = self.path.clone();
        let mut found = std::fs::metadata(&path);
        if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            path.push(SOCKET);
            found = std::fs::metadata(&path);
        }
        match found {
            Ok(file) if file.file_type().is_socket() => {
                Ok(Some(PresentSocket { path, file: (file.dev(), file.ino()) }))
            }
            Ok(_) => Err(io::Error::other("it is not a socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_places_come_after_those_asked_for_and_none_comes_twice() {
        let environment = |name: &str| match name {
            "OVS_RUNDIR" | "OVS_DBDIR" => Some(OsString::from("/srv/ovs")),
            _ => None,
        };
        let of_directory = places(environment, &["/srv/ovs".into()]);
        assert!(
            of_directory.iter().all(|place| place.path != Path::new("/srv/ovs/db.sock")),
            "asked for by its directory"
        );
        let all = places(environment, &["/srv/ovs/db.sock".into(), "/a".into()]);
        let of = |path: &str| all.iter().filter(|place| place.path == Path::new(path)).collect::<Vec<_>>();
        assert_eq!(of("/srv/ovs/db.sock"), [&SocketPlace { path: "/srv/ovs/db.sock".into(), asked: true }]);
        assert_eq!(of("/a").len(), 1, "what is asked for is there");
        assert_eq!(
            of("/run/openvswitch/db.sock"),
            [&SocketPlace { path: "/run/openvswitch/db.sock".into(), asked: false }]
        );
    }

    #[test]
    fn a_directory_stands_for_the_socket_in_it() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let place = SocketPlace { path: root.path().to_owned(), asked: true };
        assert_eq!(place.socket().expect("readable"), None, "nothing is there yet");
        let _listener = std::os::unix::net::UnixListener::bind(root.path().join(SOCKET)).expect("it binds");
        let found = place.socket().expect("readable").expect("it is there");
        assert_eq!(found.path, root.path().join(SOCKET));
        let file = SocketPlace { path: "/dev/null".into(), asked: true };
        assert_eq!(file.socket().expect_err("no socket").to_string(), "it is not a socket");
    }
}
