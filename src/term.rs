//! The terminal: raw mode and the alternate screen, given back however the program ends.

mod out;
mod suspend;
mod width;

use crate::text;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

pub use out::{StdoutWriter, WaitingStdout};
pub use suspend::suspend;
pub use width::CharacterWidth;

/// What the screen is painted on. A frame is one write: the buffer holds all that changes within a tick.
pub type Screen = CrosstermBackend<BufWriter<WaitingStdout>>;

/// A terminal may claim 65,535 x 65,535 cells.
const MOST_COLUMNS: u16 = 1000;
const MOST_ROWS: u16 = 500;
/// What one that does not say its size is taken to have.
const USUAL: (u16, u16) = (80, 24);

const FRAME_BYTES: usize = 128 << 10;
/// Characters of a sentence: what a server answers may be as long as it likes.
const LONGEST: usize = 2000;

/// A signal has asked for an end: nobody is waited for any more.
static HURRIES: AtomicBool = AtomicBool::new(false);

/// From now on a sentence is left unsaid where nobody takes it at once.
pub fn hurry() {
    HURRIES.store(true, Ordering::Relaxed);
}

/// Whether it would be taken now, or may be waited for.
fn takes(fd: impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !HURRIES.load(Ordering::Relaxed)
        || poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// One sentence on standard error, whatever it is about: nothing in it steers a terminal, and a closed one is no panic.
pub fn say(sentence: impl std::fmt::Display) {
    let text = text::without_error_numbers(&sentence.to_string());
    let text = text::shortened(text::clean(text.as_bytes()), LONGEST);
    if takes(io::stderr()) {
        let _ = writeln!(io::stderr(), "vnettop: {text}");
    }
}

/// One line on standard output, likewise.
pub fn print_line(line: &str) {
    if takes(io::stdout()) {
        let _ = writeln!(io::stdout(), "{}", text::clean(text::without_error_numbers(line).as_bytes()));
    }
}

/// Holds the terminal; dropping it gives it back.
pub struct Guard {
    /// Where keys come from.
    input: OwnedFd,
    mouse: bool,
}

impl Guard {
    /// Takes the terminal. `ended` is not 0 once a signal has asked for an end: a terminal that stands still is not waited for then.
    ///
    /// # Errors
    /// It is no terminal, or refuses raw mode.
    pub fn take(mouse: bool, ended: Arc<AtomicUsize>) -> io::Result<(Self, Screen)> {
        // Standard input or the terminal itself, chosen as crossterm does, so that waiting and reading mean one descriptor.
        let stdin = io::stdin();
        let input =
            if stdin.is_terminal() { stdin.as_fd().try_clone_to_owned()? } else { File::open("/dev/tty")?.into() };
        give_back_on_panic();
        enable_raw_mode()?;
        let guard = Self { input, mouse };
        let mut out = BufWriter::with_capacity(FRAME_BYTES, WaitingStdout::new(StdoutWriter::take()?, ended));
        guard.enter(&mut out)?;
        Ok((guard, CrosstermBackend::new(out)))
    }

    fn enter(&self, out: &mut impl Write) -> io::Result<()> {
        execute!(out, EnterAlternateScreen, cursor::Hide)?;
        if self.mouse { execute!(out, EnableMouseCapture) } else { Ok(()) }
    }

    /// Gives the terminal back and stops this process until someone continues it.
    #[allow(clippy::unused_self, reason = "only who holds the terminal can give it back")]
    pub fn stop(&self) {
        give_back();
        suspend();
    }

    /// Takes the terminal again after a stop: the shell has set its own modes meanwhile.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn take_again(&self, screen: &mut Screen) -> io::Result<()> {
        disable_raw_mode()?;
        enable_raw_mode()?;
        self.enter(screen)
    }

    /// Columns and rows of the terminal, at most what anybody can read. Asked of the descriptor at hand: the usual way opens /dev/tty each time, which
    /// costs a tenth of a tick.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(&self.input)?;
        // A serial line, and a container's terminal at first, have none.
        let (columns, rows) = if size.ws_col == 0 || size.ws_row == 0 { USUAL } else { (size.ws_col, size.ws_row) };
        Ok((columns.min(MOST_COLUMNS), rows.min(MOST_ROWS)))
    }

    /// Makes the kernel tell once more that a key waits: crossterm waits for the moment in which keys come, and misses it
    /// when the terminal was resized in the same moment. Setting the modes that are set wakes whoever waits.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn tell_again(&self) -> io::Result<()> {
        let modes = rustix::termios::tcgetattr(&self.input)?;
        Ok(rustix::termios::tcsetattr(&self.input, rustix::termios::OptionalActions::Now, &modes)?)
    }

    /// Asks whether it shows lines and blocks two cells wide; for the start, before any key is read.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn character_width(&self, screen: &mut Screen) -> io::Result<CharacterWidth> {
        width::ask(&self.input, screen)
    }

    /// Readable when a key waits.
    #[must_use]
    pub fn input(&self) -> &OwnedFd {
        &self.input
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Nothing can be done about a failure here: the terminal may be gone.
fn give_back() {
    let mut end = Vec::new();
    let _ = execute!(end, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    if let Ok(mut out) = StdoutWriter::take() {
        out.end_with(&end);
    }
    let _ = disable_raw_mode();
}

/// A panic's message is only readable after the terminal is given back.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            print(panic);
        }));
    });
}
