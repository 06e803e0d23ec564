//! What running iperf 3 write, by the descriptors that they have open: standard output, or the file of `--logfile`. What
//! one has open is what it writes to, in whatever root and directory it lives and whatever its name is by now. The
//! process notices nothing of it. `place` finds the file.

use super::place;
use super::tail::Tail;
use crate::Roots;
use std::collections::BTreeMap;
use std::path::Path;
use vnettop_sample::{Benchmark, Report, Reported, Unread};

/// How often the file that a process writes to is looked up, ns.
const LOOK_NS: u64 = 1_000_000_000;
/// How many processes are followed at most: each takes a descriptor.
const MOST: usize = 64;

/// Follows what the watched processes write themselves.
#[derive(Debug, Default)]
pub(super) struct OwnReports(BTreeMap<u32, FollowedOutput>);

#[derive(Debug, Default)]
struct FollowedOutput {
    tail: Option<Tail>,
    unread: Option<Unread>,
    looked_at_ns: Option<u64>,
}

impl OwnReports {
    /// Nobody is followed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what the benchmarks wrote since the last call, but for the process `named`, which writes to the file that the user named.
    /// Reports on whole tests are added to `reported`, each with its process.
    pub fn follow(
        &mut self,
        (roots, now_ns): (&Roots, u64),
        benchmarks: &[Benchmark],
        named: Option<u32>,
        piece: &mut Vec<u8>,
        reported: &mut Vec<super::ProcessReport>,
    ) {
        let wanted = |pid: u32| Some(pid) != named && benchmarks.iter().any(|test| test.pid == pid && test.json_stream);
        self.0.retain(|&pid, followed| {
            let stays = wanted(pid);
            if !stays {
                followed.end(pid, piece, reported);
            }
            stays
        });
        for test in benchmarks.iter().filter(|test| wanted(test.pid)) {
            if self.0.len() < MOST || self.0.contains_key(&test.pid) {
                self.0.entry(test.pid).or_default().follow((roots, now_ns), test.pid, piece, reported);
            }
        }
    }

    /// What a process reported last, and why nothing of it is read.
    pub fn of(&self, pid: u32) -> (Option<Reported>, Option<Unread>) {
        let of = |followed: &FollowedOutput| {
            (followed.tail.as_ref().and_then(|t| t.lines.last_of_its_own()), followed.unread)
        };
        self.0.get(&pid).map_or((None, None), of)
    }
}

impl FollowedOutput {
    fn follow(
        &mut self,
        (roots, now_ns): (&Roots, u64),
        pid: u32,
        piece: &mut Vec<u8>,
        reported: &mut Vec<super::ProcessReport>,
    ) {
        if self.looked_at_ns.is_none_or(|looked_ns| now_ns.saturating_sub(looked_ns) >= LOOK_NS) {
            self.looked_at_ns = Some(now_ns);
            self.look(&roots.proc, pid, piece, reported);
        }
        if let Some(tail) = &mut self.tail {
            tail.read(piece);
            report(tail, pid, reported);
        }
    }

    /// Looks up the file that the process writes to now. The file known so far is read on when the process has ended, or when its
    /// descriptors may not be looked at.
    fn look(&mut self, proc: &Path, pid: u32, piece: &mut Vec<u8>, reported: &mut Vec<super::ProcessReport>) {
        match place::look(proc, pid, self.tail.as_ref().map(Tail::identity)) {
            None | Some(Ok(None) | Err(None)) => {}
            Some(Ok(Some(tail))) => {
                self.end(pid, piece, reported);
                (self.tail, self.unread) = (Some(tail), None);
            }
            Some(Err(unread)) if self.tail.is_none() => self.unread = unread,
            Some(Err(_)) => {}
        }
    }

    /// Reads what is left.
    fn end(&mut self, pid: u32, piece: &mut Vec<u8>, reported: &mut Vec<super::ProcessReport>) {
        if let Some(mut tail) = self.tail.take() {
            tail.read_to_the_end(piece);
            report(&mut tail, pid, reported);
        }
    }
}

/// Tells of the tests that have ended since.
pub(super) fn report(tail: &mut Tail, pid: u32, reported: &mut Vec<super::ProcessReport>) {
    reported.extend(tail.lines.ended().into_iter().map(|(side, whole)| (pid, side, Report::Whole(whole))));
}
