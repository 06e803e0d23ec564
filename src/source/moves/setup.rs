//! The setting-up thread: whatever the kernel may sleep over (making an instance, writing a filter) is done here, so that
//! the sampler's tick never waits for it. It begins after the first frame, and ends with the sampler.

use super::filter::Filter;
use super::ftrace;
use super::keeper::Keeper;
use super::tracefs::Tracefs;
use super::{Ring, perf};
use crate::sample::TraceSource;
use crate::source::{Roots, now_ns};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// The first frame has the cores for itself for so long.
const GRACE: Duration = Duration::from_millis(30);

/// What the thread has done.
pub(super) enum Report {
    /// The trace runs.
    Began(TraceSource, Box<dyn Ring>),
    /// This filter is in force since then, monotonic ns.
    InForce(Filter, u64),
    /// Nothing can be traced.
    Refused(io::Error),
}

/// What the thread is to do.
enum Order {
    /// Put this filter in force.
    Filter(Filter),
    /// The keeper is dead, by no order of ours: start another.
    Keeper,
    /// Nobody needs the trace any more.
    End,
}

/// The sampler's end of the thread.
pub(super) struct Setup {
    orders: Sender<Order>,
    reports: Receiver<Report>,
}

impl Setup {
    /// Starts the thread with the first filter.
    pub(super) fn start(roots: &Roots, filter: Filter, interval_ns: u64) -> io::Result<Self> {
        let (orders, ordered) = mpsc::channel();
        let (reporting, reports) = mpsc::channel();
        let (roots, own_orders) = (roots.clone(), orders.clone());
        let work = move || {
            std::thread::sleep(GRACE);
            if let Err(error) = run(&roots, filter, interval_ns, (&own_orders, &ordered), &reporting) {
                let _ = reporting.send(Report::Refused(error));
            }
        };
        std::thread::Builder::new().name("trace".to_owned()).spawn(work)?;
        Ok(Self { orders, reports })
    }

    /// Asks for another filter.
    pub(super) fn order(&self, filter: Filter) {
        let _ = self.orders.send(Order::Filter(filter));
    }

    /// What was done meanwhile.
    pub(super) fn report(&self) -> Option<Report> {
        self.reports.try_recv().ok()
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::End);
    }
}

/// Where filters are written to.
enum Target {
    Ftrace {
        instance: PathBuf,
        _tracefs: Tracefs,
        /// None where the one before was killed and no other could be started.
        keeper: Option<Keeper>,
    },
    /// Everything passes; whoever reads leaves out what is not asked for.
    Perf,
}

impl Target {
    fn set(&self, filter: &Filter) -> io::Result<()> {
        match self {
            Self::Ftrace { instance, .. } => ftrace::write_filter(instance, filter),
            Self::Perf => Ok(()),
        }
    }

    /// The instance never stays without somebody who will remove it.
    fn renew_keeper(&mut self, orders: &Sender<Order>) {
        if let Self::Ftrace { instance, keeper, .. } = self {
            *keeper = start_keeper(instance, orders).ok();
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Self::Ftrace { instance, keeper: None, .. } = self {
            let _ = ftrace::remove(instance);
        }
    }
}

fn start_keeper(instance: &Path, orders: &Sender<Order>) -> io::Result<Keeper> {
    let orders = orders.clone();
    Keeper::start(instance, move || drop(orders.send(Order::Keeper)))
}

fn run(
    roots: &Roots,
    first: Filter,
    interval_ns: u64,
    (orders, ordered): (&Sender<Order>, &Receiver<Order>),
    reporting: &Sender<Report>,
) -> io::Result<()> {
    let (source, mut target, ring) = begin(roots, &first, interval_ns, orders)?;
    // Nobody listens any more: dropping the target ends the trace.
    let send = |report| reporting.send(report).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
    send(Report::InForce(first, now_ns()))?;
    send(Report::Began(source, ring))?;
    while let Ok(order) = ordered.recv() {
        let mut newest = None;
        // Only the last of several filters is worth a write.
        for order in std::iter::once(order).chain(ordered.try_iter()) {
            match order {
                Order::Filter(filter) => newest = Some(filter),
                Order::Keeper => target.renew_keeper(orders),
                Order::End => return Ok(()),
            }
        }
        if let Some(filter) = newest {
            target.set(&filter)?;
            send(Report::InForce(filter, now_ns()))?;
        }
    }
    Ok(())
}

fn begin(
    roots: &Roots,
    first: &Filter,
    interval_ns: u64,
    orders: &Sender<Order>,
) -> io::Result<(TraceSource, Target, Box<dyn Ring>)> {
    let by_ftrace = || -> io::Result<_> {
        let tracefs = Tracefs::find(roots).ok_or(io::ErrorKind::PermissionDenied)?;
        ftrace::sweep(&tracefs.path, &roots.proc);
        let instance = ftrace::instance(&tracefs.path);
        let keeper = Some(start_keeper(&instance, orders)?);
        let rings = ftrace::make(&instance, first, interval_ns)?;
        let target = Target::Ftrace { instance, _tracefs: tracefs, keeper };
        Ok((TraceSource::Ftrace, target, Box::new(rings) as Box<dyn Ring>))
    };
    by_ftrace().or_else(|error| match perf::begin(roots) {
        Ok(rings) => Ok((TraceSource::Perf, Target::Perf, Box::new(rings) as Box<dyn Ring>)),
        // The reason of the better way is the one to mend, where there is one.
        Err(perf) => Err(if error.kind() == io::ErrorKind::PermissionDenied { perf } else { error }),
    })
}
