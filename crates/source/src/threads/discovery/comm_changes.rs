//! Who has taken another name: a new task bears its creator's name until it executes a program or names itself. Young
//! ones are looked at on every tick, old processes in turns, each about once a second.

use super::super::proc_dir::ProcDir;
use super::{Change, ProcessFinder};
use crate::clock::SECOND_NS;
use crate::proc_file;

/// How long a task is young.
const YOUNG_NS: u64 = 3 * SECOND_NS;
/// Most young tasks, and most old processes, that one tick looks at.
const MOST_LOOKS: usize = 100;

impl ProcessFinder {
    pub(super) fn remember_young(&mut self, pid: u32, tid: u32, start: u64) {
        if self.boot_ns.saturating_sub(start.saturating_mul(self.tick_ns)) < YOUNG_NS {
            self.young.push_back((pid, tid, start));
        }
    }

    pub(super) fn look_at_young(&mut self, proc: &mut ProcDir) {
        for _ in 0..self.young.len().min(MOST_LOOKS) {
            let Some((pid, tid, start)) = self.young.pop_front() else { break };
            let is_there =
                if pid == tid { self.look_at_process(proc, pid) } else { self.look_at_thread(proc, pid, tid) };
            if is_there {
                self.remember_young(pid, tid, start);
            }
        }
    }

    /// Looks at the next few processes, so many that all have had their turn within a second.
    pub(super) fn sweep(&mut self, proc: &mut ProcDir, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.swept_at_ns, now_ns)).min(SECOND_NS);
        let share = (self.processes.len() as u64 * elapsed_ns).div_ceil(SECOND_NS);
        let share = usize::try_from(share).unwrap_or(MOST_LOOKS).min(MOST_LOOKS);
        let after = self.swept_to + 1;
        let in_turn = self.processes.range(after..).chain(self.processes.range(..after));
        let pids: Vec<u32> = in_turn.map(|(pid, _)| *pid).take(share).collect();
        for pid in pids {
            self.look_at_process(proc, pid);
            self.swept_to = pid;
        }
    }

    /// Looks whether a process still answers as it did; false when it is gone.
    pub(super) fn look_at_process(&mut self, proc: &mut ProcDir, pid: u32) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else {
            return self.kernel.contains(&pid) && self.look_at_thread(proc, pid, pid);
        };
        if process.comm.is_none() && self.kept < self.most_kept {
            process.comm = proc.open_file(pid, pid, "comm").ok().filter(proc_file::leaves_room);
            self.kept += usize::from(process.comm.is_some());
        }
        let text = match &process.comm {
            Some(comm) => proc.read(comm),
            None => proc.read_file(pid, pid, "comm"),
        };
        let Ok(text) = text else {
            self.forget(pid);
            return false;
        };
        let answers = self.watched.answers(pid, line(text), process.parent);
        let did_answer = std::mem::replace(&mut process.watched, answers);
        if answers && !did_answer {
            self.watch_all(proc, pid);
        } else if did_answer && !answers {
            self.changes.push(Change::Unwatch(pid));
            self.meet_threads(proc, pid);
        }
        true
    }

    /// Looks whether a thread has come to bear a name asked for; false when that does not matter any more.
    fn look_at_thread(&mut self, proc: &mut ProcDir, pid: u32, tid: u32) -> bool {
        if self.processes.get(&pid).is_some_and(|process| process.watched) {
            return false;
        }
        let Ok(text) = proc.read_file(pid, tid, "comm") else { return false };
        let parent = self.processes.get(&pid).map_or(0, |process| process.parent);
        if self.watched.answers(tid, line(text), parent) {
            self.changes.push(Change::Watch { pid, tid, for_itself: true });
        }
        true
    }
}

/// `comm` without its final newline; the name itself may hold others.
fn line(comm: &[u8]) -> &[u8] {
    comm.strip_suffix(b"\n").unwrap_or(comm)
}
