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
use std::path::PathBuf;
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

/// The sampler's end of the thread.
pub(super) struct Setup {
    orders: Sender<Filter>,
    reports: Receiver<Report>,
}

impl Setup {
    /// Starts the thread with the first filter.
    pub(super) fn start(roots: &Roots, filter: Filter, interval_ns: u64) -> io::Result<Self> {
        let (orders, ordered) = mpsc::channel();
        let (reporting, reports) = mpsc::channel();
        let roots = roots.clone();
        let work = move || {
            std::thread::sleep(GRACE);
            if let Err(error) = run(&roots, filter, interval_ns, &ordered, &reporting) {
                let _ = reporting.send(Report::Refused(error));
            }
        };
        std::thread::Builder::new().name("trace".to_owned()).spawn(work)?;
        Ok(Self { orders, reports })
    }

    /// Asks for another filter.
    pub(super) fn order(&self, filter: Filter) {
        let _ = self.orders.send(filter);
    }

    /// What was done meanwhile.
    pub(super) fn report(&self) -> Option<Report> {
        self.reports.try_recv().ok()
    }
}

/// Where filters are written to.
enum Target {
    Ftrace {
        instance: PathBuf,
        _tracefs: Tracefs,
        _keeper: Keeper,
    },
    /// Everything passes; whoever reads leaves out what is not asked for.
    Perf,
}

fn run(
    roots: &Roots,
    first: Filter,
    interval_ns: u64,
    ordered: &Receiver<Filter>,
    reporting: &Sender<Report>,
) -> io::Result<()> {
    let (source, target, ring) = begin(roots, &first, interval_ns)?;
    // Nobody listens any more: dropping the target ends the trace.
    let send = |report| reporting.send(report).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
    send(Report::InForce(first, now_ns()))?;
    send(Report::Began(source, ring))?;
    while let Ok(mut filter) = ordered.recv() {
        // Only the last of several is worth a write.
        while let Ok(newer) = ordered.try_recv() {
            filter = newer;
        }
        match &target {
            Target::Ftrace { instance, .. } => ftrace::write_filter(instance, &filter)?,
            Target::Perf => {}
        }
        send(Report::InForce(filter, now_ns()))?;
    }
    Ok(())
}

fn begin(roots: &Roots, first: &Filter, interval_ns: u64) -> io::Result<(TraceSource, Target, Box<dyn Ring>)> {
    let by_ftrace = || -> io::Result<_> {
        let tracefs = Tracefs::find(roots).ok_or(io::ErrorKind::PermissionDenied)?;
        ftrace::sweep(&tracefs.path, &roots.proc);
        let instance = ftrace::instance(&tracefs.path);
        let keeper = Keeper::start(&instance)?;
        let rings = ftrace::make(&instance, first, interval_ns)?;
        let target = Target::Ftrace { instance, _tracefs: tracefs, _keeper: keeper };
        Ok((TraceSource::Ftrace, target, Box::new(rings) as Box<dyn Ring>))
    };
    by_ftrace().or_else(|error| match perf::begin(roots) {
        Ok(rings) => Ok((TraceSource::Perf, Target::Perf, Box::new(rings) as Box<dyn Ring>)),
        // The reason of the better way is the one to mend, where there is one.
        Err(perf) => Err(if error.kind() == io::ErrorKind::PermissionDenied { perf } else { error }),
    })
}
