//! The live screen: acts on keys, items and signals as they come, and paints only a frame that differs from the last.

mod terminal;

use super::{AppError, Ended, EndingFeeds, Hosts, look, trim};
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

/// Runs until the user quits, the count is reached or a signal ends it. The outcome is what closing did; the
/// terminal is to be given back before what is still ending is waited for.
///
/// # Errors
/// The source or the terminal failed.
pub fn screen(app: impl Into<Hosts>, console: &mut impl Console) -> Result<(Ended, Outcome, EndingFeeds), AppError> {
    let mut hosts = app.into();
    let ended = match run(&mut hosts, console) {
        // A terminal that stands still is no longer waited for once a signal has asked for an end.
        Err(AppError::Terminal(error)) => match console.next() {
            Ok(Some(Woken::Ends(signal))) => Ok(Ended::Signal(signal)),
            _ => Err(AppError::Terminal(error)),
        },
        ended => ended,
    };
    // However it ended: masks are put back if that was asked for, and the recording is closed.
    let (closed, ending) = hosts.close();
    let ended = ended?;
    Ok((ended, closed?, ending))
}

fn run(hosts: &mut Hosts, console: &mut impl Console) -> Result<Ended, AppError> {
    let mut shown: Option<View> = None;
    let mut starts = Some(Instant::now());
    loop {
        // Everything typed and clicked since: a held key must not queue up frames.
        while let Some(woken) = console.next().map_err(AppError::Terminal)? {
            match woken {
                Woken::Ends(signal) => return Ok(Ended::Signal(signal)),
                Woken::Stops => {
                    hosts.let_go();
                    let taken_again = console.stop();
                    hosts.go_on();
                    taken_again.map_err(AppError::Terminal)?;
                }
                Woken::Input(Input::Key(key)) => hosts.press(key)?,
                Woken::Input(Input::Mouse(mouse)) => {
                    if let Some(action) = shown.as_ref().and_then(|view| view.action_for(mouse)) {
                        hosts.act(action)?;
                    }
                }
                Woken::Background(color) => hosts.suit(look::name_for(color)),
            }
            if hosts.is_to_stop() {
                console.ask_to_stop();
            }
        }
        let took_all = hosts.take_waiting()?;
        if hosts.is_over() {
            return Ok(Ended::Done);
        }
        let (width, height) = console.size().map_err(AppError::Terminal)?;
        let view = hosts.view(width, height);
        console.show(&view).map_err(AppError::Terminal)?;
        shown = Some(view);
        if starts.take_if(|since| since.elapsed() >= STARTED).is_some() {
            trim::give_back_code();
        }
        let gathers_for = hosts.gathers_for().filter(|_| took_all);
        console.wait(&hosts.sources(gathers_for.is_some()), gathers_for);
    }
}

#[cfg(test)]
mod tests;
