//! Threads that ended before they were found, by the name of their program: how many there were, and how often they migrated.
//! Only threads that migrated are known: nothing reports the rest.

use super::moves::{MoveClass, MovesByClass};
use compact_str::CompactString;
use serde::Serialize;
use std::sync::Arc;
use vnettop_sample::{Sample, row_of};

/// Programs told apart; threads of further programs count under the last name.
const MOST: usize = 32;
/// Its name.
const OTHERS: &str = "other programs";

/// Short-lived threads of one program, since vnettop began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ShortLivedGroup {
    /// What they were called (`comm`).
    pub name: CompactString,
    /// How many of them migrated.
    pub threads: u64,
    /// Moves of all of them together.
    pub moves: u64,
    /// Moves whose class is known.
    pub moves_by_class: MovesByClass,
}

/// Counts them sample by sample.
#[derive(Debug, Clone, Default)]
pub(super) struct ShortLives(Option<Arc<Vec<ShortLivedGroup>>>);

impl ShortLives {
    /// Groups of short-lived threads so far, in the order in which their programs were seen; `None` when the kernel does not
    /// tell of such threads.
    pub fn observe(&mut self, next: &Sample) -> Option<Arc<Vec<ShortLivedGroup>>> {
        let trace = next.trace.as_ref();
        if let Some((trace, ended)) = trace.and_then(|trace| Some((trace, trace.short_lived.as_ref()?))) {
            let groups = self.0.get_or_insert_default();
            if !ended.is_empty() {
                let groups = Arc::make_mut(groups);
                for one in ended {
                    of_name(groups, &one.name).threads += 1;
                }
                for moved in &trace.moves {
                    let Some(thread) = row_of(ended, &moved.tid, |one| one.tid) else { continue };
                    let group = of_name(groups, &thread.name);
                    group.moves += 1;
                    if let Some(class) = MoveClass::of(&next.facts.topology, moved.from, moved.to) {
                        group.moves_by_class.add(class, 1);
                    }
                }
            }
        }
        self.0.clone()
    }
}

fn of_name<'a>(groups: &'a mut Vec<ShortLivedGroup>, name: &CompactString) -> &'a mut ShortLivedGroup {
    let at = groups.iter().position(|group| group.name == *name).unwrap_or_else(|| {
        if groups.len() < MOST {
            let name = if groups.len() + 1 < MOST { name.clone() } else { CompactString::const_new(OTHERS) };
            groups.push(ShortLivedGroup { name, ..ShortLivedGroup::default() });
        }
        groups.len() - 1
    });
    &mut groups[at]
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{Move, ShortLived, Trace, TraceSource};

    fn sample(ended: &[(u32, &str)], moves: &[u32]) -> Sample {
        let one = |&(tid, name): &(u32, &str)| ShortLived { pid: tid, tid, name: name.into() };
        let migration = |&tid: &u32| Move { at_ns: 5, tid, from: 0, to: 1 };
        let (short_lived, moves) = (Some(ended.iter().map(one).collect()), moves.iter().map(migration).collect());
        let trace = Trace { source: TraceSource::Bpf, lost: 0, moves, partly: Vec::new(), short_lived };
        Sample { trace: Some(trace), ..Sample::default() }
    }

    fn reported(lives: &mut ShortLives, next: &Sample) -> Vec<(String, u64, u64)> {
        let groups = lives.observe(next).expect("traced");
        groups.iter().map(|group| (group.name.to_string(), group.threads, group.moves)).collect()
    }

    #[test]
    fn they_are_counted_by_the_name_of_their_program_since_the_beginning() {
        let mut lives = ShortLives::default();
        assert_eq!(lives.observe(&Sample::default()), None, "nothing is traced: not known, not none");
        assert_eq!(reported(&mut lives, &sample(&[], &[1, 1])), [], "moves of threads that are watched");
        reported(&mut lives, &sample(&[(5, "forky"), (6, "forky"), (7, "sh")], &[1, 5, 5, 6, 7]));
        let all = reported(&mut lives, &sample(&[(8, "forky")], &[8]));
        assert_eq!(all, [("forky".to_owned(), 3, 4), ("sh".to_owned(), 1, 1)]);
        assert!(lives.observe(&Sample::default()).is_some(), "what was counted stays");
    }

    #[test]
    fn very_many_names_take_no_more_room() {
        let mut lives = ShortLives::default();
        for tid in 1..=100 {
            reported(&mut lives, &sample(&[(tid, &format!("name {tid}"))], &[tid]));
        }
        let all = reported(&mut lives, &sample(&[], &[]));
        assert_eq!((all.len(), all[MOST - 1].clone()), (MOST, (OTHERS.to_owned(), 69, 69)), "the rest together");
    }
}
