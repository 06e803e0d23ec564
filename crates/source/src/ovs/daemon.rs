//! The ovs-vswitchd that belongs to a database: its process, and the network namespace its links are in.

use crate::{Roots, netns_of, proc_file};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Its command name, and that of its pid file.
const NAME: &str = "ovs-vswitchd";
/// A pid file holds a number and a line end, bytes.
const LONGEST: u64 = 32;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Daemon {
    /// Its process; none where it cannot be told or does not run.
    pub pid: Option<u32>,
    /// Inode of its network namespace, or of that of its database; the last one known.
    pub netns: Option<u64>,
    /// Which pid file told of it.
    file: Option<(u64, i64, i64)>,
}

impl Daemon {
    /// Looks again; `database` is the process that listens. Returns whether anything is different now.
    pub fn look(&mut self, roots: &Roots, directory: &Path, database: Option<u32>) -> bool {
        let path = directory.join(NAME).with_extension("pid");
        let file = std::fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= LONGEST);
        let file = file.map(|file| (file.ino(), file.mtime(), file.mtime_nsec()));
        if file.is_some() && file == self.file && self.pid.is_some() {
            return false;
        }
        let before = (self.pid, self.netns);
        self.file = file;
        let reported = file.and_then(|_| proc_file::plain(&path, LONGEST).ok()?.trim().parse().ok());
        self.pid = reported.filter(|&pid| is_it(roots, pid));
        // Its database is started with it. Once known, the namespace stays known while it is restarted.
        let database = database.filter(|_| self.netns.is_none());
        self.netns = self.pid.or(database).and_then(|pid| netns(roots, pid)).or(self.netns);
        before != (self.pid, self.netns)
    }
}

/// The number may be old, or another pid namespace's.
fn is_it(roots: &Roots, pid: u32) -> bool {
    let comm = roots.proc.join(pid.to_string()).join("comm");
    proc_file::text(&comm).is_ok_and(|comm| comm.trim_end() == NAME)
}

fn netns(roots: &Roots, pid: u32) -> Option<u64> {
    netns_of(&roots.proc.join(pid.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_is_believed_only_while_the_process_is_the_one() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().to_owned(), sys: root.path().to_owned() };
        for (pid, comm) in [(7, "ovs-vswitchd\n"), (8, "bash\n"), (9, "ovsdb-server\n")] {
            let process = root.path().join(pid.to_string());
            std::fs::create_dir_all(process.join("ns")).expect("writable");
            std::os::unix::fs::symlink(format!("net:[{pid}0]"), process.join("ns/net")).expect("writable");
            std::fs::write(process.join("comm"), comm).expect("writable");
        }
        let inode = |pid: u32| netns(&roots, pid);
        let pid_file = root.path().join("ovs-vswitchd.pid");
        let mut daemon = Daemon::default();
        std::fs::write(&pid_file, "8\n").expect("writable");
        assert!(daemon.look(&roots, root.path(), Some(9)), "a number of somebody else: the database's namespace");
        assert_eq!((daemon.pid, daemon.netns), (None, inode(9)));
        std::fs::write(&pid_file, "7\n").expect("writable");
        assert!(daemon.look(&roots, root.path(), Some(9)), "it has started");
        assert_eq!((daemon.pid, daemon.netns), (Some(7), inode(7)));
        std::fs::remove_file(&pid_file).expect("removable");
        daemon.look(&roots, root.path(), Some(9));
        assert_eq!((daemon.pid, daemon.netns), (None, inode(7)), "stopped: its links are where they were");
    }
}
