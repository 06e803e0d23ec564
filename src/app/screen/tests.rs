//! The real loop over a console that plays what it was given, and the recording that is shipped.

use super::*;
use crate::action::{Key, KeyMap};
use crate::app::{App, AppOptions, Stream};
use crate::config::SaveSource;
use crate::effect::{self, PinController};
use crate::record::Recording;
use crate::sample::OnRequest;
use crate::source::feed::{Feed, Pace};
use crate::state::{Choices, LinkChoices, LinkColumn, LinkSort, Mode, Settings, State, ThemeList, Units};
use crate::ui::{self, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, poll};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::path::Path;

/// Tells what it was given once the feed has nothing more, each after another frame; then it wakes nobody.
struct Script {
    woken: VecDeque<Woken>,
    due: bool,
    frames: Vec<String>,
    themes: Vec<usize>,
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
        self.themes.push(view.theme);
        Ok(())
    }

    fn ask_to_stop(&self) {}

    fn fds(&self) -> SmallVec<[BorrowedFd<'_>; 2]> {
        SmallVec::new()
    }

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
    shown_as(woken, AppOptions::default(), |_| {})
}

fn shown_as(woken: &[Woken], options: AppOptions, prepare: impl FnOnce(&mut State)) -> (Ended, Script) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/kunpeng.vnettop.zst");
    let recording = Recording::open(&path).expect("the recording that is shipped");
    let feed = Feed::replay(recording, Pace::Fast).expect("a thread");
    let mut state = State::new(Settings {
        mode: Mode::Replay,
        readonly: true,
        units: Units::Bits,
        interval: Duration::from_millis(500),
        watch: Vec::new(),
        utf8: true,
        on_request: OnRequest::default(),
    });
    prepare(&mut state);
    let controller = PinController::new(Box::new(effect::Kernel), effect::journal_dir(|_| None), true);
    let app = App::new(state, Stream::default(), controller, feed, options);
    let mut script =
        Script { woken: woken.to_vec().into(), due: false, frames: Vec::new(), themes: Vec::new(), stopped: 0 };
    let (ended, ..) = screen(app, &mut script).expect("the recording and the console are whole");
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

#[test]
fn a_key_that_was_chosen_acts_and_stands_in_help_and_footer() {
    let mut keys = KeyMap::default();
    keys.choose("help", vec![Key::F(1)]).expect("it has that name");
    keys.choose("quit", vec![Key::Char('Q')]).expect("it has that name");
    keys.choose("units", vec![]).expect("it has that name");
    keys.choose("sort", vec![Key::Char('o')]).expect("it has that name");
    let help = Woken::Input(Input::Key(Key::F(1)));
    let woken = [help, help, help, key('q'), key('u'), key('Q')];
    let (ended, script) = shown_as(&woken, AppOptions::default(), |state| {
        state.choose(Choices::default(), keys, ThemeList::default());
    });
    assert_eq!(ended, Ended::Done, "Q ends it");
    let [.., before, help, _, after, q, u] = &script.frames[..] else { panic!("a frame after each key but the last") };
    assert!(before.contains("F1 help  Q quit"), "the footer names them:\n{before}");
    assert!(help.contains("║ o  ") && !help.contains("║ s  "), "the help too:\n{help}");
    assert!(!help.contains("links in bits, bytes or packets"), "what has no key is not in it:\n{help}");
    assert_eq!([after, q, u], [before; 3], "the usual keys do nothing any more");
}

#[test]
fn a_sentence_names_the_keys_that_were_chosen() {
    let mut keys = KeyMap::default();
    keys.choose("card", vec![Key::Char('K')]).expect("it has that name");
    let (_, script) = shown_as(&[key('?'), key('q'), key('q')], AppOptions::default(), |state| {
        state.choose(Choices::default(), keys, ThemeList::default());
    });
    let reported = script.frames.iter().any(|frame| frame.contains("first comparison: press K to see"));
    assert!(reported, "{}", script.frames.concat());
}

#[test]
fn a_terminal_that_tells_its_background_gets_the_theme_for_it_unless_a_key_has_chosen_one() {
    let themes = || ThemeList { names: ["dark", "light", "terminal"].map(str::to_owned).into(), at: 2, changed: false };
    let theme = |woken: &[Woken]| {
        let (_, script) = shown_as(woken, AppOptions::default(), |state| {
            state.choose(Choices::default(), KeyMap::default(), themes());
        });
        *script.themes.last().expect("a frame")
    };
    let (white, teal) = (Woken::Background([255; 3]), Woken::Background([0, 0x2b, 0x36]));
    assert_eq!([theme(&[white, key('q')]), theme(&[teal, key('q')])], [1, 0]);
    assert_eq!(theme(&[key('C'), white, key('q')]), 0, "the one after the last is the first");
}

#[test]
fn the_screen_is_saved_as_it_is_and_begins_so_the_next_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "# mine\n[keys]\nmark = 'M'\n").expect("writable");
    let saved = SaveSource { path: path.clone(), before: crate::config::Preferences::default() };
    let options = AppOptions { saved: Some(saved), theme: "auto".to_owned(), ..AppOptions::default() };
    let themes = ThemeList { names: ["dark", "light"].map(str::to_owned).into(), ..ThemeList::default() };
    let (_, script) = shown_as(&[key('s'), key('S'), key('C'), key('W'), key('W'), key('q')], options, |state| {
        state.choose(Choices::default(), KeyMap::default(), themes);
    });
    let [.., theme, saved, again] = &script.frames[..] else { panic!("a frame after each key but the last") };
    assert!(theme.contains("theme light"), "{theme}");
    assert!(saved.contains("3 settings saved to ") && again.contains("nothing to save"), "{saved}\n{again}");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(text.contains("# mine") && text.contains("mark = 'M'"), "what stood there stands there:\n{text}");
    let mut configuration = crate::config::Configuration::default();
    configuration.apply(&text, "config.toml").expect("it is right");
    let preferences = configuration.preferences;
    assert_eq!((preferences.choices.links.sort, preferences.choices.links.reversed), (LinkSort::Rx, true));
    assert_eq!(preferences.theme, "light");
}

#[test]
fn columns_are_those_that_were_chosen_in_their_order() {
    let columns = vec![LinkColumn::Name, LinkColumn::Tx, LinkColumn::Rx, LinkColumn::Mtu];
    let choices = Choices { links: LinkChoices { columns, ..LinkChoices::default() }, ..Choices::default() };
    let (_, script) = shown_as(&[key('b'), key('q')], AppOptions::default(), |state| {
        state.choose(choices, KeyMap::default(), ThemeList::default());
    });
    let frame = script.frames.last().expect("a frame");
    let head = frame.lines().find(|line| line.contains("NAME")).expect("a head");
    let words: Vec<&str> = head.split_whitespace().filter(|word| word.chars().all(char::is_alphanumeric)).collect();
    assert_eq!(words, ["TX", "RX", "MTU"], "after the name, which has the mark of the sorted column: {head}");
    assert!(head.contains("NAME▲") && head.find("NAME") < head.find("TX"), "{head}");
}
