//! The live screen: waits for keys, items and signals at once, and paints only a frame that differs from the last.

use super::signals::{Waiting, look, wait};
use super::{App, AppError, Ended, Signals, trim};
use crate::effect::Outcome;
use crate::input::{self, Input};
use crate::term::{Guard, Screen};
use crate::ui::{Painter, Theme};
use crate::view::View;
use crossterm::event;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// By then everything that happens only at the start has happened.
const STARTED: Duration = Duration::from_secs(2);

/// Runs until the user quits, the count is reached or a signal ends it. The outcome is what closing did.
///
/// # Errors
/// The source or the terminal failed.
pub fn screen(
    mut app: App,
    signals: &Signals,
    guard: &Guard,
    screen: &mut Screen,
    theme: Theme,
) -> Result<(Ended, Outcome), AppError> {
    let ended = match (run(&mut app, signals, guard, screen, theme), signals.ending()) {
        // The terminal stood still, and is no longer waited for.
        (Err(AppError::Terminal(_)), Some(signal)) => Ok(Ended::Signal(signal)),
        (ended, _) => ended,
    };
    // However it ended: masks are put back if that was asked for, and the recording is closed.
    let closed = app.close();
    let ended = ended?;
    Ok((ended, closed?))
}

fn run(app: &mut App, signals: &Signals, guard: &Guard, screen: &mut Screen, theme: Theme) -> Result<Ended, AppError> {
    let mut painter = Painter::default();
    let mut last: Option<View> = None;
    let mut starts = Some(Instant::now());
    loop {
        if let Some(signal) = signals.ending() {
            return Ok(Ended::Signal(signal));
        }
        if app.is_to_stop() {
            // As the terminal itself would: whoever else is in the foreground stops too.
            let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        }
        let stopped = signals.stop_asked();
        if stopped {
            app.feed.let_go();
            guard.stop();
            app.feed.go_on();
        }
        if signals.continued() || stopped {
            guard.take_again(screen).map_err(AppError::Terminal)?;
            painter.forget();
        }
        app.take_waiting()?;
        match look(guard.input().as_fd()) {
            Waiting::HungUp => return Ok(Ended::Signal(signal_hook::consts::SIGHUP)),
            Waiting::Input => {
                read_input(app, last.as_ref())?;
                if look(guard.input().as_fd()) == Waiting::Input {
                    guard.tell_again().map_err(AppError::Terminal)?;
                }
            }
            Waiting::Nothing => {}
        }
        if app.state.quitting() || app.counted_out() {
            return Ok(Ended::Done);
        }
        let (width, height) = guard.size().map_err(AppError::Terminal)?;
        let view = app.view(width, height);
        painter.show(&view, theme, screen).map_err(AppError::Terminal)?;
        last = Some(view);
        if starts.take_if(|since| since.elapsed() >= STARTED).is_some() {
            trim::give_back_code();
        }
        let mut fds: Vec<BorrowedFd<'_>> = vec![guard.input().as_fd(), signals.fd()];
        // What is not taken would make the wait no wait.
        if !app.holds() {
            fds.push(app.feed.ready());
        }
        wait(&fds);
    }
}

/// Everything typed and clicked since: a held key must not queue up frames.
fn read_input(app: &mut App, painted: Option<&View>) -> Result<(), AppError> {
    while event::poll(Duration::ZERO).map_err(AppError::Terminal)? {
        let event = event::read().map_err(AppError::Terminal)?;
        match input::input(&event) {
            Some(Input::Key(key)) => app.press(key)?,
            Some(Input::Mouse(mouse)) => {
                if let Some(action) = painted.and_then(|view| view.action_for(mouse)) {
                    app.act(action)?;
                }
            }
            Some(Input::Resize { .. }) | None => {}
        }
    }
    Ok(())
}
