//! A machine of a test's own: its name, processes, mounts, /run and network namespaces are apart from the real machine's,
//! and all of it ends with one process, so whatever a test or a daemon leaves behind is gone with it. Vnettop runs inside, as
//! it would on a host, and sees this machine only.

use super::{Kept, VNETTOP, Watching};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The machine's own namespace, where its daemons and vnettop run.
pub const HOST: &str = "/proc/1/ns/net";

/// What its first process does: it has a name, no namespace that is mounted outside, /run is new, orphans are reaped.
const FIRST: &str = "echo bench > /proc/sys/kernel/hostname && awk '/ - nsfs /{print $5}' /proc/self/mountinfo | xargs -r umount -l 2>/dev/null;
    mount -t tmpfs tmpfs /run && mkdir -p /run/netns && ip link set lo up && echo ready &&
    { sleep 36000 & wait; }";

/// The machine; namespaces are named by their path in it.
pub struct Machine {
    holder: Option<Kept>,
    pid: u32,
    folder: PathBuf,
}

impl Machine {
    /// A new one. It lives as long as the thread that made it.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("vnettop-live-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let unshare = "unshare --uts --net --mount --pid --fork --kill-child --mount-proc sh -c";
        let mut holder = Kept(
            Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "--"])
                .args(unshare.split(' '))
                .arg(FIRST)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .expect("setpriv runs"),
        );
        let mut ready = [0; 6];
        holder.0.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("the machine comes up");
        let children = format!("/proc/{0}/task/{0}/children", holder.0.id());
        let children = std::fs::read_to_string(children).expect("its first process runs");
        let pid = children.trim().parse().expect("one child");
        Self { holder: Some(holder), pid, folder }
    }

    /// Its first process, as it is seen outside.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A folder that goes with it; inside and outside it has the same path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new namespace under /run/netns, with `lo` up; its path.
    pub fn space(&self, name: &str) -> String {
        self.run(&format!("ip netns add {name} && ip -n {name} link set lo up"));
        format!("/run/netns/{name}")
    }

    /// A command in one of its namespaces; it is killed with the returned command's process.
    pub fn inside(&self, space: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid.to_string(), "-u", "-m", "-p", "--", "nsenter", &format!("--net={space}"), "--"]);
        command.args(["setpriv", "--pdeathsig", "KILL", "--", program]);
        command
    }

    /// Runs shell lines in the machine's own namespace; every one must succeed.
    pub fn run(&self, script: &str) -> String {
        self.run_in(HOST, script)
    }

    /// Runs shell lines; every one must succeed. What they printed.
    pub fn run_in(&self, space: &str, script: &str) -> String {
        let out = self.inside(space, "sh").args(["-ec", script]).output().expect("sh runs");
        assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// A pair of links that there was not before: something for a vnettop to show.
    pub fn pair(&self, name: &str) {
        self.run(&format!("ip link add {name}a type veth peer name {name}b"));
    }

    /// Whether shell lines succeed.
    pub fn can(&self, script: &str) -> bool {
        self.inside(HOST, "sh").args(["-ec", script]).output().is_ok_and(|out| out.status.success())
    }

    /// A program that runs until the test ends; what it says goes to NAME.log in the machine's folder.
    pub fn keep(&self, name: &str, mut command: Command) -> Kept {
        let log = std::fs::File::create(self.folder.join(format!("{name}.log"))).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        Kept(command.spawn().expect("it starts"))
    }

    /// The last of what a kept program said.
    pub fn said(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default();
        text.lines().rev().take(5).collect::<Vec<_>>().join("\n")
    }

    /// Vnettop on this machine.
    pub fn vnettop(&self, arguments: &[&str]) -> Command {
        let mut command = self.inside(HOST, VNETTOP);
        command.args(arguments);
        command
    }

    /// Vnettop on this machine, watched line by line.
    pub fn watch(&self) -> Watching {
        Watching::start(self.vnettop(&["-d", "0.25"]))
    }
}

/// The pid of a vnettop on a machine; what was started waits for it.
fn inside(watching: &Watching) -> String {
    let children = format!("/proc/{0}/task/{0}/children", watching.pid());
    std::fs::read_to_string(children).expect("nsenter waits for it").trim().to_owned()
}

/// How many descriptors a vnettop on a machine holds.
pub fn descriptors(watching: &Watching) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", inside(watching))).expect("vnettop runs").count()
}

/// Ends a vnettop on a machine as a user would, so that its recording is whole.
pub fn end(watching: Watching) {
    let ended = Command::new("kill").args(["-INT", &inside(&watching)]).status();
    assert!(ended.is_ok_and(|status| status.success()), "vnettop runs");
    watching.rest();
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.holder.take());
        // The first process is gone, or only waits to be reaped, when every other one of the machine is gone.
        let first = format!("/proc/{}/stat", self.pid);
        for _ in 0..500 {
            if std::fs::read_to_string(&first).map_or(true, |stat| stat.contains(") Z ")) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        remove_cgroups(&self.folder);
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} is left behind: {error}", self.folder.display());
        }
    }
}

/// Cgroups outlive processes: those of the containers that any dockerd below the folder made.
fn remove_cgroups(folder: &Path) {
    let list = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let containers = list(folder).flat_map(|root| list(&root.join("containers")).collect::<Vec<_>>());
    let ids: Vec<_> = containers.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect();
    let tree = Path::new("/sys/fs/cgroup");
    for controller in list(tree).chain([tree.to_owned()]) {
        for id in &ids {
            let _ = std::fs::remove_dir(controller.join("docker").join(id));
        }
        if !ids.is_empty() {
            let _ = std::fs::remove_dir(controller.join("docker"));
        }
    }
}
