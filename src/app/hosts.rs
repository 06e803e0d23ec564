//! Several hosts at once, each an app of its own with its own clock and derivation, and the screen that has all of them. One machine
//! alone is one of them, and has the whole screen.

mod headless;

use super::stream::RecorderShare;
use super::{App, AppError, BlackBox, LONGEST_TAKEN};
use crate::action::{Action, Key, KeyContext, WorldAction};
use crate::derive::Metrics;
use crate::derive::end_to_end::{HostMetrics, end_to_end};
use crate::effect::Outcome;
use crate::record::Recorder;
use crate::source::feed::Feed;
use crate::state::{AllHosts, Overlay, State};
use crate::update::{HostsWish, update_all};
use crate::view::{self, HostRow, View};
use smallvec::SmallVec;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

pub use headless::{json_of_hosts, print};

/// Samples that come faster than this are taken together: nobody reads ten figures a second, and a frame costs as much as
/// the sample that it shows. Keys are answered at once.
const FRAME: Duration = Duration::from_millis(250);
/// The samples of so many hosts come one after another all the time; what is shown is to be as old as this at most.
const MANY: usize = 4;
const FRAME_OF_MANY: Duration = Duration::from_millis(60);

/// A host and its app.
pub struct WatchedHost {
    /// As it was named to vnettop; of one machine alone it is empty.
    pub name: String,
    /// What is chosen, shown and changed of it.
    pub app: App,
}

/// What has the screen.
pub struct Hosts {
    each: Vec<WatchedHost>,
    /// None where there is one machine alone.
    all: Option<AllHosts>,
    /// What is known of a host that has said nothing yet.
    nothing: Metrics,
    /// Whose items are taken first.
    turn: usize,
}

/// Sources that were told to end; dropping them waits for them, and for all no longer than for one.
#[derive(Default)]
pub struct EndingFeeds(#[allow(dead_code, reason = "held until they are waited for")] Vec<Feed>);

impl From<App> for Hosts {
    fn from(app: App) -> Self {
        Self { each: vec![WatchedHost { name: String::new(), app }], all: None, nothing: Metrics::default(), turn: 0 }
    }
}

impl Hosts {
    /// These hosts, in the order in which they were named; at least one.
    #[must_use]
    pub fn new(mut hosts: Vec<WatchedHost>) -> Self {
        let of = hosts.len();
        for (at, host) in hosts.iter_mut().enumerate() {
            host.app.state.place = Some((at + 1, of));
        }
        Self { all: Some(AllHosts::of(hosts.len())), each: hosts, nothing: Metrics::default(), turn: 0 }
    }

    /// What was chosen for all hosts alike: keys, units, theme.
    fn first(&self) -> &State {
        &self.each[0].app.state
    }

    /// Presses one key and does what follows from it.
    pub(super) fn press(&mut self, key: Key) -> Result<(), AppError> {
        let Some(all) = &self.all else { return self.each[0].app.press(key) };
        let of_all = |action: &Action| {
            matches!(
                action,
                Action::NextHost | Action::World(WorldAction::Record | WorldAction::SaveLast) | Action::Undo
            )
        };
        if let Some(at) = all.open() {
            let state = &self.each[at].app.state;
            let action = state.keys().action_for(key, state.context()).filter(of_all);
            return match action {
                Some(action) => self.act(action),
                None => self.each[at].app.press(key),
            };
        }
        // The help is the first one's, whose keys it tells.
        if self.has_help() {
            return self.each[0].app.press(key);
        }
        let place = if all.proposes() { KeyContext::Proposal } else { KeyContext::Hosts };
        let action = self.first().keys().action_for(key, place);
        action.map_or(Ok(()), |action| self.act(action))
    }

    /// Does what an action asks for, on all hosts or the one that is shown.
    pub(super) fn act(&mut self, action: Action) -> Result<(), AppError> {
        let Some(all) = &mut self.all else { return self.each[0].app.act(action) };
        match (action, all.open()) {
            (Action::World(WorldAction::Record), _) => {
                self.toggle_recording();
                return Ok(());
            }
            (Action::World(WorldAction::SaveLast), _) => {
                self.save_last();
                return Ok(());
            }
            // Whatever has the screen: every mask that this vnettop has replaced.
            (Action::NextHost | Action::Undo, _) | (_, None) => {}
            (_, Some(at)) => return self.each[at].app.act(action),
        }
        match update_all(all, self.each.len(), action) {
            HostsWish::Nothing => Ok(()),
            HostsWish::First(action) => self.each[0].app.act(action),
            HostsWish::Opened(action) => match all.open() {
                Some(at) => self.each[at].app.act(action),
                None => Ok(()),
            },
            HostsWish::Each(action) => self.each.iter_mut().try_for_each(|host| host.app.act(action)),
            HostsWish::Ends(action) => {
                let at_ends: Vec<usize> = self.ends();
                at_ends.into_iter().try_for_each(|at| self.each[at].app.act(action))
            }
        }
    }

    /// The hosts that have an end of a test which two of them see; where none has, those with a test of their own.
    fn ends(&self) -> Vec<usize> {
        let metrics = self.metrics();
        let joined = end_to_end(&metrics);
        let of_joined = |at: usize| joined.iter().any(|one| [one.sender.host, one.receiver.host].contains(&at));
        let of_test = |at: usize| metrics[at].metrics.tests.iter().any(|test| test.ended_ns.is_none());
        (0..metrics.len()).filter(|&at| if joined.is_empty() { of_test(at) } else { of_joined(at) }).collect()
    }

    /// What is derived of each host, by its place; of one that has said nothing yet that is nothing.
    fn metrics(&self) -> Vec<HostMetrics<'_>> {
        let mut all = Vec::with_capacity(self.each.len());
        for host in &self.each {
            let metrics = host.app.state.metrics().unwrap_or(&self.nothing);
            all.push(HostMetrics { name: &host.name, metrics });
        }
        all
    }

    fn has_help(&self) -> bool {
        matches!(self.first().overlay(), Overlay::Help { .. })
    }

    /// Takes what waits in every feed; false when it is so much that keys would wait for it.
    pub(super) fn take_waiting(&mut self) -> Result<bool, AppError> {
        let (until, of) = (Instant::now() + LONGEST_TAKEN, self.each.len());
        for nth in 0..of {
            // One bound for all, and a turn for each: hosts that send without end neither keep keys waiting nor hide the others.
            let host = &mut self.each[(self.turn + nth) % of];
            let took_all = host.app.take_waiting(until)?;
            host.app.hear_player(Duration::ZERO)?;
            if !took_all {
                self.turn = (self.turn + nth + 1) % of;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// It is to end, or has shown as much as was asked for.
    pub(super) fn is_over(&self) -> bool {
        let quits = self.each.iter().any(|host| host.app.state.quitting());
        quits || self.each.iter().all(|host| host.app.counted_out())
    }

    /// The frame of this moment.
    pub(super) fn view(&mut self, width: u16, height: u16) -> View {
        let Some(all) = &self.all else { return self.each[0].app.view(width, height) };
        if let Some(at) = all.open() {
            return self.each[at].app.view(width, height);
        }
        let rows: Vec<HostRow<'_>> =
            self.each.iter().map(|host| HostRow { name: &host.name, state: &host.app.state }).collect();
        let (view, most) = view::prepare_hosts(all, &rows, &end_to_end(&self.metrics()), (width, height));
        if let Some(all) = &mut self.all {
            all.scroll_within(most);
        }
        view
    }

    /// Lets go of what is kept alive, before this program is stopped.
    pub(super) fn let_go(&self) {
        self.each.iter().for_each(|host| host.app.feed.let_go());
    }

    /// Takes everything up again.
    pub(super) fn go_on(&self) {
        self.each.iter().for_each(|host| host.app.feed.go_on());
    }

    /// The terminal has told its background.
    pub(super) fn suit(&mut self, theme: &str) {
        self.each.iter_mut().for_each(|host| host.app.state.themes.suit(theme));
    }

    /// The terminal shows no character beyond ASCII in one cell.
    pub fn keep_to_ascii(&mut self) {
        self.each.iter_mut().for_each(|host| host.app.state.settings.utf8 = false);
    }

    /// The key that stops programs was pressed; told once.
    pub(super) fn is_to_stop(&mut self) -> bool {
        self.each.iter_mut().fold(false, |stops, host| std::mem::take(&mut host.app.stops) | stops)
    }

    /// How long samples are gathered for one frame, where they come faster than frames are worth while.
    pub(super) fn gathers_for(&self) -> Option<Duration> {
        let comes_fast = |app: &App| app.state.settings().interval < FRAME && app.state.metrics().is_some();
        let takes = || self.each.iter().map(|host| &host.app).filter(|app| !app.holds());
        match self.each.len() {
            _ if takes().any(comes_fast) => Some(FRAME),
            MANY.. if takes().next().is_some() => Some(FRAME_OF_MANY),
            _ => None,
        }
    }

    /// What the next frame waits for: the feeds, unless nothing is taken from them, and what reads a recording ahead.
    pub(super) fn sources(&self, gathers: bool) -> SmallVec<[BorrowedFd<'_>; 2]> {
        let mut all = SmallVec::new();
        for WatchedHost { app, .. } in &self.each {
            // What is not taken would make the wait no wait.
            all.extend((!app.holds() && !gathers).then(|| app.feed.ready()));
            all.extend(app.player.as_ref().and_then(|player| player.ready(app.state.playback.as_ref())));
        }
        all
    }

    /// Puts masks back if that was asked for, else says which stay; closes the recording.
    /// What is still ending is given back: nothing waits for it that could be done before.
    pub(super) fn close(self) -> (Result<Outcome, AppError>, EndingFeeds) {
        let (mut closed, mut failed, mut ending) = (Outcome::default(), None, EndingFeeds::default());
        self.each.iter().for_each(|host| host.app.feed.stop());
        // A recording that could not be closed keeps no mask of another host from being restored.
        for host in self.each {
            let (outcome, error, feed) = host.app.close();
            ending.0.push(feed);
            closed.lines.extend(outcome.lines);
            closed.events.extend(outcome.events);
            failed = failed.or(error);
        }
        // The terminal is not given back yet: what stays pinned is said with the error.
        let said = closed.lines.iter().map(|line| &*line.text).collect::<Vec<_>>().join("; ");
        let closed = match failed {
            None => Ok(closed),
            Some(error) if said.is_empty() => Err(error),
            Some(error) => Err(AppError::Unclosed { error: Box::new(error), said }),
        };
        (closed, ending)
    }

    /// Begins a recording of all hosts, or ends the one that runs.
    fn toggle_recording(&mut self) {
        let (is_warning, text) = match self.recorded() {
            Ok(text) => (false, text),
            Err(why) => (true, why),
        };
        self.each.iter_mut().for_each(|host| host.app.state.notice(is_warning, text.clone()));
    }

    /// Saves what every host has kept, as one recording.
    fn save_last(&mut self) {
        let mut kept = Vec::new();
        for WatchedHost { name, app } in &self.each {
            let of_host = app.stream.black_box.as_ref().and_then(BlackBox::kept);
            kept.extend(of_host.map(|of_host| (name.clone(), of_host)));
        }
        let saved = match self.each[0].app.stream.black_box.as_mut().filter(|_| !kept.is_empty()) {
            Some(black_box) => black_box.save_hosts(kept).map_err(|error| error.to_string()),
            None => Ok("nothing was saved: nothing is kept here".to_owned()),
        };
        let is_warning = saved.is_err();
        let (Ok(text) | Err(text)) = saved;
        self.each.iter_mut().for_each(|host| host.app.state.notice(is_warning, text.clone()));
    }

    fn recorded(&mut self) -> Result<String, String> {
        if self.each.iter().any(|host| host.app.state.is_recorded) {
            let mut ended = None;
            for WatchedHost { app, .. } in &mut self.each {
                app.state.is_recorded = false;
                ended = app.stream.end_recording().map_err(|error| error.to_string())?.or(ended);
            }
            return Ok(format!("recording stopped: {}", ended.unwrap_or_default().display()));
        }
        let path = self.each[0].app.new_file("vnettop-hosts", "jsonl.zst").map_err(|error| error.to_string())?;
        let names: Vec<String> = self.each.iter().map(|host| host.name.clone()).collect();
        let recorder = Recorder::create_new_of(&path, &names).map_err(|error| error.to_string())?;
        for (host, share) in self.each.iter_mut().zip(RecorderShare::of(recorder, names.len())) {
            host.app.stream.join_recording(share).map_err(|error| error.to_string())?;
            host.app.state.is_recorded = true;
        }
        Ok(format!("recording all hosts to {}", path.display()))
    }
}
