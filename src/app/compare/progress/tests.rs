//! What is seen of a comparison while it runs, at each size, and how it is ended.

use super::*;
use crate::action::Key;
use crate::app::compare::select;
use crate::derive::Derivation;
use crate::record::{Recording, StoredIn};
use crate::sample::{Item, OnRequest};
use crate::source::feed::{Feed, Next, Pace};
use crate::state::{Mode, Settings, Units};
use crate::ui::{self, Theme};
use crate::view::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::VecDeque;
use std::io;

struct Painted {
    size: (u16, u16),
    woken: VecDeque<Woken>,
    frame: String,
}

impl Console for Painted {
    fn next(&mut self) -> io::Result<Option<Woken>> {
        // A signal that ends is told again each time.
        if let Some(Woken::Ends(signal)) = self.woken.front() {
            return Ok(Some(Woken::Ends(*signal)));
        }
        Ok(self.woken.pop_front())
    }

    fn size(&self) -> io::Result<(u16, u16)> {
        Ok(self.size)
    }

    fn show(&mut self, view: &View) -> io::Result<()> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, view.width, view.height));
        ui::paint(view, Theme::plain(true), &mut buffer);
        self.frame = ui::text(&buffer);
        Ok(())
    }

    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]> {
        SmallVec::new()
    }

    fn ask_to_stop(&self) {}

    fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _: &[BorrowedFd<'_>], _: Option<Duration>) {}
}

fn state() -> State {
    State::new(Settings {
        mode: Mode::Compare,
        readonly: false,
        units: Units::Bits,
        interval: Duration::from_millis(100),
        watch: vec!["iperf3".to_owned()],
        utf8: true,
        on_request: OnRequest::default(),
    })
}

fn progress() -> Progress {
    let selected = select(&["veth".to_owned(), "bridge".to_owned()], &[]).expect("they exist");
    let plan = ComparePlan {
        paths: selected.clone(),
        loads: vec![Load::Tcp, Load::Tcp4],
        rounds: 3,
        length: Duration::from_secs(3),
        warm_up: Duration::from_secs(1),
        pins: true,
        steers: false,
        steers_alone: false,
        is_root: true,
    };
    let mut progress = Progress::new(&plan, &super::super::order::visits(&plan, &[true, true]));
    progress.next(&selected[1], 1, Load::Tcp4, Treatment::Pinned);
    progress
}

/// The first seconds of the shipped recording, as if they were of a path under test.
fn watched(size: (u16, u16), woken: Vec<Woken>) -> (String, Ended) {
    let mut console = Painted { size, woken: VecDeque::new(), frame: String::new() };
    let recording = Recording::open_stored(&StoredIn::Program).expect("the shipped recording");
    let (feed, mut derivation) = (Feed::replay(recording, Pace::Fast).expect("a thread"), Derivation::default());
    let mut desk = ScreenDesk::new(&mut console, state());
    desk.tries("veth");
    desk.begins(&progress());
    desk.ends(
        "round 1 of 3, veth: TCP, 1 stream 22.6 Gbit/s (99 % interval: 19.6 to 26.0), pinned +4.23 % (−8.58 to +18.8)",
    );
    let mut samples = 0;
    while samples < 80 {
        let Next::Item(item) = feed.next().expect("it is whole") else { continue };
        samples += usize::from(matches!(item, Item::Sample(_)));
        if let Some(metrics) = derivation.advance(item) {
            desk.painted = None;
            desk.sees(metrics, derivation.history());
        }
    }
    desk.console.woken = woken.into();
    let is_over = desk.is_over();
    let ended = desk.ended();
    assert_eq!(is_over, ended != Ended::Done);
    (console.frame, ended)
}

#[test]
fn the_path_under_test_and_how_far_it_is_are_seen_at_each_size() {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 60)] {
        let (frame, ended) = watched((width, height), Vec::new());
        assert_eq!(ended, Ended::Done, "nobody has ended it");
        assert!(frame.contains("compare 1 of 24, about"), "how far, and how long still: {frame}");
        insta::assert_snapshot!(format!("compare_{width}x{height}"), frame);
    }
}

#[test]
fn it_is_ended_by_a_key_or_a_signal() {
    let key = Woken::Input(Input::Key(Key::Char('q')));
    assert_eq!(watched((80, 24), vec![key]).1, Ended::Signal(signal_hook::consts::SIGINT));
    assert_eq!(watched((80, 24), vec![Woken::Ends(15)]).1, Ended::Signal(15));
}
