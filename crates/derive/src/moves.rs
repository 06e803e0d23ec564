//! What a move crosses, and what our knowledge of it rests on.

use serde::Serialize;
use vnettop_sample::{CoreId, Sample, ThreadId, ThreadSample, Topology, Word};

/// The level that a move crossed, told by the innermost one that still holds both cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum MoveClass {
    /// To the SMT sibling: same physical core.
    Smt,
    /// Same cluster, another physical core.
    Cluster,
    /// Same last-level cache, another cluster.
    Llc,
    /// Another last-level cache or node, same socket.
    Node,
    /// Another socket.
    Socket,
}

impl MoveClass {
    /// The class of a move; none when a core is not in the topology, or no level that holds both is known.
    #[must_use]
    pub fn of(topology: &Topology, from: CoreId, to: CoreId) -> Option<Self> {
        let (from, to) = (topology.place(from)?, topology.place(to)?);
        let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
        if same(from.physical, to.physical) {
            Some(Self::Smt)
        } else if same(from.cluster, to.cluster) {
            Some(Self::Cluster)
        } else if same(from.llc, to.llc) {
            Some(Self::Llc)
        } else if same(from.socket, to.socket) || same(from.node, to.node) {
            Some(Self::Node)
        } else {
            (from.socket.is_some() && to.socket.is_some()).then_some(Self::Socket)
        }
    }
}

/// One move as the kernel made it, and what it crossed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedMove {
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The core it left.
    pub from: CoreId,
    /// The core it went to.
    pub to: CoreId,
    /// Class of the move; `None` when the topology does not show it.
    pub class: Option<MoveClass>,
}

/// The moves of the newer sample, each with the thread it belongs to: one that ended in between is known from the older.
pub(super) fn traced(previous: Option<&Sample>, next: &Sample) -> Vec<TracedMove> {
    let Some(trace) = next.trace.as_ref().filter(|trace| !trace.moves.is_empty()) else { return Vec::new() };
    let earlier = previous.into_iter().flat_map(Sample::watched);
    // The newer sample comes last, and so is asked first where both know the number.
    let mut threads: Vec<ThreadId> = earlier.chain(next.watched()).map(|thread| thread.id).collect();
    // When one was born that ended before it was found is not known.
    let short_lived = trace.short_lived.iter().flatten();
    threads.extend(short_lived.map(|one| ThreadId { pid: one.pid, tid: one.tid, start: 0 }));
    threads.sort_by_key(|thread| thread.tid);
    let thread = |tid: u32| {
        let after = threads.partition_point(|thread| thread.tid <= tid);
        threads[..after].last().copied().filter(|thread| thread.tid == tid)
    };
    let traced = trace.moves.iter().filter_map(|one| {
        let class = MoveClass::of(&next.facts.topology, one.from, one.to);
        Some(TracedMove { at_ns: one.at_ns, thread: thread(one.tid)?, from: one.from, to: one.to, class })
    });
    traced.collect()
}

/// Whether every move of this thread since the older sample (`old`) came as an event. A trace of the whole machine loses
/// records of any thread: the kernel's count of this one tells whether they were its own.
pub(super) fn is_traced(
    previous: Option<&Sample>,
    next: &Sample,
    old: Option<&ThreadSample>,
    new: &ThreadSample,
) -> bool {
    let Some((before, now)) = previous.and_then(|sample| sample.trace.as_ref()).zip(next.trace.as_ref()) else {
        return false;
    };
    if before.lost == now.lost {
        return now.partly.binary_search(&new.id.tid).is_err();
    }
    let counted = old.and_then(|old| new.migrations?.checked_sub(old.migrations?));
    let reported = now.moves.iter().filter(|one| one.tid == new.id.tid).count() as u64;
    counted.is_some_and(|counted| reported >= counted)
}

/// What a count of moves rests on, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Evidence {
    /// Every move came as an event too: classes and instants are exact.
    Traced,
    /// `se.nr_migrations`: every move is in it.
    Counted,
    /// The core seen at each sample: an under-count, marked `≥`.
    Sampled,
}

/// Moves seen from sample to sample, by class: their from and to are known, so they are never more than the count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the words of MoveClass")]
pub struct MovesByClass {
    pub smt: u64,
    pub cluster: u64,
    pub llc: u64,
    pub node: u64,
    pub socket: u64,
}

impl MovesByClass {
    /// All moves.
    #[must_use]
    pub fn all(self) -> u64 {
        self.far() + self.smt + self.cluster + self.llc
    }

    /// Moves to another last-level cache, node or socket.
    #[must_use]
    pub fn far(self) -> u64 {
        self.node + self.socket
    }

    /// Classes that have moves, with their number, the farthest first.
    pub fn seen(mut self) -> impl Iterator<Item = (MoveClass, u64)> {
        let all = [MoveClass::Socket, MoveClass::Node, MoveClass::Llc, MoveClass::Cluster, MoveClass::Smt];
        all.map(|class| (class, *self.of(class))).into_iter().filter(|(_, count)| *count > 0)
    }

    /// Number and class of these moves, the farthest first: `3 node`.
    #[must_use]
    pub fn words(self) -> Vec<String> {
        self.seen().map(|(class, count)| format!("{count} {}", class.word())).collect()
    }

    /// Counts so many more.
    pub fn add(&mut self, class: MoveClass, moves: u64) {
        *self.of(class) += moves;
    }

    /// Counts these too.
    pub fn add_all(&mut self, more: Self) {
        more.seen().for_each(|(class, moves)| self.add(class, moves));
    }

    /// What was added since.
    #[must_use]
    pub fn since(mut self, mut before: Self) -> Self {
        for (class, now) in self.seen() {
            *self.of(class) = now.saturating_sub(*before.of(class));
        }
        self
    }

    fn of(&mut self, class: MoveClass) -> &mut u64 {
        match class {
            MoveClass::Smt => &mut self.smt,
            MoveClass::Cluster => &mut self.cluster,
            MoveClass::Llc => &mut self.llc,
            MoveClass::Node => &mut self.node,
            MoveClass::Socket => &mut self.socket,
        }
    }
}
