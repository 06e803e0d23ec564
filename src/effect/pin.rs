//! One thread gets one mask: looked at, set, read back, and every way it can go otherwise in its own sentence. It
//! neither journals nor remembers.

use super::{PinRequest, Pinner, cores_of};
use crate::sample::{CoreSet, ThreadId};
use std::io;

/// How a thread is called in a sentence.
pub(super) fn who(label: &str, thread: ThreadId) -> String {
    format!("{label} {}", thread.tid)
}

/// Whether the tid still belongs to the same thread, or what has become of it.
pub(super) enum Identity {
    Same,
    Ended,
    /// The tid now belongs to a thread with another start time.
    Reused,
    Unknown(io::Error),
}

pub(super) fn identity(pinner: &mut dyn Pinner, thread: ThreadId) -> Identity {
    match pinner.start_of(thread) {
        Ok(start) if start == thread.start => Identity::Same,
        Ok(_) => Identity::Reused,
        Err(error) if gone(&error) => Identity::Ended,
        Err(error) => Identity::Unknown(error),
    }
}

/// The kernel's two ways of saying that there is no such thread.
pub(super) fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Why a thread does not count as pinned, and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum PinError {
    #[error("{who} was not pinned: no core was chosen for it")]
    NoCore { who: String },
    #[error("{who} exited before it could be pinned")]
    Ended { who: String },
    #[error("{who} exited before it could be pinned; its number now belongs to another thread")]
    Reused { who: String },
    #[error("{who} was not pinned: its start time cannot be read ({error}); is /proc mounted for this user?")]
    StartUnknown { who: String, error: io::Error },
    #[error("{who} belongs to another user: run vnettop as root or with CAP_SYS_NICE")]
    OtherUser { who: String },
    #[error("{who} was not pinned: {} offline or not allowed for it{}", are(asked), allowed(before.as_ref()))]
    NotAllowed { who: String, asked: CoreSet, before: Option<CoreSet> },
    #[error("{who} was not pinned to {}: {error}", cores_of(asked))]
    Refused { who: String, asked: CoreSet, error: io::Error },
    #[error("{who} exited right after it was pinned")]
    EndedAfter { who: String },
    /// The tid changed hands between the check and the call: the one case where a stranger was touched.
    #[error(
        "{who} exited while being pinned and its TID was reused: the new thread may be limited to {}; check with taskset -cp {tid}",
        cores_of(asked)
    )]
    TakenOver { who: String, tid: u32, asked: CoreSet },
    /// The kernel took the mask but does not show it: it must be put back like any other.
    #[error("{who} was pinned, but its mask cannot be read back ({error}): look with taskset -cp {tid}")]
    NotReadBack { who: String, tid: u32, error: io::Error },
}

/// Why the kernel said no. `before` is the mask that the thread has, where it is known.
fn refusal(who: String, asked: &CoreSet, before: Option<&CoreSet>, error: io::Error) -> PinError {
    match error.raw_os_error() {
        Some(libc::ESRCH) => PinError::Ended { who },
        Some(libc::EPERM) => PinError::OtherUser { who },
        Some(libc::EINVAL) => PinError::NotAllowed { who, asked: asked.clone(), before: before.cloned() },
        _ => PinError::Refused { who, asked: asked.clone(), error },
    }
}

/// The mask the thread has now, if it is still the thread that was meant.
pub(super) fn look(pinner: &mut dyn Pinner, request: &PinRequest) -> Result<CoreSet, PinError> {
    let who = who(&request.label, request.thread);
    if request.cores.is_empty() {
        return Err(PinError::NoCore { who });
    }
    same(pinner, &who, request.thread)?;
    pinner.mask_of(request.thread.tid).map_err(|error| refusal(who, &request.cores, None, error))
}

/// Sets the mask and reads back what the kernel gave. The start time is checked right before and right after, because
/// nothing in Linux keeps a tid from being reused between two calls.
pub(super) fn set(pinner: &mut dyn Pinner, request: &PinRequest, before: &CoreSet) -> Result<CoreSet, PinError> {
    let (thread, asked, who) = (request.thread, &request.cores, who(&request.label, request.thread));
    same(pinner, &who, thread)?;
    if let Err(error) = pinner.set_mask(thread.tid, asked) {
        return Err(refusal(who, asked, Some(before), error));
    }
    let got = pinner.mask_of(thread.tid);
    match (identity(pinner, thread), got) {
        (Identity::Same | Identity::Unknown(_), Ok(got)) => Ok(got),
        (Identity::Reused, _) => Err(PinError::TakenOver { who, tid: thread.tid, asked: asked.clone() }),
        (_, Err(error)) if !gone(&error) => Err(PinError::NotReadBack { who, tid: thread.tid, error }),
        _ => Err(PinError::EndedAfter { who }),
    }
}

fn same(pinner: &mut dyn Pinner, who: &str, thread: ThreadId) -> Result<(), PinError> {
    let who = || who.to_owned();
    match identity(pinner, thread) {
        Identity::Same => Ok(()),
        Identity::Ended => Err(PinError::Ended { who: who() }),
        Identity::Reused => Err(PinError::Reused { who: who() }),
        Identity::Unknown(error) => Err(PinError::StartUnknown { who: who(), error }),
    }
}

fn allowed(before: Option<&CoreSet>) -> String {
    before.map_or_else(String::new, |mask| format!("; its mask allows {}", cores_of(mask)))
}

/// The beginning of a sentence on a mask of which nothing can be used.
pub(super) fn are(mask: &CoreSet) -> String {
    format!("{} {}", cores_of(mask), if mask.len() == 1 { "is" } else { "are all" })
}

/// What was asked against what the kernel gave; none when they are the same.
pub(super) fn shortfall(who: &str, asked: &CoreSet, got: &CoreSet) -> Option<String> {
    if got == asked {
        return None;
    }
    Some(if got.is_subset(asked) {
        format!(
            "{who}: asked for {asked}, the kernel gave {got}: the cpuset of its cgroup allows no more, or the rest is offline"
        )
    } else {
        format!(
            "{who}: asked for {asked}, but it has {got}: another program set its mask at the same moment; pin again"
        )
    })
}
