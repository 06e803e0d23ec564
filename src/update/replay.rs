//! Going through a recording: back and forth, from highlight to highlight, faster and slower.

use crate::action::Action;
use crate::effect::Effect;
use crate::state::{Mode, ScreenPhase, State};

/// Times its own speed that `+` and `-` go through.
const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

/// Another place of the recording.
pub(super) fn seek(state: &mut State, action: Action) -> Option<Effect> {
    if state.settings.mode != Mode::Replay {
        state.notice(false, "only a replay can be played back and forth; this is live");
        return None;
    }
    if action == Action::Step {
        state.phase = ScreenPhase::Frozen;
        return Some(Effect::Step);
    }
    let now_ns = state.metrics()?.at_ns;
    let Some(tape) = state.tape() else {
        state.notice(false, "this recording comes through a pipe: it plays forward only");
        return None;
    };
    let (start_ns, whole) = (tape.span_ns.map(|(first, _)| first), tape.is_whole);
    let to_ns = match action {
        Action::SeekBy(seconds) => {
            let by_ns = u64::from(seconds.unsigned_abs()) * 1_000_000_000;
            if seconds < 0 { now_ns.saturating_sub(by_ns) } else { now_ns.saturating_add(by_ns) }
        }
        Action::SeekTo(at_ns) => at_ns,
        Action::SeekEnd => u64::MAX,
        Action::StepBack => now_ns.saturating_sub(1),
        Action::NextHighlight => {
            let Some(highlight) = tape.next(now_ns) else {
                let none = "no pin, mark, dip or loss comes after this";
                let none_yet = "none known after this yet: the recording is still being read";
                state.notice(false, if whole { none } else { none_yet });
                return None;
            };
            highlight.seen_ns
        }
        Action::PreviousHighlight => {
            let Some(highlight) = tape.previous(now_ns) else {
                state.notice(false, "no pin, mark, dip or loss comes before this");
                return None;
            };
            highlight.seen_ns
        }
        _ => 0,
    };
    // What is over is played again.
    if action == Action::SeekStart && state.tape().is_some_and(|tape| tape.is_over) {
        state.phase = ScreenPhase::Running;
    }
    if action == Action::StepBack {
        state.phase = ScreenPhase::Frozen;
    }
    Some(Effect::Seek(to_ns.max(start_ns.unwrap_or(0))))
}

pub(super) fn faster(state: &mut State) -> Option<Effect> {
    let speed = state.tape()?.speed;
    play(state, speed.and_then(|now| SPEEDS.into_iter().find(|speed| *speed > now)))
}

/// Of one that runs as fast as it goes the fastest that has a number.
pub(super) fn slower(state: &mut State) -> Option<Effect> {
    let speed = state.tape()?.speed.unwrap_or(f64::INFINITY);
    play(state, SPEEDS.into_iter().rfind(|slower| *slower < speed))
}

fn play(state: &mut State, speed: Option<f64>) -> Option<Effect> {
    let Some(speed) = speed else {
        state.notice(false, "speeds go from 0.1 to 50 times its own");
        return None;
    };
    state.tape.as_mut()?.speed = Some(speed);
    Some(Effect::Play(speed))
}
