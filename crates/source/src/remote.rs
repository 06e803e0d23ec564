//! Another host as a source: `ssh HOST vnettop agent` is started, its stream gives the items, and what is asked of the source goes to
//! its standard input. A connection that is lost is tried again after a pause that grows; a reader that stands still costs a
//! bounded queue here and left-out ticks there.

mod connection;
mod pause;
mod ssh;

use super::channel::{FeedCommand, HostNews, Sender, ring};
use connection::{ConnectionEnd, SshConnection};
use pause::Pause;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::mem::discriminant;
use std::time::{Duration, Instant};
use vnettop_sample::{AgentCommand, HostState};

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteHost {
    /// As ssh knows it: `[USER@]NAME`.
    pub name: String,
    /// The words of the ssh command, without the host.
    pub ssh: Vec<String>,
    /// What the shell there is given to run: one line, `vnettop agent` and its options.
    pub command: String,
    /// Time from sample to sample that it is started with.
    pub interval: Duration,
}

/// Hands over what comes from the host until told to stop.
pub(super) fn run(host: RemoteHost, feed: &Sender) {
    let (mut pause, mut asked) = (Pause::default(), AskedHost { host, standing: Vec::new() });
    loop {
        feed.say(HostNews::State(HostState::Connecting));
        let began = Instant::now();
        let ended = match SshConnection::open(&asked) {
            Ok(mut connection) => connection.follow(&mut asked, feed),
            Err(error) => ConnectionEnd::Lost(ssh::not_started(&asked.host, &error)),
        };
        let ConnectionEnd::Lost(why) = ended else { return };
        let again_s = pause.next(began.elapsed());
        feed.say(HostNews::State(HostState::Lost { why, again_s }));
        if !waits(&mut asked, feed, Duration::from_secs(again_s)) {
            return;
        }
    }
}

/// A host, and the requests that last: an agent that is started anew is sent them again.
struct AskedHost {
    host: RemoteHost,
    /// One of each kind.
    standing: Vec<AgentCommand>,
}

impl AskedHost {
    /// The command for the agent; `None` when it does not concern the agent.
    fn command(&mut self, command: FeedCommand) -> Option<AgentCommand> {
        let command = match command {
            FeedCommand::Interval(interval) => {
                self.host.interval = interval;
                AgentCommand::Interval(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX))
            }
            FeedCommand::Watch { pid, with_descendants } => AgentCommand::Watch { pid, with_descendants },
            FeedCommand::Want(wanted) => AgentCommand::Want(wanted),
            FeedCommand::Agent(command) => return Some(command),
            FeedCommand::Now | FeedCommand::Pace(_) | FeedCommand::LetGo | FeedCommand::GoOn | FeedCommand::Stop => {
                return None;
            }
        };
        self.standing.retain(|other| discriminant(other) != discriminant(&command));
        self.standing.push(command.clone());
        Some(command)
    }
}

/// Waits; false when told to stop meanwhile. A pin that is asked of a host that is not there is refused.
fn waits(asked: &mut AskedHost, feed: &Sender, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    loop {
        while let Some(command) = feed.command() {
            match command {
                FeedCommand::Stop => return false,
                FeedCommand::LetGo => ring(&feed.let_go),
                FeedCommand::Agent(_) => {
                    feed.say(HostNews::Reply(ssh::not_connected(&asked.host)));
                }
                command => drop(asked.command(command)),
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        let at_most = Timespec::try_from(left).ok();
        let _ = poll(&mut [PollFd::from_borrowed_fd(feed.commands(), PollFlags::IN)], at_most.as_ref());
    }
}
