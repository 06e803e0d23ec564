//! The real console: keys, the mouse and signals of a terminal, and its cells.

use super::{Console, Woken};
use crate::action::Key;
use crate::app::Signals;
use crate::app::signals::{Waiting, look, wait};
use crate::input::{self, Background, BackgroundReply, Input, QUESTION};
use crate::term::{Guard, Screen};
use crate::ui::{Painter, Theme};
use crate::view::View;
use crossterm::event;
use smallvec::{SmallVec, smallvec};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A terminal that is held, with the signals that concern it.
pub struct Terminal<'a> {
    guard: &'a Guard,
    screen: Screen,
    signals: &'a Signals,
    painter: Painter,
    themes: Vec<Theme>,
    /// The theme of what is shown.
    at: usize,
    /// Its answer to what its background is.
    background: Background,
    /// Keys were there: crossterm may have more of them than the descriptor still tells of.
    reading: bool,
    /// The wait before ended for a signal, and for keys: nothing else is looked at.
    signalled: bool,
    typed: bool,
    /// What was typed before anything was read, the newest first.
    ahead: Vec<char>,
}

impl<'a> Terminal<'a> {
    /// The terminal of this guard, with nothing painted yet, and the themes that a view may ask for.
    #[must_use]
    pub fn new(guard: &'a Guard, screen: Screen, signals: &'a Signals, themes: Vec<Theme>) -> Self {
        Self {
            guard,
            screen,
            signals,
            painter: Painter::default(),
            themes,
            at: 0,
            background: Background::default(),
            reading: false,
            signalled: true,
            typed: true,
            ahead: Vec::new(),
        }
    }

    /// Takes these characters for keys that were typed before.
    pub fn was_typed(&mut self, characters: &str) {
        self.ahead = characters.chars().rev().collect();
    }

    /// Asks for its background, together with the first frame; the answer is one of what comes ([`Woken::Background`]).
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn ask_background(&mut self) -> io::Result<()> {
        self.screen.write_all(QUESTION.as_bytes())
    }

    fn take_again(&mut self) -> io::Result<()> {
        self.painter.forget();
        self.guard.take_again(&mut self.screen)
    }
}

impl Console for Terminal<'_> {
    fn next(&mut self) -> io::Result<Option<Woken>> {
        // Keys that come without end hide no signal.
        if self.signalled || self.typed {
            if let Some(signal) = self.signals.ending() {
                return Ok(Some(Woken::Ends(signal)));
            }
            if self.signals.stop_asked() {
                return Ok(Some(Woken::Stops));
            }
            if self.signals.continued() {
                self.take_again()?;
            }
        }
        if let Some(c) = self.ahead.pop() {
            return Ok(Some(Woken::Input(Input::Key(Key::Char(c)))));
        }
        while self.typed {
            // On a terminal that is gone crossterm would read for ever.
            let is_gone = || look(self.guard.input().as_fd()) == Waiting::HungUp;
            while self.reading && !is_gone() && event::poll(Duration::ZERO)? {
                let event = event::read()?;
                match self.background.receive(&event) {
                    BackgroundReply::Color(color) => return Ok(Some(Woken::Background(color))),
                    BackgroundReply::Part => {}
                    BackgroundReply::Other => {
                        if let Some(input) = input::input(&event) {
                            return Ok(Some(Woken::Input(input)));
                        }
                    }
                }
            }
            let was_reading = std::mem::take(&mut self.reading);
            match look(self.guard.input().as_fd()) {
                Waiting::HungUp => return Ok(Some(Woken::Ends(signal_hook::consts::SIGHUP))),
                Waiting::Nothing => break,
                Waiting::Input if was_reading => return self.guard.tell_again().map(|()| None),
                Waiting::Input => self.reading = true,
            }
        }
        // Whoever asks again without having waited wants to know of everything.
        (self.typed, self.signalled) = (true, true);
        Ok(None)
    }

    fn size(&self) -> io::Result<(u16, u16)> {
        self.guard.size()
    }

    fn show(&mut self, view: &View) -> io::Result<()> {
        if view.theme != self.at {
            self.at = view.theme;
            self.painter.forget();
        }
        let theme = self.themes.get(self.at).or(self.themes.first()).copied().unwrap_or(Theme::plain(false));
        self.painter.show(view, theme, &mut self.screen).map(drop)
    }

    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]> {
        smallvec![self.guard.input().as_fd(), self.signals.fd()]
    }

    fn ask_to_stop(&self) {
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    }

    fn stop(&mut self) -> io::Result<()> {
        self.guard.stop();
        self.signals.continued();
        self.take_again()
    }

    fn wait(&mut self, others: &[BorrowedFd<'_>], at_most: Option<Duration>) {
        let mut fds: SmallVec<[BorrowedFd<'_>; 4]> = smallvec![self.guard.input().as_fd(), self.signals.fd()];
        fds.extend_from_slice(others);
        let ready = wait(&fds, at_most);
        (self.typed, self.signalled) = (ready[0], ready[1]);
    }
}
