//! Metrics → a trace: who has which tracks.

use super::core_lanes::heading;
use super::events::{ToldEvent, told, told_of};
use super::machine_tracks::MachineTracks;
use super::test_tracks::TestTracks;
use super::thread_tracks::{LATEST_NS, ThreadTracks};
use super::trace_writer::{Annotated, TraceWriter, TrackId};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use vnettop_derive::{MachineMetrics, Metrics};
use vnettop_sample::Event;

/// A trace being written.
#[derive(Debug)]
pub struct PerfettoTrace<W> {
    out: TraceWriter<W>,
    /// What is older belongs to no event of it, monotonic ns.
    since_ns: u64,
    /// The machine as of the sample before; none before the first.
    before: Option<Arc<MachineMetrics>>,
    events: Option<TrackId>,
    /// Events that are not written yet, by their instants; equal ones as they came.
    held: BTreeMap<(u64, u64), ToldEvent>,
    taken: u64,
    /// When the last event was that is written, monotonic ns.
    told_ns: u64,
    cores: Option<TrackId>,
    tests: TestTracks,
    threads: ThreadTracks,
    machine: MachineTracks,
}

impl<W: Write> PerfettoTrace<W> {
    /// A trace whose events are of this moment or later, monotonic ns.
    pub fn new(out: W, since_ns: u64) -> Self {
        Self {
            out: TraceWriter::new(out),
            since_ns,
            before: None,
            events: None,
            held: BTreeMap::new(),
            taken: 0,
            told_ns: 0,
            cores: None,
            tests: TestTracks::default(),
            threads: ThreadTracks::default(),
            machine: MachineTracks::default(),
        }
    }

    /// Takes a sample. Of the first one, what it says of the time before it is left out.
    pub fn observe(&mut self, metrics: &Metrics) -> io::Result<()> {
        let machine = &*metrics.machine;
        let before_ns = self.before.replace(Arc::clone(&metrics.machine)).map(|before| before.at_ns);
        if before_ns.is_none() {
            self.out.clocks(machine.at_ns, machine.wall_ms)?;
        }
        self.take(told(machine));
        self.write_until(machine.at_ns.saturating_sub(LATEST_NS))?;
        let Self { out, .. } = self;
        if let Some(from_ns) = before_ns {
            self.tests.observe(out, metrics, from_ns, self.since_ns)?;
        }
        let cores = heading(out, &mut self.cores, "Cores")?;
        let moves: &[_] = if before_ns.is_some() { &machine.moves } else { &[] };
        self.threads.observe(out, machine, (before_ns, moves), cores)?;
        match before_ns {
            Some(from_ns) => self.machine.observe(out, machine, from_ns, cores),
            None => Ok(()),
        }
    }

    /// Nothing comes after it but these events.
    pub fn finish(&mut self, last: &[Event]) -> io::Result<()> {
        let Some(machine) = self.before.clone() else { return self.out.flush() };
        self.take(told_of(&machine, last));
        self.write_until(u64::MAX)?;
        let Self { out, .. } = self;
        self.tests.finish(out, machine.at_ns)?;
        let cores = heading(out, &mut self.cores, "Cores")?;
        self.threads.finish(out, cores)?;
        self.machine.finish(out)?;
        out.flush()
    }

    fn take(&mut self, told: Vec<ToldEvent>) {
        for event in told.into_iter().filter(|event| event.at_ns >= self.since_ns) {
            self.taken += 1;
            // Only in a recording that was tampered with is something older than what is written.
            self.held.insert((event.at_ns.max(self.told_ns), self.taken), event);
        }
    }

    fn write_until(&mut self, until_ns: u64) -> io::Result<()> {
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= until_ns) {
            let ((at_ns, _), event) = first.remove_entry();
            self.told_ns = at_ns;
            let on = heading(&mut self.out, &mut self.events, "pins, settings, marks, phases")?;
            let beside = [("kind", Annotated::Text(event.kind.to_owned()))];
            self.out.instant(on, at_ns, &event.text, &beside)?;
        }
        Ok(())
    }
}
