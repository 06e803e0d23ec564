//! A network that stands: who holds its namespaces, and how programs are started in them. Dropping it takes it away.

use super::guardian::{GUARDIAN, PATIENCE, STATE};
use super::kinds::{NetworkKind, search_path};
use super::role::{READY, RoleError, RoleOptions, cannot, command, die_with, end, first_line, pid, ready};
use super::{role::SUBCOMMAND, standin};
use rustix::process::getpid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The child that stays in a namespace.
pub const HOLDER: &str = "holder";
/// The word before a program to be run in a namespace.
pub const ENTER: &str = "enter";
/// How long the end of a network is waited for.
const LETTING_GO: Duration = Duration::from_secs(10);

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A process of it could not be started.
    #[error("cannot start a process of the network {network}: {error}")]
    Spawn {
        /// Its name.
        network: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// What its script says.
    #[error("{0}")]
    Script(String),
}

/// One end of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkEnd {
    /// Where the client runs, namespace `a`.
    Sender,
    /// Where the server runs, namespace `b`; `a` where there is no other.
    Receiver,
}

/// A network that stands.
#[derive(Debug)]
pub struct PrivateNetwork {
    kind: NetworkKind,
    guardian: Child,
    /// The number of its init, as vnettop sees it.
    init: u32,
    /// Who holds its namespaces, by name, those of the ends first.
    holders: Vec<(String, Child)>,
}

impl PrivateNetwork {
    /// Makes it; what it takes is there when this returns.
    ///
    /// # Errors
    /// What the kernel or a program refuses: one sentence.
    pub fn build(kind: NetworkKind) -> Result<Self, BuildError> {
        let spawn = |error| BuildError::Spawn { network: kind.name, error };
        let mut guardian = command(SUBCOMMAND, GUARDIAN);
        guardian.args(["--kind", kind.name]).stdin(Stdio::piped());
        let mut guardian = guardian.spawn().map_err(spawn)?;
        let line = first_line(&mut guardian, Instant::now() + PATIENCE + PATIENCE);
        let init = line.as_ref().ok().and_then(|line| line.strip_prefix(READY)?.trim().parse().ok());
        // Dropped, it is taken away as far as it stands.
        let mut network = Self { kind, guardian, init: init.unwrap_or(0), holders: Vec::new() };
        if init.is_none() {
            return Err(BuildError::Script(match line {
                Ok(line) if line.is_empty() => "its process exited without a message".to_owned(),
                Ok(line) => line,
                Err(error) => format!("it does not answer: {error}"),
            }));
        }
        for name in network.names().map_err(spawn)? {
            let mut holder = command(SUBCOMMAND, HOLDER);
            holder.args(["--network", &network.init.to_string(), "--name", &name]);
            let mut holder = holder.stdin(Stdio::piped()).spawn().map_err(spawn)?;
            let line = first_line(&mut holder, Instant::now() + PATIENCE);
            network.holders.push((name, holder));
            if !line.as_ref().is_ok_and(|line| line == READY) {
                return Err(BuildError::Script(line.unwrap_or_else(|error| error.to_string())));
            }
        }
        Ok(network)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> NetworkKind {
        self.kind
    }

    /// A process in each of its namespaces, that of the sender first.
    #[must_use]
    pub fn holders(&self) -> Vec<u32> {
        self.holders.iter().map(|(_, holder)| holder.id()).collect()
    }

    /// A folder of vnettop's own that goes when the network goes.
    #[must_use]
    pub fn state_folder(&self) -> PathBuf {
        self.file(STATE)
    }

    /// A program to be run at one end, not started yet. It dies with vnettop; null input and error, a pipe for what it writes.
    #[must_use]
    pub fn run_at(&self, end: NetworkEnd, program: &OsStr) -> Command {
        let wanted = if end == NetworkEnd::Receiver { "b" } else { "a" };
        let name = self.holders.iter().map(|(name, _)| name.as_str()).find(|name| *name == wanted).unwrap_or("a");
        let space = self.file("/run/netns").join(name);
        let mut command = Command::new("/proc/self/exe");
        command.arg0("vnettop").args([SUBCOMMAND, ENTER, &getpid().as_raw_nonzero().to_string()]);
        command.arg(space).arg(program).env("PATH", search_path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        command
    }

    /// A file as the network's init sees it.
    fn file(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = self.file("/run/netns").read_dir()?;
        let mut names: Vec<String> =
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }
}

impl Drop for PrivateNetwork {
    fn drop(&mut self) {
        for (_, holder) in &mut self.holders {
            end(holder);
        }
        drop(self.guardian.stdin.take());
        // It waits for the end of the init, and with it of everything.
        let deadline = Instant::now() + LETTING_GO;
        let pipe = self.guardian.stdout.as_mut();
        if pipe.is_some_and(|out| ended_by(out, deadline)) {
            let _ = self.guardian.wait();
        } else {
            end(&mut self.guardian);
        }
    }
}

/// Whether a pipe ends before a moment.
fn ended_by(pipe: &mut (impl Read + AsFd), deadline: Instant) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return false };
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return false,
            Ok(_) => match pipe.read(&mut [0; 256]) {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Stays in a namespace of a network until standard input ends.
pub fn hold(options: &RoleOptions) -> Result<(), RoleError> {
    die_with(options.parent()?)?;
    let (network, name): (u32, String) = (options.required("--network")?, options.required("--name")?);
    go_into(OsStr::new(&format!("/proc/{network}/root/run/netns/{name}")))?;
    // What people see of it is the namespace's name.
    standin::rename(&name).map_err(cannot("name the process"))?;
    ready()?;
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// Becomes another program in a namespace: `enter PARENT NAMESPACE PROGRAM ARGS...`.
pub fn enter(args: &[OsString]) -> Result<(), RoleError> {
    let [parent, space, program, args @ ..] = args else {
        return Err(RoleError::Usage("enter: PARENT, NAMESPACE and PROGRAM are missing".to_owned()));
    };
    die_with(pid(parent)?)?;
    go_into(space)?;
    become_program(program, args)
}

/// Becomes another program.
///
/// # Errors
/// It cannot be run.
pub fn become_program(program: &OsStr, args: &[OsString]) -> Result<(), RoleError> {
    let error = Command::new(program).args(args).exec();
    Err(cannot(format!("run {}", program.display()))(error))
}

/// Takes this process into the network namespace of a file.
pub fn go_into(space: &OsStr) -> Result<(), RoleError> {
    let file = File::open(space).map_err(cannot(format!("open the namespace {}", space.display())))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(cannot(format!("enter the namespace {}", space.display())))
}
