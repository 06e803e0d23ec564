//! The command's standard output. It is the command's own, inherited as it is, but for one case: an iperf 3 that writes
//! `--json-stream` into a pipe is read in passing, because nobody can read a pipe beside its reader. Its bytes go on
//! unchanged, in their order and at once; the command waits when the reader is slow, and its pipe is broken when the
//! reader is gone.

use crate::app::signals::ring;
use crate::sample::{Report, Side, Unread};
use crate::source::benchmarks::{Lines, streams};
use crate::text::clean;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::isatty;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// As much as a pipe holds.
const PIECE: usize = 64 * 1024;
/// Most reports of the command that wait to be read; later ones are passed through unread.
const MOST_NEWS: usize = 1024;

/// What the output of a command is.
#[derive(Debug)]
pub(super) enum Output {
    /// Inherited; with the reason, where an iperf 3 writes lines that then cannot be read.
    Own(Option<Unread>),
    /// Passed on.
    Passed(Passed),
}

/// An output that is passed on.
#[derive(Debug)]
pub(super) struct Passed {
    news: Receiver<OutputEvent>,
    /// Readable when there is some.
    bell: Arc<OwnedFd>,
    /// Written to when the command has ended.
    ended: Arc<OwnedFd>,
    caught_up: bool,
}

#[derive(Debug)]
enum OutputEvent {
    Reported(Option<Side>, Report),
    /// Everything that the command wrote until it ended was passed on.
    CaughtUp,
}

/// What may still pass after the command's end, because the command left somebody behind who writes to its output.
#[derive(Debug, Default)]
pub struct Rest(Vec<JoinHandle<()>>);

impl Rest {
    /// Waits for nobody any more: this program is asked to end, and with it ends what would pass.
    pub(super) fn leave(&mut self) {
        self.0.clear();
    }
}

impl Drop for Rest {
    /// Waits until nobody writes any more, as a reader of the output does.
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Output {
    /// Prepares the output of a command that is about to be started. `command` must be dropped once it was started: it
    /// holds the end that is written to.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread.
    pub(super) fn of(words: &[OsString], command: &mut Command, rest: &mut Rest) -> io::Result<Self> {
        let words: Vec<String> = words.iter().map(|word| clean(word.as_encoded_bytes())).collect();
        if !streams(&words) {
            return Ok(Self::Own(None));
        }
        let stdout = io::stdout();
        let kind = rustix::fs::fstat(&stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
        Ok(match kind {
            Ok(FileType::Fifo) => Self::Passed(Passed::start(command, rest)?),
            // The sampler follows it there.
            Ok(FileType::RegularFile) => Self::Own(None),
            _ if isatty(&stdout) => Self::Own(Some(Unread::Terminal)),
            _ => Self::Own(Some(Unread::Device)),
        })
    }

    /// Why nothing is read, where that has to be said.
    pub(super) fn unread(&self) -> Option<Unread> {
        if let Self::Own(unread) = self { *unread } else { None }
    }

    /// Readable when [`Output::received`] has something.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        if let Self::Passed(passed) = self { Some(passed.bell.as_fd()) } else { None }
    }

    /// The command has ended: what it wrote is passed on now.
    pub(super) fn end(&self) {
        if let Self::Passed(passed) = self {
            ring(&passed.ended);
        }
    }

    /// What iperf 3 told since, and whether everything that it wrote before its end has been passed on.
    pub(super) fn received(&mut self) -> (Vec<(Option<Side>, Report)>, bool) {
        let Self::Passed(passed) = self else { return (Vec::new(), true) };
        // Reset first: what is told in between rings again.
        let _ = rustix::io::read(&*passed.bell, &mut [0; 8]);
        let mut reported = Vec::new();
        for news in passed.news.try_iter() {
            match news {
                OutputEvent::Reported(side, report) => reported.push((side, report)),
                OutputEvent::CaughtUp => passed.caught_up = true,
            }
        }
        (reported, passed.caught_up)
    }
}

impl Passed {
    fn start(command: &mut Command, rest: &mut Rest) -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let (bell, ended) = (event()?, event()?);
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (tell, news) = mpsc::sync_channel(MOST_NEWS);
        let passing = PipeThread { from, ended: Some(Arc::clone(&ended)), tell, bell: Arc::clone(&bell) };
        rest.0.push(thread::Builder::new().name("output".to_owned()).spawn(move || passing.run())?);
        command.stdout(Stdio::from(to));
        Ok(Self { news, bell, ended, caught_up: false })
    }
}

/// The thread that passes on: it alone waits for the reader.
struct PipeThread {
    from: OwnedFd,
    /// None once it was heard that the command has ended.
    ended: Option<Arc<OwnedFd>>,
    tell: SyncSender<OutputEvent>,
    bell: Arc<OwnedFd>,
}

impl PipeThread {
    fn run(mut self) {
        let stdout = io::stdout();
        self.pass(stdout.as_fd());
        self.say(OutputEvent::CaughtUp);
        // What is still written finds its pipe broken: `from` is closed here.
    }

    /// Until nobody writes any more, or nobody reads.
    fn pass(&mut self, to: BorrowedFd<'_>) {
        let (mut lines, mut piece) = (Lines::default(), vec![0; PIECE]);
        loop {
            let mut waits = vec![
                PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN),
                // Asked for nothing, a pipe tells that its reader is gone.
                PollFd::from_borrowed_fd(to, PollFlags::empty()),
            ];
            waits.extend(self.ended.iter().map(|ended| PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)));
            match poll(&mut waits, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let is = |at: usize| waits.get(at).is_some_and(|wait| !wait.revents().is_empty());
            let (readable, gone, ended) = (is(0), is(1), is(2));
            if gone {
                return;
            }
            if readable {
                let Some(length) = read(&self.from, &mut piece) else { return };
                self.listen(&mut lines, &piece[..length]);
                if write_all(to, &piece[..length]).is_err() {
                    return;
                }
            } else if ended {
                self.ended = None;
                self.say(OutputEvent::CaughtUp);
            }
        }
    }

    fn listen(&self, lines: &mut Lines, bytes: &[u8]) {
        let before = lines.last;
        lines.take(bytes, true);
        let last = lines.last.filter(|last| Some(*last) != before).map(|last| (lines.side, Report::Interval(last)));
        let ended = lines.ended().into_iter().map(|(side, whole)| (side, Report::Whole(whole)));
        for (side, report) in last.into_iter().chain(ended) {
            self.say(OutputEvent::Reported(side, report));
        }
    }

    fn say(&self, news: OutputEvent) {
        // Nobody listens any more, or not now: the bytes go on all the same.
        let _ = match news {
            OutputEvent::Reported(..) => self.tell.try_send(news).is_ok(),
            OutputEvent::CaughtUp => self.tell.send(news).is_ok(),
        };
        ring(&self.bell);
    }
}

/// None at the end.
fn read(from: &OwnedFd, piece: &mut [u8]) -> Option<usize> {
    loop {
        match rustix::io::read(from, &mut *piece) {
            Ok(0) => return None,
            Ok(length) => return Some(length),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Waits for the reader as long as it takes, also where somebody made the pipe one that does not wait.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
