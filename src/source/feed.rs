//! The one channel between the thread that has the data and the thread that shows them, live or replayed.

use super::SourceError;
use super::proc_file;
use super::replay;
use super::sampler::{self, Settings};
use crate::record::Recording;
use crate::sample::{Item, OnRequest};
use rustix::event::{EventfdFlags, eventfd};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// How many items may wait: a benchmark can keep the showing thread off every core for seconds, and nothing may be lost.
const WAITING: usize = 1024;

/// What the showing thread may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Another interval.
    Interval(Duration),
    /// This process watched too, instead of the one named so before.
    Watch {
        /// Its number.
        pid: u32,
        /// And those that descend from it.
        kin: bool,
    },
    /// More counted by the kernel, or no longer.
    Want(OnRequest),
    /// An end.
    Stop,
}

/// How fast a recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As fast as it is taken.
    Fast,
    /// This many times its own speed.
    Times(f64),
}

/// The receiving end: items, and a descriptor that is readable when there are some.
pub struct Feed {
    items: Receiver<Result<Item, SourceError>>,
    ready: Arc<OwnedFd>,
    commands: mpsc::Sender<Command>,
    commanded: Arc<OwnedFd>,
}

/// What came out of a feed.
pub enum Next {
    /// An item.
    Item(Item),
    /// Nothing yet.
    Waiting,
    /// No more.
    End,
}

/// The sending end.
pub(super) struct Sender {
    items: SyncSender<Result<Item, SourceError>>,
    ready: Arc<OwnedFd>,
    commands: RefCell<Receiver<Command>>,
    commanded: Arc<OwnedFd>,
}

impl Feed {
    /// Starts the sampler.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread.
    pub fn live(settings: Settings) -> Result<Self, SourceError> {
        Self::start("sampler", WAITING, move |sender| sampler::run(&settings, &sender))
    }

    /// Starts the replay of a recording.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread.
    pub fn replay(recording: Recording, pace: Pace) -> Result<Self, SourceError> {
        // One waiting item: a replay that nobody looks at stands still.
        Self::start("replay", 1, move |sender| replay::run(recording, pace, &sender))
    }

    fn start(name: &str, waiting: usize, work: impl FnOnce(Sender) + Send + 'static) -> Result<Self, SourceError> {
        let failed = |error: std::io::Error| SourceError::Thread { error };
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let (ready, commanded) = (event().map_err(|e| failed(e.into()))?, event().map_err(|e| failed(e.into()))?);
        proc_file::make_room_for_descriptors(&ready);
        let (to_feed, items) = mpsc::sync_channel(waiting);
        let (commands, from_feed) = mpsc::channel();
        let sender = Sender {
            items: to_feed,
            ready: Arc::clone(&ready),
            commands: RefCell::new(from_feed),
            commanded: Arc::clone(&commanded),
        };
        let bell = Bell(Arc::clone(&ready));
        let run = move || {
            let _bell = bell;
            work(sender);
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { items, ready, commands, commanded })
    }

    /// Readable when [`Feed::next`] has something.
    #[must_use]
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// The next item, without waiting.
    ///
    /// # Errors
    /// What ended the source.
    pub fn next(&self) -> Result<Next, SourceError> {
        match self.items.try_recv() {
            Ok(item) => item.map(Next::Item),
            Err(mpsc::TryRecvError::Empty) => {
                let mut count = [0; 8];
                // Reset first, look again: an item sent in between makes it readable again.
                let _ = rustix::io::read(&*self.ready, &mut count);
                match self.items.try_recv() {
                    Ok(item) => item.map(Next::Item),
                    Err(mpsc::TryRecvError::Empty) => Ok(Next::Waiting),
                    Err(mpsc::TryRecvError::Disconnected) => Ok(Next::End),
                }
            }
            Err(mpsc::TryRecvError::Disconnected) => Ok(Next::End),
        }
    }

    /// Tells the source something; it may be gone already.
    pub fn command(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            let _ = rustix::io::write(&*self.commanded, &1u64.to_ne_bytes());
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.command(Command::Stop);
    }
}

impl Sender {
    /// Hands an item over; false when nobody listens any more.
    pub fn send(&self, item: Result<Item, SourceError>) -> bool {
        let sent = self.items.send(item).is_ok();
        let _ = rustix::io::write(&*self.ready, &1u64.to_ne_bytes());
        sent
    }

    /// Readable when a command waits.
    pub fn commands(&self) -> BorrowedFd<'_> {
        self.commanded.as_fd()
    }

    /// The next command, without waiting. A vanished feed is a stop.
    pub fn command(&self) -> Option<Command> {
        let commands = self.commands.borrow();
        match commands.try_recv() {
            Ok(command) => Some(command),
            Err(mpsc::TryRecvError::Disconnected) => Some(Command::Stop),
            Err(mpsc::TryRecvError::Empty) => {
                let mut count = [0; 8];
                let _ = rustix::io::read(&*self.commanded, &mut count);
                commands.try_recv().ok()
            }
        }
    }
}

/// Wakes the receiver when the source has ended, however it ended; dropped after the [`Sender`].
struct Bell(Arc<OwnedFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}
