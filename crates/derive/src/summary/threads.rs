//! On which core each watched thread was, column by column, what it used and how often it migrated.

use super::TimeColumns;
use super::columns::{column, halve};
use crate::moves::{Evidence, MovesByClass};
use crate::{Mean, Metrics, ThreadMetrics};
use compact_str::CompactString;
use std::collections::BTreeMap;
use vnettop_sample::{CoreId, CoreSet, ThreadId};

/// Where a thread was in one column of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StripColumn {
    core: CoreId,
    /// How much longer it was there than elsewhere (a majority vote over time), seconds.
    majority_s: f32,
    /// Migrations within it.
    pub moves: f32,
}

impl StripColumn {
    /// The core that it was on for most of the time; none where it was not there.
    #[must_use]
    pub fn core(self) -> Option<CoreId> {
        (self.majority_s > 0.0).then_some(self.core)
    }

    fn vote(&mut self, core: CoreId, seconds: f32) {
        if core == self.core {
            self.majority_s += seconds;
        } else if self.majority_s >= seconds {
            self.majority_s -= seconds;
        } else {
            (self.core, self.majority_s) = (core, seconds - self.majority_s);
        }
    }
}

/// One watched thread over a whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSummary {
    /// Which thread.
    pub id: ThreadId,
    /// `comm`.
    pub name: CompactString,
    /// As everywhere.
    pub role: &'static str,
    /// The test that it worked for last, by number.
    pub test: Option<u32>,
    /// Mean CPU time, share of one core; none where that is not known.
    pub cpu: Option<f64>,
    /// Mean share of the time that it waited for a core.
    pub wait: Option<f64>,
    /// CPU time that it used, seconds.
    pub cpu_s: f64,
    /// Migrations since it was met first.
    pub moves: u64,
    /// Migrations whose class is known.
    pub by_class: MovesByClass,
    /// What these figures rest on.
    pub evidence: Evidence,
    /// Time that it was watched, seconds.
    pub seconds: f64,
    /// vnettop had pinned it at the end.
    pub pinned: bool,
    /// The cores that it was allowed then; none where that is not known.
    pub allowed: Option<CoreSet>,
    /// By column of time.
    pub columns: Vec<StripColumn>,
    /// While its test ran; none where no sample lies within that.
    pub in_test: Option<ThreadFigures>,
}

/// What a thread did in a time: see [`ThreadSummary`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "as in ThreadSummary")]
pub struct ThreadFigures {
    pub cpu: Option<f64>,
    pub wait: Option<f64>,
    pub moves: u64,
    pub by_class: MovesByClass,
    pub seconds: f64,
}

impl ThreadFigures {
    /// Migrations of which only the number is known, not from which core to which.
    #[must_use]
    pub fn only_counted(&self) -> u64 {
        self.moves.saturating_sub(self.by_class.all())
    }
}

impl ThreadSummary {
    /// While its test ran, else while it was watched.
    #[must_use]
    pub fn figures(&self) -> ThreadFigures {
        let Self { cpu, wait, moves, by_class, seconds, .. } = *self;
        self.in_test.unwrap_or(ThreadFigures { cpu, wait, moves, by_class, seconds })
    }

    /// Migrations of which only the number is known, not from which core to which.
    #[must_use]
    pub fn only_counted(&self) -> u64 {
        self.moves.saturating_sub(self.by_class.all())
    }
}

/// A thread while its test runs.
#[derive(Debug, Clone, Default)]
struct InTest {
    cpu: Mean,
    wait: Mean,
    seconds: f64,
    /// Migrations before the first sample and after the last one, all and by class.
    before: (u64, MovesByClass),
    after: (u64, MovesByClass),
}

impl InTest {
    fn figures(&self) -> Option<ThreadFigures> {
        let by_class = self.after.1.since(self.before.1);
        let figures = ThreadFigures {
            cpu: self.cpu.value(),
            wait: self.wait.value(),
            moves: self.after.0.saturating_sub(self.before.0).max(by_class.all()),
            by_class,
            seconds: self.seconds,
        };
        (self.seconds > 0.0).then_some(figures)
    }
}

#[derive(Debug, Clone)]
struct ThreadFold {
    first_moves: u64,
    name: CompactString,
    role: &'static str,
    test: Option<u32>,
    moves: u64,
    by_class: MovesByClass,
    evidence: Evidence,
    pinned: bool,
    allowed: Option<CoreSet>,
    cpu: Mean,
    wait: Mean,
    seconds: f64,
    in_test: InTest,
    columns: Vec<StripColumn>,
}

#[derive(Debug, Clone)]
pub(super) struct ThreadsTrack {
    most: usize,
    threads: BTreeMap<ThreadId, ThreadFold>,
    left_out: usize,
}

impl ThreadsTrack {
    pub fn new(most: usize) -> Self {
        Self { most, threads: BTreeMap::new(), left_out: 0 }
    }

    pub fn observe(&mut self, metrics: &Metrics, from_ns: u64, columns: &TimeColumns) {
        let (elapsed_s, tests) = (metrics.machine.elapsed_s.unwrap_or(0.0), metrics.tests_of_threads());
        for thread in metrics.threads.iter() {
            let id = thread.sample.id;
            let test = tests.get(&id).copied();
            let Some(track) = self.track(thread, test) else { continue };
            track.cpu.add(thread.cpu, elapsed_s);
            track.wait.add(thread.wait, elapsed_s);
            track.seconds += elapsed_s;
            let moves = thread.moves.saturating_sub(track.moves);
            let is_whole =
                metrics.tests.iter().any(|one| Some(one.number) == test && one.covers(from_ns, metrics.machine.at_ns));
            track.worked(thread, test, if is_whole { elapsed_s } else { 0.0 });
            track.take_newest(thread, test);
            let traced = || metrics.moves.iter().filter(|one| one.thread == id);
            // From move to move where they are known, else as it was found at the end.
            let mut at_ns = from_ns;
            for one in traced() {
                track.was_on(one.from, (at_ns, one.at_ns.max(at_ns)), *columns);
                at_ns = one.at_ns.max(at_ns);
            }
            track.was_on(thread.sample.core, (at_ns, metrics.machine.at_ns), *columns);
            let is_traced = traced().next().is_some();
            for one in traced() {
                track.moved(1.0, (one.at_ns, one.at_ns + 1), *columns);
            }
            if !is_traced && moves > 0 {
                track.moved(moves as f64, (from_ns, metrics.machine.at_ns), *columns);
            }
        }
    }

    /// The track of a thread; none where there is no room for it and it is not busier than any that has one.
    fn track(&mut self, thread: &ThreadMetrics, test: Option<u32>) -> Option<&mut ThreadFold> {
        let id = thread.sample.id;
        if !self.threads.contains_key(&id) {
            if self.threads.len() >= self.most {
                let least = self.threads.iter().min_by(|(_, a), (_, b)| a.cpu.sum.total_cmp(&b.cpu.sum));
                let (least, used_s) = least.map(|(least, track)| (*least, track.cpu.sum))?;
                if thread.cpu.is_none_or(|cpu| cpu <= used_s) {
                    return None;
                }
                self.left_out += 1;
                self.threads.remove(&least);
            }
            let track = ThreadFold {
                first_moves: thread.moves,
                name: thread.sample.name.clone(),
                role: thread.sample.role(),
                test,
                moves: thread.moves,
                by_class: thread.by_class,
                evidence: thread.evidence,
                pinned: thread.pinned,
                allowed: thread.sample.allowed.clone(),
                cpu: Mean::default(),
                wait: Mean::default(),
                seconds: 0.0,
                in_test: InTest::default(),
                columns: Vec::new(),
            };
            self.threads.insert(id, track);
        }
        self.threads.get_mut(&id)
    }

    pub fn halve(&mut self) {
        for track in self.threads.values_mut() {
            halve(&mut track.columns, |one, other| {
                if other.majority_s > 0.0 {
                    one.vote(other.core, other.majority_s);
                }
                one.moves += other.moves;
            });
        }
    }

    pub fn summaries(&self) -> (Vec<ThreadSummary>, usize) {
        let summary = |(id, track): (&ThreadId, &ThreadFold)| ThreadSummary {
            id: *id,
            name: track.name.clone(),
            role: track.role,
            test: track.test,
            cpu: track.cpu.value(),
            wait: track.wait.value(),
            cpu_s: track.cpu.sum,
            // An event may come before its migration is in the count.
            moves: track.moves.saturating_sub(track.first_moves).max(track.by_class.all()),
            by_class: track.by_class,
            evidence: track.evidence,
            seconds: track.seconds,
            pinned: track.pinned,
            allowed: track.allowed.clone(),
            columns: track.columns.clone(),
            in_test: track.in_test.figures(),
        };
        let mut all: Vec<ThreadSummary> = self.threads.iter().map(summary).collect();
        all.sort_by(|one, other| other.cpu_s.total_cmp(&one.cpu_s));
        (all, self.left_out)
    }
}

impl ThreadFold {
    /// So much time for its test, before the newest figures are taken; one that works for another test starts anew.
    fn worked(&mut self, thread: &ThreadMetrics, test: Option<u32>, elapsed_s: f64) {
        if test.is_some() && test != self.test {
            self.in_test = InTest::default();
        }
        if elapsed_s <= 0.0 {
            return;
        }
        if self.in_test.seconds <= 0.0 {
            self.in_test.before = (self.moves, self.by_class);
        }
        self.in_test.after = (thread.moves, thread.by_class);
        self.in_test.cpu.add(thread.cpu, elapsed_s);
        self.in_test.wait.add(thread.wait, elapsed_s);
        self.in_test.seconds += elapsed_s;
    }

    fn take_newest(&mut self, thread: &ThreadMetrics, test: Option<u32>) {
        if self.name != thread.sample.name {
            self.name.clone_from(&thread.sample.name);
        }
        (self.role, self.test) = (thread.sample.role(), test.or(self.test));
        (self.moves, self.by_class) = (thread.moves, thread.by_class);
        (self.evidence, self.pinned) = (thread.evidence, thread.pinned);
        if self.allowed != thread.sample.allowed {
            self.allowed.clone_from(&thread.sample.allowed);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "seconds of one column, for a picture")]
    fn was_on(&mut self, core: CoreId, (from_ns, to_ns): (u64, u64), columns: TimeColumns) {
        for (at, seconds) in columns.spans(from_ns, to_ns) {
            column(&mut self.columns, at).vote(core, seconds as f32);
        }
    }

    /// So many migrations, evenly over a time.
    #[allow(clippy::cast_possible_truncation, reason = "few migrations, for a picture")]
    fn moved(&mut self, moves: f64, (from_ns, to_ns): (u64, u64), columns: TimeColumns) {
        let whole_s = to_ns.saturating_sub(from_ns) as f64 / 1e9;
        for (at, seconds) in columns.spans(from_ns, to_ns) {
            column(&mut self.columns, at).moves += (moves * seconds / whole_s) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_core_of_most_of_its_time() {
        let mut column = StripColumn::default();
        assert_eq!(column.core(), None, "it was not there");
        for (core, seconds) in [(3, 0.2), (7, 0.1), (3, 0.3), (7, 0.1)] {
            column.vote(core, seconds);
        }
        assert_eq!(column.core(), Some(3));
    }
}
