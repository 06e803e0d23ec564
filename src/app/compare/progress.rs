//! What somebody sees of a comparison while it runs, and how he ends it: lines on standard error, or the live screen of the path that is
//! being measured.

use super::ComparePlan;
use super::order::{Selected, Visit};
use crate::app::screen::{Console, Woken};
use crate::app::{Ended, Signals};
use crate::derive::Metrics;
use crate::derive::history::History;
use crate::input::Input;
use crate::sample::{Load, Treatment, Word};
use crate::state::State;
use crate::term;
use crate::update;
use crate::view;
use smallvec::SmallVec;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What a measurement takes beside its own time, until it is known better: programs that start and end.
const AROUND: Duration = Duration::from_millis(800);
/// The screen is painted so often.
const FRAME: Duration = Duration::from_millis(250);

/// How far a comparison is.
#[derive(Debug, Clone)]
pub struct Progress {
    began: Instant,
    done: usize,
    total: usize,
    each: Duration,
    now: String,
    round: u32,
}

impl Progress {
    pub(super) fn new(plan: &ComparePlan, visits: &[Visit]) -> Self {
        let total = visits.iter().map(|visit| visit.measurements.len()).sum();
        let each = plan.length + plan.warm_up + AROUND;
        Self { began: Instant::now(), done: 0, total, each, now: String::new(), round: 0 }
    }

    pub(super) fn next(&mut self, path: &Selected, round: u32, load: Load, treatment: Treatment) {
        if self.done > 0 {
            self.each = self.began.elapsed().div_f64(self.done as f64);
        }
        self.done += 1;
        self.round = round;
        self.now = format!("{}, {}, {}", path.name, load.label(), treatment.word());
    }

    /// A measurement is left out.
    pub(super) fn leave_out(&mut self) {
        self.total = self.total.saturating_sub(1);
    }

    /// The number of the measurement that begins.
    #[must_use]
    pub fn number(&self) -> usize {
        self.done
    }

    /// One line: what is measured, how far it is, how long still.
    #[must_use]
    pub fn line(&self) -> String {
        let left = self.each.mul_f64((self.total + 1).saturating_sub(self.done) as f64);
        format!("{} of {}, {} left: {}", self.done, self.total, words(left), self.now)
    }
}

/// `40 s`, `12 min`, `2 h 5 min`.
fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..90 => format!("about {} s", seconds.max(1)),
        seconds @ ..5400 => format!("about {} min", (seconds + 30) / 60),
        seconds => format!("about {} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Who looks on.
pub trait Desk {
    /// A path is set up for the first time, to see whether this machine can.
    fn tries(&mut self, path: &str);

    /// A measurement begins.
    fn begins(&mut self, progress: &Progress);

    /// A sample of it.
    fn sees(&mut self, metrics: Metrics, history: &History);

    /// A visit to a path is over: what is known of the path so far, one line.
    fn ends(&mut self, result: &str);

    /// An end was asked for.
    fn is_over(&mut self) -> bool;

    /// Readable when he has something to say.
    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]>;
}

/// Lines on standard error, one a path and round; it ends by a signal.
pub struct LinesDesk<'a> {
    signals: &'a Signals,
    /// What the last line was of.
    reported: String,
    ended: Option<i32>,
}

impl<'a> LinesDesk<'a> {
    /// With the signals that end it.
    #[must_use]
    pub fn new(signals: &'a Signals) -> Self {
        Self { signals, reported: String::new(), ended: None }
    }

    /// How it ended.
    #[must_use]
    pub fn ended(&self) -> Ended {
        self.ended.map_or(Ended::Done, Ended::Signal)
    }
}

impl Desk for LinesDesk<'_> {
    fn tries(&mut self, _path: &str) {}

    fn begins(&mut self, progress: &Progress) {
        let line = progress.line();
        let path = format!("{} {}", progress.round, progress.now.split(',').next().unwrap_or_default());
        if self.reported != path {
            self.reported = path;
            term::say(&line);
        }
    }

    fn sees(&mut self, _metrics: Metrics, _history: &History) {}

    fn ends(&mut self, result: &str) {
        term::say(result);
    }

    fn is_over(&mut self) -> bool {
        self.ended = self.ended.or_else(|| self.signals.ending());
        self.ended.is_some()
    }

    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]> {
        SmallVec::from_iter([self.signals.fd()])
    }
}

/// The live screen; `q` and signals end it.
pub struct ScreenDesk<'a, C: Console> {
    console: &'a mut C,
    state: State,
    painted: Option<Instant>,
    ended: Option<Ended>,
    progress: Option<String>,
    /// What the last visit came to.
    result: Option<String>,
}

impl<'a, C: Console> ScreenDesk<'a, C> {
    /// On a console, with this choice of what is shown.
    #[must_use]
    pub fn new(console: &'a mut C, state: State) -> Self {
        Self { console, state, painted: None, ended: None, progress: None, result: None }
    }

    /// How it ended: by `q` as by Ctrl-C.
    #[must_use]
    pub fn ended(&self) -> Ended {
        self.ended.unwrap_or(Ended::Done)
    }

    fn paint(&mut self, history: &History) {
        let Ok((width, height)) = self.console.size() else { return };
        let view = view::prepare(&self.state, history, width, height);
        // A terminal that is gone shows by the signal that comes from it.
        let _gone = self.console.show(&view);
        self.painted = Some(Instant::now());
    }

    /// How far it is, and below that what the last visit came to.
    fn tell(&mut self) {
        if let Some(line) = &self.progress {
            self.state.notice(false, line.clone());
        }
        if let Some(line) = &self.result {
            self.state.add_notice(false, line);
        }
    }

    /// Keys and signals.
    fn hear(&mut self) {
        while self.ended.is_none() {
            let woken = match self.console.next() {
                Ok(Some(woken)) => woken,
                Ok(None) => break,
                // The terminal is gone.
                Err(_) => Woken::Ends(signal_hook::consts::SIGHUP),
            };
            match woken {
                // It says so again each time it is asked.
                Woken::Ends(signal) => self.ended = Some(Ended::Signal(signal)),
                Woken::Input(Input::Key(key)) => {
                    // What a key wishes for beside another view is not done: masks are the comparison's own.
                    let _wish = update::press(&mut self.state, key);
                    self.painted = None;
                }
                Woken::Input(Input::Mouse(_)) | Woken::Background(_) | Woken::Stops => {}
            }
        }
        if self.state.quitting() {
            self.ended = self.ended.or(Some(Ended::Signal(signal_hook::consts::SIGINT)));
        }
    }
}

impl<C: Console> Desk for ScreenDesk<'_, C> {
    fn tries(&mut self, path: &str) {
        self.state.notice(false, format!("compare: can this machine make it? {path}"));
        self.paint(&History::default());
    }

    fn begins(&mut self, progress: &Progress) {
        let line = format!("compare {} (q stops, keeps the results)", progress.line());
        self.progress = Some(line);
        self.tell();
    }

    fn sees(&mut self, metrics: Metrics, history: &History) {
        self.state.receive(metrics);
        self.tell();
        if self.painted.is_none_or(|painted| painted.elapsed() >= FRAME) {
            self.paint(history);
        }
    }

    fn ends(&mut self, result: &str) {
        self.result = Some(result.to_owned());
        self.tell();
    }

    fn is_over(&mut self) -> bool {
        self.hear();
        self.ended.is_some()
    }

    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]> {
        self.console.fds()
    }
}

#[cfg(test)]
mod tests;
