//! The kernel's own word: one BPF object (`bpf/vnettop.bpf.c`) that counts dropped packets and tells migrations, loaded
//! after the first frame by a thread of its own. What it counts is read by the sampler from the maps handed over here.
//! The kernel takes everything down when the last descriptor closes, however vnettop ends.

pub mod datagrams;
pub mod drops;
pub mod functions;
pub mod hops;
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
use moves::MoveRings;
use object::Requested;
use softirqs::SoftirqTimes;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

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
    let mut requested: Option<Requested> = None;
    // When no orders can come, the programs are not needed: dropping the links closes their last descriptors.
    while let Ok(order) = ordered.recv() {
        if matches!(order, Order::Softirqs(true) | Order::Hops(..)) && requested.is_none() {
            let report = match loading(|| Requested::load(sys)) {
                Ok((programs, times)) => {
                    requested = Some(programs);
                    TracerEvent::Softirqs(times)
                }
                Err(refusal) => TracerEvent::NoMore(refusal),
            };
            if reporting.send(report).is_err() {
                return;
            }
        }
        let report = match order {
            Order::Functions(addresses) => Some(TracerEvent::Functions(functions::find(proc, addresses))),
            Order::Softirqs(wanted) => {
                if let Some(programs) = &mut requested {
                    programs.time_softirqs(wanted);
                }
                None
            }
            Order::Hops(request, counted_for) => {
                requested.as_mut().map(|programs| TracerEvent::Hops(programs.count_hops(&request, counted_for)))
            }
        };
        if report.is_some_and(|report| reporting.send(report).is_err()) {
            return;
        }
    }
}
