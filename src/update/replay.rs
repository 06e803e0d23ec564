//! Going through a recording: back and forth, from highlight to highlight, faster and slower.

use crate::action::Seek;
use crate::effect::Effect;
use crate::state::{Mode, ScreenPhase, State};

/// Times its own speed that `+` and `-` go through.
const SPEEDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

/// Another place of the recording.
pub(super) fn seek(state: &mut State, seek: Seek) -> Option<Effect> {
    if state.settings.mode != Mode::Replay {
        state.notice(false, "only a replay can be played back and forth; this is live");
        return None;
    }
    if seek == Seek::Step {
        state.phase = ScreenPhase::Frozen;
        return Some(Effect::Step);
    }
    let now_ns = state.metrics()?.machine.at_ns;
    let Some(playback) = &state.playback else {
        let why = if state.place.is_some() { "is of several hosts" } else { "comes through a pipe" };
        state.notice(false, format!("this recording {why}: it plays forward only"));
        return None;
    };
    let start_ns = playback.span_ns.map(|(first, _)| first);
    let to_ns = match seek {
        Seek::By(seconds) => Ok(now_ns.saturating_add_signed(i64::from(seconds) * 1_000_000_000)),
        Seek::To(at_ns) => Ok(at_ns),
        Seek::Start => Ok(0),
        Seek::Step | Seek::End => Ok(u64::MAX),
        Seek::StepBack => Ok(now_ns.saturating_sub(1)),
        Seek::NextHighlight => playback.next(now_ns).map(|highlight| highlight.seen_ns).ok_or(if playback.is_whole {
            "no pin, mark, dip, loss or migration comes after this"
        } else {
            "none known after this yet: the recording is still being read"
        }),
        Seek::PreviousHighlight => {
            let before = playback.previous(now_ns).map(|highlight| highlight.seen_ns);
            before.ok_or("no pin, mark, dip, loss or migration comes before this")
        }
    };
    let to_ns = to_ns.map_err(|none| state.notice(false, none)).ok()?;
    // What is over is played again.
    if seek == Seek::Start && state.playback.as_ref().is_some_and(|playback| playback.is_over) {
        state.phase = ScreenPhase::Running;
    }
    if seek == Seek::StepBack {
        state.phase = ScreenPhase::Frozen;
    }
    Some(Effect::Seek(to_ns.max(start_ns.unwrap_or(0))))
}

pub(super) fn faster(state: &mut State) -> Option<Effect> {
    let speed = state.playback.as_ref()?.speed;
    play(state, speed.and_then(|now| SPEEDS.into_iter().find(|speed| *speed > now)))
}

/// Of one that runs as fast as it goes the fastest that has a number.
pub(super) fn slower(state: &mut State) -> Option<Effect> {
    let speed = state.playback.as_ref()?.speed.unwrap_or(f64::INFINITY);
    play(state, SPEEDS.into_iter().rfind(|slower| *slower < speed))
}

fn play(state: &mut State, speed: Option<f64>) -> Option<Effect> {
    let Some(speed) = speed else {
        state.notice(false, "a replay runs at 0.1 to 50 times real time");
        return None;
    };
    state.playback.as_mut()?.speed = Some(speed);
    Some(Effect::Play(speed))
}
