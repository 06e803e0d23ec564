//! One connection: bytes from ssh become items, commands become lines to it, and all waiting is in one place.

use super::{AskedHost, RemoteHost, ssh};
use crate::channel::{FeedCommand, HostNews, Sender, ring};
use crate::now_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;
use vnettop_record::{STREAM_PIECE, StreamItem, StreamReader, command_line};
use vnettop_sample::{HostState, Item};

/// A host is silent when nothing came for this time, and for this many intervals.
const SILENT: Duration = Duration::from_secs(2);
const SILENT_INTERVALS: u32 = 4;
/// Time by which a host that is reached has sent a sample.
const START: Duration = Duration::from_secs(30);
/// Bytes that may wait to be sent to an agent that reads nothing; with more the connection is given up.
const MOST_UNSENT: usize = 256 * 1024;
/// Between two samples there are a few, as many as threads are pinned.
const MOST_EVENTS: usize = 10_000;
/// Bytes read at once.
const PIECE: usize = 16 * 1024;
/// Bytes of ssh's standard error that are kept, the last ones.
const MOST_SAID: usize = 4096;
/// How long ssh may take to exit once its input is closed.
const EXIT: Duration = Duration::from_millis(500);
/// How often vnettop looks whether there is room again, when nothing is read for want of it.
const FULL: Duration = Duration::from_millis(50);

/// How a connection ended.
pub(super) enum ConnectionEnd {
    /// vnettop asked for the end.
    Stopped,
    /// Why the connection was lost, one sentence.
    Lost(String),
}

/// ssh, running.
pub(super) struct SshConnection {
    ssh: Child,
    /// None once nothing more is to be sent.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// `None` once standard error is at its end.
    errors: Option<ChildStderr>,
    reader: StreamReader,
    /// Bytes that came and are not decoded yet, because there is no room for what they become.
    unread: Vec<u8>,
    /// Events since the last sample.
    events: usize,
    /// Bytes that the agent has not taken yet.
    unsent: Vec<u8>,
    /// The last of what ssh has said.
    said: Vec<u8>,
    /// When the last sample came, or the connection began.
    received_ns: u64,
    /// Version of the agent; `None` until the stream has begun.
    version: Option<String>,
    /// A sample came.
    is_live: bool,
    is_silent: bool,
}

impl SshConnection {
    /// Starts ssh.
    pub fn open(asked: &AskedHost) -> io::Result<Self> {
        let mut ssh = ssh::command(&asked.host).spawn()?;
        let (Some(input), Some(output), Some(errors)) = (ssh.stdin.take(), ssh.stdout.take(), ssh.stderr.take()) else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        for fd in [input.as_fd(), output.as_fd(), errors.as_fd()] {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let (reader, input, errors) = (StreamReader::default(), Some(input), Some(errors));
        let unsent = asked.standing.iter().flat_map(command_line).collect();
        let (said, version) = (Vec::new(), None);
        let received_ns = now_ns();
        Ok(Self {
            ssh,
            input,
            output,
            errors,
            reader,
            unread: Vec::new(),
            events: 0,
            unsent,
            said,
            received_ns,
            version,
            is_live: false,
            is_silent: false,
        })
    }

    /// Hands over what comes until it ends.
    pub fn follow(&mut self, asked: &mut AskedHost, feed: &Sender) -> ConnectionEnd {
        loop {
            while let Some(command) = feed.command() {
                if !self.obey(command, asked, feed) {
                    // Commands from before the stop are still sent.
                    let _as_much_as_is_taken = self.send(&asked.host);
                    return ConnectionEnd::Stopped;
                }
            }
            let host = &asked.host;
            if let Err(why) = self.send(host) {
                return ConnectionEnd::Lost(why);
            }
            if let Err(why) = self.hand_over(host, feed) {
                return ConnectionEnd::Lost(why);
            }
            let has_room = feed.has_room() && self.unread.is_empty();
            let [spoken, said] = self.wait(host, feed, has_room);
            if said {
                self.hear_errors();
            }
            if spoken {
                match self.read(host) {
                    Ok(true) => {}
                    Ok(false) => return ConnectionEnd::Lost(self.ended(host)),
                    Err(why) => return ConnectionEnd::Lost(why),
                }
            }
            if !self.is_live && self.quiet() > START {
                let quoted = self.reader.quoted().map_or_else(String::new, |quoted| format!(": it wrote \"{quoted}\""));
                return ConnectionEnd::Lost(format!(
                    "{} has sent no samples in {} s{quoted}",
                    host.name,
                    START.as_secs()
                ));
            }
            self.mind_silence(host, feed, has_room);
        }
    }

    /// Since the last sample came, or the connection began.
    fn quiet(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.received_ns))
    }

    /// False where it is to end.
    fn obey(&mut self, command: FeedCommand, asked: &mut AskedHost, feed: &Sender) -> bool {
        match command {
            FeedCommand::Stop => return false,
            FeedCommand::LetGo => ring(&feed.let_go),
            command => self.unsent.extend(asked.command(command).iter().flat_map(command_line)),
        }
        true
    }

    /// Sends as much as is taken; the sentence where nothing is for too long.
    fn send(&mut self, host: &RemoteHost) -> Result<(), String> {
        while let Some(input) = self.input.as_mut().filter(|_| !self.unsent.is_empty()) {
            match input.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // It has ended, which its output will say.
                Err(_) => self.input = None,
            }
        }
        if self.unsent.len() > MOST_UNSENT {
            return Err(format!("the agent on {} takes no commands any more", host.name));
        }
        Ok(())
    }

    /// Waits until something comes, is asked for, or silence is due; whether ssh's output and standard error have something.
    fn wait(&self, host: &RemoteHost, feed: &Sender, has_room: bool) -> [bool; 2] {
        let input = self.input.as_ref().filter(|_| !self.unsent.is_empty());
        let fds = [
            Some((feed.commands(), PollFlags::IN)),
            self.errors.as_ref().map(|errors| (errors.as_fd(), PollFlags::IN)),
            has_room.then(|| (self.output.as_fd(), PollFlags::IN)),
            input.map(|input| (input.as_fd(), PollFlags::OUT)),
        ];
        let place = |of: usize| fds[..of].iter().flatten().count();
        let mut waits: Vec<PollFd<'_>> =
            fds.iter().flatten().map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let silent_in = silent_after(host).saturating_sub(self.quiet());
        let at_most = match (has_room, self.is_silent) {
            (false, _) => FULL,
            (true, true) => Duration::from_secs(1),
            (true, false) if !self.is_live => Duration::from_secs(1),
            (true, false) => silent_in.max(Duration::from_millis(10)),
        };
        let _ = poll(&mut waits, Timespec::try_from(at_most).ok().as_ref());
        let has = |of: usize| fds[of].is_some() && !waits[place(of)].revents().is_empty();
        [has(2), has(1)]
    }

    /// Reads what is there; false at its end.
    fn read(&mut self, host: &RemoteHost) -> Result<bool, String> {
        let mut bytes = [0; PIECE];
        match self.output.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.unread.extend_from_slice(&bytes[..read]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(format!("what {} sends cannot be read: {error}", host.name)),
        }
    }

    /// Hands over what was read, as much as there is room for.
    fn hand_over(&mut self, host: &RemoteHost, feed: &Sender) -> Result<(), String> {
        let (mut sampled, mut version, mut taken, mut at) = (false, None, Ok(()), 0);
        let mut events = self.events;
        for piece in self.unread.chunks(STREAM_PIECE) {
            if !feed.has_room() || taken.is_err() {
                break;
            }
            at += piece.len();
            taken = self.reader.take(piece, |item| match item {
                StreamItem::Begun(of) => version = Some(of),
                StreamItem::Item(item) => {
                    let is_sample = matches!(item, Item::Sample(_));
                    sampled |= is_sample;
                    events = if is_sample { 0 } else { events + 1 };
                    if events <= MOST_EVENTS {
                        feed.send(Ok(item));
                    }
                }
                StreamItem::Reply(reply) => feed.say(HostNews::Reply(reply)),
            });
        }
        self.unread.drain(..at);
        self.events = events;
        if events > MOST_EVENTS {
            return Err(format!("{} sends events and no samples", host.name));
        }
        self.version = version.or(self.version.take());
        if sampled {
            self.received_ns = now_ns();
            let is_news = !self.is_live || std::mem::take(&mut self.is_silent);
            self.is_live = true;
            if let Some(version) = self.version.clone().filter(|_| is_news) {
                feed.say(HostNews::State(HostState::Live(version)));
            }
        }
        taken.map_err(|error| format!("{}: {error}", host.name))
    }

    fn mind_silence(&mut self, host: &RemoteHost, feed: &Sender, has_room: bool) {
        if !has_room {
            // What waits here to be read is no silence of the host's.
            self.received_ns = now_ns();
        }
        if self.is_live && !self.is_silent && self.quiet() > silent_after(host) {
            self.is_silent = true;
            feed.say(HostNews::State(HostState::Silent));
        }
    }

    /// Keeps the last of what ssh says.
    fn hear_errors(&mut self) {
        let mut bytes = [0; MOST_SAID];
        // Who says a great deal is heard again after everything else.
        for _ in 0..16 {
            let Some(errors) = &mut self.errors else { return };
            match errors.read(&mut bytes) {
                Ok(read @ 1..) => {
                    self.said.extend_from_slice(&bytes[..read]);
                    let more = self.said.len().saturating_sub(MOST_SAID);
                    self.said.drain(..more);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
                _ => self.errors = None,
            }
        }
    }

    /// Waits a moment for ssh to exit.
    fn wait_for_exit(&self) {
        let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // Standard error is closed when it exits.
        let mut waits: Vec<PollFd<'_>> = self.errors.iter().map(|errors| PollFd::new(errors, PollFlags::IN)).collect();
        let _ = poll(&mut waits, Some(&moment));
    }

    /// Its output is at its end: why.
    fn ended(&mut self, host: &RemoteHost) -> String {
        self.input = None;
        let until_ns = now_ns() + u64::try_from(EXIT.as_nanos()).unwrap_or(0);
        let mut status = self.ssh.try_wait().ok().flatten();
        while status.is_none() && now_ns() < until_ns {
            self.wait_for_exit();
            self.hear_errors();
            status = self.ssh.try_wait().ok().flatten();
        }
        self.hear_errors();
        if let Some(quoted) = self.reader.quoted().filter(|_| status.is_some_and(|status| status.success())) {
            return format!("{} wrote something else than a stream: \"{quoted}\"", host.name);
        }
        ssh::ended(host, status, &self.said, self.is_live)
    }
}

/// Its input is closed, which is the agent's end, and with it ssh's; one that takes its time is killed.
impl Drop for SshConnection {
    fn drop(&mut self) {
        self.input = None;
        let until_ns = now_ns() + u64::try_from(EXIT.as_nanos()).unwrap_or(0);
        while matches!(self.ssh.try_wait(), Ok(None)) {
            if now_ns() >= until_ns {
                // With what it has started itself, a proxy perhaps: it leads a group of its own.
                let group = i32::try_from(self.ssh.id()).ok().and_then(Pid::from_raw);
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = self.ssh.wait();
                return;
            }
            self.wait_for_exit();
            self.hear_errors();
            // What still comes is nobody's.
            let _ = self.output.read(&mut [0; PIECE]);
        }
    }
}

/// What of this host is silence.
fn silent_after(host: &RemoteHost) -> Duration {
    SILENT.max(host.interval * SILENT_INTERVALS)
}
