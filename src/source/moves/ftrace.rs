//! Moves from an ftrace instance of vnettop's own: made and filled in by the setting-up thread, read by the sampler.
//! Nobody else's tracing is touched; the instance is removed by the keeper.

use super::Ring;
use super::filter::Filter;
use super::format::{EventLayout, PageLayout};
use super::ring;
use crate::sample::Move;
use crate::source::proc_file;
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Below an instance or the top of tracefs.
pub(super) const EVENT: &str = "events/sched/sched_migrate_task";
/// What every core's ring holds, for each second between two readings: some 3,000 moves.
const KIB_PER_S: u64 = 128;
const MOST_KIB: u64 = 1024;
const NAME: &str = "vnettop-";

/// The directory of this process' instance; it is not made yet.
pub(super) fn instance(tracefs: &Path) -> PathBuf {
    tracefs.join("instances").join(format!("{NAME}{}", std::process::id()))
}

/// Removes what a vnettop that no longer runs left behind, and whatever has this process' number.
pub(super) fn sweep(tracefs: &Path, proc: &Path) {
    let own = instance(tracefs);
    let listed = fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten();
    for path in listed.map(|entry| entry.path()) {
        let pid = path.file_name().and_then(|name| name.to_str()?.strip_prefix(NAME)?.parse::<u32>().ok());
        let is_dead = |pid: u32| fs::metadata(proc.join(pid.to_string())).is_err();
        if path == own || pid.is_some_and(is_dead) {
            let _ = remove(&path);
        }
    }
}

/// Stops and removes an instance.
///
/// # Errors
/// EBUSY while somebody has one of its files open.
pub(super) fn remove(instance: &Path) -> io::Result<()> {
    if !instance.is_dir() {
        return Ok(());
    }
    // Where removing fails, it costs nothing from here on.
    let _ = fs::write(instance.join(EVENT).join("enable"), "0");
    fs::remove_dir(instance)
}

/// Makes the instance, sets it going with the filter, and opens its rings.
///
/// # Errors
/// What could not be done, on which file.
pub(super) fn make(instance: &Path, filter: &Filter, interval_ns: u64) -> io::Result<Ftrace> {
    let at = |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let put = |file: &str, text: &str| {
        let path = instance.join(file);
        fs::write(&path, text).map_err(|error| at(&path, error))
    };
    fs::create_dir(instance).map_err(|error| at(instance, error))?;
    let kib = (KIB_PER_S * interval_ns.div_ceil(1_000_000_000)).clamp(KIB_PER_S, MOST_KIB);
    put("buffer_size_kb", &kib.to_string())?;
    put("trace_clock", "mono")?;
    write_filter(instance, filter)?;
    let rings = Ftrace::open(instance)?;
    put(&format!("{EVENT}/enable"), "1")?;
    Ok(rings)
}

/// Puts another filter in the place of the one in force, which holds until then. The kernel may sleep meanwhile.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_filter(instance: &Path, filter: &Filter) -> io::Result<()> {
    let path = instance.join(EVENT).join("filter");
    fs::write(&path, filter.text())
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The rings of an instance, open for reading.
#[derive(Debug)]
pub(super) struct Ftrace {
    cores: Vec<Core>,
    page: Vec<u8>,
    event: EventLayout,
    layout: PageLayout,
}

/// One core's ring.
#[derive(Debug)]
struct Core {
    pipe: OwnedFd,
    directory: PathBuf,
    /// Moves that did not reach us.
    lost: u64,
}

impl Ftrace {
    fn open(instance: &Path) -> io::Result<Self> {
        let text = |path: PathBuf| fs::read_to_string(path);
        let unknown = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{what} has an unknown layout"));
        let event = EventLayout::parse(&text(instance.join(EVENT).join("format"))?).ok_or_else(|| unknown(EVENT))?;
        let layout = header_page(instance)
            .or_else(|| header_page(&instance.join("../..")))
            .ok_or_else(|| unknown("events/header_page"))?;
        let mut cores = Vec::new();
        for entry in fs::read_dir(instance.join("per_cpu"))? {
            let directory = entry?.path();
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let pipe = rustix::fs::open(directory.join("trace_pipe_raw"), flags, Mode::empty())?;
            cores.push(Core { pipe, directory, lost: 0 });
        }
        Ok(Self { cores, page: vec![0; layout.size], event, layout })
    }
}

/// The kernel gives the whole of this file to the first read and nothing to a second one.
fn header_page(instance: &Path) -> Option<PageLayout> {
    let file = fs::File::open(instance.join("events/header_page")).ok()?;
    let mut buffer = [0; 4096];
    PageLayout::parse(std::str::from_utf8(proc_file::once(file, &mut buffer).ok()?).ok()?)
}

impl Ring for Ftrace {
    fn read(&mut self, moves: &mut Vec<Move>) {
        for core in &mut self.cores {
            let mut missed = false;
            // An empty ring is EAGAIN; a ring that fills faster than it is read waits for the next time.
            for _ in 0..=MOST_KIB {
                let Ok(read) = rustix::io::read(&core.pipe, &mut self.page) else { break };
                if read == 0 {
                    break;
                }
                missed |= ring::records(&self.page[..read], &self.layout, |at_ns, record| {
                    moves.extend(self.event.read(at_ns, record));
                });
            }
            if missed {
                core.lost = lost(&core.directory).unwrap_or(0).max(core.lost + 1);
            }
        }
    }

    fn lost(&self) -> u64 {
        self.cores.iter().map(|core| core.lost).sum()
    }
}

/// What the kernel overwrote or could not write on one core: read only when a page says that something is missing.
fn lost(core: &Path) -> Option<u64> {
    let text = fs::read_to_string(core.join("stats")).ok()?;
    let counts = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events").then(|| value.trim().parse::<u64>().ok())?
    });
    Some(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_instances_of_dead_processes_are_swept() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let (tracefs, proc) = (tree.path().join("tracing"), tree.path().join("proc"));
        for name in ["vnettop-4", "vnettop-5", "other-4", "vnettop-x"] {
            fs::create_dir_all(tracefs.join("instances").join(name)).expect("writable");
        }
        fs::create_dir_all(instance(&tracefs)).expect("writable");
        fs::create_dir_all(proc.join("5")).expect("writable");
        sweep(&tracefs, &proc);
        let mut left: Vec<_> = fs::read_dir(tracefs.join("instances"))
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
            .collect();
        left.sort();
        assert_eq!(left, ["other-4", "vnettop-5", "vnettop-x"], "the living one's and those of others stay");
    }

    #[test]
    fn what_was_lost_is_the_sum_of_what_the_kernel_counts() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let stats = "entries: 3\noverrun: 7\ncommit overrun: 1\nbytes: 900\ndropped events: 2\nread events: 44\n";
        fs::write(tree.path().join("stats"), stats).expect("writable");
        assert_eq!(lost(tree.path()), Some(10), "overwritten, not written and dropped");
    }
}
