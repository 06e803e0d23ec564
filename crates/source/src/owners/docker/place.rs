//! Where Docker's socket may be: the one that was named, that of Docker's own environment, the usual ones.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const USUAL: &str = "/var/run/docker.sock";

/// The sockets to try, in this order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SocketPlaces {
    /// Each of them.
    pub paths: Vec<PathBuf>,
    /// Somebody named it: that nothing is there is worth a word.
    pub(super) named: bool,
}

impl SocketPlaces {
    /// Given the environment and what the command line names. `DOCKER_HOST` counts where it is a unix socket, as for
    /// docker itself; Docker without root has its socket in the user's runtime directory.
    pub fn find(environment: impl Fn(&str) -> Option<OsString>, named: Option<&Path>) -> Self {
        let host = environment("DOCKER_HOST").map(OsString::into_vec);
        let host = host.as_deref().and_then(|host| host.strip_prefix(b"unix://")).filter(|path| !path.is_empty());
        let host = host.map(|path| Path::new(std::ffi::OsStr::from_bytes(path)));
        if let Some(path) = named.or(host) {
            return Self { paths: vec![path.to_owned()], named: named.is_some() };
        }
        let own = environment("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty());
        let own = own.map(|directory| PathBuf::from(directory).join("docker.sock"));
        Self { paths: std::iter::once(PathBuf::from(USUAL)).chain(own).collect(), named: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_named_comes_before_dockers_environment_and_that_before_the_usual_ones() {
        let found = |host: &'static str, named: Option<&str>| {
            let environment = |name: &str| match name {
                "DOCKER_HOST" => Some(OsString::from(host)),
                "XDG_RUNTIME_DIR" => Some(OsString::from("/run/user/1000")),
                _ => None,
            };
            let sockets = SocketPlaces::find(environment, named.map(Path::new));
            let paths: Vec<String> = sockets.paths.iter().map(|path| path.display().to_string()).collect();
            (paths.join(" "), sockets.named)
        };
        let usual = "/var/run/docker.sock /run/user/1000/docker.sock".to_owned();
        assert_eq!(found("unix:///srv/d.sock", Some("/a")), ("/a".to_owned(), true), "the command line");
        assert_eq!(found("unix:///srv/d.sock", None), ("/srv/d.sock".to_owned(), false), "docker's own");
        for elsewhere in ["", "tcp://192.0.2.1:2375", "ssh://host", "unix://"] {
            assert_eq!(found(elsewhere, None), (usual.clone(), false), "'{elsewhere}' is no socket of this machine");
        }
    }
}
