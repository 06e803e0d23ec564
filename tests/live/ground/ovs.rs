//! An Open vSwitch of its own inside a namespace: ovsdb-server and ovs-vswitchd with the userspace datapath, their run,
//! database and log directories in a temporary one. Both end with the test.

use super::{Kept, Netns, await_that};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs that a test with a switch needs.
pub const PROGRAMS: [&str; 5] = ["unshare", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovsdb-tool"];

/// Where the package puts it.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// One running switch.
pub struct Switch {
    directory: tempfile::TempDir,
    database: Option<Kept>,
    daemon: Option<Kept>,
}

impl Switch {
    /// A switch whose links are in this namespace.
    pub fn start(netns: &Netns) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut switch = Self { directory, database: None, daemon: None };
        let mut create = switch.with(Command::new("ovsdb-tool"));
        create.arg("create").arg(switch.path("conf.db")).arg(SCHEMA);
        let made = create.output().expect("ovsdb-tool runs");
        assert!(made.status.success(), "the database is made: {}", String::from_utf8_lossy(&made.stderr));
        switch.start_database(netns);
        switch.vsctl("--no-wait init");
        let remote = format!("unix:{}", switch.socket().display());
        let mut daemon = switch.with(netns.command("ovs-vswitchd"));
        // The kernel's datapath, where there is one, is the whole machine's.
        daemon.args([&remote, "--pidfile", "--log-file", "--no-chdir", "--disable-system"]);
        switch.daemon = Some(quiet(&mut daemon));
        await_that("ovs-vswitchd writes its pid", 10, || switch.path("ovs-vswitchd.pid").exists());
        switch
    }

    /// Starts the database; it is there when this returns.
    pub fn start_database(&mut self, netns: &Netns) {
        let mut server = self.with(netns.command("ovsdb-server"));
        server.arg(self.path("conf.db")).arg(format!("--remote=punix:{}", self.socket().display()));
        server.args(["--pidfile", "--log-file", "--no-chdir"]);
        self.database = Some(quiet(&mut server));
        await_that("ovsdb-server listens", 10, || std::os::unix::net::UnixStream::connect(self.socket()).is_ok());
    }

    /// Kills the database, as a crash would.
    pub fn stop_database(&mut self) {
        self.database = None;
    }

    /// The process of the database.
    pub fn database(&self) -> u32 {
        super::pid(self.database.as_ref().expect("it runs"))
    }

    /// The process that forwards.
    pub fn pid(&self) -> u32 {
        super::pid(self.daemon.as_ref().expect("it runs"))
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The socket of the database.
    pub fn socket(&self) -> PathBuf {
        self.path("db.sock")
    }

    /// What `ovs-vsctl` prints; it must succeed.
    pub fn vsctl(&self, arguments: &str) -> String {
        let remote = format!("--db=unix:{}", self.socket().display());
        let mut command = self.with(Command::new("ovs-vsctl"));
        let out = command.args([&remote, "--timeout=20"]).args(arguments.split(' ')).output().expect("ovs-vsctl runs");
        assert!(out.status.success(), "ovs-vsctl {arguments}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn with(&self, mut command: Command) -> Command {
        for name in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
            command.env(name, self.directory.path());
        }
        command
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // The one that asks goes before the one that is asked.
        self.daemon = None;
        self.database = None;
    }
}

fn quiet(command: &mut Command) -> Kept {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Kept(started.expect("it starts"))
}
