//! The one channel between the thread that has the data and the thread that shows them: what is asked of the source, and its end of it.

pub(super) mod room;

use super::{SourceError, now_ns};
use room::QueueRoom;
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;
use vnettop_sample::{AgentCommand, AgentReply, HostState, Item, OnRequest};

/// What the showing thread may ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedCommand {
    /// Another interval.
    Interval(Duration),
    /// A sample now, and the next one an interval later.
    Now,
    /// This process watched too, instead of the one named so before.
    Watch {
        /// Its number.
        pid: u32,
        /// Its descendants are watched too.
        with_descendants: bool,
    },
    /// More counted by the kernel, or no longer.
    Want(OnRequest),
    /// Something of the agent on another host.
    Agent(AgentCommand),
    /// A recording at another pace.
    Pace(Pace),
    /// Nothing kept alive and nothing read until [`FeedCommand::GoOn`].
    LetGo,
    /// Everything as before [`FeedCommand::LetGo`].
    GoOn,
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

/// What a host says besides its items.
#[derive(Debug, Clone, PartialEq)]
pub enum HostNews {
    /// How the connection stands from now on.
    State(HostState),
    /// What came of something that was asked for.
    Reply(AgentReply),
}

/// Most [`HostNews`] that may wait to be taken: a host with more floods its reader.
pub(super) const MOST_NEWS: usize = 256;

/// The sending end. Its fields are dropped in their order: the receiver is woken when there are no more items.
pub(super) struct Sender {
    pub items: Handover,
    pub room: RefCell<QueueRoom>,
    pub ready: Bell,
    pub news: SyncSender<HostNews>,
    pub commands: RefCell<Receiver<FeedCommand>>,
    pub commanded: Arc<OwnedFd>,
    /// Rung when nothing is kept alive any more.
    pub let_go: Arc<OwnedFd>,
}

/// Wakes the receiver when the source has ended, however it ended.
pub(super) struct Bell(pub Arc<OwnedFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        ring(&self.0);
    }
}

/// How items go to the receiver.
pub(super) enum Handover {
    /// At once; the sending thread looks for room first ([`Sender::has_room`]).
    AtOnce(mpsc::Sender<Result<Item, SourceError>>),
    /// Once the one before was taken: a replay that nobody looks at stands still.
    InTurn(SyncSender<Result<Item, SourceError>>),
}

impl Sender {
    /// Hands an item over; false when nobody listens any more.
    pub fn send(&self, item: Result<Item, SourceError>) -> bool {
        self.room.borrow_mut().add(item.as_ref().ok(), now_ns());
        let sent = match &self.items {
            Handover::AtOnce(items) => items.send(item).is_ok(),
            Handover::InTurn(items) => items.send(item).is_ok(),
        };
        ring(&self.ready.0);
        sent
    }

    /// Sends what is no item; dropped while [`MOST_NEWS`] of them wait to be taken.
    pub fn say(&self, news: HostNews) {
        let _nobody_listens = self.news.try_send(news);
        ring(&self.ready.0);
    }

    /// Whether another sample may be handed over; false while too many wait to be taken.
    pub fn has_room(&self) -> bool {
        self.room.borrow_mut().is_left(now_ns())
    }

    /// Readable when a command waits.
    pub fn commands(&self) -> BorrowedFd<'_> {
        self.commanded.as_fd()
    }

    /// The next command, without waiting. A vanished feed is a stop.
    pub fn command(&self) -> Option<FeedCommand> {
        let commands = self.commands.borrow();
        match commands.try_recv() {
            Ok(command) => Some(command),
            Err(mpsc::TryRecvError::Disconnected) => Some(FeedCommand::Stop),
            Err(mpsc::TryRecvError::Empty) => {
                reset(&self.commanded);
                commands.try_recv().ok()
            }
        }
    }
}

/// Makes it readable.
pub(super) fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Makes it unreadable.
pub(super) fn reset(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}
