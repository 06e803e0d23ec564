//! The watched threads of a trace: a lane each below its process, whose slices are the cores it was on, an instant for each
//! migration, its share of a core and of waiting; and what that says of the cores.

use super::core_lanes::CoreLanes;
use super::counter_track::{CounterPlace, CounterTrack};
use super::trace_writer::{Annotated, TraceWriter, TrackId, TrackKind};
use super::whereabouts::{OnOffCore, OnOffCores, Whereabouts};
use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_derive::{MachineMetrics, ThreadMetrics, TracedMove};
use vnettop_sample::{ThreadId, Word};

/// A sample may tell of migrations of a thread that was just found: of those of the last three seconds. What happened is written
/// when so much time has passed, in the order of time, ns.
pub const LATEST_NS: u64 = 5_000_000_000;

/// What happens to a thread.
#[derive(Debug, Clone, Copy)]
enum ThreadNews {
    Core(OnOffCore),
    Migrated(TracedMove),
    Gone,
}

/// One thread.
#[derive(Debug)]
struct OneThread {
    name: String,
    whereabouts: Whereabouts,
    slices: TrackId,
    migrations: Option<TrackId>,
    cpu: CounterTrack,
    wait: CounterTrack,
    is_here: bool,
}

/// The threads, and the cores that they were on.
#[derive(Debug, Default)]
pub struct ThreadTracks {
    processes: BTreeMap<u32, TrackId>,
    threads: BTreeMap<ThreadId, OneThread>,
    /// What is not written yet, by its instant; equal ones as they came.
    held: BTreeMap<(u64, u64), (ThreadId, ThreadNews)>,
    taken: u64,
    /// Up to where the time is written, monotonic ns.
    written_ns: u64,
    lanes: CoreLanes,
    /// The track of migrations of threads that were gone before they were found.
    unfound: Option<TrackId>,
}

impl ThreadTracks {
    /// Takes a sample: its threads between two moments, and their migrations. `cores` is the track that those of cores are below.
    pub fn observe<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        machine: &MachineMetrics,
        (from_ns, moves): (Option<u64>, &[TracedMove]),
        cores: TrackId,
    ) -> io::Result<()> {
        let mut by_thread: BTreeMap<ThreadId, Vec<TracedMove>> = BTreeMap::new();
        for one in moves {
            by_thread.entry(one.thread).or_default().push(*one);
        }
        let were_here = self.threads.iter_mut().filter_map(|(id, one)| std::mem::take(&mut one.is_here).then_some(*id));
        let were_here: Vec<ThreadId> = were_here.collect();
        for thread in machine.threads.iter() {
            let own = by_thread.remove(&thread.sample.id).unwrap_or_default();
            self.seen(out, machine, (thread, &own), from_ns)?;
        }
        for id in were_here {
            if self.threads.get(&id).is_some_and(|one| one.is_here) {
                continue;
            }
            let own = by_thread.remove(&id).unwrap_or_default();
            self.missed(out, id, &own, machine.at_ns)?;
        }
        for one in by_thread.values().flatten() {
            self.take(one.at_ns, one.thread, ThreadNews::Migrated(*one));
        }
        self.write_until(out, machine.at_ns.saturating_sub(LATEST_NS), cores)
    }

    /// The trace ends.
    pub fn finish<W: Write>(&mut self, out: &mut TraceWriter<W>, cores: TrackId) -> io::Result<()> {
        for id in self.threads.keys().copied().collect::<Vec<_>>() {
            if let Some(one) = self.threads.get_mut(&id).filter(|one| one.is_here) {
                let mut changes = OnOffCores::new();
                one.whereabouts.gone(&[], &mut changes);
                one.cpu.end(out)?;
                one.wait.end(out)?;
                self.take_changes(id, &changes);
            }
        }
        self.write_until(out, u64::MAX, cores)
    }

    fn seen<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        machine: &MachineMetrics,
        (thread, moves): (&ThreadMetrics, &[TracedMove]),
        from_ns: Option<u64>,
    ) -> io::Result<()> {
        let id = thread.sample.id;
        if !self.threads.contains_key(&id) {
            let process = self.process(out, machine, thread)?;
            let slices = out.track(Some(process), TrackKind::Thread(id.pid, id.tid, &thread.sample.name))?;
            let one = OneThread {
                name: format!("{} {}", thread.sample.name, id.tid),
                whereabouts: Whereabouts::default(),
                slices,
                migrations: None,
                cpu: CounterTrack::default(),
                wait: CounterTrack::default(),
                is_here: true,
            };
            self.threads.insert(id, one);
        }
        let Some(one) = self.threads.get_mut(&id) else { return Ok(()) };
        one.is_here = true;
        let mut changes = OnOffCores::new();
        one.whereabouts.observe(thread, moves, &mut changes);
        if let Some(from_ns) = from_ns {
            let place = |name| CounterPlace { below: one.slices, name, unit: "% of a core", shows_zero: false };
            let span = (from_ns, machine.at_ns);
            one.cpu.step(out, place("CPU time"), span, thread.cpu.map(|share| share * 100.0))?;
            one.wait.step(out, place("waiting for a core"), span, thread.wait.map(|share| share * 100.0))?;
        }
        self.take_changes(id, &changes);
        for one in moves {
            self.take(one.at_ns, id, ThreadNews::Migrated(*one));
        }
        Ok(())
    }

    fn missed<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        id: ThreadId,
        moves: &[TracedMove],
        at_ns: u64,
    ) -> io::Result<()> {
        let Some(one) = self.threads.get_mut(&id) else { return Ok(()) };
        let mut changes = OnOffCores::new();
        one.whereabouts.gone(moves, &mut changes);
        one.cpu.close(out)?;
        one.wait.close(out)?;
        self.take_changes(id, &changes);
        for one in moves {
            self.take(one.at_ns, id, ThreadNews::Migrated(*one));
        }
        self.take(at_ns, id, ThreadNews::Gone);
        Ok(())
    }

    fn process<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        machine: &MachineMetrics,
        thread: &ThreadMetrics,
    ) -> io::Result<TrackId> {
        let pid = thread.sample.id.pid;
        if let Some(process) = self.processes.get(&pid) {
            return Ok(*process);
        }
        let main = machine.threads.iter().find(|one| (one.sample.id.pid, one.sample.id.tid) == (pid, pid));
        let process = out.track(None, TrackKind::Process(pid, &main.unwrap_or(thread).sample.name))?;
        self.processes.insert(pid, process);
        Ok(process)
    }

    fn take_changes(&mut self, thread: ThreadId, changes: &[(u64, OnOffCore)]) {
        for (at_ns, change) in changes {
            self.take(*at_ns, thread, ThreadNews::Core(*change));
        }
    }

    fn take(&mut self, at_ns: u64, thread: ThreadId, news: ThreadNews) {
        self.taken += 1;
        // Only a recording that was tampered with tells of something later than that.
        self.held.insert((at_ns.max(self.written_ns), self.taken), (thread, news));
    }

    fn write_until<W: Write>(&mut self, out: &mut TraceWriter<W>, until_ns: u64, cores: TrackId) -> io::Result<()> {
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= until_ns) {
            let ((at_ns, _), (id, news)) = first.remove_entry();
            self.written_ns = at_ns;
            match (self.threads.get_mut(&id), news) {
                (Some(one), ThreadNews::Core(OnOffCore::Comes(core))) => {
                    out.begin(one.slices, at_ns, &format!("core {core}"), &[])?;
                    self.lanes.come(out, cores, at_ns, (core, id, &one.name))?;
                }
                (Some(one), ThreadNews::Core(OnOffCore::Leaves(core))) => {
                    out.end(one.slices, at_ns)?;
                    self.lanes.leave(out, at_ns, core, id)?;
                }
                (Some(one), ThreadNews::Migrated(migration)) => {
                    let below = (one.slices, format!("migrations of {}", one.name));
                    migrated(out, &mut one.migrations, (Some(below.0), &below.1), (at_ns, migration))?;
                }
                (None, ThreadNews::Migrated(migration)) => {
                    let name = "migrations of threads that ended before they were found";
                    migrated(out, &mut self.unfound, (None, name), (at_ns, migration))?;
                }
                (Some(one), ThreadNews::Gone) if !one.is_here => drop(self.threads.remove(&id)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn migrated<W: Write>(
    out: &mut TraceWriter<W>,
    track: &mut Option<TrackId>,
    (below, name): (Option<TrackId>, &str),
    (at_ns, one): (u64, TracedMove),
) -> io::Result<()> {
    let on = match *track {
        Some(on) => on,
        None => *track.insert(out.track(below, TrackKind::Named(name))?),
    };
    let mut beside = vec![
        ("tid", Annotated::Whole(one.thread.tid.into())),
        ("from", Annotated::Whole(one.from.into())),
        ("to", Annotated::Whole(one.to.into())),
    ];
    beside.extend(one.class.map(|class| ("crosses", Annotated::Text(class.word().to_owned()))));
    out.instant(on, at_ns, &format!("core {} to {}", one.from, one.to), &beside)
}
