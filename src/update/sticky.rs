//! Sticky mode: turning it on and off, and a pin for every new worker that has become busy. Asked after every sample; it
//! changes nothing by itself, the effect is performed like that of a key.

use super::refusal;
use crate::derive::Metrics;
use crate::derive::placement::{self, BUSY};
use crate::effect::{Effect, PinRequest};
use crate::sample::{CoreSet, LinkKey, ThreadId};
use crate::state::{State, napi_of};

/// Turns it on or off, and says what it does.
pub(super) fn toggle(state: &mut State) {
    if let Some(why) = refusal(state) {
        return state.notice(true, why);
    }
    state.sticky.on = !state.sticky.on;
    let text = if state.sticky.on {
        "auto-pin is on: new busy threads of a pinned process get a core too; P turns it off, U \
         restores all"
    } else {
        "auto-pin is off: threads started from now on are not pinned"
    };
    state.notice(false, text);
}

/// What a new sample asks for: pins of new workers, or nothing.
pub fn tick(state: &mut State) -> Option<Effect> {
    if !state.sticky.on || refusal(state).is_some() {
        return None;
    }
    let metrics = state.newest()?;
    let busy = |id: &ThreadId| metrics.subject.recent.thread_need(*id).is_some_and(|need| need > BUSY);
    let new: Vec<ThreadId> = state.sticky.new_workers(metrics).into_iter().filter(busy).collect();
    if new.is_empty() {
        return None;
    }
    let links: Vec<_> = new.iter().filter_map(|&id| Some((napi_of(metrics, id)?, id))).collect();
    // A link's new thread takes the place of the one before. Others are looked at with the next sample.
    let again: Vec<PinRequest> = links.iter().filter_map(|&(link, id)| place_again(state, metrics, link, id)).collect();
    if !again.is_empty() {
        for (link, thread) in links {
            state.sticky.settle_napi(link, thread);
        }
        return Some(Effect::Pin(again));
    }
    match placement::propose_for(&metrics.subject, &new) {
        Ok(proposal) => {
            for thread in new {
                state.sticky.settle(thread);
            }
            Some(Effect::Pin(requests(&proposal)))
        }
        // A core may become free, so these threads are tried again; the sentence is said once.
        Err(why) => {
            if state.sticky.refuse(&new) {
                state.add_notice(true, &format!("auto-pin: {why}"));
            }
            None
        }
    }
}

fn place_again(state: &State, metrics: &Metrics, link: LinkKey, id: ThreadId) -> Option<PinRequest> {
    let thread = metrics.threads.iter().find(|thread| thread.sample.id == id)?;
    let cores = state.sticky.place_of(link)?.clone();
    Some(PinRequest { thread: id, label: placement::label(thread), cores })
}

/// The masks that a proposal asks for.
pub(crate) fn requests(proposal: &placement::Proposal) -> Vec<PinRequest> {
    let request = |step: &placement::Step| PinRequest {
        thread: step.thread,
        label: step.label.clone(),
        cores: CoreSet::single(step.core),
    };
    proposal.steps.iter().map(request).collect()
}
