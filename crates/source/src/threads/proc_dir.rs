//! /proc as a directory of tasks: listing numbers, opening a task's files, reading who a task is. It keeps the buffers
//! and the descriptor of the directory, and remembers no task.

use super::parse::{self, Stat};
use crate::{Roots, SourceError, proc_file};
use rustix::fs::{RawDir, SeekFrom};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fmt::Write;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

/// One directory of /proc, open for good.
#[derive(Debug)]
pub(super) struct ProcDir {
    directory: OwnedFd,
    /// Kept for the moment when all others are in use: who cannot be read for want of a descriptor would seem to be gone.
    spare: Option<OwnedFd>,
    path: String,
    text: Vec<u8>,
    entries: Vec<u8>,
}

/// `stat` and `sched` fit: the longest lines of the first are below 1 KiB, what is wanted of the second below 4.
const TEXT: usize = 8 * 1024;
/// Entries of about 1,000 tasks a call.
const ENTRIES: usize = 32 * 1024;

impl ProcDir {
    pub(super) fn open(roots: &Roots) -> Result<Self, SourceError> {
        let directory = proc_file::open_directory(&roots.proc)?;
        let spare = keep_spare(&directory);
        let (path, text, entries) = (String::new(), vec![0; TEXT], Vec::with_capacity(ENTRIES));
        Ok(Self { directory, spare, path, text, entries })
    }

    /// The processes there are, ascending.
    pub(super) fn processes(&mut self) -> Vec<u32> {
        match rustix::fs::seek(&self.directory, SeekFrom::Start(0)) {
            Ok(_) => numbers(&self.directory, &mut self.entries),
            Err(_) => Vec::new(),
        }
    }

    /// The threads of a process, ascending; empty when it is gone.
    pub(super) fn tasks(&mut self, pid: u32) -> Vec<u32> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/task");
        match self.open_once(|proc, path| proc_file::open_directory_below(proc, path)) {
            Ok(tasks) => numbers(&tasks, &mut self.entries),
            Err(_) => Vec::new(),
        }
    }

    /// Opens what is at the path and is closed again at once, in place of the spare descriptor where there is no other.
    fn open_once(&mut self, open: impl Fn(&OwnedFd, &str) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
        if self.spare.is_none() {
            self.spare = keep_spare(&self.directory);
        }
        match open(&self.directory, &self.path) {
            Err(Errno::MFILE) if self.spare.take().is_some() => open(&self.directory, &self.path),
            opened => opened,
        }
    }

    /// Opens a file of a thread.
    pub(super) fn open_file(&mut self, pid: u32, tid: u32, file: &str) -> Result<OwnedFd, Errno> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/task/{tid}/{file}");
        proc_file::open_below(&self.directory, &self.path)
    }

    /// Reads a file of a thread from an open descriptor.
    pub(super) fn read(&mut self, file: impl AsFd) -> Result<&[u8], Errno> {
        proc_file::once(file, &mut self.text)
    }

    /// Opens and reads a file of a thread, once.
    pub(super) fn read_file(&mut self, pid: u32, tid: u32, file: &str) -> Result<&[u8], Errno> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/task/{tid}/{file}");
        let file = self.open_once(|proc, path| proc_file::open_below(proc, path))?;
        self.read(file)
    }

    /// The whole of a file of a process' main thread, however long.
    pub(super) fn read_long(&mut self, pid: u32, file: &str) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        std::fs::File::from(self.open_file(pid, pid, file)?).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Who a thread is; none when it is gone. Below its own number every thread finds itself, so `pid` may be `tid`
    /// where the process is not known.
    pub(super) fn stat(&mut self, pid: u32, tid: u32) -> Option<Stat<'_>> {
        parse::parse_stat(self.read_file(pid, tid, "stat").ok()?)
    }

    /// A process as a whole, with the CPU time of all its threads; none when it is gone.
    pub(super) fn process_stat(&mut self, pid: u32) -> Option<Stat<'_>> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/stat");
        let file = self.open_once(|proc, path| proc_file::open_below(proc, path)).ok()?;
        parse::parse_stat(self.read(file).ok()?)
    }

    /// The process a thread belongs to.
    pub(super) fn process_of(&mut self, tid: u32) -> Option<u32> {
        parse::parse_tgid(self.read_file(tid, tid, "status").ok()?)
    }
}

fn keep_spare(directory: &OwnedFd) -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(directory, 0).ok()
}

/// The names in a directory that are numbers, ascending.
fn numbers(directory: impl AsFd, buffer: &mut Vec<u8>) -> Vec<u32> {
    let number = |name: &CStr| name.to_str().ok()?.parse::<u32>().ok();
    let mut numbers = Vec::new();
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(Ok(entry)) = entries.next() {
        numbers.extend(number(entry.file_name()));
    }
    numbers.sort_unstable();
    numbers
}
