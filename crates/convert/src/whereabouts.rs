//! On which core a thread is, from moment to moment: told by its migrations where each of them is known, by two looks that agree
//! where they are counted and none was. What lies between is not known, and stays a gap.

use vnettop_derive::{Evidence, ThreadMetrics, TracedMove};
use vnettop_sample::CoreId;

/// Where a thread is as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LastKnown {
    /// On no core that is known.
    #[default]
    Nowhere,
    /// Seen on a core at an instant, monotonic ns: what was before and comes after is not known yet.
    Sighted(CoreId, u64),
    /// On a core since an instant, which was said.
    Since(CoreId, u64),
}

/// A thread comes to a core or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnOffCore {
    /// From then on it is on the core.
    Comes(CoreId),
    /// Up to then it was there.
    Leaves(CoreId),
}

/// Changes with their instants, monotonic ns.
pub type OnOffCores = Vec<(u64, OnOffCore)>;

/// Follows one thread through the samples.
#[derive(Debug, Clone, Default)]
pub struct Whereabouts {
    known: LastKnown,
    /// Up to when it is known, monotonic ns.
    until_ns: u64,
    /// Migrations counted at the last look.
    counted: Option<u64>,
}

impl Whereabouts {
    /// Takes what a sample says of the thread, and its traced migrations since the sample before in the order of time.
    pub fn observe(&mut self, thread: &ThreadMetrics, moves: &[TracedMove], changes: &mut OnOffCores) {
        let (core, at_ns) = (thread.sample.core, thread.sample.at_ns);
        let counted = std::mem::replace(&mut self.counted, thread.sample.migrations);
        if thread.evidence == Evidence::Traced {
            self.migrate(moves, changes);
            match self.known {
                LastKnown::Nowhere => self.known = LastKnown::Sighted(core, at_ns),
                LastKnown::Sighted(core, since_ns) => self.come(core, since_ns, changes),
                LastKnown::Since(..) => {}
            }
        } else {
            let stayed = counted.is_some() && counted == thread.sample.migrations;
            match self.known {
                LastKnown::Since(on, _) if stayed && on == core => {}
                LastKnown::Sighted(on, since_ns) if stayed && on == core => self.come(core, since_ns, changes),
                _ => {
                    self.leave(self.until_ns, changes);
                    self.known = LastKnown::Sighted(core, at_ns);
                }
            }
        }
        self.until_ns = self.until_ns.max(at_ns);
    }

    /// The thread is seen no more; of its last migrations some may be known.
    pub fn gone(&mut self, moves: &[TracedMove], changes: &mut OnOffCores) {
        self.migrate(moves, changes);
        self.leave(self.until_ns, changes);
    }

    fn migrate(&mut self, moves: &[TracedMove], changes: &mut OnOffCores) {
        for one in moves {
            match self.known {
                LastKnown::Sighted(on, since_ns) if since_ns < one.at_ns && on == one.from => {
                    self.come(on, since_ns, changes);
                    self.leave(one.at_ns, changes);
                }
                LastKnown::Since(on, since_ns) if since_ns <= one.at_ns && on == one.from => {
                    self.leave(one.at_ns, changes);
                }
                // A migration is missing: where it was between is not known.
                LastKnown::Since(..) => self.leave(self.until_ns.min(one.at_ns), changes),
                LastKnown::Sighted(..) | LastKnown::Nowhere => {}
            }
            self.come(one.to, one.at_ns, changes);
            self.until_ns = self.until_ns.max(one.at_ns);
        }
    }

    fn come(&mut self, core: CoreId, at_ns: u64, changes: &mut OnOffCores) {
        self.known = LastKnown::Since(core, at_ns);
        changes.push((at_ns, OnOffCore::Comes(core)));
    }

    fn leave(&mut self, at_ns: u64, changes: &mut OnOffCores) {
        if let LastKnown::Since(core, since_ns) = std::mem::take(&mut self.known) {
            changes.push((at_ns.max(since_ns), OnOffCore::Leaves(core)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OnOffCore::{Comes, Leaves};
    use super::*;
    use vnettop_derive::MovesByClass;
    use vnettop_sample::{ThreadId, ThreadSample};

    const ID: ThreadId = ThreadId { pid: 7, tid: 8, start: 9 };

    fn look(at_ns: u64, core: CoreId, migrations: Option<u64>, evidence: Evidence) -> ThreadMetrics {
        ThreadMetrics {
            sample: ThreadSample { id: ID, core, at_ns, migrations, ..ThreadSample::default() },
            cpu: None,
            moves: 0,
            moves_per_s: None,
            evidence,
            last_class: None,
            by_class: MovesByClass::default(),
            voluntary_per_s: None,
            involuntary_per_s: None,
            wait: None,
            pinned: false,
            before_pin: None,
            moves_lately_per_s: None,
            moved: false,
            settled: false,
        }
    }

    fn move_at(at_ns: u64, from: CoreId, to: CoreId) -> TracedMove {
        TracedMove { at_ns, thread: ID, from, to, class: None }
    }

    /// What is said of these looks, each with its migrations, and of the end.
    fn said(looks: &[(ThreadMetrics, Vec<TracedMove>)]) -> OnOffCores {
        let (mut thread, mut changes) = (Whereabouts::default(), Vec::new());
        for (look, moves) in looks {
            thread.observe(look, moves, &mut changes);
        }
        thread.gone(&[], &mut changes);
        changes
    }

    #[test]
    fn each_traced_migration_ends_a_slice_and_begins_the_next() {
        let traced = |at_ns, core| look(at_ns, core, Some(3), Evidence::Traced);
        let all = said(&[
            (traced(100, 5), vec![]),
            (traced(200, 6), vec![move_at(150, 5, 6)]),
            // Its core was read before the last migration, of which the next sample tells.
            (traced(300, 4), vec![]),
            (traced(400, 4), vec![move_at(299, 6, 4)]),
        ]);
        let expected =
            [(100, Comes(5)), (150, Leaves(5)), (150, Comes(6)), (299, Leaves(6)), (299, Comes(4)), (400, Leaves(4))];
        assert_eq!(all, expected);
    }

    #[test]
    fn where_a_migration_is_missing_or_only_counted_there_is_a_gap() {
        let traced = |at_ns, core| look(at_ns, core, Some(3), Evidence::Traced);
        let all =
            said(&[(traced(100, 5), vec![]), (traced(200, 5), vec![]), (traced(300, 1), vec![move_at(250, 7, 1)])]);
        assert_eq!(all, [(100, Comes(5)), (200, Leaves(5)), (250, Comes(1)), (300, Leaves(1))]);
        let counted = |at_ns, core, count| look(at_ns, core, Some(count), Evidence::Counted);
        let all = said(&[
            (counted(100, 5, 0), vec![]),
            (counted(200, 5, 0), vec![]),
            (counted(300, 5, 2), vec![]),
            (counted(400, 5, 2), vec![]),
        ]);
        assert_eq!(
            all,
            [(100, Comes(5)), (200, Leaves(5)), (300, Comes(5)), (400, Leaves(5))],
            "it left and came back"
        );
        let sampled = |at_ns| (look(at_ns, 5, None, Evidence::Sampled), vec![]);
        assert!(said(&[sampled(100), sampled(200), sampled(300)]).is_empty(), "what is not counted is not known");
    }

    #[test]
    fn migrations_of_before_a_thread_was_found_are_its_own() {
        let traced = |at_ns, core| look(at_ns, core, Some(3), Evidence::Traced);
        let all = said(&[(traced(100, 5), vec![]), (traced(200, 5), vec![move_at(90, 2, 5)])]);
        assert_eq!(all, [(90, Comes(5)), (200, Leaves(5))]);
    }
}
