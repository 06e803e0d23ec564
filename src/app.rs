//! The loops over an injected world: the screen, the JSON lines, the printed frame. They wait, hand items and keys on,
//! and perform effects; they compute nothing and draw nothing themselves.

mod agent;
mod black_box;
pub mod compare;
pub mod convert;
pub mod doctor;
#[cfg(feature = "export")]
mod export;
mod headless;
mod hosts;
mod kept_file;
pub mod look;
mod phase_schedule;
mod player;
mod remote;
mod replay;
pub mod report;
pub mod run;
mod save_file;
mod screen;
mod signals;
mod stream;
mod trim;

use crate::action::{Action, Key};
use crate::config::SaveSource;
use crate::derive::{SummaryRoom, SummaryTrack};
use crate::effect::{Effect, Outcome};
use crate::sample::{AgentCommand, Event, Item, OnRequest, OutcomeLine};
use crate::source::SourceError;
use crate::source::feed::{Feed, FeedCommand, Next, Pace};
use crate::state::{Mode, State};
use crate::term;
use crate::update;
use crate::view::{self, View};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long keys may wait for samples that came faster than they can be taken.
const LONGEST_TAKEN: Duration = Duration::from_millis(100);

pub use agent::Agent;
pub use black_box::{AskError, AskedVnettop, BlackBox, BlackBoxOptions, SaveNews, ask, runtime_folders};
#[cfg(feature = "export")]
pub use export::export;
pub use headless::{json, lines};
pub use hosts::{EndingFeeds, Hosts, WatchedHost, json_of_hosts, print};
pub use player::{Player, SHIPPED_STARTS_AT};
pub use remote::{Controls, RemoteAgent};
pub use screen::{Console, Terminal, Woken, screen};
pub use signals::{Signals, survive_full_files};
pub use stream::{RecorderShare, Stream};

/// What ends a run.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A comparison that is read or written.
    #[error(transparent)]
    Compare(#[from] compare::CompareFileError),
    /// The source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source ended though nobody asked for that.
    #[error("the sampler stopped unexpectedly (see the message above): start vnettop again")]
    SourceEnded,
    /// The HTTP server ended though nobody asked for that.
    #[error("the HTTP server stopped unexpectedly: start vnettop export again")]
    ExporterEnded,
    /// The recording being written.
    #[error(transparent)]
    Record(#[from] crate::record::RecordError),
    /// The terminal.
    #[error("the terminal failed: {0}")]
    Terminal(#[source] io::Error),
    /// Standard output.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// The signals.
    #[error("cannot take over signals, so nothing was started: {0}")]
    Signals(#[source] io::Error),
    /// A recording of something else.
    #[error("no card: no pin in the recording has 4 s (UDP: 6) of rates before, 12 s after")]
    NoCard,
    /// What reads a recording ahead.
    #[error("cannot read the recording ahead: {0}")]
    Index(#[source] io::Error),
    /// What failed at the end, and what is to be said of masks all the same.
    #[error("{error}; {said}")]
    Unclosed {
        /// What failed.
        #[source]
        error: Box<AppError>,
        /// Sentences, with a semicolon between two.
        said: String,
    },
    /// Of several hosts these gave no sample.
    #[error("no sample came from {0} (see above)")]
    NoHost(String),
    /// No sample came.
    #[error("the recording has fewer than two samples: there is no interval to show")]
    NoSample,
}

/// How a run ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As asked: quit, the count reached, the recording at its end, nobody reads any more.
    Done,
    /// By this signal.
    Signal(i32),
}

/// One run with a screen, real or printed: what has been chosen, what is shown, what may be changed.
pub struct App {
    /// What is chosen and shown.
    pub state: State,
    stream: Stream,
    /// Everything that was seen so far, for the report of it.
    seen: SummaryTrack,
    controls: Controls,
    feed: Feed,
    /// The recording that is replayed, where it can be read again.
    player: Option<Player>,
    /// The place to show once the recording is read ahead so far, recorded monotonic ns.
    awaited_ns: Option<u64>,
    options: AppOptions,
    ended: bool,
    /// The key that stops programs was pressed.
    stops: bool,
    /// What the sampler was asked to count last.
    asked: OnRequest,
}

impl App {
    /// Puts the world together. `count` limits the intervals shown.
    #[must_use]
    pub fn new(state: State, stream: Stream, controls: impl Into<Controls>, feed: Feed, options: AppOptions) -> Self {
        let asked = state.settings().on_request;
        Self {
            state,
            stream,
            seen: SummaryTrack::new(SummaryRoom::SCREEN),
            controls: controls.into(),
            feed,
            player: None,
            awaited_ns: None,
            options,
            ended: false,
            stops: false,
            asked,
        }
    }

    /// Nothing more is taken from the feed: it ended, or it is a replay that stands still.
    fn holds(&self) -> bool {
        self.ended || self.is_replay() && self.state.frozen()
    }

    /// The data are a recording: nothing of this machine may be changed for them.
    fn is_replay(&self) -> bool {
        self.state.settings().mode == Mode::Replay
    }

    /// Takes what waits in the feed until then; false when it is more, and keys would wait for it.
    fn take_waiting(&mut self, until: Instant) -> Result<bool, AppError> {
        while !self.holds() && !self.counted_out() {
            match self.feed.next()? {
                Next::Item(item) => {
                    self.take(item)?;
                }
                Next::Waiting if self.hear_news() => {}
                Next::Waiting => break,
                Next::End => self.end()?,
            }
            if Instant::now() > until {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes items up to one sample, but not for ever; whether there was one.
    fn take_one(&mut self) -> Result<bool, AppError> {
        let begin = Instant::now();
        while begin.elapsed() < LONGEST_TAKEN {
            match self.feed.next()? {
                Next::Item(item) => {
                    if self.take(item)? {
                        return Ok(true);
                    }
                }
                Next::Waiting if self.hear_news() => {}
                Next::Waiting => return Ok(false),
                Next::End => {
                    self.end()?;
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Where there is no screen, what went otherwise than asked is told on standard error, once; how many sentences these were.
    fn tell_warnings(&mut self) -> usize {
        let reported = self.say_warnings();
        self.state.forget_notices();
        reported
    }

    fn say_warnings(&self) -> usize {
        let warnings = self.state.notices().list().iter().filter(|notice| notice.warning);
        warnings.inspect(|notice| term::say(&notice.text)).count()
    }

    /// Nothing more comes: of a recording that is its end.
    fn end(&mut self) -> Result<(), AppError> {
        self.ended = true;
        if let Some(playback) = &mut self.state.playback {
            playback.is_over = true;
            let [again, quit] = ["seek_start", "quit"].map(|name| self.state.keys().key(name));
            self.state.notice(false, format!("end of the recording: {again} plays it again, {quit} quits"));
        }
        if self.feed.is_live() { Err(AppError::SourceEnded) } else { Ok(()) }
    }

    /// Takes one item and does what follows from it without a key; true when it was a sample.
    fn take(&mut self, item: Item) -> Result<bool, AppError> {
        self.record(&item);
        if let (Controls::There(agent), Item::Event(event)) = (&mut self.controls, &item) {
            agent.happened(event);
        }
        let Some(metrics) = self.stream.derivation.advance(item) else { return Ok(false) };
        if metrics.machine.elapsed_s.is_some() {
            self.options.count = self.options.count.map(|left| left.saturating_sub(1));
        }
        self.seen.observe(&metrics);
        let saved = self.stream.watch(&metrics);
        self.state.receive(metrics);
        self.tell_saved(saved);
        self.ask();
        update::tick(&mut self.state).map_or(Ok(()), |effect| self.perform(effect))?;
        Ok(true)
    }

    /// A recording that fails is told, and the run goes on without it.
    fn record(&mut self, item: &Item) {
        if let Some(why) = self.stream.record(item) {
            self.state.notice(true, why);
            self.state.is_recorded = false;
        }
    }

    /// What is shown is of an interval, which the first sample is not.
    fn has_interval(&self) -> bool {
        self.state.metrics().is_some_and(|metrics| metrics.machine.elapsed_s.is_some())
    }

    /// The count is reached.
    fn counted_out(&self) -> bool {
        self.options.count == Some(0)
    }

    /// Presses one key and does what follows from it.
    fn press(&mut self, key: Key) -> Result<(), AppError> {
        let effect = update::press(&mut self.state, key);
        self.ask();
        effect.map_or(Ok(()), |effect| self.perform(effect))
    }

    /// Does what the mouse asked for.
    fn act(&mut self, action: Action) -> Result<(), AppError> {
        let effect = update::update(&mut self.state, action);
        self.ask();
        effect.map_or(Ok(()), |effect| self.perform(effect))
    }

    /// Has counted what is looked at now, and nothing more.
    fn ask(&mut self) {
        let wanted = self.state.on_request();
        if wanted != self.asked {
            self.asked = wanted;
            self.feed.command(FeedCommand::Want(wanted));
        }
    }

    /// The only place where a wish becomes a deed.
    fn perform(&mut self, effect: Effect) -> Result<(), AppError> {
        let outcome = match effect {
            Effect::Pin(_) | Effect::Place(..) | Effect::Restore if self.is_replay() => {
                Outcome::of("pinning is not possible in a replay")
            }
            Effect::Pin(requests) => match &mut self.controls {
                Controls::Here(controller) => controller.pin(&requests),
                Controls::There(_) => return self.ask_agent(AgentCommand::Pin(requests)),
            },
            Effect::Place(pins, steers) => match &mut self.controls {
                Controls::Here(controller) => controller.place(&pins, &steers),
                Controls::There(_) => {
                    if !pins.is_empty() {
                        self.ask_agent(AgentCommand::Pin(pins))?;
                    }
                    return self.ask_agent(AgentCommand::Steer(steers));
                }
            },
            Effect::Restore => match &mut self.controls {
                Controls::Here(controller) => controller.restore(),
                Controls::There(agent) => {
                    let command = agent.restoring();
                    return self.ask_agent(command);
                }
            },
            Effect::SetInterval(interval) => {
                self.feed.command(FeedCommand::Interval(interval));
                return Ok(());
            }
            Effect::ToggleRecording => self.toggle_recording().into(),
            Effect::SaveLast => self.save_last().into(),
            Effect::WriteReport => self.write_report().into(),
            Effect::WriteCard => self.write_card().into(),
            Effect::SaveSettings => self.save_settings().into(),
            Effect::Mark if !self.state.is_recorded => {
                Outcome::of("no marker added, because nothing is being recorded: R starts a recording")
            }
            Effect::Mark => Outcome {
                events: vec![Event::Mark { at_ns: crate::source::now_ns() }],
                ..Outcome::of("marker added to the recording")
            },
            Effect::Step => return self.step(),
            Effect::Seek(to_ns) => return self.seek(to_ns),
            Effect::Play(speed) => {
                self.feed.command(FeedCommand::Pace(Pace::Times(speed)));
                return Ok(());
            }
            Effect::Suspend => {
                self.stops = true;
                return Ok(());
            }
        };
        self.report(&outcome);
        Ok(())
    }

    /// Another host's agent does it, and answers later.
    #[allow(clippy::unnecessary_wraps, reason = "one of the ways in which an effect is performed")]
    fn ask_agent(&self, command: AgentCommand) -> Result<(), AppError> {
        self.feed.command(FeedCommand::Agent(command));
        Ok(())
    }

    /// Shows an outcome, records its events and derives from them.
    fn report(&mut self, outcome: &Outcome) {
        for event in &outcome.events {
            let item = Item::Event(event.clone());
            self.record(&item);
            self.stream.derivation.advance(item);
        }
        self.state.outcome(outcome);
    }

    /// The frame of this moment.
    fn view(&self, width: u16, height: u16) -> View {
        view::prepare(&self.state, self.stream.derivation.history(), width, height)
    }

    /// Puts masks back if that was asked for, else says which stay; closes the recording. What is left is to be waited for.
    fn close(mut self) -> (Outcome, Option<AppError>, Feed) {
        let restores = self.options.restore_on_exit;
        let mut outcome = match &mut self.controls {
            Controls::Here(controller) if restores => controller.restore(),
            Controls::Here(controller) => controller.staying(),
            // Its agent restores by itself when its input ends.
            Controls::There(agent) => agent.staying(if restores { 0 } else { self.state.pins() }, restores),
        };
        for event in &outcome.events {
            self.stream.record(&Item::Event(event.clone()));
        }
        let saved = self.stream.end_saves().into_iter();
        outcome.lines.extend(saved.map(|news| OutcomeLine { warning: news.is_warning, text: news.text }));
        let finished = self.stream.finish();
        (outcome, finished.err().map(AppError::Record), self.feed)
    }
}

/// How a run differs from the plain one.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Put every replaced mask back at the end.
    pub restore_on_exit: bool,
    /// Where the files that a key writes are kept.
    pub kept_in: Option<PathBuf>,
    /// Intervals still to show.
    pub count: Option<u64>,
    /// Where settings are saved, and what is there.
    pub saved: Option<SaveSource>,
    /// The theme at the start, as it was asked for.
    pub theme: String,
}
