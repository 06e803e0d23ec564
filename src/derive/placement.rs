//! Which core each busy watched thread should have, and why. Pure: the topology, what the threads may do and the last
//! seconds' load go in, a proposal with its reasons comes out. It sets nothing and promises nothing about the rate.

mod allowed;
mod direction;
#[cfg(test)]
pub(in crate::derive) mod machine;
mod merit;
mod network_card;
mod place;
mod preview;
mod reason;
mod recent;
mod runner_up;
mod seat;
#[cfg(test)]
mod tests;

pub use preview::CoreChange;
pub use recent::{CoreRecent, RecentLoad, others};

use super::Metrics;
use super::threads::ThreadMetrics;
use crate::sample::{CoreId, CoreSet, Duty, ThreadId};
use allowed::Allowed;
use direction::Senders;
use place::Placement;
use seat::{Room, Seat};
use std::collections::BTreeSet;

/// A thread is busy from this share of a core on, over the last seconds.
pub const BUSY: f64 = 0.05;

/// A placement of the busy watched threads, to be shown first and applied on a second press.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// One step a thread, in the order they are applied.
    pub steps: Vec<Step>,
    /// Why it will probably not help; it may be applied all the same.
    pub doubt: Option<String>,
    /// Sentences on the whole: which circle was chosen and why; what was left out.
    pub reasons: Vec<String>,
    /// The cores it touches, before and after.
    pub cores: Vec<CoreChange>,
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
    /// The core it was seen on last.
    pub on: CoreId,
    /// The core it should have.
    pub core: CoreId,
    /// Why this core.
    pub reason: String,
    /// Cores that would do as well.
    pub as_good: CoreSet,
    /// The core that would have been next; none where there is none that is not as good.
    pub runner_up: Option<RunnerUp>,
}

impl Step {
    /// The cores that were not chosen, in one sentence: those that would do as well, and the next best with its reason.
    #[must_use]
    pub fn others(&self) -> Option<String> {
        let as_good = match self.as_good.len() {
            0 => None,
            1 => Some(format!("core {} would do as well", self.as_good)),
            _ => Some(format!("cores {} would do as well", self.as_good)),
        };
        let next = self.runner_up.as_ref().map(|next| format!("core {} next best: {}", next.core, next.why));
        Some([as_good, next].into_iter().flatten().collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }
}

/// The second best core for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerUp {
    /// The core.
    pub core: CoreId,
    /// Where it is, seen from the one that was chosen, and what decided against it.
    pub why: String,
}

impl Proposal {
    /// What is left of it where these threads are taken off: who stays keeps the core it was given.
    #[must_use]
    pub fn without(&self, off: &BTreeSet<ThreadId>) -> Self {
        let mut rest = self.clone();
        rest.steps.retain(|step| !off.contains(&step.thread));
        let stays = |tid: &u32| rest.steps.iter().any(|step| step.thread.tid == *tid);
        for core in &mut rest.cores {
            core.now.retain(stays);
            core.then.retain(stays);
        }
        rest.cores.retain(|core| !core.now.is_empty() || !core.then.is_empty());
        rest
    }

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
    /// The one core it is bound to already.
    bound_to: Option<CoreId>,
}

impl Want<'_> {
    /// The other end of the same stream, as far as that can be told.
    fn is_partner_of(&self, other: &Want<'_>) -> bool {
        let sides = (self.thread.sample.side, other.thread.sample.side);
        self.rank == other.rank && matches!(sides, (Some(a), Some(b)) if a != b)
    }
}

/// The core of a mask of one.
fn bound_to(thread: &ThreadMetrics) -> Option<CoreId> {
    thread.sample.allowed.as_ref().filter(|mask| mask.len() == 1)?.first()
}

/// Proposes a core of its own for every busy watched thread.
///
/// # Errors
/// A sentence why nothing is proposed and what to do about it.
pub fn propose(metrics: &Metrics) -> Result<Proposal, String> {
    if metrics.facts.topology.online().is_empty() {
        return Err("the cores of this machine are not known: choose them by hand with a".to_owned());
    }
    let (wants, left_out) = wants(metrics)?;
    if let Some(core) = only_core(&wants) {
        return Err(reason::only_core(core, &wants, &metrics.facts.topology));
    }
    let card = network_card::of(metrics);
    let room = Room { topology: &metrics.facts.topology, recent: &metrics.recent, card: card.as_ref(), held: &[] };
    let seats = seat::seats(&room, &wants);
    let placement = place::best(&seats, &wants);
    if let Some(settled) = settled(&seats, &wants)
        && place::gist(&settled, &seats, &wants) <= place::gist(&placement.seats, &seats, &wants)
    {
        return Err(reason::nothing_to_gain(&room, &seats, &wants, &settled));
    }
    let mut proposal = proposal(&room, &seats, &wants, &placement);
    proposal.reasons.extend(left_out);
    Ok(proposal)
}

/// Proposes a core for each of these threads alone, which have just been born: what is pinned stays, and its cores are
/// not given again.
///
/// # Errors
/// A sentence why nothing is proposed: their load is not known yet, or no physical core is left.
pub fn propose_for(metrics: &Metrics, threads: &[ThreadId]) -> Result<Proposal, String> {
    let (mut wants, _) = wants(metrics)?;
    wants.retain(|want| threads.contains(&want.thread.sample.id));
    if wants.is_empty() {
        return Err("none of the new threads is busy".to_owned());
    }
    let pinned = metrics.threads.iter().filter(|thread| thread.pinned);
    let held: Vec<CoreId> = pinned.filter_map(bound_to).collect();
    let card = network_card::of(metrics);
    let room = Room { topology: &metrics.facts.topology, recent: &metrics.recent, card: card.as_ref(), held: &held };
    let seats = seat::seats(&room, &wants);
    let placement = place::best(&seats, &wants);
    if placement.shares {
        let who: Vec<String> = wants.iter().map(|want| want.thread.sample.id.tid.to_string()).collect();
        return Err(format!("no core is left for {}: press p to place all threads anew", who.join(", ")));
    }
    Ok(proposal(&room, &seats, &wants, &placement))
}

fn proposal(room: &Room<'_>, seats: &[Seat], wants: &[Want<'_>], placement: &Placement) -> Proposal {
    let steps = reason::steps(room, seats, wants, placement);
    let cores = preview::of(&steps, room.topology, room.recent);
    let doubt = reason::doubt(placement);
    Proposal { steps, doubt, reasons: reason::on_the_whole(room, seats, wants, placement), cores }
}

/// Where the threads are, if each of them is bound to one core already.
fn settled(seats: &[Seat], wants: &[Want<'_>]) -> Option<Vec<usize>> {
    let seat = |want: &Want<'_>| seats.binary_search_by_key(&want.bound_to?, |seat| seat.core).ok();
    wants.iter().map(seat).collect()
}

/// The busy threads, those with the fewest cores to choose from first, then stream by stream; and sentences on those
/// that are left out.
fn wants(metrics: &Metrics) -> Result<(Vec<Want<'_>>, Vec<String>), String> {
    if metrics.benchmark().next().is_none() {
        return Err("no thread is watched: start the benchmark, or name its program with --watch NAME".to_owned());
    }
    if metrics.benchmark().all(|thread| metrics.recent.thread_cpu(thread.sample.id).is_none()) {
        return Err("the load of the watched threads is not known yet: wait for the next sample".to_owned());
    }
    let online = metrics.facts.topology.online();
    let senders = Senders::of(metrics);
    let (mut wants, mut left_out, mut control) = (Vec::<Want>::new(), Vec::new(), Vec::new());
    for thread in metrics.benchmark() {
        let id = thread.sample.id;
        if metrics.recent.thread_cpu(id).is_none_or(|cpu| cpu <= BUSY) {
            control.extend((thread.sample.duty == Duty::Control).then_some(id.tid));
            continue;
        }
        let allowed = allowed::of(thread, &metrics.facts.topology, &online);
        if allowed.cores.is_empty() {
            left_out.push(format!("{} {} is left out: no core it may use is online", reason::label(thread), id.tid));
            continue;
        }
        let rank = wants.iter().filter(|want| want.thread.sample.side == thread.sample.side).count();
        wants.push(Want {
            thread,
            allowed,
            rank,
            sender: senders.sends(thread) == Some(true),
            bound_to: bound_to(thread),
        });
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
