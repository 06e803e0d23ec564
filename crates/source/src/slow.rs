//! Facts that take their time: each is gathered on a thread of its own by blocking code, which ends with its work or with the
//! program. The sampler takes what is finished. Blocking code is private to the files of this folder, which
//! hand out nothing but [`Slow`] answers, and conversations of which is taken what has been said so far.

pub(super) mod device_holders;
pub(super) mod docker;
pub(super) mod json_rpc;
pub(super) mod rule_counts;
pub(super) mod socket_holders;

use rustix::process::setpriority_process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Nice value of these threads: a benchmark on the same core keeps nine tenths of it.
const NICE: i32 = 10;

/// An answer that is being gathered, until it is taken.
#[derive(Debug)]
pub(super) struct Slow<T> {
    answer: Receiver<T>,
    thread: JoinHandle<()>,
    at: Arc<AtomicU32>,
}

impl<T: Send + 'static> Slow<T> {
    /// Starts the work on a thread of this name; `None` when the kernel gives no thread. The work is not waited for: an answer that
    /// is not wanted any more is dropped. It notes the process that it is looking at, if any.
    fn start(name: &str, work: impl FnOnce(&AtomicU32) -> T + Send + 'static) -> Option<Self> {
        let (give, answer) = sync_channel(1);
        let at = Arc::new(AtomicU32::new(0));
        let notes = Arc::clone(&at);
        let gather = move || {
            let _only_costs_more = setpriority_process(None, NICE);
            let _not_wanted_any_more = give.send(work(&notes));
        };
        let thread = Builder::new().name(name.to_owned()).spawn(gather).ok()?;
        Some(Self { answer, thread, at })
    }
}

impl<T> Slow<T> {
    /// Takes the answer that `place` waits for, if it comes within `patience`. The place is empty afterwards, even when the work
    /// failed.
    pub fn take_within(place: &mut Option<Self>, patience: Duration) -> Option<T> {
        match place.as_ref()?.answer.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => None,
            done => {
                *place = None;
                done.ok()
            }
        }
    }

    /// The process that the work is looking at.
    pub fn at(&self) -> u32 {
        self.at.load(Ordering::Relaxed)
    }

    /// The work has ended, with or without an answer.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    device_holders::fuzz(bytes);
}

/// The body of an answer that a fuzzer made up.
#[cfg(fuzzing)]
pub(crate) fn fuzz_http(received: &[u8], is_over: bool) -> Option<&[u8]> {
    docker::body(received, is_over).ok().flatten().and_then(|body| received.get(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn an_answer_is_taken_once_when_it_is_there() {
        let (release, blocked) = channel::<()>();
        let mut place = Slow::start("test", move |_| blocked.recv().is_err());
        assert_eq!(Slow::take_within(&mut place, Duration::ZERO), None, "nobody waits for it");
        assert!(place.is_some(), "it is awaited");
        drop(release);
        let answer = loop {
            match Slow::take_within(&mut place, Duration::ZERO) {
                None if place.is_some() => std::thread::yield_now(),
                answer => break answer,
            }
        };
        assert_eq!((answer, place.is_none()), (Some(true), true), "it comes, and the place is free");
    }

    #[test]
    fn work_that_breaks_down_frees_its_place() {
        let mut place = Slow::<u32>::start("test", |_| panic!("broken on purpose"));
        while place.is_some() {
            assert_eq!(Slow::take_within(&mut place, Duration::ZERO), None, "there is no answer");
        }
    }
}
