//! Which core each busy watched thread should have, and why. Pure: the topology, what the threads may do and the last
//! seconds' load go in, a proposal with its reasons comes out. It sets nothing and promises nothing about the rate.

mod allowed;
#[cfg(test)]
pub(in crate::derive) mod machine;
mod place;
mod reason;
mod recent;
mod seat;
#[cfg(test)]
mod tests;

pub use recent::{CoreRecent, RecentLoad};

use super::Metrics;
use super::threads::ThreadMetrics;
use crate::sample::{CoreId, CoreSet, Duty, Side, ThreadId};
use allowed::Allowed;

/// A thread is busy from this share of a core on, over the last seconds.
pub const BUSY: f64 = 0.05;

/// A placement of the busy watched threads, to be shown first and applied on a second press.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// One step a thread, in the order they are applied.
    pub steps: Vec<Step>,
    /// Sentences on the whole: which circle was chosen and why; what was left out.
    pub reasons: Vec<String>,
}

/// One thread and the core it should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The thread.
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// Its mask now, where it is known.
    pub old: Option<CoreSet>,
    /// The core it should have.
    pub core: CoreId,
    /// Why this core.
    pub reason: String,
}

impl Proposal {
    /// The same by hand: one `taskset -cp CORE TID` a step.
    #[must_use]
    pub fn taskset_lines(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("taskset -cp {} {}", step.core, step.thread.tid)).collect()
    }
}

/// A busy thread that wants a core.
struct Want<'a> {
    thread: &'a ThreadMetrics,
    allowed: Allowed,
    /// How many busy threads of the same side come before it: the nth sender and the nth receiver count as one stream.
    rank: usize,
    /// It sends, as far as the command line tells: its core also does the softirq work of the whole path.
    sender: bool,
}

impl Want<'_> {
    /// The one core it is bound to already.
    fn bound_to(&self) -> Option<CoreId> {
        self.thread.sample.allowed.as_ref().filter(|mask| mask.len() == 1)?.first()
    }

    /// The other end of the same stream, as far as that can be told.
    fn is_partner_of(&self, other: &Want<'_>) -> bool {
        let sides = (self.thread.sample.side, other.thread.sample.side);
        self.rank == other.rank && matches!(sides, (Some(a), Some(b)) if a != b)
    }
}

/// Proposes a core of its own for every busy watched thread.
///
/// # Errors
/// A sentence why nothing is proposed and what to do about it.
pub fn propose(metrics: &Metrics, recent: &RecentLoad) -> Result<Proposal, String> {
    if metrics.topology.online().is_empty() {
        return Err("the cores of this machine are not known: choose them by hand with a".to_owned());
    }
    let (wants, left_out) = wants(metrics, recent)?;
    if let Some(core) = only_core(&wants) {
        return Err(format!("only core {core} may run the busy threads: there is nothing to choose"));
    }
    let seats = seat::seats(&metrics.topology, recent, &wants);
    let placement = place::best(&seats, &wants);
    let steps: Vec<Step> = reason::steps(metrics, recent, &seats, &wants, &placement);
    if steps.iter().all(|step| step.old.as_ref() == Some(&CoreSet::single(step.core))) {
        return Err(nothing_to_change(&steps));
    }
    let mut reasons = reason::on_the_whole(metrics, recent, &seats, &wants, &placement);
    reasons.extend(left_out);
    Ok(Proposal { steps, reasons })
}

/// The busy threads, those with the fewest cores to choose from first, then stream by stream; and sentences on those
/// that are left out.
fn wants<'a>(metrics: &'a Metrics, recent: &RecentLoad) -> Result<(Vec<Want<'a>>, Vec<String>), String> {
    if metrics.threads.is_empty() {
        return Err("no thread is watched: start the benchmark, or name its program with --watch NAME".to_owned());
    }
    if metrics.threads.iter().all(|thread| recent.thread_cpu(thread.sample.id).is_none()) {
        return Err("the load of the watched threads is not known yet: wait for the next sample".to_owned());
    }
    let online = metrics.topology.online();
    let (mut wants, mut left_out, mut control) = (Vec::<Want>::new(), Vec::new(), Vec::new());
    for thread in &metrics.threads {
        let id = thread.sample.id;
        if recent.thread_cpu(id).is_none_or(|cpu| cpu <= BUSY) {
            control.extend((thread.sample.duty == Duty::Control).then_some(id.tid));
            continue;
        }
        let allowed = allowed::of(thread, &metrics.topology, &online);
        if allowed.cores.is_empty() {
            left_out.push(format!("{} {} is left out: no core it may use is online", reason::label(thread), id.tid));
            continue;
        }
        let rank = wants.iter().filter(|want| want.thread.sample.side == thread.sample.side).count();
        wants.push(Want { thread, allowed, rank, sender: thread.sample.side == Some(Side::Client) });
    }
    left_out.extend(reason::left_alone(&control));
    if wants.is_empty() {
        let percent = BUSY * 100.0;
        return Err(left_out.into_iter().find(|text| text.contains("left out")).unwrap_or_else(|| {
            format!("no watched thread uses more than {percent:.0} % of a core: start the benchmark first")
        }));
    }
    wants.sort_by_key(|want| (want.allowed.cores.len(), want.rank, !want.sender, want.thread.sample.id));
    Ok((wants, left_out))
}

/// The one core that all of them must share.
fn only_core(wants: &[Want<'_>]) -> Option<CoreId> {
    let cores = &wants.first()?.allowed.cores;
    (cores.len() == 1 && wants.iter().all(|want| want.allowed.cores == *cores)).then(|| cores.first())?
}

fn nothing_to_change(steps: &[Step]) -> String {
    let on: Vec<String> = steps.iter().map(|step| format!("{} on core {}", step.thread.tid, step.core)).collect();
    format!("the busy threads already are where they would be pinned: {}", on.join(", "))
}
