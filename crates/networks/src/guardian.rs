//! Where a network stands: namespaces of its own for processes, mounts and links, with a file system in memory for whatever its
//! programs write. Two processes hold it.
//!
//! The guardian leaves the namespaces of vnettop and starts the init in the new ones; it ends the init when vnettop is gone, however that
//! ended, because its standard input ends then. The init is process 1 of its namespace: with it the kernel ends everything that was
//! started there, daemons too, and with them go links, rules, mounts and files.

use super::kinds::{NetworkKind, search_path};
use super::role::{READY, RoleError, RoleOptions, cannot, command, end, first_line, say};
use super::{leave_namespaces, role::SUBCOMMAND, standin};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, geteuid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The child that ends the others.
pub const GUARDIAN: &str = "guardian";
/// Process 1 of the network's namespaces.
pub const INIT: &str = "init";
/// What these processes are called; `comm` has 15 bytes.
const NAME: &str = "vnettop-network";
/// A script that has not ended by then never will.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Where vnettop may keep what is to go with the network.
pub const STATE: &str = "/run/vnettop";
/// What the script and its programs say.
const LOG: &str = "/run/build.log";

/// Modules that make links in every namespace of the machine when they are loaded: unloaded again where a script has loaded them.
const LINK_MAKERS: [&CStr; 2] = [c"ip_gre", c"gre"];
/// The network that needs them.
const MAKES_LINKS: &str = "gre";

/// Leaves vnettop's namespaces, starts the init in new ones, and waits for the end of standard input.
pub fn guardian(options: &RoleOptions) -> Result<(), RoleError> {
    standin::rename(NAME).map_err(cannot("name the process"))?;
    let kind: String = options.required("--kind")?;
    let loaded = LINK_MAKERS.map(is_loaded);
    // The namespace of processes is the children's, not this process's own.
    leave_namespaces(UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWNET)
        .map_err(cannot("make namespaces for a network"))?;
    let mut init = command(SUBCOMMAND, INIT).args(["--kind", &kind]).stdin(Stdio::piped()).spawn();
    let init = init.as_mut().map_err(|error| RoleError::Said(format!("cannot start a network's init: {error}")))?;
    let line = line_while_wanted(init);
    let is_ready = line.as_ref().is_ok_and(|line| line == READY);
    let reported = match &line {
        Ok(line) if line == READY => say(format_args!("{READY} {}", init.id())),
        Ok(line) if line.is_empty() => Err(RoleError::Said("the network's init exited without a message".to_owned())),
        Ok(line) => Err(RoleError::Said(line.clone())),
        Err(error) => Err(RoleError::Said(format!("the network is not made after {} s: {error}", PATIENCE.as_secs()))),
    };
    if is_ready && reported.is_ok() {
        let _ended = io::stdin().read_to_end(&mut Vec::new());
    }
    end(init);
    if kind == MAKES_LINKS && geteuid().is_root() {
        for (module, loaded) in LINK_MAKERS.into_iter().zip(loaded) {
            if !loaded && is_loaded(module) {
                // One that somebody else uses by now stays.
                let _ = rustix::system::delete_module(module, 0);
            }
        }
    }
    reported
}

/// What the init says; nothing where vnettop is gone before that.
fn line_while_wanted(init: &mut Child) -> io::Result<String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let deadline = Instant::now() + PATIENCE;
    let (input, Some(out)) = (io::stdin(), init.stdout.as_ref()) else { return Ok(String::new()) };
    let mut fds = [PollFd::new(&input, PollFlags::IN), PollFd::new(out, PollFlags::IN)];
    let left = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    while poll(&mut fds, Some(&left)).is_err_and(|error| error == rustix::io::Errno::INTR) {}
    // Nothing is ever written to this: it has ended.
    if !fds[0].revents().is_empty() {
        return Err(io::Error::other("vnettop is gone"));
    }
    first_line(init, deadline)
}

fn is_loaded(module: &CStr) -> bool {
    Path::new("/sys/module").join(module.to_string_lossy().as_ref()).exists()
}

/// Runs a script in the new namespaces, says that it is done, and waits for the end of standard input.
pub fn init(options: &RoleOptions) -> Result<(), RoleError> {
    // Its parent is in another namespace of processes, where its number means nothing: that it is gone already shows by standard input.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(cannot("stop with vnettop"))?;
    standin::rename(NAME).map_err(cannot("name the process"))?;
    let kind: String = options.required("--kind")?;
    let script = NetworkKind::named(&kind).map(|kind| kind.script());
    let script = script.ok_or_else(|| RoleError::Usage(format!("{kind} is no network")))?;
    private_files()?;
    build(&script)?;
    say(READY)?;
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// A /proc of these namespaces, and /run in memory that nobody else sees.
fn private_files() -> Result<(), RoleError> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(cannot("make the mounts private"))?;
    let in_memory = |at: &str| {
        let mode = Some(c"mode=0755,size=64m");
        mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, mode).map_err(cannot(format!("mount {at}")))
    };
    let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", plain, None).map_err(cannot("mount /proc"))?;
    // Device nodes of macvtaps are made there.
    mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID, Some(c"mode=0755,size=64m")).map_err(cannot("mount /run"))?;
    if fs::symlink_metadata("/var/run").is_ok_and(|meta| meta.is_dir()) {
        in_memory("/var/run")?;
    }
    DirBuilder::new().mode(0o700).create(STATE).map_err(cannot(format!("make {STATE}")))
}

/// Runs the script; what it says last is the reason where it fails.
fn build(script: &str) -> Result<(), RoleError> {
    let log = File::create(LOG).map_err(cannot(format!("write {LOG}")))?;
    let mut shell = Command::new("sh");
    shell.args(["-eux", "-c", script]).env("PATH", search_path()).env("PS4", "+ ").env("LC_ALL", "C");
    // This process is number 1 here.
    shell.env("VNETTOP", "/proc/1/exe");
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let status = shell.status().map_err(cannot("run sh"))?;
    if status.success() {
        return Ok(());
    }
    let said = fs::read(LOG).unwrap_or_default();
    Err(RoleError::Said(printable(&failure(&String::from_utf8_lossy(&said)))))
}

/// What other programs said may steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// What failed, from the trace of a shell: the last command, and what was said after it.
fn failure(log: &str) -> String {
    let is_command = |line: &&str| line.starts_with('+');
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    // nft repeats the command below its error, and marks the place in it.
    let is_error = |line: &&&str| line.starts_with("Error: ");
    let said = |line: &&&str| !line.starts_with('+') && !line.contains("|INFO|");
    let after = lines.iter().rposition(|line| is_command(line) && !is_ending(line)).unwrap_or(0);
    let last = lines[after..]
        .iter()
        .rev()
        .find(is_error)
        .or_else(|| lines.iter().rev().find(said))
        .map(|line| line.trim_start_matches("Error: ").trim_end_matches('.'));
    // By `fail` a script says itself what is the matter.
    let is_reported = lines.iter().any(|line| line.starts_with("+ fail"));
    let command = lines.iter().rev().find(|line| !is_reported && is_command(line) && !is_ending(line));
    let command = command.map(|line| line.trim_start_matches('+').trim());
    match (command, last) {
        (Some(command), Some(last)) => format!("{command}: {last}"),
        (Some(command), None) => format!("{command}: failed"),
        (None, last) => last.unwrap_or("the script failed").to_owned(),
    }
}

/// A command of the scripts by which they say why they give up.
fn is_ending(line: &str) -> bool {
    let words: Vec<&str> = line.trim_start_matches('+').split_whitespace().collect();
    matches!(words.first(), Some(&("fail" | "echo" | "exit" | "[")))
}

#[cfg(test)]
mod tests {
    use super::failure;

    #[test]
    fn a_failure_names_the_command_and_what_was_said() {
        let log = "+ namespaces a b\n+ ip netns add a\n+ ip -n a link add v link eth0 type vlan id 5\nError: Unknown device type.\n";
        assert_eq!(failure(log), "ip -n a link add v link eth0 type vlan id 5: Unknown device type");
        let log =
            "+ ovs-vsctl get Interface p error\n+ fail 'no datapath'\n+ echo 'no datapath'\nno datapath\n+ exit 1\n";
        assert_eq!(failure(log), "no datapath");
        let log = "+ nft add rule ip nat in drop\nError: Could not process rule: No such file or directory\nadd rule ip nat in drop\n                ^^^^\n";
        assert_eq!(failure(log), "nft add rule ip nat in drop: Could not process rule: No such file or directory");
        assert_eq!(failure(""), "the script failed");
    }
}
