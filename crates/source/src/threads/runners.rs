//! Which threads of the whole machine use its cores, while a watched thread waits for one, or packets pass over a full core: who fills
//! a core is asked only then, and in slices, because a look at one process takes some 6 us. It decides nothing about whose fault that is.

use super::proc_dir::ProcDir;
use crate::clock::SECOND_NS;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vnettop_sample::text;
use vnettop_sample::{Runner, ThreadSample};

/// Share of the time that a watched thread waits for a core, from which on the others are looked at.
const WAITS: f64 = 0.1;
/// Time over which waiting is measured, ns.
const LOOK_NS: u64 = 200_000_000;
/// How long the others are looked at after a watched thread waited, ns.
const KEPT_NS: u64 = 3 * SECOND_NS;
/// Processes that are looked at in a second: 0.4 % of a core.
const A_SECOND: u64 = 640;
/// Most and fewest processes that are looked at in one tick.
const MOST_A_TICK: u64 = 320;
const LEAST_A_TICK: u64 = 8;
/// Share of a core from which on a thread or process is reported, and how many of them at most.
const LEAST: f64 = 0.05;
const MOST_REPORTED: usize = 32;
/// Threads of one process that are looked at.
const MOST_THREADS: usize = 256;

/// Looks at all processes, pass after pass.
#[derive(Debug, Default)]
pub(super) struct Runners {
    /// How long each watched thread had waited at the last look, ns, by its number.
    waited: BTreeMap<u32, u64>,
    waited_at_ns: u64,
    wanted_until_ns: u64,
    looked_at_ns: u64,
    begun_ns: u64,
    /// Processes of this pass that are still to be looked at.
    left: VecDeque<u32>,
    before: BTreeMap<RunnerKey, Used>,
    now: BTreeMap<RunnerKey, Used>,
    found: Vec<Runner>,
    reported: Arc<Vec<Runner>>,
}

/// A process, or one of its threads.
type RunnerKey = (u32, Option<u32>);

/// When it was born, its CPU time until now, both in clock ticks, and when that was read.
#[derive(Debug, Clone, Copy)]
struct Used {
    born: u64,
    ticks: u64,
    at_ns: u64,
}

impl Runners {
    /// What the last whole pass has found, most CPU time first; empty while nobody waits and nobody asks.
    pub(super) fn look(
        &mut self,
        proc: &mut ProcDir,
        (threads, is_asked): (&[ThreadSample], bool),
        tick_ns: u64,
        now_ns: u64,
    ) -> Arc<Vec<Runner>> {
        if self.somebody_waits(threads, now_ns) || is_asked {
            self.wanted_until_ns = now_ns + KEPT_NS;
        }
        let elapsed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.looked_at_ns, now_ns));
        if now_ns >= self.wanted_until_ns {
            let Self { waited, waited_at_ns, looked_at_ns, .. } = std::mem::take(self);
            *self = Self { waited, waited_at_ns, looked_at_ns, ..Self::default() };
            return Arc::clone(&self.reported);
        }
        if self.left.is_empty() && now_ns.saturating_sub(self.begun_ns) >= SECOND_NS {
            self.left = proc.processes().into();
            self.begun_ns = now_ns;
        }
        let most = (elapsed_ns.min(SECOND_NS) * A_SECOND / SECOND_NS).clamp(LEAST_A_TICK, MOST_A_TICK);
        let is_in_a_pass = !self.left.is_empty();
        for _ in 0..most {
            let Some(pid) = self.left.pop_front() else { break };
            self.look_at(proc, pid, tick_ns);
        }
        if is_in_a_pass && self.left.is_empty() {
            self.before = std::mem::take(&mut self.now);
            let mut found = std::mem::take(&mut self.found);
            let share = |one: &Runner| one.cpu_ns as f64 / one.over_ns as f64;
            found.sort_by(|one, other| share(other).total_cmp(&share(one)));
            found.truncate(MOST_REPORTED);
            self.reported = Arc::new(found);
        }
        Arc::clone(&self.reported)
    }

    /// A watched thread could run and did not.
    fn somebody_waits(&mut self, threads: &[ThreadSample], now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.waited_at_ns);
        if elapsed_ns < LOOK_NS {
            return false;
        }
        let waited: BTreeMap<u32, u64> =
            threads.iter().filter_map(|thread| Some((thread.id.tid, thread.wait_ns?))).collect();
        let rise = |(tid, now): (&u32, &u64)| now.saturating_sub(*self.waited.get(tid).unwrap_or(now));
        let waits = waited.iter().map(rise).any(|ns| ns as f64 >= WAITS * elapsed_ns as f64);
        (self.waited, self.waited_at_ns) = (waited, now_ns);
        waits
    }

    /// A process; where it has several threads and uses much, each of them.
    fn look_at(&mut self, proc: &mut ProcDir, pid: u32, tick_ns: u64) {
        let at_ns = crate::now_ns();
        let Some(stat) = proc.process_stat(pid) else { return };
        let used = Used { born: stat.start, ticks: stat.cpu_ticks, at_ns };
        let is_new = !self.before.contains_key(&(pid, None));
        let since = self.since((pid, None), used, tick_ns);
        let (name, core, kernel) = (text::clean(stat.comm), stat.core, Some(stat.kernel));
        if stat.threads < 2 {
            let runner = |(cpu_ns, over_ns)| Runner { pid, tid: pid, name, core, cpu_ns, over_ns, kernel };
            self.found.extend(since.map(runner));
        } else if since.is_some() || (is_new && used.ticks > 0) {
            for tid in proc.tasks(pid).into_iter().take(MOST_THREADS) {
                let at_ns = crate::now_ns();
                let Some(stat) = proc.stat(pid, tid) else { continue };
                let used = Used { born: stat.start, ticks: stat.cpu_ticks, at_ns };
                let (name, core) = (name.clone(), stat.core);
                let since = self.since((pid, Some(tid)), used, tick_ns);
                let runner = |(cpu_ns, over_ns)| Runner { pid, tid, name, core, cpu_ns, over_ns, kernel };
                self.found.extend(since.map(runner));
            }
        }
    }

    /// CPU time since the pass before and the time between, ns; `None` when that is too little, or unknown.
    fn since(&mut self, key: RunnerKey, now: Used, tick_ns: u64) -> Option<(u64, u64)> {
        self.now.insert(key, now);
        let before = self.before.get(&key).filter(|before| before.born == now.born)?;
        let over_ns = now.at_ns.checked_sub(before.at_ns).filter(|&ns| ns > 0)?;
        let cpu_ns = now.ticks.checked_sub(before.ticks)?.saturating_mul(tick_ns);
        (cpu_ns as f64 >= LEAST * over_ns as f64).then_some((cpu_ns, over_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roots;
    use std::path::Path;
    use vnettop_sample::ThreadId;

    /// A thread that has waited so long.
    fn waiting(wait_ns: u64) -> ThreadSample {
        ThreadSample {
            id: ThreadId { pid: 5, tid: 5, start: 1 },
            name: "iperf3".into(),
            core: 1,
            wait_ns: Some(wait_ns),
            ..ThreadSample::default()
        }
    }

    fn write(proc: &Path, directory: &str, comm: &str, ticks: u64, threads: u64) {
        let zeros = "0 ".repeat(16);
        let text = format!("1 ({comm}) R 1 0 0 0 0 0 0 0 0 0 {ticks} 0 0 0 0 0 {threads} 0 7 {zeros}1 0\n");
        std::fs::create_dir_all(proc.join(directory)).expect("writable");
        std::fs::write(proc.join(directory).join("stat"), text).expect("writable");
    }

    #[test]
    fn whoever_uses_a_core_is_named_while_a_watched_thread_waits() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().to_owned(), sys: root.path().to_owned() };
        let mut proc = ProcDir::open(&roots).expect("it is there");
        let mut runners = Runners::default();
        // Clock ticks so long that the time the test takes does not matter.
        let tick_ns = 1 << 50;
        let mut reported = |second: u64, waited_ns: u64| {
            write(root.path(), "90", "sh", second, 1);
            write(root.path(), "91", "rustc", second, 2);
            write(root.path(), "91/task/91", "rustc", 0, 2);
            write(root.path(), "91/task/93", "opt worker", second, 2);
            write(root.path(), "92", "idle", 4, 1);
            let reported = runners.look(&mut proc, (&[waiting(waited_ns)], second >= 30), tick_ns, second * SECOND_NS);
            let mut names: Vec<_> = reported.iter().map(|one| (one.pid, one.tid, one.name.clone(), one.core)).collect();
            names.sort();
            names
        };
        assert!(reported(10, 0).is_empty() && reported(11, 0).is_empty(), "nobody waits, nobody is looked at");
        assert!(reported(12, SECOND_NS / 2).is_empty(), "one pass tells nothing");
        let expected = [(90, 90, "sh".to_owned(), 1), (91, 93, "rustc".to_owned(), 1)];
        assert_eq!(
            reported(13, SECOND_NS),
            expected,
            "the second one does: the thread that used it, by the name of its process"
        );
        assert_eq!(reported(14, SECOND_NS), expected, "a moment without waiting is none");
        assert!(reported(20, SECOND_NS).is_empty(), "nobody waits any more");
        assert!(reported(30, SECOND_NS).is_empty(), "one pass tells nothing");
        assert_eq!(reported(31, SECOND_NS), expected, "somebody asks, though nobody waits");
    }
}
