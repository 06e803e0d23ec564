//! The shipped recording, played from its start to its end and gone through in every other order.

use super::*;
use crate::action::{Key, parse_keys};
use crate::app::{App, AppOptions, Stream};
use crate::effect::{self, PinController};
use crate::sample::{OnRequest, Word};
use crate::source::feed::{Feed, Next, Pace};
use crate::state::{Mode, Settings, Units};
use crate::ui::{self, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;

/// It was read ahead as a whole, and nothing of it was shown yet.
fn app() -> App {
    let mut app = unread_app();
    app.hear_player(Duration::from_mins(1)).expect("the recording is whole");
    app
}

/// Of what is read ahead nothing was taken over yet.
fn unread_app() -> App {
    let stored = StoredIn::Program;
    let feed = Feed::replay(Recording::open_stored(&stored).expect("the shipped recording"), Pace::Fast);
    let state = State::new(Settings {
        mode: Mode::Replay,
        readonly: true,
        units: Units::Bits,
        interval: Duration::from_millis(500),
        watch: vec!["iperf3".to_owned()],
        utf8: true,
        on_request: OnRequest::default(),
    });
    let controller = PinController::new(Box::new(effect::Kernel), effect::journal_dir(|_| None), true);
    let player = Player::open(stored).expect("it can be read").expect("it has samples");
    App::new(state, Stream::default(), controller, feed.expect("a thread"), AppOptions::default())
        .with_player(player, None)
}

#[test]
fn a_place_that_is_not_read_yet_is_shown_as_soon_as_it_is() {
    let mut app = unread_app();
    let first_ns = app.player.as_ref().map(Player::first_ns).expect("it has samples");
    assert!(play(&mut app), "it has begun");
    app.seek(first_ns + 70 * SECOND_NS).expect("the recording is whole");
    let waits = app.awaited_ns.is_some();
    assert_eq!(now_ns(&app) == first_ns, waits, "until then what was shown is shown");
    assert_eq!(frame(&app).contains("shown as soon as the recording is read"), waits, "{}", frame(&app));
    app.hear_player(Duration::from_mins(1)).expect("the recording is whole");
    assert_eq!(now_ns(&app), first_ns + 70 * SECOND_NS, "it is read now");
    assert!(!frame(&app).contains("shown as soon as"), "{}", frame(&app));
}

/// The next sample of a recording that runs; false at its end.
fn play(app: &mut App) -> bool {
    while !app.ended {
        match app.feed.next().expect("the recording is whole") {
            Next::Item(item) => {
                if app.take(item).expect("nothing is done for a recording") {
                    return true;
                }
            }
            Next::Waiting => drop(poll(&mut [PollFd::from_borrowed_fd(app.feed.ready(), PollFlags::IN)], None)),
            Next::End => app.end().expect("a recording may end"),
        }
    }
    false
}

fn now_ns(app: &App) -> u64 {
    app.state.metrics().expect("something is shown").machine.at_ns
}

fn press(app: &mut App, keys: &str) {
    for step in parse_keys(keys).expect("keys that there are") {
        let crate::action::KeyStep::Press(key) = step else { panic!("only keys") };
        app.press(key).expect("the recording is whole");
    }
}

fn frame(app: &App) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
    ui::paint(&app.view(120, 40), Theme::plain(true), &mut buffer);
    ui::text(&buffer)
}

#[test]
fn a_frame_after_a_seek_is_that_of_playing_up_to_there() {
    let mut app = app();
    let first_ns = app.player.as_ref().map(Player::first_ns).expect("it has samples");
    assert!(app.player.as_ref().is_some_and(|player| player.checkpoints.len() == 2), "at 30 s and at 60 s of 80");
    let mut frames: BTreeMap<u64, String> = BTreeMap::new();
    let mut reported = None;
    while play(&mut app) {
        let at_ns = now_ns(&app);
        // Each is looked at, because what is on screen may depend on it.
        frames.insert(at_ns, frame(&app));
        if at_ns <= first_ns + 41 * SECOND_NS {
            reported = app.seen.summary();
        }
    }
    let last_ns = *frames.keys().last().expect("samples");
    frames.insert(last_ns, frame(&app));
    for target_s in [79, 40, 41, 9, 200, 62, 0, 30, 70] {
        app.seek(first_ns + target_s * SECOND_NS).expect("the recording is whole");
        let (at_ns, expected) =
            frames.range(..=first_ns + target_s * SECOND_NS).next_back().expect("the first sample at least");
        assert_eq!(now_ns(&app), *at_ns, "the last sample not after {target_s} s");
        assert_eq!(frame(&app), *expected, "{target_s} s after the start");
        assert!(target_s != 41 || app.seen.summary() == reported, "a report is of everything from the start to there");
        if play(&mut app) {
            assert_eq!(frame(&app), frames[&now_ns(&app)], "and the sample that comes then");
        }
    }
}

#[test]
fn keys_go_back_and_forth_and_from_event_to_event_and_the_end_says_what_to_do() {
    let mut app = app();
    let first_ns = app.player.as_ref().map(Player::first_ns).expect("it has samples");
    assert!(play(&mut app) && play(&mut app), "it has begun");
    let since_start = |app: &App| (now_ns(app) - first_ns) as f64 / 1e9;
    press(&mut app, " n");
    let kinds: Vec<&str> = app
        .state
        .playback
        .as_ref()
        .expect("it can be gone through")
        .highlights
        .iter()
        .map(|one| one.kind.word())
        .collect();
    assert_eq!(kinds, ["migration", "dip", "migration", "dip", "pin"], "what the recording tells");
    press(&mut app, "n");
    let first_dip = since_start(&app);
    assert!((8.5..=11.0).contains(&first_dip), "the first dip is seen after {first_dip} s");
    let began_ns = app.state.playback.as_ref().expect("it can be gone through").highlights[1].at_ns;
    let before_s = (began_ns - first_ns) as f64 / 1e9 - SHIPPED_STARTS_AT.as_secs_f64();
    assert!((2.5..3.5).contains(&before_s), "the shipped recording starts {before_s} s before it");
    press(&mut app, "nnn");
    assert!(frame(&app).contains("in the recording: ") && frame(&app).contains("pinned to"), "{}", frame(&app));
    press(&mut app, "n");
    assert!(frame(&app).contains("no pin, mark, dip, loss or migration comes after this"), "{}", frame(&app));
    press(&mut app, "NNN");
    assert!((since_start(&app) - first_dip).abs() < 0.01, "and back to the first one");
    press(&mut app, "<right>]<left>");
    assert!((since_start(&app) - first_dip - 5.0).abs() < 0.6, "two times five seconds forth, once back");
    let before = since_start(&app);
    press(&mut app, "}}{");
    assert!((since_start(&app) - before - 0.5).abs() < 0.01, "two samples on, one back: {}", since_start(&app));
    assert!(app.state.frozen(), "and it stands still");
    press(&mut app, "<end>");
    assert!(frame(&app).contains("end of the recording: Home plays it again, q quits"), "{}", frame(&app));
    assert!(frame(&app).contains("■ 03:05:26 UTC · 1:20 / 1:20"), "{}", frame(&app));
    press(&mut app, "<home>");
    assert!(!app.state.frozen() && now_ns(&app) == first_ns, "it is played again from its start");
    assert!(!frame(&app).contains("end of the recording"), "{}", frame(&app));
    assert!(play(&mut app), "and goes on");
}

#[test]
fn a_click_on_the_bar_goes_there_and_one_on_a_mark_shows_what_it_marks() {
    let mut app = app();
    assert!(play(&mut app) && play(&mut app), "it has begun");
    let lines: Vec<String> = frame(&app).lines().map(str::to_owned).collect();
    let (y, line) = lines.iter().enumerate().rfind(|(_, line)| line.contains(" / 1:20")).expect("the bar");
    let column = |wanted: char| line.chars().position(|c| c == wanted).expect("it is on the bar");
    let click = |app: &mut App, x: usize| {
        let mouse =
            crate::action::Mouse::Click { x: u16::try_from(x).expect("small"), y: u16::try_from(y).expect("small") };
        let action = app.view(120, 40).action_for(mouse).expect("the bar is clickable");
        app.act(action).expect("the recording is whole");
    };
    click(&mut app, column('┬'));
    assert!(frame(&app).contains("pinned to"), "the pin is shown:\n{}", frame(&app));
    click(&mut app, column('▾'));
    assert!(frame(&app).contains(" · 0:10 / 1:20"), "the dip is seen a second after it began:\n{}", frame(&app));
    click(&mut app, line.chars().count() - 3);
    assert!(frame(&app).contains("1:20 / 1:20"), "the last cell is the end:\n{}", frame(&app));
}

#[test]
fn the_card_opens_by_itself_once_where_that_was_asked_for() {
    let mut app = app();
    app.state.opens_card = true;
    let first_ns = app.player.as_ref().map(Player::first_ns).expect("it has samples");
    app.seek(first_ns + 44 * SECOND_NS).expect("the recording is whole");
    assert!(!frame(&app).contains("Before and after the pin"), "the pin is six seconds old");
    while app.state.metrics().is_some_and(|metrics| metrics.subject.card.is_none()) {
        assert!(play(&mut app), "the card is ready before the end");
    }
    assert!(frame(&app).contains("Before and after the pin"), "{}", frame(&app));
    press(&mut app, "<esc>");
    assert!(play(&mut app), "it goes on");
    assert!(!frame(&app).contains("Before and after the pin"), "what was closed stays closed");
}

#[test]
fn speeds_go_up_and_down_and_end_somewhere() {
    let mut app = app();
    assert!(play(&mut app), "it has begun");
    let speed = |app: &App| app.state.playback.as_ref().and_then(|playback| playback.speed);
    press(&mut app, "-");
    assert_eq!(speed(&app), Some(50.0), "slower than as fast as it goes");
    press(&mut app, "------------");
    assert_eq!(speed(&app), Some(0.1));
    assert!(frame(&app).contains("a replay runs at 0.1 to 50"), "{}", frame(&app));
    app.press(Key::Char('+')).expect("a key");
    assert_eq!(speed(&app), Some(0.25));
    assert!(frame(&app).contains("- 0.25× +"), "{}", frame(&app));
}
