//! `vnettop agent`: what a vnettop on another machine starts here over ssh. Samples out as a stream on standard output, commands in on
//! standard input, one JSON object a line; pins are this side's own, with its own journal. Its end is that of its input.

use super::black_box::BlackBox;
use super::headless::stop_if_asked;
use super::{AppError, Ended, Signals};
use crate::effect::{Kernel, Outcome, PinController, undo};
use crate::record::{StreamWriter, command_of};
use crate::sample::{AgentCommand, AgentReply, Item, OutcomeLine};
use crate::source::feed::{Feed, FeedCommand, Next};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

/// No command is longer: a thousand threads to pin are 200 KB.
const LONGEST_COMMAND: usize = 4 << 20;

/// What an agent works with.
pub struct Agent<'a> {
    /// Where its samples come from.
    pub feed: &'a Feed,
    /// What sets its masks.
    pub controller: PinController,
    /// What asks it to end.
    pub signals: &'a Signals,
    /// Where journals are kept, of this agent and of those before it.
    pub journals: Option<PathBuf>,
    /// Restore every mask at the end.
    pub restore_on_exit: bool,
    /// What keeps the last minutes here, for `vnettop save`.
    pub black_box: Option<BlackBox>,
    /// Said at the start.
    pub greeting: Vec<OutcomeLine>,
}

impl Agent<'_> {
    /// Serves until the input ends, nobody reads any more, or a signal comes.
    ///
    /// # Errors
    /// The source or the output failed.
    pub fn serve(mut self, input: &mut (impl Read + AsFd), out: &mut (impl Write + AsFd)) -> Result<Ended, AppError> {
        let ended = self.exchange(input, out);
        if self.restore_on_exit {
            // Whoever asked for it has gone.
            let _nobody_reads = self.controller.restore();
        }
        ended
    }

    fn exchange(&mut self, input: &mut (impl Read + AsFd), out: &mut (impl Write + AsFd)) -> Result<Ended, AppError> {
        let mut stream = StreamWriter::new().map_err(AppError::Output)?;
        if !self.greeting.is_empty() {
            let lines = std::mem::take(&mut self.greeting);
            stream.reply(&AgentReply { lines, ..AgentReply::default() }).map_err(AppError::Output)?;
        }
        let (mut commands, mut answered) = (Vec::new(), false);
        let mut unsent = stream.take().map_err(AppError::Output)?;
        loop {
            let ending = self.signals.ending();
            stop_if_asked(self.signals, self.feed);
            if let Some(signal) = ending {
                return Ok(Ended::Signal(signal));
            }
            // What is not taken yet waits here; while it does nothing more is taken from the sampler, which leaves ticks out.
            while !unsent.is_empty() {
                match out.write(&unsent) {
                    Ok(written) => drop(unsent.drain(..written)),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ended::Done),
                    Err(error) => return Err(AppError::Output(error)),
                }
            }
            let is_blocked = !unsent.is_empty();
            if !is_blocked && (self.take_waiting(&mut stream)? || std::mem::take(&mut answered)) {
                unsent = stream.take().map_err(AppError::Output)?;
                continue;
            }
            let [asked, is_gone] = self.wait(input, out, is_blocked);
            if is_gone {
                return Ok(Ended::Done);
            }
            if asked {
                let mut bytes = [0; 16 * 1024];
                match input.read(&mut bytes) {
                    Ok(0) => return Ok(Ended::Done),
                    Ok(read) => commands.extend_from_slice(&bytes[..read]),
                    Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                    Err(_) => return Ok(Ended::Done),
                }
                self.obey_lines(&mut commands, &mut stream).map_err(AppError::Output)?;
                answered = true;
            }
        }
    }

    /// Puts what waits in the feed into the stream; whether there was anything.
    fn take_waiting(&mut self, stream: &mut StreamWriter) -> Result<bool, AppError> {
        match self.feed.next()? {
            Next::Item(item) => {
                if let Some(black_box) = &mut self.black_box {
                    black_box.record(&item);
                }
                stream.item(&item).map(|()| true).map_err(AppError::Output)
            }
            Next::Waiting => Ok(false),
            Next::End => Err(AppError::SourceEnded),
        }
    }

    /// Waits for whatever is next; whether the input has something or is at its end, and whether nobody reads any more.
    fn wait(&self, input: &impl AsFd, out: &impl AsFd, is_blocked: bool) -> [bool; 2] {
        let mut waits = vec![
            // While what was said is not read, nothing more is asked for: answers would pile up. An end is told all the same.
            PollFd::new(input, if is_blocked { PollFlags::empty() } else { PollFlags::IN }),
            PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN),
            // A reader that goes away is an event of its own.
            PollFd::new(out, if is_blocked { PollFlags::OUT } else { PollFlags::empty() }),
        ];
        if !is_blocked {
            waits.push(PollFd::from_borrowed_fd(self.feed.ready(), PollFlags::IN));
        }
        let _interrupted = poll(&mut waits, None);
        [!waits[0].revents().is_empty(), waits[2].revents().intersects(PollFlags::ERR | PollFlags::HUP)]
    }

    fn obey_lines(&mut self, commands: &mut Vec<u8>, stream: &mut StreamWriter) -> std::io::Result<()> {
        let Some(end) = commands.iter().rposition(|&byte| byte == b'\n') else {
            if commands.len() > LONGEST_COMMAND {
                commands.clear();
                return stream.reply(&refused("it is longer than any"));
            }
            return Ok(());
        };
        let whole: Vec<u8> = commands.drain(..=end).collect();
        for line in whole.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match command_of(line) {
                Ok(command) => self.obey(command, stream)?,
                // A newer vnettop may ask for what this one does not know.
                Err(why) => stream.reply(&refused(&why))?,
            }
        }
        Ok(())
    }

    fn obey(&mut self, command: AgentCommand, stream: &mut StreamWriter) -> std::io::Result<()> {
        let outcome = match command {
            AgentCommand::Interval(ns) => {
                // The bounds of --delay.
                let interval = Duration::from_nanos(ns).clamp(Duration::from_millis(10), Duration::from_hours(1));
                self.feed.command(FeedCommand::Interval(interval));
                return Ok(());
            }
            AgentCommand::Watch { pid, with_descendants } => {
                self.feed.command(FeedCommand::Watch { pid, with_descendants });
                return Ok(());
            }
            AgentCommand::Want(wanted) => {
                self.feed.command(FeedCommand::Want(wanted));
                return Ok(());
            }
            AgentCommand::Pin(requests) => self.controller.pin(&requests),
            AgentCommand::Steer(requests) => self.controller.steer(&requests),
            AgentCommand::Restore => self.controller.restore(),
            AgentCommand::RestoreLeft => {
                let own = if self.controller.pins() + self.controller.steers() > 0 {
                    self.controller.restore()
                } else {
                    Outcome::default()
                };
                let left = self.journals.as_deref().map(|dir| undo(&mut Kernel, dir)).unwrap_or_default();
                Outcome { lines: [own.lines, left.lines].concat(), events: [own.events, left.events].concat(), ..left }
            }
        };
        self.answer(outcome, stream)
    }

    fn answer(&self, outcome: Outcome, stream: &mut StreamWriter) -> std::io::Result<()> {
        for event in outcome.events {
            stream.item(&Item::Event(event))?;
        }
        let (pins, steers) = (self.controller.pins(), self.controller.steers());
        stream.reply(&AgentReply { lines: outcome.lines, pins, steers, taken: outcome.taken })
    }
}

fn refused(why: &str) -> AgentReply {
    let text = format!("a command was not understood: {why}");
    AgentReply { lines: vec![OutcomeLine { warning: true, text }], ..AgentReply::default() }
}
