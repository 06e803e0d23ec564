//! Docker Engines on a test's machine, one to a namespace: their image is a tar of this machine's own iperf3 and busybox,
//! so no registry is asked. They end with the machine.

use super::machine::Machine;
use super::{Kept, await_that};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the tests need beside what every live test needs.
pub const PROGRAMS: &[&str] =
    &["dockerd", "docker", "iptables", "busybox", "iperf3", "ip", "ethtool", "nsenter", "unshare", "setpriv", "tar"];

/// A running dockerd.
pub struct Docker<'a> {
    machine: &'a Machine,
    space: String,
    name: String,
    daemon: Option<Kept>,
}

impl<'a> Docker<'a> {
    /// In a namespace of the machine; the one that is named `docker` has the socket and folders of an ordinary engine.
    pub fn start(machine: &'a Machine, space: &str, name: &str) -> Self {
        let mut docker = Self { machine, space: space.to_owned(), name: name.to_owned(), daemon: None };
        docker.up();
        docker.cli(&["import", &image(machine).display().to_string(), "bench"]);
        docker
    }

    /// Starts the daemon, again or for the first time.
    pub fn up(&mut self) {
        let root = self.machine.folder().join(&self.name);
        std::fs::create_dir_all(&root).expect("a folder for its data");
        let mut command = self.machine.inside(&self.space, "env");
        command.arg(format!("TMPDIR={}", root.display())).arg("DOCKER_RAMDISK=1").arg("dockerd");
        command.args(["-H", &self.socket(), "--data-root", &root.display().to_string()]);
        command.args(["--exec-root", &format!("/run/{}", self.name), "--pidfile", &self.pidfile()]);
        self.daemon = Some(self.machine.keep(&self.name, command));
        let asks = || self.command(&["version"]).output().is_ok_and(|out| out.status.success());
        for _ in 0..1500 {
            if asks() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("dockerd answers within 30 s; it said {}", self.machine.said(&self.name));
    }

    /// Stops the daemon as a service manager would, and waits for its end; without live-restore its containers stop too.
    pub fn down(&mut self) {
        self.signal("TERM");
        let mut daemon = self.daemon.take().expect("it runs");
        await_that("dockerd ends", 30, || daemon.0.try_wait().expect("it can be waited for").is_some());
    }

    /// The daemon stands still: its socket is there and nobody answers.
    pub fn stand_still(&self) {
        self.signal("STOP");
    }

    /// It goes on.
    pub fn go_on(&self) {
        self.signal("CONT");
        self.daemon.as_ref().expect("it runs").go_on();
    }

    fn signal(&self, name: &str) {
        self.machine.run(&format!("kill -{name} $(cat {})", self.pidfile()));
    }

    /// Kills the daemon, and with it its containerd: what it left running goes on alone.
    pub fn kill(&mut self) {
        self.machine.run(&format!("kill -KILL $(cat {0}) $(pgrep -P $(cat {0})); rm {0}", self.pidfile()));
        let mut daemon = self.daemon.take().expect("it ran");
        await_that("dockerd is gone", 10, || daemon.0.try_wait().expect("it can be waited for").is_some());
    }

    fn socket(&self) -> String {
        format!("unix:///run/{}.sock", self.name)
    }

    fn pidfile(&self) -> String {
        format!("/run/{}.pid", self.name)
    }

    /// `docker ...`.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.inside(&self.space, "docker");
        command.args(["-H", &self.socket()]).args(arguments);
        command
    }

    /// What `docker ...` prints; it must succeed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let out = self.command(arguments).stdin(Stdio::null()).output().expect("docker runs");
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "docker {arguments:?}: {error}\n{}", self.machine.said(&self.name));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// Runs a container of that name; `more` goes before the image.
    pub fn container(&self, name: &str, more: &[&str], runs: &[&str]) -> Container {
        let arguments = [&["run", "-d", "--name", name], more, &["bench"], runs].concat();
        let id = self.cli(&arguments);
        let pid = self.cli(&["inspect", "-f", "{{.State.Pid}}", name]);
        let networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
        let address = self.cli(&["inspect", "-f", networks, name]);
        let address = address.split_whitespace().next().unwrap_or_default().to_owned();
        Container { name: name.to_owned(), id, space: format!("/proc/{pid}/ns/net"), address }
    }

    /// A container that listens with iperf3.
    pub fn server(&self, name: &str, more: &[&str]) -> Container {
        let container = self.container(name, more, &["iperf3", "-s", "--forceflush"]);
        await_that("iperf3 listens in its container", 20, || self.cli(&["logs", name]).contains("Server listening"));
        container
    }

    /// A container that waits to be asked.
    pub fn idle(&self, name: &str, more: &[&str]) -> Container {
        self.container(name, more, &["sleep", "36000"])
    }
}

/// A running container.
pub struct Container {
    /// As it was named.
    pub name: String,
    /// Its whole id.
    pub id: String,
    /// The path of its network namespace on the machine.
    pub space: String,
    /// Its address in its first network.
    pub address: String,
}

/// The image: busybox and iperf3 with what iperf3 needs.
fn image(machine: &Machine) -> PathBuf {
    let tree = machine.folder().join("image");
    let tar = machine.folder().join("image.tar");
    let script = format!(
        r#"mkdir -p {0} && cd {0} && mkdir -p bin lib lib64 tmp etc proc sys dev
        cp -L "$(command -v busybox)" bin/busybox && ln -sf busybox bin/sh && ln -sf busybox bin/sleep
        cp -L "$(command -v iperf3)" bin/iperf3
        for needed in $(ldd bin/iperf3 | grep -oE '/[^ ]+'); do
          mkdir -p ".${{needed%/*}}" && cp -L "$needed" ".$needed"
        done
        tar cf {1} ."#,
        tree.display(),
        tar.display()
    );
    machine.run(&script);
    tar
}

/// Two engines as one swarm, over a network of which each is told its own address.
pub fn swarm(manager: &Docker, manager_address: &str, worker: &Docker, worker_address: &str) {
    manager.cli(&["swarm", "init", "--advertise-addr", manager_address]);
    let token = manager.cli(&["swarm", "join-token", "-q", "worker"]);
    let at = format!("{manager_address}:2377");
    worker.cli(&["swarm", "join", "--token", &token, "--advertise-addr", worker_address, &at]);
}

/// Where Docker keeps the namespaces of its networks and containers.
pub fn spaces_of(machine: &Machine, name: &str) -> Vec<String> {
    let folder = Path::new("/run").join(name).join("netns");
    machine.run(&format!("ls -d {}/* 2>/dev/null || true", folder.display())).lines().map(ToOwned::to_owned).collect()
}
