//! The busy watched threads in the order in which they choose, each with the cores it may be given; and sentences on the
//! watched threads that are left out.
//!
//! Where a thread may go at all: its cpuset, what is online, the mask its owner gave it. A mask that vnettop set is no
//! wish of the owner's; isolated cores are taken only where nothing else is left.

use super::phrases::label;
use crate::TestMetrics;
use crate::plural;
use crate::threads::ThreadMetrics;
use crate::traffic::{sends, servers_send};
use crate::workers::Worker;
use vnettop_sample::{CoreId, CoreSet, Duty, Topology};

/// A thread is busy from this share of a core on that it uses or waits for, over the last seconds.
pub const BUSY: f64 = 0.05;

/// A busy watched thread, to be given a core.
pub(super) struct BusyThread<'a> {
    pub(super) thread: &'a ThreadMetrics,
    pub(super) allowed: Allowed,
    /// Number of busy threads of the same side before this one: the nth sender and the nth receiver count as one stream.
    rank: usize,
    /// The thread sends, as far as the command line tells: its core also does the softirq work of the whole path.
    pub(super) sender: bool,
    /// The one core that the thread is bound to already.
    pub(super) bound_to: Option<CoreId>,
    /// What the thread carries and where on the path, where it is at no end.
    pub(super) carries: Option<String>,
}

impl BusyThread<'_> {
    /// The other thread is the other end of the same stream, as far as that can be told.
    pub(super) fn is_partner_of(&self, other: &BusyThread<'_>) -> bool {
        let sides = (self.thread.sample.side, other.thread.sample.side);
        self.rank == other.rank && matches!(sides, (Some(a), Some(b)) if a != b)
    }
}

/// The core of a mask of one.
pub(super) fn bound_to(thread: &ThreadMetrics) -> Option<CoreId> {
    thread.sample.allowed.as_ref().filter(|mask| mask.len() == 1)?.first()
}

/// The busy threads, those with the fewest cores to choose from first, then stream by stream; and sentences on the
/// threads that are left out.
///
/// # Errors
/// A sentence why there is no busy thread and what to do about it.
pub(super) fn busy_threads(metrics: &TestMetrics) -> Result<(Vec<BusyThread<'_>>, Vec<String>), String> {
    if metrics.threads.is_empty() {
        return Err("no thread is watched: start the benchmark, or name its program with --watch NAME".to_owned());
    }
    if all(metrics).all(|(thread, _)| metrics.recent.thread_need(thread.sample.id).is_none()) {
        return Err("the load of the watched threads is not known yet: wait for the next sample".to_owned());
    }
    let online = metrics.machine.facts.topology.online();
    let servers_send = servers_send(&metrics.threads, &metrics.benchmarks);
    let (mut threads, mut left_out, mut control) = (Vec::<BusyThread>::new(), Vec::new(), Vec::new());
    for (thread, worker) in all(metrics) {
        let id = thread.sample.id;
        let same = |one: &&Worker| one.id() == id;
        let unplaceable = worker.or_else(|| metrics.workers.iter().find(same)).and_then(Worker::unplaceable);
        if let Some(unplaceable) = unplaceable {
            left_out.push(format!("{} {} is left out: {}", label(thread), id.tid, unplaceable.why));
            continue;
        }
        // A thread that waits for a core is the first to gain from one.
        if metrics.recent.thread_need(id).is_none_or(|need| need <= BUSY) {
            control.extend((thread.sample.duty == Duty::Control).then_some(id.tid));
            continue;
        }
        let allowed = allowed(thread, &metrics.machine.facts.topology, &online);
        if allowed.cores.is_empty() {
            left_out.push(format!("{} {} is left out: no core it may use is online", label(thread), id.tid));
            continue;
        }
        let rank = threads.iter().filter(|other| other.thread.sample.side == thread.sample.side).count();
        let sender = sends(thread, servers_send) == Some(true);
        let carries = worker.map(|worker| carries(metrics, worker));
        threads.push(BusyThread { thread, allowed, rank, sender, bound_to: bound_to(thread), carries });
    }
    if threads.is_empty() {
        let percent = BUSY * 100.0;
        return Err(left_out.into_iter().next().unwrap_or_else(|| {
            format!("no watched thread uses or wants more than {percent:.0} % of a core: a pin gains little")
        }));
    }
    left_out.extend(left_alone(&control));
    threads.sort_by_key(|busy| (busy.allowed.cores.len(), busy.rank, !busy.sender, busy.thread.sample.id));
    Ok((threads, left_out))
}

/// The threads at the ends, then those between them.
fn all(metrics: &TestMetrics) -> impl Iterator<Item = (&ThreadMetrics, Option<&Worker>)> {
    let is_end = |worker: &&Worker| metrics.threads.iter().any(|thread| thread.sample.id == worker.id());
    let between = metrics.workers.iter().filter(move |worker| !is_end(worker));
    metrics.threads.iter().map(|thread| (thread, None)).chain(between.map(|worker| (&worker.thread, Some(worker))))
}

/// Whose packets a worker carries, and where on the path.
fn carries(metrics: &TestMetrics, worker: &Worker) -> String {
    let place = worker.between(&metrics.machine, &metrics.paths).map_or_else(String::new, |place| format!(", {place}"));
    format!("{} of {}{place}", worker.noun(), worker.carrier)
}

/// A sentence on the control threads, which carry no traffic.
fn left_alone(control: &[u32]) -> Option<String> {
    let tids: Vec<String> = control.iter().map(ToString::to_string).collect();
    let threads = plural(control.len(), "control thread");
    (!control.is_empty())
        .then(|| format!("{threads} not pinned (idle; later workers inherit their masks): {}", tids.join(", ")))
}

/// The cores a thread may be given, and a word on it where they are fewer than one would think.
pub(super) struct Allowed {
    pub(super) cores: CoreSet,
    pub(super) note: Option<String>,
}

fn allowed(thread: &ThreadMetrics, topology: &Topology, online: &CoreSet) -> Allowed {
    let sample = &thread.sample;
    let cpuset = sample.cpuset.as_ref().map(|cpuset| cpuset.intersection(online)).filter(|cores| !cores.is_empty());
    let whole = cpuset.as_ref().unwrap_or(online);
    // Of a thread that vnettop pinned, the mask from before the pin is its owner's wish.
    let wish = if thread.pinned { thread.before_pin.as_ref() } else { sample.allowed.as_ref() };
    let mask = wish.map(|mask| mask.intersection(online)).filter(|mask| !mask.is_empty() || !thread.pinned);
    let mut narrowed = None;
    let cores = match mask {
        None => whole.clone(),
        // Without a known cpuset the mask is the only word on what is allowed.
        Some(mask) if cpuset.is_none() => mask,
        // The kernel keeps fresh threads off isolated cores: that is nobody's wish either.
        Some(mask) if mask == *whole || mask == without(whole, &topology.isolated) => whole.clone(),
        Some(mask) => {
            narrowed = Some(format!("its own mask allows only {mask}"));
            mask
        }
    };
    let open = without(&cores, &topology.isolated);
    if open.is_empty() && !cores.is_empty() {
        return Allowed { cores, note: Some("isolated, but nothing else is allowed".to_owned()) };
    }
    Allowed { cores: open, note: narrowed }
}

fn without(cores: &CoreSet, isolated: &CoreSet) -> CoreSet {
    if isolated.is_empty() { cores.clone() } else { cores.iter().filter(|&core| !isolated.contains(core)).collect() }
}
