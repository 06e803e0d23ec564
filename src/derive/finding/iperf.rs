//! The traps of iperf3: threads that are not there, and pins of the thread that carries nothing.

use super::figure::count;
use super::threads::busy;
use super::{Diagnostic, LintInput};
use crate::derive::threads::ThreadMetrics;
use crate::sample::{Duty, ThreadId};

fn is_iperf3(thread: &ThreadMetrics) -> bool {
    thread.sample.name == "iperf3"
}

/// Several streams in the only thread of a process: iperf3 before 3.16 has one thread whatever `-P` says.
pub(super) fn one_thread_for_all(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let threads_of = |pid: u32| scene.metrics.threads.iter().filter(|thread| thread.sample.id.pid == pid).count();
    let connections = &scene.inquiry.conclusion.connections;
    let streams = |id: ThreadId| connections.get(&id.pid).map_or(0, |all| all.saturating_sub(1));
    // One connection of each test is for control.
    let alone = |thread: &&ThreadMetrics| streams(thread.sample.id) > 1 && threads_of(thread.sample.id.pid) == 1;
    let thread = busy(scene.metrics).filter(|thread| is_iperf3(thread)).find(alone)?;
    let (pid, streams) = (thread.sample.id.pid, streams(thread.sample.id));
    let text = format!(
        "iperf3 ({pid}) runs {streams} streams in one thread, so they share one core; iperf3 ≥ 3.16 uses a thread \
         per stream"
    );
    Some(Diagnostic::new(text, [("streams", count(streams)), ("threads", 1.0)]))
}

/// The main thread is pinned, its workers are not: `taskset -p` of a process whose threads carry the traffic.
pub(super) fn only_the_main_thread(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let cores = |thread: &ThreadMetrics| thread.sample.allowed.as_ref().map_or(0, crate::sample::CoreSet::len);
    let main = |worker: &ThreadMetrics| {
        let mut all = scene.metrics.threads.iter();
        all.find(|thread| thread.sample.id.pid == worker.sample.id.pid && thread.sample.duty == Duty::Control)
    };
    let free = busy(scene.metrics)
        .filter(|thread| is_iperf3(thread))
        .filter(|worker| worker.sample.duty == Duty::Worker && cores(worker) > 1);
    let (main, worker) = free.filter_map(|worker| Some((main(worker)?, worker))).find(|(main, _)| cores(main) == 1)?;
    let (one, all) = (main.sample.allowed.as_ref()?, worker.sample.allowed.as_ref()?);
    let text = format!(
        "only the main thread of iperf3 ({}) is pinned (core {one}); it carries no traffic; pin its workers, which may run on {all} (taskset -cp CORE TID)",
        main.sample.id.pid
    );
    Some(Diagnostic::new(text, [("worker_cores", count(cores(worker)))]))
}
