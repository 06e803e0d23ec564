//! The keeper: a process that outlives vnettop by a moment and removes its ftrace instance, however vnettop ended. It is
//! this program again, waiting for the end of a pipe; it does nothing else.

use super::{ftrace, sys};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

/// The word on the command line that leads here; for vnettop itself, not for people.
pub const SUBCOMMAND: &str = "trace-keeper";
/// The kernel closes the files of a dead process a moment after the pipe: asked again this often, for a minute.
const PAUSE: Duration = Duration::from_millis(20);
const ATTEMPTS: u32 = 3000;

/// A running keeper; it does its work when this is dropped, or gone in any other way.
#[derive(Debug)]
pub(super) struct Keeper {
    _pipe: Option<ChildStdin>,
}

impl Keeper {
    /// Starts it, and waits until nothing but SIGKILL to itself can keep it from its work. `ended` is called by a thread
    /// that waits for its end, however it comes.
    ///
    /// # Errors
    /// The program cannot be run again.
    pub(super) fn start(instance: &Path, ended: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        // From within: a tracefs that is mounted nowhere has no path that outlives vnettop.
        let (directory, name) = instance.parent().zip(instance.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("vnettop").arg(SUBCOMMAND).arg(name).current_dir(directory).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let keeper = Self { _pipe: child.stdin.take() };
        let mut ready = [0; 1];
        let begun = child.stdout.take().map_or(Ok(()), |mut out| out.read_exact(&mut ready));
        let wait = move |mut child: Child| {
            let _ = child.wait();
            ended();
        };
        std::thread::Builder::new().name("keeper".to_owned()).spawn(move || wait(child))?;
        begun.map(|()| keeper)
    }
}

/// Runs the keeper; `args` is what follows the word on the command line.
#[must_use]
pub fn run(args: &[OsString]) -> ExitCode {
    let Some(instance) = args.first() else { return ExitCode::from(2) };
    sys::ignore_ends();
    let _ = rustix::thread::set_name(c"vnettop-keeper");
    let mut out = io::stdout();
    if out.write_all(b"\n").and_then(|()| out.flush()).is_err() {
        return ExitCode::from(1);
    }
    let _ = io::stdin().read_to_end(&mut Vec::new());
    for _ in 0..ATTEMPTS {
        if ftrace::remove(Path::new(instance)).is_ok() {
            return ExitCode::SUCCESS;
        }
        std::thread::sleep(PAUSE);
    }
    ExitCode::from(1)
}
