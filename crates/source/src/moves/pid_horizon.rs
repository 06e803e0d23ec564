//! The numbers that threads are born with (`/proc/loadavg`, field 5; `kernel.pid_max`): so that the kernel tells the moves
//! of a thread from its birth on, before anybody has found it.

use super::filter;
use super::pending_moves::WAIT_NS;
use crate::bpf::moves::TraceRequest;
use crate::{Roots, proc_file};
use std::collections::VecDeque;
use std::fs::File;

/// How often the newest number is read.
const LOOK_NS: u64 = 1_000_000_000;
/// So many of the numbers given before the first look may be a watched thread's that is not found yet.
const JUST_BORN: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct PidHorizon {
    /// None where it cannot be read: then a thread is covered from when it is found.
    loadavg: Option<File>,
    pid_max: u32,
    /// When each number was the newest, monotonic ns, oldest first.
    seen: VecDeque<(u64, u32)>,
    /// The number behind which the last filter begins.
    settled: Option<u32>,
}

impl PidHorizon {
    pub(super) fn new(roots: &Roots) -> Self {
        let pid_max = std::fs::read_to_string(roots.proc.join("sys/kernel/pid_max"));
        let pid_max = pid_max.ok().and_then(|text| text.trim().parse().ok());
        Self {
            loadavg: File::open(roots.proc.join("loadavg")).ok(),
            pid_max: pid_max.unwrap_or(1 << 22),
            seen: VecDeque::new(),
            settled: None,
        }
    }

    /// Reads the newest number when it is time to; whether it did.
    pub(super) fn look(&mut self, now_ns: u64) -> bool {
        if self.seen.back().is_some_and(|(at_ns, _)| now_ns.saturating_sub(*at_ns) < LOOK_NS) {
            return false;
        }
        let Some(newest) = self.loadavg.as_ref().and_then(proc_file::newest_number) else { return false };
        if self.seen.is_empty() {
            self.seen.push_back((0, newest.saturating_sub(JUST_BORN)));
        }
        self.seen.push_back((now_ns, newest));
        // One that is old enough is kept.
        while self.seen.get(1).is_some_and(|(at_ns, _)| now_ns.saturating_sub(*at_ns) >= WAIT_NS) {
            self.seen.pop_front();
        }
        true
    }

    /// The request for the watched threads, and for every thread that is too young to have been found for certain.
    pub(super) fn filter(&mut self, watched: &[u32], now_ns: u64) -> TraceRequest {
        let old_enough = |(at_ns, _): &&(u64, u32)| now_ns.saturating_sub(*at_ns) >= WAIT_NS;
        self.settled = self.seen.iter().rev().find(old_enough).or(self.seen.front()).map(|(_, newest)| *newest);
        filter::filter(watched, self.settled, self.pid_max)
    }

    /// Whether many of the numbers that the last filter took for unborn are given by now.
    pub(super) fn is_worn(&self) -> bool {
        let newest = self.seen.back().map(|(_, newest)| *newest);
        self.settled.zip(newest).is_some_and(|(settled, newest)| filter::is_worn(settled, newest))
    }
}
