//! The kernel's own word: one BPF object (`bpf/vnettop.bpf.c`) that counts dropped packets and tells migrations, loaded
//! after the first frame by a thread of its own; a second one, which tells how long packets and threads wait, only when it is
//! asked for. What they count is read by the sampler from the maps handed over here.
//! The kernel takes everything down when the last descriptor closes, however vnettop ends.

pub mod datagrams;
pub mod drops;
pub mod functions;
pub mod hops;
pub mod latency;
mod looked_at;
mod memory;
pub mod moves;
mod object;
mod reasons;
mod room;
pub mod softirqs;

use datagrams::DatagramTable;
use drops::DropTables;
use functions::UsualFunctions;
use hops::{HopCounts, HopRequest};
use latency::LatencyTables;
use moves::MoveRings;
use object::{LatencyPrograms, Requested};
use softirqs::SoftirqTimes;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The first frame has the cores for itself for so long.
const GRACE: Duration = Duration::from_millis(30);

/// What the thread has done.
pub enum TracerEvent {
    /// The programs are attached.
    Loaded(Box<Maps>),
    /// The programs cannot be had at all; the caller decides how to go on.
    Refused(Refusal),
    /// Names of the functions at these addresses; `None` when the kernel does not say.
    Functions(Vec<(u64, Option<String>)>),
    /// What is counted on request cannot be.
    NoMore(Refusal),
    /// Softirqs are timed from now on.
    Softirqs(SoftirqTimes),
    /// Packets by hop and core, counted over a stated time.
    Hops(HopCounts),
    /// Waits can be looked at from now on.
    Latency(Box<LatencyTables>),
    /// Waits cannot be looked at.
    NoLatency(Refusal),
}

/// What the sampler reads of the loaded object.
pub struct Maps {
    /// Migrations; none where only drops could be had.
    pub moves: Option<MoveRings>,
    /// Dropped packets; none where this kernel has no BTF.
    pub drops: Option<DropTables>,
    /// What each UDP socket has sent and read; none where this kernel does not take the programs.
    pub datagrams: Option<DatagramTable>,
    /// Where the functions are that usually drop packets.
    pub functions: UsualFunctions,
    /// Why some of the programs are missing.
    pub missing: Option<Refusal>,
}

/// Why the programs are not there.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// `CAP_BPF` or `CAP_PERFMON` is missing, or the kernel is locked down.
    Rights,
    /// This kernel describes no types (`/sys/kernel/btf/vmlinux`).
    NoBtf,
    /// This kernel describes no types, and tracefs, through which moves are traced without them, cannot be had either.
    NoTracefs(Arc<io::Error>),
    /// The kernel's types take so much memory for a moment, and the control group leaves less: vnettop would be killed.
    NoMemory {
        /// Memory that the types take, 10^6 bytes.
        needed_mb: u64,
        /// Memory that the control group leaves, 10^6 bytes.
        left_mb: u64,
    },
    /// This kernel describes its types, and they cannot be read.
    Unread(Arc<io::Error>),
    /// Anything else, in the kernel's words.
    Other(String),
}

/// Tries whether the kernel takes the programs: that of migrations, by BTF or, without, by way of tracefs, and that of dropped
/// packets. They are attached to nothing, and gone when this returns.
pub fn try_loading(sys: &Path) -> [Result<(), Refusal>; 2] {
    loading(|| Ok(object::try_loading(sys))).unwrap_or_else(|refusal| [Err(refusal.clone()), Err(refusal)])
}

/// Loads something, which takes much memory for a moment.
fn loading<T: Send>(load: impl FnOnce() -> Result<T, Refusal> + Send) -> Result<T, Refusal> {
    memory::for_a_moment(load).unwrap_or_else(|_panic| Err(Refusal::Other("the loader failed".to_owned())))
}

/// Whether the tracefs of this /sys has the kernel's record of a migration: without BTF, programs are attached through tracefs.
#[must_use]
pub fn has_migration_event(sys: &Path) -> bool {
    object::event(sys).is_some()
}

/// What the thread is to do.
pub enum Order {
    /// Find the functions that these addresses are in, and report them.
    Functions(Vec<u64>),
    /// Time softirqs, or no longer.
    Softirqs(bool),
    /// Count the packets of these hops by core for so long, and report them.
    Hops(HopRequest, Duration),
    /// Look at how long threads and packets wait.
    Latency(PacketLook),
    /// Look at waits no longer.
    NoLatency,
}

/// Packets that are looked at besides those that pass links, where there are such.
#[derive(Debug, Clone, Copy, Default)]
pub struct MorePackets {
    /// What is given to qdiscs.
    pub queues: bool,
    /// Datagrams that are dropped at the end of their way.
    pub datagrams: bool,
}

/// How waits are looked at from now on.
#[derive(Debug, Clone, Copy)]
pub struct PacketLook {
    /// Packets for so long; with none until told otherwise.
    pub packets_for: Option<Duration>,
    /// Which, besides those that pass links.
    pub more: MorePackets,
    /// Threads for as long as packets, and not all the time.
    pub threads_too: bool,
}

/// The caller's end of the thread; the programs are taken down when it is dropped.
pub struct Programs {
    orders: Sender<Order>,
    reports: Receiver<TracerEvent>,
}

impl Programs {
    /// Starts the thread that loads the programs; `proc` and `sys` are where those file systems are mounted.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(proc: &Path, sys: &Path) -> io::Result<Self> {
        let (orders, ordered) = mpsc::channel();
        let (reporting, reports) = mpsc::channel();
        let (proc, sys) = (proc.to_owned(), sys.to_owned());
        let work = move || {
            std::thread::sleep(GRACE);
            run(&proc, &sys, &ordered, &reporting);
        };
        std::thread::Builder::new().name("bpf".to_owned()).spawn(work)?;
        Ok(Self { orders, reports })
    }

    /// What was done meanwhile, or is done within this time.
    #[must_use]
    pub fn report(&self, within: Duration) -> Option<TracerEvent> {
        self.reports.recv_timeout(within).ok()
    }

    /// Gives the thread an order, which it follows after all earlier ones.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

fn run(proc: &Path, sys: &Path, ordered: &Receiver<Order>, reporting: &Sender<TracerEvent>) {
    let (_links, maps) = match loading(|| object::load(proc, sys)) {
        Ok(loaded) => loaded,
        Err(refusal) => {
            let _ = reporting.send(TracerEvent::Refused(refusal));
            return;
        }
    };
    if reporting.send(TracerEvent::Loaded(Box::new(maps))).is_err() {
        return;
    }
    let mut obeying =
        Obeying { proc, sys, reporting, requested: None, latency: Latency::Idle, look_ends: None, threads_too: false };
    // When no orders can come, the programs are not needed: dropping the links closes their last descriptors.
    while let Some(order) = obeying.next(ordered) {
        if obeying.obey(order).is_none() {
            return;
        }
    }
}

/// How far what looks at waits has come.
enum Latency {
    Idle,
    Loaded(Box<LatencyPrograms>),
    Refused,
}

/// The thread, with what it loaded on request.
struct Obeying<'a> {
    proc: &'a Path,
    sys: &'a Path,
    reporting: &'a Sender<TracerEvent>,
    requested: Option<Requested>,
    latency: Latency,
    /// When packets are looked at no longer.
    look_ends: Option<Instant>,
    /// Threads then too.
    threads_too: bool,
}

impl Obeying<'_> {
    /// The next order; packets are looked at no longer when their time is over meanwhile.
    fn next(&mut self, ordered: &Receiver<Order>) -> Option<Order> {
        while let Some(ends) = self.look_ends {
            match ordered.recv_timeout(ends.saturating_duration_since(Instant::now())) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Timeout) => self.end_look(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        ordered.recv().ok()
    }

    fn end_look(&mut self) {
        self.look_ends = None;
        if let Latency::Loaded(programs) = &mut self.latency {
            programs.end_look();
            if self.threads_too {
                programs.look_at_threads(false);
            }
        }
    }

    /// Follows an order; none where nobody takes its report.
    fn obey(&mut self, order: Order) -> Option<()> {
        if matches!(order, Order::Softirqs(true) | Order::Hops(..)) && self.requested.is_none() {
            let report = match loading(|| Requested::load(self.sys)) {
                Ok((programs, times)) => {
                    self.requested = Some(programs);
                    TracerEvent::Softirqs(times)
                }
                Err(refusal) => TracerEvent::NoMore(refusal),
            };
            self.reporting.send(report).ok()?;
        }
        let report = match order {
            Order::Functions(addresses) => Some(TracerEvent::Functions(functions::find(self.proc, addresses))),
            Order::Softirqs(wanted) => {
                if let Some(programs) = &mut self.requested {
                    programs.time_softirqs(wanted);
                }
                None
            }
            Order::Hops(request, counted_for) => self.count_hops(&request, counted_for).map(TracerEvent::Hops),
            Order::Latency(look) => self.look(look),
            Order::NoLatency => {
                self.end_look();
                if let Latency::Loaded(programs) = &mut self.latency {
                    programs.look_at_threads(false);
                }
                None
            }
        };
        report.map_or(Some(()), |report| self.reporting.send(report).ok())
    }

    /// Counts the packets of hops for so long; a look at waits ends meanwhile when its time is over.
    fn count_hops(&mut self, request: &HopRequest, counted_for: Duration) -> Option<HopCounts> {
        self.requested.as_mut()?.begin_hops(request);
        let ends = Instant::now() + counted_for;
        if let Some(look_ends) = self.look_ends.filter(|look_ends| *look_ends < ends) {
            std::thread::sleep(look_ends.saturating_duration_since(Instant::now()));
            self.end_look();
        }
        std::thread::sleep(ends.saturating_duration_since(Instant::now()));
        self.requested.as_mut().map(Requested::end_hops)
    }

    /// Looks at waits, and says when that is possible, or not.
    fn look(&mut self, look: PacketLook) -> Option<TracerEvent> {
        let mut report = None;
        if matches!(self.latency, Latency::Idle) {
            let (latency, loaded) = match loading(|| LatencyPrograms::load(self.sys)) {
                Ok((programs, tables)) => (Latency::Loaded(Box::new(programs)), TracerEvent::Latency(Box::new(tables))),
                Err(refusal) => (Latency::Refused, TracerEvent::NoLatency(refusal)),
            };
            (self.latency, report) = (latency, Some(loaded));
        }
        if let Latency::Loaded(programs) = &mut self.latency {
            programs.look_at_threads(true);
            programs.look_at_packets(look);
            self.look_ends = look.packets_for.map(|packets_for| Instant::now() + packets_for);
            self.threads_too = look.threads_too;
        }
        report
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut known = reasons::Reasons::read(bytes, std::path::Path::new("/nonexistent"));
    known.learn(1 << 16);
    let _ = (known.name(1), known.name(1 << 16));
}
