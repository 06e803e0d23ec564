//! The live screen: waits for keys, items and signals at once, and paints only a frame that differs from the last.

use super::signals::wait;
use super::{App, AppError, Ended, Signals};
use crate::effect::Outcome;
use crate::input;
use crate::term::{Guard, Screen};
use crate::ui;
use crate::view::View;
use crossterm::event;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Runs until the user quits, the count is reached or a signal ends it. The outcome is what closing did.
///
/// # Errors
/// The source or the terminal failed.
pub fn screen(
    mut app: App,
    signals: &Signals,
    guard: &Guard,
    screen: &mut Screen,
    theme: &ui::Theme,
) -> Result<(Ended, Outcome), AppError> {
    let mut painted = None;
    let ended = loop {
        if let Some(signal) = signals.ending() {
            break Ended::Signal(signal);
        }
        app.take_waiting()?;
        read_keys(&mut app)?;
        if app.state.quit() || app.counted_out() {
            break Ended::Done;
        }
        paint(&app, screen, theme, &mut painted)?;
        let mut fds: Vec<BorrowedFd<'_>> = vec![guard.input().as_fd(), signals.fd()];
        // Nothing is taken from a frozen replay or an ended one, so waiting for it would not wait.
        if !(app.ended || app.replay && app.state.frozen()) {
            fds.push(app.feed.ready());
        }
        wait(&fds);
    };
    let outcome = app.close()?;
    Ok((ended, outcome))
}

/// Everything typed since: a held key must not queue up frames.
fn read_keys(app: &mut App) -> Result<(), AppError> {
    while event::poll(Duration::ZERO).map_err(AppError::Terminal)? {
        let event = event::read().map_err(AppError::Terminal)?;
        match input::of(&event) {
            Some(input::Input::Key(key)) => app.press(key)?,
            Some(input::Input::Mouse(mouse)) => {
                if let Some(action) = app.state.mouse(mouse) {
                    app.act(action)?;
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Paints the frame if it is another one than last time, or of another size.
fn paint(app: &App, screen: &mut Screen, theme: &ui::Theme, painted: &mut Option<View>) -> Result<(), AppError> {
    let size = screen.size().map_err(AppError::Terminal)?;
    let view = app.view(size.width, size.height);
    if painted.as_ref() == Some(&view) {
        return Ok(());
    }
    let drawn = screen.draw(|frame| ui::paint(&view, theme, frame.buffer_mut()));
    *painted = Some(view);
    match drawn {
        // The terminal went away; the hang-up signal says the rest.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        drawn => drawn.map(|_| ()).map_err(AppError::Terminal),
    }
}
