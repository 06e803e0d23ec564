//! Whatever a key does can be done with the mouse too, and whatever the mouse does with a key: read from the KEYS table and from the frames.

use crate::world::scenes;
use crate::world::stage::Stage;
use vnettop::action::{Action, KEYS, Key, KeyContext, KeyMap, Motion, Mouse, Pane, Seek};
use vnettop::derive::{Highlight, HighlightKind};
use vnettop::state::{AllHosts, Choices, Mode, Playback, Settings, ThemeList};
use vnettop::view::{HostRow, View, prepare_hosts};

const SIZE: (u16, u16) = (120, 40);

/// Everything that a click somewhere on this frame asks for.
fn clickable(view: &View) -> Vec<Action> {
    let mut actions = Vec::new();
    for (x, y) in (0..view.height).flat_map(|y| (0..view.width).map(move |x| (x, y))) {
        if let Some(action) = view.action_for(Mouse::Click { x, y })
            && !actions.contains(&action)
        {
            actions.push(action);
        }
    }
    actions
}

fn action_for(key: Key, place: KeyContext) -> Option<Action> {
    KeyMap::default().action_for(key, place)
}

/// The frames of everything that can be open, with the place that the keys go to.
fn frames() -> Vec<(KeyContext, View)> {
    let mut frames = Vec::new();
    let mut show = |stage: &Stage| frames.push((stage.state.context(), stage.view(SIZE.0, SIZE.1)));
    for keys in ["", "?", "F", "v", "d", "L", "K", "c", "/", "<tab><tab>ja", "j<enter>", ",", "z"] {
        let mut stage = Stage::after(3, scenes::bridge());
        stage.press(keys);
        show(&stage);
    }
    let mut stage = Stage::after(3, scenes::bridge());
    let threads: Vec<_> = stage.world.threads.iter().map(|thread| thread.sample.id).collect();
    stage.state.open_proposal(Ok(scenes::proposal(threads[0], threads[1], [0, 1])));
    show(&stage);
    let mut stage = Stage::with(3, scenes::bridge(), Settings { mode: Mode::Replay, ..Settings::default() });
    let at_ns = stage.state.metrics().expect("samples").machine.at_ns;
    let highlight = |at_ns, kind| Highlight { at_ns, seen_ns: at_ns, kind };
    stage.state.playback = Some(Playback {
        damage: None,
        span_ns: Some((at_ns - 3_000_000_000, at_ns + 60_000_000_000)),
        is_whole: true,
        highlights: vec![highlight(at_ns + 20_000_000_000, HighlightKind::Dip)],
        speed: Some(1.0),
        is_over: false,
    });
    show(&stage);
    stage.press("?");
    show(&stage);
    let stage = Stage::after(3, scenes::bridge());
    let hosts = ["kp1", "kp2"].map(|name| HostRow { name, state: &stage.state });
    frames.push((KeyContext::Hosts, prepare_hosts(&AllHosts::default(), &hosts, &[], SIZE).0));
    frames
}

/// What needs no click of its own, and why.
fn needs_none(action: Action) -> Option<&'static str> {
    match action {
        Action::Move(_) => Some("rows are clicked, and the wheel goes through them and through the lines of a box"),
        Action::Edit(_) => Some("a text is typed, so the hands are at the keys"),
        _ => None,
    }
}

#[test]
fn every_key_has_a_click() {
    let frames = frames();
    let clicks: Vec<Action> = frames.iter().flat_map(|(_, view)| clickable(view)).collect();
    let is_pressed = |key: &Key, wanted: Action| {
        let means = |place| action_for(*key, place) == Some(wanted);
        clicks.contains(&Action::Press(*key)) && (means(KeyContext::Main) || means(KeyContext::Replay))
    };
    let mut missing = Vec::new();
    for binding in KEYS {
        let is_there =
            clicks.contains(&binding.action) || binding.keys.iter().any(|key| is_pressed(key, binding.action));
        if !is_there && needs_none(binding.action).is_none() {
            missing.push(format!("{:?}: {}", binding.action, binding.help));
        }
    }
    assert!(missing.is_empty(), "nothing that can be clicked does this:\n{}", missing.join("\n"));
    for place in KEYS.iter().flat_map(|binding| binding.contexts) {
        assert!(frames.iter().any(|(shown, _)| shown == place), "{place:?} is among the frames");
    }
}

#[test]
fn every_click_has_a_key() {
    for (place, view) in frames() {
        for action in clickable(&view) {
            // A row, a pane, a column and a moment are reached by going there.
            let is_a_place = matches!(
                action,
                Action::SelectLink(_)
                    | Action::SelectCore(_)
                    | Action::SelectThread(_)
                    | Action::SelectTest(_)
                    | Action::OpenHost(_)
                    | Action::Focus(_)
                    | Action::Seek(Seek::To(_))
                    | Action::SelectTime(_)
                    | Action::SortBy(_)
                    | Action::ToggleZoom(Some(_))
                    | Action::ToggleIdle(Some(_))
                    | Action::TogglePart(Some(_))
                    | Action::Press(_)
            );
            // Esc lets go of a time as of everything else.
            let is_a_place = is_a_place || action == Action::ReleaseTime;
            let has_key = KEYS.iter().any(|binding| binding.action == action);
            assert!(is_a_place || has_key, "no key does what a click does in {place:?}: {action:?}");
        }
    }
}

#[test]
fn a_box_is_closed_by_a_click_beside_it_and_scrolled_by_the_wheel() {
    for (place, view) in frames() {
        if view.overlay.area.height == 0 {
            continue;
        }
        assert_eq!(view.action_for(Mouse::Click { x: 0, y: 1 }), Some(Action::Cancel), "{place:?}");
        let wheel = view.action_for(Mouse::ScrollDown { x: 0, y: 0 });
        assert!(matches!(wheel, Some(Action::Scroll(Pane::Links, 3))), "{place:?}: {wheel:?}");
        let area = view.overlay.area;
        let foot = (area.x..area.x + area.width).map(|x| Mouse::Click { x, y: area.y + area.height - 1 });
        let is_close = |click| view.action_for(click) == action_for(Key::Esc, place);
        assert!(foot.into_iter().any(is_close), "Esc in the foot of {place:?} is a button");
    }
}

#[test]
fn a_key_in_the_help_is_pressed_by_a_click() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("?");
    let action = Action::Press(Key::Char('u'));
    assert!(clickable(&stage.view(SIZE.0, SIZE.1)).contains(&action), "u stands in the list");
    vnettop::update::update(&mut stage.state, action);
    let text = stage.text(SIZE.0, SIZE.1);
    assert!(text.contains("bytes/s") && !text.contains("1 of 2"), "the help is closed, the units are others:\n{text}");
    assert_eq!(action_for(Key::Down, KeyContext::Help), Some(Action::Move(Motion::Down)), "the arrows still scroll");
}

#[test]
fn chosen_keys_stand_in_help_and_feet_and_are_pressed_by_a_click() {
    let mut keys = KeyMap::default();
    for (name, key) in
        [("units", Key::F(2)), ("cancel", Key::F(4)), ("help_page", Key::F(6)), ("propose", Key::Char('y'))]
    {
        keys.choose(name, vec![key]).expect("it has that name");
    }
    assert_eq!(keys.conflict(), None);
    let mut stage = Stage::after(3, scenes::bridge());
    stage.state.choose(Choices::default(), keys, ThemeList::default());
    stage.press("?");
    let text = stage.text(SIZE.0, SIZE.1);
    assert!(text.contains("F6 other page · F4 closes"), "the foot of the help names them:\n{text}");
    let clicks = clickable(&stage.view(SIZE.0, SIZE.1));
    assert!(clicks.contains(&Action::Press(Key::F(2))) && !clicks.contains(&Action::Press(Key::Char('u'))));
    assert!(clicks.contains(&Action::TurnHelpPage) && clicks.contains(&Action::Cancel), "the foot is clickable");
    vnettop::update::update(&mut stage.state, Action::Press(Key::F(2)));
    assert!(stage.text(SIZE.0, SIZE.1).contains("bytes/s"), "a click on F2 presses it");
    let threads: Vec<_> = stage.world.threads.iter().map(|thread| thread.sample.id).collect();
    stage.state.open_proposal(Ok(scenes::proposal(threads[0], threads[1], [0, 1])));
    assert!(stage.text(SIZE.0, SIZE.1).contains("y again: apply"), "so does the foot of a proposal");
    assert!(clickable(&stage.view(SIZE.0, SIZE.1)).contains(&Action::Accept));
}
