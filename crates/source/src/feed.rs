//! The receiving end of the one channel between the thread that has the data and the thread that shows them, live or replayed.

use super::channel::{Bell, Handover, MOST_NEWS, Sender, reset, ring, room::QueueRoom};
use super::remote::{self, RemoteHost};
use super::replay;
use super::sampler::{self, SamplerSettings};
use super::{SourceError, now_ns, proc_file};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use vnettop_sample::Item;

pub use super::channel::{FeedCommand, HostNews, Pace};
pub use super::replay::ReplayCursor;

/// How long a program that is to stop waits until its source has let go: a dump can stand behind others for a while.
const LETTING_GO: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Longest wait until ssh has exited, from the end of its feed on.
const ENDING: Duration = Duration::from_secs(1);

/// The receiving end: items, and a descriptor that is readable when there are some.
pub struct Feed {
    items: Receiver<Result<Item, SourceError>>,
    taken: Arc<AtomicU64>,
    ready: Arc<OwnedFd>,
    news: Receiver<HostNews>,
    commands: mpsc::Sender<FeedCommand>,
    commanded: Arc<OwnedFd>,
    /// Readable when the source has let go.
    let_go: Arc<OwnedFd>,
    is_live: bool,
    /// Its samples have the clock of another machine.
    is_remote: bool,
    /// Gone when the thread has ended.
    over: Receiver<()>,
    /// When the source was asked to end.
    stopped: Cell<Option<Instant>>,
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

impl Feed {
    /// Starts the sampler.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread.
    pub fn live(settings: SamplerSettings) -> Result<Self, SourceError> {
        let (items, taken) = mpsc::channel();
        Self::start("sampler", (Handover::AtOnce(items), taken), move |sender| sampler::run(&settings, &sender))
    }

    /// Starts ssh to another host, and follows what its agent sends.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread. A host that cannot be reached is no error: [`Feed::news`] says it.
    pub fn remote(host: RemoteHost) -> Result<Self, SourceError> {
        let (items, taken) = mpsc::channel();
        let mut feed = Self::start("ssh", (Handover::AtOnce(items), taken), move |sender| remote::run(host, &sender))?;
        feed.is_remote = true;
        Ok(feed)
    }

    /// Starts the replay of a recording.
    ///
    /// # Errors
    /// The kernel gives no descriptor or thread.
    pub fn replay(recording: impl Into<ReplayCursor>, pace: Pace) -> Result<Self, SourceError> {
        let (items, taken) = mpsc::sync_channel(1);
        let reel = recording.into();
        Self::start("replay", (Handover::InTurn(items), taken), move |sender| replay::run(reel, pace, &sender))
    }

    fn start(
        name: &str,
        (handover, items): (Handover, Receiver<Result<Item, SourceError>>),
        work: impl FnOnce(Sender) + Send + 'static,
    ) -> Result<Self, SourceError> {
        let failed = |error: std::io::Error| SourceError::Sampler { failed: "cannot start the sampling thread", error };
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let [ready, commanded, let_go] = [event(), event(), event()].map(|made| made.map_err(|e| failed(e.into())));
        let (ready, commanded, let_go) = (ready?, commanded?, let_go?);
        proc_file::make_room_for_descriptors(&ready);
        let (commands, from_feed) = mpsc::channel();
        let (say, news) = mpsc::sync_channel(MOST_NEWS);
        let (taken, is_live) = (Arc::new(AtomicU64::new(0)), matches!(handover, Handover::AtOnce(_)));
        let sender = Sender {
            items: handover,
            room: RefCell::new(QueueRoom::new(Arc::clone(&taken))),
            ready: Bell(Arc::clone(&ready)),
            news: say,
            commands: RefCell::new(from_feed),
            commanded: Arc::clone(&commanded),
            let_go: Arc::clone(&let_go),
        };
        let (ends, over) = mpsc::channel();
        let work = move || {
            let _until_it_is_over: mpsc::Sender<()> = ends;
            work(sender);
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(failed)?;
        Ok(Self {
            items,
            taken,
            ready,
            news,
            commands,
            commanded,
            let_go,
            is_live,
            is_remote: false,
            over,
            stopped: Cell::default(),
        })
    }

    /// The source is the kernel: its end is one only where a count was asked for.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live
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
            Ok(item) => self.took(item),
            Err(mpsc::TryRecvError::Empty) => {
                // Reset first, look again: an item sent in between makes it readable again.
                reset(&self.ready);
                match self.items.try_recv() {
                    Ok(item) => self.took(item),
                    Err(mpsc::TryRecvError::Empty) => Ok(Next::Waiting),
                    Err(mpsc::TryRecvError::Disconnected) => Ok(Next::End),
                }
            }
            Err(mpsc::TryRecvError::Disconnected) => Ok(Next::End),
        }
    }

    /// Makes room for another one, and notes in a sample how long it had waited.
    fn took(&self, item: Result<Item, SourceError>) -> Result<Next, SourceError> {
        self.taken.fetch_add(1, Ordering::Release);
        let mut item = item?;
        if let Item::Sample(sample) = &mut item
            && self.is_live
            && !self.is_remote
        {
            sample.own.behind_ns = Some(now_ns().saturating_sub(sample.at_ns));
        }
        Ok(Next::Item(item))
    }

    /// What the source has said besides its items, without waiting. A caller that waits for [`Feed::ready`] asks for it once
    /// [`Feed::next`] has nothing.
    #[must_use]
    pub fn news(&self) -> Option<HostNews> {
        self.news.try_recv().ok()
    }

    /// Sends the source a command; it may be gone already.
    pub fn command(&self, command: FeedCommand) {
        self.send(command);
    }

    /// Sends the source a command; false when the source is gone.
    fn send(&self, command: FeedCommand) -> bool {
        let is_there = self.commands.send(command).is_ok();
        if is_there {
            ring(&self.commanded);
        }
        is_there
    }

    /// Has the source let go of the network namespaces that it keeps alive, and rest until [`Feed::go_on`]: for a program that is
    /// about to be stopped. Waits until it has, 1 s at most.
    pub fn let_go(&self) {
        if !self.is_live {
            return;
        }
        reset(&self.let_go);
        if self.send(FeedCommand::LetGo) {
            let _not_in_time = poll(&mut [PollFd::new(&*self.let_go, PollFlags::IN)], Some(&LETTING_GO));
        }
    }

    /// Has the source take everything up again.
    pub fn go_on(&self) {
        self.command(FeedCommand::GoOn);
    }
}

impl Feed {
    /// Has the source end, without waiting for it, which the drop does. A program with several feeds stops them all before it drops
    /// the first, so that they end side by side.
    pub fn stop(&self) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(Instant::now()));
            self.command(FeedCommand::Stop);
        }
    }
}

impl Drop for Feed {
    /// The program may end next: ssh, a process, is ended before that.
    fn drop(&mut self) {
        self.stop();
        if self.is_remote {
            let since = self.stopped.get().map_or(Duration::ZERO, |stopped| stopped.elapsed());
            let _in_time = self.over.recv_timeout(ENDING.saturating_sub(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_hosts_that_hang_end_in_the_time_of_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let host = |at: usize| {
            let script = format!("trap '' TERM; : > {}/{at}; exec sleep 600", dir.path().display());
            let ssh = ["sh", "-c", &script].map(str::to_owned).to_vec();
            let (name, command) = (format!("h{at}"), "vnettop agent".to_owned());
            Feed::remote(RemoteHost { name, ssh, command, interval: Duration::from_millis(500) }).expect("a thread")
        };
        let feeds: Vec<Feed> = (0..16).map(host).collect();
        let started = || std::fs::read_dir(dir.path()).map_or(0, Iterator::count);
        let end = Instant::now() + Duration::from_secs(30);
        while started() < feeds.len() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(started(), feeds.len(), "every ssh hangs");
        let begin = Instant::now();
        feeds.iter().for_each(Feed::stop);
        let reported = begin.elapsed();
        drop(feeds);
        assert!(reported < Duration::from_millis(500), "to tell them waits for nobody: {reported:?}");
        assert!(begin.elapsed() < 2 * ENDING, "and all have ended after {:?}", begin.elapsed());
    }
}
