//! A run that shows a recording: from where on, at which pace, and one sample at a time.

use super::player::{Player, Start};
use super::{App, AppError, signals};
use crate::source::feed::{Feed, FeedCommand, Next, Pace};
use std::time::Duration;

/// How long the screen may stand still for a place that is being read.
const READ_AHEAD: Duration = Duration::from_millis(100);

impl App {
    /// Has the run show the recording of `player`, at `speed` times its own speed; `None` is as fast as it goes.
    #[must_use]
    pub fn with_player(mut self, player: Player, speed: Option<f64>) -> Self {
        self.state.playback = Some(player.playback(speed));
        if let Some(saved) = player.saved() {
            self.state.notice(false, format!("the recording was {}", saved.text()));
        }
        self.player = Some(player);
        self
    }

    /// Shows the recording from so far after its first sample on.
    ///
    /// # Errors
    /// It cannot be read, or the kernel gives no thread.
    pub fn start_at(&mut self, after: Duration) -> Result<(), AppError> {
        let first_ns = self.player.as_ref().map_or(0, Player::first_ns);
        self.seek(first_ns.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Shows the recording as it was at its last sample not after this moment, recorded monotonic ns; as soon as it is read ahead so far.
    pub(super) fn seek(&mut self, to_ns: u64) -> Result<(), AppError> {
        self.awaited_ns = None;
        let (Some(player), Some(playback)) = (&mut self.player, &mut self.state.playback) else { return Ok(()) };
        if self.state.is_recorded {
            let key = self.state.keys().key("record");
            self.state.notice(true, format!("seeking is not possible while recording: {key} stops the recording"));
            return Ok(());
        }
        player.receive(playback, to_ns, READ_AHEAD);
        if !playback.has_read(to_ns) {
            self.awaited_ns = Some(to_ns);
            self.state.notice(false, "shown as soon as the recording is read there");
            return Ok(());
        }
        let Start { derivation, seen, mut reel, metrics } = player.start_at(to_ns, Some(&mut self.state))?;
        let is_over = reel.peek()?.is_none();
        (self.stream.derivation, self.seen) = (derivation, seen);
        self.feed = Feed::replay(reel, self.pace())?;
        self.ended = false;
        if let Some(metrics) = metrics {
            self.state.receive(metrics);
        }
        if is_over { self.end() } else { Ok(()) }
    }

    /// As it is chosen.
    fn pace(&self) -> Pace {
        self.state.playback.as_ref().and_then(|playback| playback.speed).map_or(Pace::Fast, Pace::Times)
    }

    /// Takes over what is read ahead of the recording within this time, and goes to the place that was waited for.
    ///
    /// # Errors
    /// That cannot be read.
    pub(super) fn hear_player(&mut self, within: Duration) -> Result<(), AppError> {
        let (Some(player), Some(playback)) = (&mut self.player, &mut self.state.playback) else { return Ok(()) };
        player.receive(playback, u64::MAX, within);
        match self.awaited_ns {
            Some(to_ns) if playback.has_read(to_ns) => self.seek(to_ns),
            _ => Ok(()),
        }
    }

    /// One more sample of a frozen replay, at once.
    pub(super) fn step(&mut self) -> Result<(), AppError> {
        self.feed.command(FeedCommand::Pace(Pace::Fast));
        while !self.ended {
            match self.feed.next()? {
                Next::Item(item) => {
                    if self.take(item)? {
                        break;
                    }
                }
                // What comes through a pipe may not come at all.
                Next::Waiting if self.player.is_none() => break,
                Next::Waiting => drop(signals::wait(&[self.feed.ready()], None)),
                Next::End => self.end()?,
            }
        }
        self.feed.command(FeedCommand::Pace(self.pace()));
        Ok(())
    }
}
