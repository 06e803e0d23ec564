//! The real loop over a console that plays what it was given, and the recording that is shipped.

use super::*;
use crate::action::Key;
use crate::app::{AppOptions, Stream};
use crate::effect::{self, Hand};
use crate::record::Recording;
use crate::sample::OnRequest;
use crate::source::feed::{Feed, Pace};
use crate::state::{Mode, Settings, State, Units};
use crate::ui::{self, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::path::Path;

/// Tells what it was given once the feed has nothing more, each after another frame; then it wakes nobody.
struct Script {
    woken: VecDeque<Woken>,
    due: bool,
    frames: Vec<String>,
    stopped: usize,
}

impl Console for Script {
    fn next(&mut self) -> io::Result<Option<Woken>> {
        Ok(std::mem::take(&mut self.due).then(|| self.woken.pop_front()).flatten())
    }

    fn size(&self) -> io::Result<(u16, u16)> {
        Ok((100, 40))
    }

    fn show(&mut self, view: &View) -> io::Result<()> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, view.width, view.height));
        ui::paint(view, Theme::plain(true), &mut buffer);
        self.frames.push(ui::text(&buffer));
        Ok(())
    }

    fn ask_to_stop(&self) {}

    fn stop(&mut self) -> io::Result<()> {
        self.stopped += 1;
        Ok(())
    }

    fn wait(&mut self, others: &[BorrowedFd<'_>], _: Option<Duration>) {
        if others.is_empty() {
            assert!(!self.woken.is_empty(), "the loop waits for what never comes");
            self.due = true;
            return;
        }
        let mut fds: Vec<PollFd<'_>> =
            others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)).collect();
        let _ = poll(&mut fds, None);
    }
}

fn key(c: char) -> Woken {
    Woken::Input(Input::Key(Key::Char(c)))
}

fn shown(woken: &[Woken]) -> (Ended, Script) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/kunpeng.vnettop.zst");
    let recording = Recording::open(&path).expect("the recording that is shipped");
    let feed = Feed::replay(recording, Pace::Fast).expect("a thread");
    let state = State::new(Settings {
        mode: Mode::Replay,
        readonly: true,
        units: Units::Bits,
        interval: Duration::from_millis(500),
        watch: Vec::new(),
        utf8: true,
        on_request: OnRequest::default(),
    });
    let hand = Hand::new(Box::new(effect::Kernel), effect::journal_dir(|_| None), true);
    let options = AppOptions { replay: true, ..AppOptions::default() };
    let app = App::new(state, Stream::default(), hand, feed, options);
    let mut script = Script { woken: woken.to_vec().into(), due: false, frames: Vec::new(), stopped: 0 };
    let (ended, _) = screen(app, &mut script).expect("the recording and the console are whole");
    (ended, script)
}

#[test]
fn keys_are_pressed_in_turn_and_each_is_answered_by_a_frame() {
    let (ended, script) = shown(&[key('?'), key('q'), key('u'), key('q')]);
    assert_eq!(ended, Ended::Done, "q ends it");
    let [.., before, help, after, bytes] = &script.frames[..] else { panic!("a frame after each key but the last") };
    assert!(before.contains("bit/s") && help != before, "the help lies over the frame:\n{help}");
    assert_eq!(after, before, "q takes it away");
    assert_ne!(bytes, before, "rates in bytes are other figures");
}

#[test]
fn a_signal_ends_the_screen_and_a_stop_gives_the_terminal_back_first() {
    let (ended, script) = shown(&[Woken::Stops, Woken::Ends(15)]);
    assert_eq!((ended, script.stopped), (Ended::Signal(15), 1));
}
