//! The live screen: acts on keys, items and signals as they come, and paints only a frame that differs from the last.

mod terminal;

use super::{App, AppError, Ended, look, trim};
use crate::effect::Outcome;
use crate::input::Input;
use crate::view::View;
use smallvec::SmallVec;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

pub use terminal::Terminal;

/// By then everything that happens only at the start has happened.
const STARTED: Duration = Duration::from_secs(5);

/// Samples that come faster than this are taken together: nobody reads ten figures a second, and a frame costs as much as
/// the sample that it shows. Keys are answered at once.
const FRAME: Duration = Duration::from_millis(250);

/// What comes from a console, beside the items of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A key, the mouse, another size.
    Input(Input),
    /// The terminal's background: red, green, blue.
    Background([u8; 3]),
    /// This signal asks for an end; of a terminal that is gone it is SIGHUP.
    Ends(i32),
    /// This program is asked to stop for a while (SIGTSTP).
    Stops,
}

/// What a screen is shown on and steered from: the terminal, or what a test puts in its place.
pub trait Console {
    /// What came since, one after the other; none once there is nothing more.
    ///
    /// # Errors
    /// The terminal is gone.
    fn next(&mut self) -> io::Result<Option<Woken>>;

    /// Columns and rows.
    ///
    /// # Errors
    /// The terminal is gone.
    fn size(&self) -> io::Result<(u16, u16)>;

    /// Shows a frame.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    fn show(&mut self, view: &View) -> io::Result<()>;

    /// Readable when something comes from the console.
    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]>;

    /// Asks the whole foreground to stop, this program included, as the terminal's own key would.
    fn ask_to_stop(&self);

    /// Gives the terminal back, stops until someone continues this program, and takes the terminal again.
    ///
    /// # Errors
    /// The terminal is gone.
    fn stop(&mut self) -> io::Result<()>;

    /// Waits until something comes from the console or one of these is readable: the feed, unless nothing is taken from it, and what
    /// reads a recording ahead. But no longer than that.
    fn wait(&mut self, others: &[BorrowedFd<'_>], at_most: Option<Duration>);
}

/// Runs until the user quits, the count is reached or a signal ends it. The outcome is what closing did.
///
/// # Errors
/// The source or the terminal failed.
pub fn screen(mut app: App, console: &mut impl Console) -> Result<(Ended, Outcome), AppError> {
    let ended = match run(&mut app, console) {
        // A terminal that stands still is no longer waited for once a signal has asked for an end.
        Err(AppError::Terminal(error)) => match console.next() {
            Ok(Some(Woken::Ends(signal))) => Ok(Ended::Signal(signal)),
            _ => Err(AppError::Terminal(error)),
        },
        ended => ended,
    };
    // However it ended: masks are put back if that was asked for, and the recording is closed.
    let closed = app.close();
    let ended = ended?;
    Ok((ended, closed?))
}

fn run(app: &mut App, console: &mut impl Console) -> Result<Ended, AppError> {
    let mut shown: Option<View> = None;
    let mut starts = Some(Instant::now());
    loop {
        // Everything typed and clicked since: a held key must not queue up frames.
        while let Some(woken) = console.next().map_err(AppError::Terminal)? {
            match woken {
                Woken::Ends(signal) => return Ok(Ended::Signal(signal)),
                Woken::Stops => {
                    app.feed.let_go();
                    let taken_again = console.stop();
                    app.feed.go_on();
                    taken_again.map_err(AppError::Terminal)?;
                }
                Woken::Input(Input::Key(key)) => app.press(key)?,
                Woken::Input(Input::Mouse(mouse)) => {
                    if let Some(action) = shown.as_ref().and_then(|view| view.action_for(mouse)) {
                        app.act(action)?;
                    }
                }
                Woken::Background(color) => app.state.themes.suit(look::name_for(color)),
            }
            if std::mem::take(&mut app.stops) {
                console.ask_to_stop();
            }
        }
        let took_all = app.take_waiting()?;
        app.hear_player(Duration::ZERO)?;
        if app.state.quitting() || app.counted_out() {
            return Ok(Ended::Done);
        }
        let (width, height) = console.size().map_err(AppError::Terminal)?;
        let view = app.view(width, height);
        console.show(&view).map_err(AppError::Terminal)?;
        shown = Some(view);
        if starts.take_if(|since| since.elapsed() >= STARTED).is_some() {
            trim::give_back_code();
        }
        let gathers = took_all && !app.holds() && app.state.settings.interval < FRAME && app.state.metrics().is_some();
        // What is not taken would make the wait no wait.
        let feed = (!app.holds() && !gathers).then(|| app.feed.ready());
        let ahead = app.player.as_ref().and_then(|player| player.ready(app.state.playback.as_ref()));
        let others: SmallVec<[BorrowedFd<'_>; 2]> = feed.into_iter().chain(ahead).collect();
        console.wait(&others, gathers.then_some(FRAME));
    }
}

#[cfg(test)]
mod tests;
