//! Who carries a test's packets between its ends: the threads of the programs on its paths, and the kernel's own for them. Each
//! with its place on the path; what cannot be placed has the reason, and the line that would do it.

use super::flow::{Connection, FlowMetrics};
use super::machine::MachineMetrics;
use super::threads::ThreadMetrics;
use std::sync::Arc;
use vnettop_sample::{Carrier, CarrierKind, CoreSet, FlowPath, HopWay, LinkKey, PathWork, ThreadId, WorkerRole};

/// A thread that carries packets between the ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// Its figures.
    pub thread: ThreadMetrics,
    /// As what it carries them.
    pub role: WorkerRole,
    /// Whose thread it is: `the guest web1`, `openvpn`, a link whose NAPI it is.
    pub carrier: String,
    /// The path, by its number among the test's.
    pub path: usize,
    /// How many hops of it are before the thread; of NAPI, before its link.
    pub at: usize,
    /// Of a poll-mode thread, the cores of all of its process: the mask that places them is one.
    pub polling: CoreSet,
}

/// Why a thread cannot be placed, and how it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaceable {
    /// Why, as a clause.
    pub why: String,
    /// The command that would do it.
    pub line: String,
}

impl Worker {
    /// The thread.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.thread.sample.id
    }

    /// What a sentence calls it: `vCPU`, `VMM thread`.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self.role {
            WorkerRole::Vcpu => "vCPU",
            WorkerRole::Vmm => "VMM thread",
            WorkerRole::Vhost => "vhost thread",
            WorkerRole::Ovs => "datapath thread",
            WorkerRole::Pmd => "poll-mode thread",
            WorkerRole::Vpn | WorkerRole::Relay => "thread",
            WorkerRole::Napi => "NAPI thread",
        }
    }

    /// It is a thread of that program, or works for it.
    #[must_use]
    pub fn is_of(&self, carrier: &Carrier) -> bool {
        self.thread.sample.work.is_some_and(|work| work.carrier == carrier.pid)
    }

    /// The link whose packets it receives, of a thread of NAPI.
    #[must_use]
    pub fn napi_of(&self) -> Option<LinkKey> {
        self.thread.sample.work.and_then(|work| work.link)
    }

    /// It polls all the time, so that how busy it is says nothing.
    #[must_use]
    pub fn polls(&self) -> bool {
        self.role == WorkerRole::Pmd
    }

    /// Why it is not placed, and the command by which all of its process are, with the cores of now; `None` when it can be.
    #[must_use]
    pub fn unplaceable(&self) -> Option<Unplaceable> {
        (self.role == WorkerRole::Pmd).then(|| {
            let mask = self.polling.to_mask().replace(',', "");
            Unplaceable {
                why: "Open vSwitch places it by pmd-cpu-mask".to_owned(),
                line: format!("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask={mask}"),
            }
        })
    }

    /// The link that gives it the packets.
    #[must_use]
    pub fn link_before(&self, paths: &[FlowPath]) -> Option<LinkKey> {
        let at = if self.role == WorkerRole::Napi { Some(self.at) } else { self.at.checked_sub(1) };
        Some(paths.get(self.path)?.hops.get(at?)?.link)
    }

    /// Where on the path it is: the links before and after it, by name.
    #[must_use]
    pub fn between(&self, machine: &MachineMetrics, paths: &[FlowPath]) -> Option<String> {
        let path = paths.get(self.path)?;
        let name = |at: usize| machine.link(path.hops.get(at)?.link).map(|link| link.facts.name.as_str());
        if self.role == WorkerRole::Napi {
            return Some(format!("receives what comes in through {}", name(self.at)?));
        }
        // The bridge of a switch is the switch itself.
        let passed = |at: &usize| path.hops.get(*at).is_some_and(|hop| hop.way == HopWay::Passed);
        let after = (self.at..path.hops.len()).find(|at| !passed(at)).and_then(name);
        match (self.at.checked_sub(1).and_then(name), after) {
            (Some(before), Some(after)) => Some(format!("between {before} and {after}")),
            (Some(before), None) => Some(format!("behind {before}")),
            (None, Some(after)) => Some(format!("before {after}")),
            (None, None) => None,
        }
    }
}

/// The workers on these paths, in the order of the path, then by CPU time and wait, most first. One on several paths has its
/// place on that of the data.
pub(super) fn on(machine: &MachineMetrics, paths: &[FlowPath], flow: &FlowMetrics) -> Vec<Worker> {
    let is_its = |path: &FlowPath, one: &Connection| path.proto == one.proto() && path.from == one.from.address;
    let data = flow.connections.iter().filter(|one| !one.controls());
    let at = |one: &Connection| paths.iter().position(|path| is_its(path, one));
    let order: Vec<usize> = data.filter_map(at).chain(0..paths.len()).collect();
    let mut workers: Vec<Worker> = Vec::new();
    for thread in machine.threads.iter() {
        let Some(work) = thread.sample.work else { continue };
        let Some((path, at, carrier)) = place(machine, (paths, &order), work) else { continue };
        let polls = |other: &&ThreadMetrics| {
            other.sample.work.is_some_and(|other| other.role == WorkerRole::Pmd && other.carrier == work.carrier)
        };
        let polling = if work.role == WorkerRole::Pmd {
            machine.threads.iter().filter(polls).map(|other| other.sample.core).collect()
        } else {
            CoreSet::new()
        };
        workers.push(Worker { thread: thread.clone(), role: work.role, carrier, path, at, polling });
    }
    let need = |worker: &Worker| worker.thread.cpu.unwrap_or(0.0) + worker.thread.wait.unwrap_or(0.0);
    workers
        .sort_by(|one, other| (one.path, one.at).cmp(&(other.path, other.at)).then(need(other).total_cmp(&need(one))));
    workers
}

/// Where a thread with that work is: the path, the hops before it, and whose it is.
fn place(
    machine: &MachineMetrics,
    (paths, order): (&[FlowPath], &[usize]),
    work: PathWork,
) -> Option<(usize, usize, String)> {
    let each = || order.iter().map(|&number| (number, &paths[number]));
    if let Some(link) = work.link {
        let at = |path: &FlowPath| path.hops.iter().position(|hop| hop.link == link);
        let (path, at) = each().find_map(|(number, path)| Some((number, at(path)?)))?;
        return Some((path, at, machine.link(link)?.facts.name.clone()));
    }
    let of = |path: &FlowPath| path.carriers.iter().find(|one| one.pid == work.carrier).cloned();
    let (path, carrier) = each().find_map(|(number, path)| Some((number, of(path)?)))?;
    Some((path, carrier.at, carrier.name))
}

/// The worker threads besides these: all whose load is the test's own, sorted by (pid, tid).
pub(crate) fn with_ends(threads: &Arc<Vec<ThreadMetrics>>, workers: &[Worker]) -> Arc<Vec<ThreadMetrics>> {
    if workers.is_empty() {
        return Arc::clone(threads);
    }
    let is_end = |worker: &&Worker| threads.iter().any(|thread| thread.sample.id == worker.id());
    let mut all: Vec<ThreadMetrics> = threads.to_vec();
    // What polls keeps its core from others, whoever asks.
    let own = workers.iter().filter(|worker| !is_end(worker) && !worker.polls());
    all.extend(own.map(|worker| worker.thread.clone()));
    all.sort_by_key(|thread| thread.sample.id);
    Arc::new(all)
}

/// The links of a guest on a path: the one that gave it the packets, and the one they come back by. `None` where the path ends in
/// it.
pub(super) fn sides(path: &FlowPath, carrier: &Carrier) -> Option<(LinkKey, LinkKey)> {
    let before = path.hops.get(carrier.at.checked_sub(1)?)?;
    let after = path.hops.get(carrier.at)?;
    (carrier.kind == CarrierKind::Guest).then_some((before.link, after.link))
}
