//! The iperf3 that a shell would start, and what it says of its version: run once, for two seconds at most, on a thread that
//! is left behind when even starting it does not come back.

use super::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread::Builder;
use std::time::{Duration, Instant};
use vnettop_sample::text::clean;
use vnettop_sample::{Iperf3Found, KnownFact, version_of};

/// Longest wait for the answer of `iperf3 --version`, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Further wait for an iperf3 that was stopped to be gone.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of the answer that are read at most; a version takes two lines.
const LONGEST: usize = 4096;
/// Package managers, and how each installs a package.
const INSTALLERS: [(&str, &str); 6] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("yum", "yum install"),
    ("zypper", "zypper install"),
    ("apk", "apk add"),
    ("pacman", "pacman -S"),
];

/// The first iperf3 in `PATH`; `None` when there is none.
pub(super) fn find(path: Option<OsString>) -> KnownFact<Option<Iperf3Found>> {
    find_within(path, PATIENCE)
}

fn find_within(path: Option<OsString>, patience: Duration) -> KnownFact<Option<Iperf3Found>> {
    let (give, answer) = sync_channel(1);
    let work = move || {
        let found = program(path.as_deref(), "iperf3");
        let _not_wanted_any_more = give.send(found.map(|path| ask(&path, patience)).transpose());
    };
    Builder::new().name("iperf3".to_owned()).spawn(work).map_err(words)?;
    answer.recv_timeout(patience + GRACE).unwrap_or_else(|_| Err(late(patience)))
}

fn late(patience: Duration) -> String {
    format!("iperf3 --version did not answer within {} s", patience.as_secs_f32())
}

/// The command that installs a package here.
pub(super) fn installer(path: Option<&OsStr>) -> Option<&'static str> {
    INSTALLERS.iter().find(|(name, _)| program(path, name).is_some()).map(|(_, command)| *command)
}

/// The file that a shell would start by this name; relative directories of `PATH` are left out.
pub(super) fn program(path: Option<&OsStr>, name: &str) -> Option<PathBuf> {
    let directories = std::env::split_paths(path?).filter(|directory| directory.is_absolute());
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    directories.map(|directory| directory.join(name)).find(is_program)
}

fn ask(path: &Path, patience: Duration) -> KnownFact<Iperf3Found> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{}: {}", path.display(), words(error)))?;
    let said = receive(&mut child, patience);
    // A kill of a process that has ended does nothing.
    let _ = child.kill();
    let _ = child.wait();
    parse(path, &said.ok_or_else(|| late(patience))?)
}

/// What the process writes until it closes its output; `None` when that takes too long.
fn receive(child: &mut Child, patience: Duration) -> Option<Vec<u8>> {
    let until = Instant::now() + patience;
    let mut output = child.stdout.take()?;
    let (mut said, mut piece) = (Vec::new(), [0; 512]);
    while said.len() < LONGEST {
        let left = until.checked_duration_since(Instant::now())?;
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(ready) if ready > 0 => {}
            _ => return None,
        }
        match output.read(&mut piece).ok()? {
            0 => break,
            read => said.extend_from_slice(&piece[..read]),
        }
    }
    Some(said)
}

/// `iperf 3.12 (cJSON 1.7.15)`, `iperf 3.16+`.
pub(super) fn parse(path: &Path, said: &[u8]) -> KnownFact<Iperf3Found> {
    let first = said.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let words = clean(first.get(..80).unwrap_or(first));
    match words.strip_prefix("iperf ").and_then(version_of) {
        Some(version) => Ok(Iperf3Found { path: path.to_owned(), version, words: words.trim().to_owned() }),
        None if words.is_empty() => Err(format!("{} --version prints nothing", path.display())),
        None => Err(format!("{} --version prints: {words}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn with_iperf3(script: &str) -> (tempfile::TempDir, OsString) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("iperf3");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("writable");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its own");
        let path = directory.path().as_os_str().to_owned();
        (directory, path)
    }

    #[test]
    fn versions_are_told_in_iperf3s_own_ways() {
        let version = |said: &str| parse(Path::new("/i"), said.as_bytes()).map(|found| found.version);
        assert_eq!(version("iperf 3.1.3\nLinux x"), Ok((3, 1)), "three numbers");
        assert_eq!(version("iperf 3.16+ (cJSON 1.7.15)\n"), Ok((3, 16)), "between releases");
        assert_eq!(version("iperf 3.0-BETA5"), Ok((3, 0)));
        assert!(version("").is_err_and(|why| why.contains("prints nothing")));
        assert!(version("\u{1b}[2Jhello").is_err_and(|why| why.ends_with("?[2Jhello")), "nothing steers a terminal");
    }

    #[test]
    fn the_first_of_the_path_is_asked_once() {
        let (_kept, path) = with_iperf3("echo iperf 3.9; echo Linux");
        let found = find(Some(path)).expect("it answers").expect("it is there");
        assert_eq!((found.version, found.words.as_str()), ((3, 9), "iperf 3.9"));
        assert_eq!(find(Some("/nowhere:.".into())), Ok(None), "there is none");
    }

    #[test]
    fn one_that_does_not_answer_is_not_waited_for() {
        let (_kept, path) = with_iperf3("exec sleep 600");
        let began = Instant::now();
        let found = find_within(Some(path), Duration::from_millis(200));
        assert!(found.is_err_and(|why| why.contains("within 0.2 s")), "the reason is said");
        assert!(began.elapsed() < Duration::from_secs(5), "and nobody waited");
    }
}
