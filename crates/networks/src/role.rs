//! What the processes have in common that vnettop starts from its own program to make a network or traffic: how they are
//! started, their options, their ready line, and that none outlives vnettop.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The word on the command line that leads to the roles of a network.
pub const SUBCOMMAND: &str = "network-child";
/// The first line that such a process writes when its part stands; anything else is its error.
pub const READY: &str = "ready";

/// Why such a process could not do its part: operation, object and cause.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The command line.
    #[error("{0}")]
    Usage(String),
    /// The parent is gone.
    #[error("vnettop stopped before its child started")]
    Orphaned,
    /// A system call.
    #[error("cannot {operation}: {error}")]
    Run {
        /// With its object, as in "make a network namespace for veth-srv".
        operation: String,
        /// The kernel's answer.
        #[source]
        error: io::Error,
    },
    /// What a program that was started says of itself.
    #[error("{0}")]
    Said(String),
}

/// The failure of an operation, named with its object.
pub fn cannot<E: Into<io::Error>>(operation: impl Into<String>) -> impl FnOnce(E) -> RoleError {
    |error| RoleError::Run { operation: operation.into(), error: error.into() }
}

/// How a role's process exits. What it says of its failure takes the place of its ready line where that `is_received`; else it is said
/// to a log, a person or a test. Either reader may be gone already.
#[must_use]
pub fn exit_code(subcommand: &str, done: Result<(), RoleError>, is_received: bool) -> ExitCode {
    let (text, code) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(RoleError::Usage(text)) => (format!("{subcommand}: {text}"), 2),
        Err(failure) => (failure.to_string(), 1),
    };
    let _ = if is_received { writeln!(io::stdout(), "{text}") } else { writeln!(io::stderr(), "vnettop: {text}") };
    ExitCode::from(code)
}

/// A command that runs this program again, without the terminal: null input and error, a pipe for the ready line, and a
/// process group of its own so that Ctrl-C does not reach it. `subcommand` is the hidden word that leads to its roles.
#[must_use]
pub fn command(subcommand: &str, role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("vnettop").args([subcommand, role]);
    command.args(["--parent", &getpid().as_raw_nonzero().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    command
}

/// Makes the kernel kill this process when its parent dies, also if that happened before this line ran.
///
/// # Errors
/// The parent is gone.
pub fn die_with(parent: Pid) -> Result<(), RoleError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(cannot("stop with vnettop"))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(RoleError::Orphaned) }
}

/// Tells the parent that this part stands.
///
/// # Errors
/// Nobody reads it.
pub fn ready() -> Result<(), RoleError> {
    say(READY)
}

/// One line for the parent, or for whoever started a stand-in alone.
///
/// # Errors
/// Nobody reads it.
pub fn say(line: impl Display) -> Result<(), RoleError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(cannot("write to standard output"))
}

/// `--key value` pairs.
#[derive(Debug)]
pub struct RoleOptions(HashMap<String, OsString>);

impl RoleOptions {
    /// Reads the pairs.
    ///
    /// # Errors
    /// A key without a value.
    pub fn parse(args: &[OsString]) -> Result<Self, RoleError> {
        let mut options = HashMap::new();
        for pair in args.chunks(2) {
            let [key, value] = pair else {
                return Err(RoleError::Usage(format!("{} lacks its value", pair[0].display())));
            };
            options.insert(key.to_string_lossy().into_owned(), value.clone());
        }
        Ok(Self(options))
    }

    /// The value of a key, if it is there.
    #[must_use]
    pub fn given(&self, key: &str) -> Option<&OsStr> {
        self.0.get(key).map(OsString::as_os_str)
    }

    /// The value of a key, understood.
    ///
    /// # Errors
    /// It is not there, or something else.
    pub fn required<T: FromStr>(&self, key: &str) -> Result<T, RoleError> {
        let text = self.given(key).ok_or_else(|| RoleError::Usage(format!("{key} is missing")))?;
        let parsed = text.to_str().and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| RoleError::Usage(format!("{key} {}: not understood", text.display())))
    }

    /// Makes the file of `--ready`, if there is one, for a script that waits for it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn tell_ready(&self) -> Result<(), RoleError> {
        let Some(file) = self.given("--ready") else { return Ok(()) };
        std::fs::write(file, "").map_err(cannot(format!("write {}", file.display())))
    }

    /// A length of time in seconds.
    ///
    /// # Errors
    /// It is not there, or none.
    pub fn seconds(&self, key: &str) -> Result<Duration, RoleError> {
        let seconds: f64 = self.required(key)?;
        Duration::try_from_secs_f64(seconds).map_err(|error| RoleError::Usage(format!("{key} {seconds}: {error}")))
    }

    /// Makes the kernel kill this process when its parent dies, if one was named: one that was started alone may outlive whoever
    /// started it.
    ///
    /// # Errors
    /// The parent is gone.
    pub fn die_with_given_parent(&self) -> Result<(), RoleError> {
        if self.given("--parent").is_some() { die_with(self.parent()?) } else { Ok(()) }
    }

    /// The process that started this one.
    ///
    /// # Errors
    /// `--parent` is not there, or no number.
    pub fn parent(&self) -> Result<Pid, RoleError> {
        pid(self.given("--parent").unwrap_or_default())
    }
}

/// A process's number.
///
/// # Errors
/// It is none.
pub fn pid(text: &OsStr) -> Result<Pid, RoleError> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.and_then(Pid::from_raw).ok_or_else(|| RoleError::Usage(format!("{} is not a process id", text.display())))
}

/// What a child writes up to its first line end, its own end or the deadline; what comes after it stays in the pipe.
///
/// # Errors
/// It cannot be read, or the deadline has passed.
pub fn first_line(child: &mut Child, deadline: Instant) -> io::Result<String> {
    let Some(out) = child.stdout.as_mut() else { return Ok(String::new()) };
    let mut line = Vec::new();
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            // A signal is somebody else's to hear.
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        // One by one: what follows the line is somebody else's to read.
        let mut byte = [0];
        if out.read(&mut byte)? == 0 || byte[0] == b'\n' {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        line.push(byte[0]);
    }
}

/// Kills a child and collects it; one that is gone already needs neither, so failures mean nothing.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
