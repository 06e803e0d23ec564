//! Moves from perf samples of the tracepoint, for those with `CAP_PERFMON` alone. Some samples are lost without a record
//! (a move made in an interrupt on an idle core): the event's own counter tells how many. They come unfiltered, because
//! the kernel takes a filter for such an event once and no other afterwards (EEXIST), and threads come and go.

use super::Ring;
use super::format::EventLayout;
use super::{btf, sys};
use crate::sample::{CoreSet, Move};
use crate::source::Roots;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Some 900 moves a core between two readings; less than the kernel lets every user lock.
const RING: usize = 64 * 1024;
/// Numbers of tracepoints on the kernels of today; they are given one after the other.
const MOST_IDS: u64 = 8192;
/// 371 on Linux 6.18, some 320 on 6.1.
const LIKELY: u64 = 350;
/// How many events may be open at once while the number is looked for.
const MOST_OPEN: usize = 128;
/// Every field by which the event is known from others.
const ONLY_MOVES_HAVE: &str = "orig_cpu==0&&dest_cpu==0&&pid==0&&prio==0";

/// `perf_event_header.type`.
const SAMPLE: u32 = 9;

/// Opens the events and their rings.
///
/// # Errors
/// The right is missing, or this kernel has no such tracepoint or does not describe its record.
pub(super) fn begin(roots: &Roots) -> io::Result<Perf> {
    let cores = fs::read_to_string(roots.sys.join("devices/system/cpu/online"))?;
    let cores: CoreSet = cores.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let first = cores.first().and_then(|core| i32::try_from(core).ok()).ok_or(io::ErrorKind::InvalidData)?;
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "the record of a move is not described by this kernel");
    // Without the right the first attempt says so, before megabytes are read.
    let id = find_id(first)?;
    let layout = btf::layout(&roots.sys.join("kernel/btf/vmlinux"))?.ok_or_else(unknown)?;
    let mut events = Vec::new();
    let mut rings = Vec::new();
    for core in cores.iter().filter_map(|core| i32::try_from(core).ok()) {
        let event = sys::tracepoint(id, core)?;
        rings.push(sys::Mapping::new(&event, RING)?);
        events.push(event);
    }
    events.iter().try_for_each(|event| sys::enable(event.as_fd()))?;
    let layout = EventLayout { id: u16::try_from(id).ok(), ..layout };
    Ok(Perf { events, rings, layout, bytes: Vec::new(), seen: 0, lost: 0 })
}

/// The tracepoint's number, which is not to be read without tracefs: only an event with these fields takes this filter.
/// Closing an event takes the kernel tens of milliseconds, so that is left to a thread that nobody waits for.
fn find_id(core: i32) -> io::Result<u64> {
    let filter = CString::new(ONLY_MOVES_HAVE)?;
    let mut others = Vec::new();
    let mut found = Err(io::Error::new(io::ErrorKind::NotFound, "this kernel has no tracepoint of moves"));
    for id in likely_first() {
        match sys::tracepoint(id, core) {
            Ok(event) if sys::set_filter(event.as_fd(), &filter).is_ok() => {
                others.push(event);
                found = Ok(id);
                break;
            }
            Ok(event) if others.len() < MOST_OPEN => others.push(event),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS)) => {
                found = Err(error);
                break;
            }
            _ => {}
        }
    }
    let _ = std::thread::Builder::new().name("trace".to_owned()).spawn(|| drop(others));
    found
}

/// Every number, from where the scheduler's tracepoints are on the kernels of today outwards.
fn likely_first() -> impl Iterator<Item = u64> {
    let outwards = (0..MOST_IDS).flat_map(|away| [LIKELY.checked_sub(away), LIKELY.checked_add(away + 1)]);
    outwards.flatten().filter(|id| (1..MOST_IDS).contains(id))
}

/// The rings, read by the sampler.
pub(super) struct Perf {
    events: Vec<OwnedFd>,
    rings: Vec<sys::Mapping>,
    layout: EventLayout,
    bytes: Vec<u8>,
    /// Samples taken from the rings.
    seen: u64,
    lost: u64,
}

impl Ring for Perf {
    fn read(&mut self, moves: &mut Vec<Move>) {
        // The counters first: a move in between is seen and not yet counted, and so is never taken for lost.
        let counted = self.events.iter().map(counter).sum::<u64>();
        for ring in self.rings.iter_mut().filter(|ring| ring.has_data()) {
            self.bytes.clear();
            ring.take(&mut self.bytes);
            self.seen += samples(&self.bytes, &self.layout, moves);
        }
        self.lost = self.lost.max(counted.saturating_sub(self.seen));
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

/// How often the event happened, whether its sample was written or not.
fn counter(event: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    rustix::io::read(event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
}

/// Adds the moves in a stretch of ring; how many samples there were. Whatever the bytes are, nothing panics.
fn samples(mut bytes: &[u8], layout: &EventLayout, moves: &mut Vec<Move>) -> u64 {
    let mut seen = 0;
    while let (Some(kind), Some(rest)) = (bytes.first_chunk(), bytes.get(6..)) {
        let kind = u32::from_ne_bytes(*kind);
        let size = rest.first_chunk().map_or(0, |size| usize::from(u16::from_ne_bytes(*size)));
        let Some(record) = bytes.get(8..size) else { break };
        if kind == SAMPLE {
            seen += 1;
            let raw = |time: &[u8; 8]| {
                let length = u32::from_ne_bytes(*record.get(8..)?.first_chunk()?) as usize;
                layout.read(u64::from_ne_bytes(*time), record.get(12..12 + length)?)
            };
            moves.extend(record.first_chunk().and_then(raw));
        }
        bytes = &bytes[size..];
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: EventLayout = EventLayout { id: None, tid: 12, from: 20, to: 24 };

    fn sample(kind: u32, at_ns: u64, tid: u32) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0, 52, 0]);
        bytes.extend(at_ns.to_ne_bytes());
        bytes.extend(32_u32.to_ne_bytes());
        let mut record = [0; 32];
        for (offset, value) in [(12, tid), (20, 3), (24, 4)] {
            record[offset..offset + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        bytes.extend(record);
        bytes
    }

    #[test]
    fn samples_are_moves_and_other_records_are_stepped_over() {
        let bytes: Vec<u8> = [sample(SAMPLE, 5, 77), sample(2, 6, 78), sample(SAMPLE, 7, 79)].concat();
        let mut moves = Vec::new();
        assert_eq!(samples(&bytes, &LAYOUT, &mut moves), 2, "a record of another kind is no sample");
        let expected = [(5, 77), (7, 79)].map(|(at_ns, tid)| Move { at_ns, tid, from: 3, to: 4 });
        assert_eq!(moves, expected, "both moves with their times");
        assert_eq!(samples(&bytes[..60], &LAYOUT, &mut moves), 1, "a record that is cut ends it");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            samples(&bytes, &LAYOUT, &mut Vec::new());
        }
    }
}
