//! An Open vSwitch on a test's machine: its database and daemon run in one namespace of it, with a run directory of their
//! own, over the datapath that needs no kernel module. They end with the machine.

use super::machine::Machine;
use super::{Kept, await_that};
use crate::ground::left_out;
use std::process::Command;

/// What the tests need beside what every live test needs.
pub const PROGRAMS: &[&str] = &[
    "ovsdb-server",
    "ovs-vswitchd",
    "ovs-vsctl",
    "ovsdb-tool",
    "ip",
    "ethtool",
    "iperf3",
    "nsenter",
    "unshare",
    "setpriv",
];

/// Whether the kernel has a datapath of its own; otherwise the test says that it did not run.
pub fn has_kernel_datapath(test: &str, machine: &Machine) -> bool {
    let has = machine.can("ovs-dpctl add-dp probe0 && ovs-dpctl del-dp probe0");
    if !has {
        left_out(test, "this kernel has no datapath of Open vSwitch");
    }
    has
}

/// A pod 198.19.0.N whose other end `vethN` is in a namespace. Userspace takes no packet whose checksum is still open.
pub fn pod(machine: &Machine, number: u32, host: &str) -> String {
    let space = machine.space(&format!("pod{number}"));
    machine.run_in(
        host,
        &format!(
            "ip link add veth{number} mtu 1450 type veth peer name eth0 mtu 1450 netns pod{number}
             ip link set veth{number} up
             ip -n pod{number} addr add 198.19.0.{number}/24 dev eth0; ip -n pod{number} link set eth0 up"
        ),
    );
    machine.run_in(&space, "ethtool -K eth0 tx off tso off >/dev/null");
    space
}

/// A running switch.
pub struct Switch<'a> {
    machine: &'a Machine,
    space: String,
    folder: String,
    keeps: Vec<Kept>,
}

impl<'a> Switch<'a> {
    /// In a namespace of the machine; the one named `openvswitch` has the run directory of an ordinary one.
    pub fn start(machine: &'a Machine, space: &str, name: &str) -> Self {
        let folder = format!("/run/{name}");
        let mut switch = Self { machine, space: space.to_owned(), folder, keeps: Vec::new() };
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        switch.run(&format!("mkdir -p {0} && ovsdb-tool create {0}/conf.db {schema}", switch.folder));
        switch.up();
        switch
    }

    /// Starts its two programs, again or for the first time.
    pub fn up(&mut self) {
        let folder = self.folder.clone();
        let database = [&*format!("{folder}/conf.db"), &format!("--remote=punix:{folder}/db.sock")].map(str::to_owned);
        self.program("ovsdb-server", &database);
        await_that("ovsdb-server answers", 20, || self.can("ovs-vsctl --no-wait --timeout 5 init"));
        self.program("ovs-vswitchd", &[format!("unix:{folder}/db.sock")]);
        await_that("ovs-vswitchd answers", 20, || self.can("ovs-appctl --timeout 5 version"));
    }

    /// Both stand still: their sockets are there and nobody answers.
    pub fn stand_still(&self) {
        self.signal("STOP");
    }

    /// Both go on.
    pub fn go_on(&self) {
        self.signal("CONT");
        self.keeps.iter().for_each(Kept::go_on);
    }

    fn signal(&self, name: &str) {
        self.run(&format!("kill -{name} $(cat {0}/ovsdb-server.pid {0}/ovs-vswitchd.pid)", self.folder));
    }

    /// Ends both at once.
    pub fn kill(&mut self) {
        self.signal("KILL");
        for mut program in self.keeps.drain(..) {
            await_that("it is gone", 10, || program.0.try_wait().expect("it can be waited for").is_some());
        }
    }

    /// Its database's socket.
    pub fn socket(&self) -> String {
        format!("{}/db.sock", self.folder)
    }

    fn program(&mut self, name: &str, arguments: &[String]) {
        let mut command = self.inside(name);
        command.args(arguments).arg(format!("--pidfile={}/{name}.pid", self.folder));
        let log = format!("{name}{}", self.folder.replace('/', "-"));
        self.keeps.push(self.machine.keep(&log, command));
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = self.machine.inside(&self.space, "env");
        let folders = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"].map(|name| format!("{name}={}", self.folder));
        command.args(folders).arg(program);
        command
    }

    /// Runs shell lines beside it; every one must succeed.
    pub fn run(&self, script: &str) {
        let out = self.inside("sh").args(["-ec", script]).output().expect("sh runs");
        assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    }

    fn can(&self, script: &str) -> bool {
        self.inside("sh").args(["-ec", script]).output().is_ok_and(|out| out.status.success())
    }

    /// `ovs-vsctl ...`, done when ovs-vswitchd has done it.
    pub fn set(&self, words: &str) {
        self.run(&format!("ovs-vsctl --timeout 20 {words}"));
    }

    /// A bridge over the userspace datapath.
    pub fn bridge(&self, name: &str) {
        self.set(&format!("add-br {name} -- set bridge {name} datapath_type=netdev"));
    }

    /// A bridge over the kernel's datapath.
    pub fn kernel_bridge(&self, name: &str) {
        self.set(&format!("add-br {name}"));
    }
}
