//! Migrations of the threads asked for, from a ring of each core (`moves`, `moves_written`): one system call, and
//! one more for each of them. It decides nothing about a move.

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use std::collections::BTreeSet;

/// `MOST_MOVES` of the object: slots of a ring at most, and at least, and on all cores together about.
const MOST_SLOTS: u32 = 4096;
const LEAST_SLOTS: u32 = 512;
const ALL_SLOTS: u32 = 65_536;

/// One migration: `CLOCK_MONOTONIC` ns in the kernel's own time, thread, core left, core reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawMove {
    /// When.
    pub at_ns: u64,
    /// The thread's number in the machine's own process namespace.
    pub tid: u32,
    /// The core it left.
    pub from: u32,
    /// The core it went to.
    pub to: u32,
    /// The process that it belongs to; none where the kernel has no BTF.
    pub process: Option<MovedProcess>,
}

/// The process of a moved thread, for a thread that ends before it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedProcess {
    /// Its process.
    pub pid: u32,
    /// The process that made that one.
    pub parent: u32,
    /// What it was called then, up to a NUL.
    name: [u8; 16],
}

impl MovedProcess {
    /// One of this name.
    #[must_use]
    pub fn new(pid: u32, parent: u32, name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        Self { pid, parent, name: bytes }
    }

    /// What the thread was called then (`comm`), any bytes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// Whose migrations are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRequest {
    /// Thread numbers.
    pub tids: BTreeSet<u32>,
    /// Numbers yet to be given, both ends included: two ranges where the numbers wrap.
    pub unborn: [Option<(u32, u32)>; 2],
}

/// Where the fields of the classic tracepoint's record are, bytes from its beginning (`format` of the event).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordLayout {
    pid: u32,
    from: u32,
    to: u32,
}

impl RecordLayout {
    /// From the event's `format` file; none where a field is missing or has another size.
    pub(super) fn parse(format: &str) -> Option<Self> {
        Some(Self { pid: field(format, "pid")?, from: field(format, "orig_cpu")?, to: field(format, "dest_cpu")? })
    }
}

/// The offset of a field of four bytes: `field:pid_t pid;  offset:24;  size:4;  signed:1;`.
fn field(format: &str, name: &str) -> Option<u32> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let last = parts.next()?.rsplit([' ', '\t']).next()?;
        let offset: u32 = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        (last == name && parts.next()? == "size:4" && offset < 256).then_some(offset)
    })
}

/// `struct move`: time, sequence, thread and core left, core reached and process, its parent, and 16 bytes of name.
type MoveRecord = [u64; 7];

/// The rings, and what they are asked for.
pub struct MoveRings {
    slots: PerCpuArray<MapData, MoveRecord>,
    written: PerCpuArray<MapData, u64>,
    watched: HashMap<MapData, u32, u32>,
    unborn: Array<MapData, [u32; 8]>,
    /// The threads whose migrations are recorded.
    pub asked: TraceRequest,
    layout: RecordLayout,
    mask: u32,
    /// What was read of each core's ring.
    read: Vec<u64>,
    /// Migrations that happened and could not be read, since the beginning.
    pub lost: u64,
}

impl MoveRings {
    /// Slots of each core's ring, a power of two.
    pub(super) fn slots() -> u32 {
        let cores = aya::util::nr_cpus().ok().and_then(|cores| u32::try_from(cores).ok()).unwrap_or(1);
        (ALL_SLOTS / cores.max(1)).next_power_of_two().clamp(LEAST_SLOTS, MOST_SLOTS)
    }

    pub(super) fn take(ebpf: &mut Ebpf, slots: u32, layout: RecordLayout) -> Option<Self> {
        let mut rings = Self {
            slots: PerCpuArray::try_from(ebpf.take_map("moves")?).ok()?,
            written: PerCpuArray::try_from(ebpf.take_map("moves_written")?).ok()?,
            watched: HashMap::try_from(ebpf.take_map("watched")?).ok()?,
            unborn: Array::try_from(ebpf.take_map("unborn")?).ok()?,
            asked: TraceRequest::default(),
            layout,
            mask: slots - 1,
            read: Vec::new(),
            lost: 0,
        };
        rings.write_unborn();
        Some(rings)
    }

    /// Whether each move comes with its process: not from a kernel without BTF.
    #[must_use]
    pub fn tell_processes(&self) -> bool {
        self.layout == RecordLayout::default()
    }

    /// Asks for these threads from now on. One for which the kernel has no room is left out of what [`Self::asked`] says.
    pub fn ask(&mut self, wanted: &TraceRequest) {
        for gone in self.asked.tids.difference(&wanted.tids) {
            let _ = self.watched.remove(gone);
        }
        let watched = &mut self.watched;
        let known = &self.asked.tids;
        let is_asked = |tid: &u32| known.contains(tid) || watched.insert(tid, 1, 0).is_ok();
        let tids = wanted.tids.iter().copied().filter(is_asked).collect();
        let ranges_differ = self.asked.unborn != wanted.unborn;
        self.asked = TraceRequest { tids, unborn: wanted.unborn };
        if ranges_differ {
            self.write_unborn();
        }
    }

    fn write_unborn(&mut self) {
        // A range that holds nothing.
        let [first, again] = self.asked.unborn.map(|range| range.unwrap_or((1, 0)));
        let RecordLayout { pid, from, to } = self.layout;
        let _ = self.unborn.set(0, [first.0, first.1, again.0, again.1, pid, from, to, self.mask], 0);
    }

    /// Hands over the migrations since the last reading, in no order.
    pub fn read(&mut self, mut each: impl FnMut(RawMove)) {
        let Ok(written) = self.written.get(&0, 0) else { return };
        self.read.resize(written.len(), 0);
        let in_ring = u64::from(self.mask) + 1;
        for (core, &last) in written.iter().enumerate() {
            // What was written over is lost.
            let first = self.read[core].max(last.saturating_sub(in_ring));
            self.lost += first - self.read[core];
            for sequence in first..last {
                let slot = u32::try_from(sequence & u64::from(self.mask)).unwrap_or(0);
                let Ok(values) = self.slots.get(&slot, 0) else { break };
                match decode(values[core], sequence + 1) {
                    Some(one) => each(one),
                    None => self.lost += 1,
                }
            }
            self.read[core] = last;
        }
    }
}

/// The move in a slot; none where a later one has been written over it meanwhile.
fn decode(slot: MoveRecord, sequence: u64) -> Option<RawMove> {
    let [at_ns, written_as, thread, to, parent, name @ ..] = slot;
    // Two fields of four bytes each, in the machine's order.
    let halves = |word: u64| {
        let bytes = word.to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (half(0), half(4))
    };
    let ((tid, from), (to, pid), (parent, _)) = (halves(thread), halves(to), halves(parent));
    let name = || name.map(u64::to_ne_bytes).concat();
    let process = (pid != 0).then(|| MovedProcess::new(pid, parent, &name()));
    (written_as == sequence).then_some(RawMove { at_ns, tid, from, to, process })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: &str = "name: sched_migrate_task\nID: 371\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:int orig_cpu;\toffset:20;\tsize:4;\tsigned:1;\n\tfield:int dest_cpu;\toffset:24;\tsize:4;\tsigned:1;\n";
    const EARLIER: &str = "ID: 320\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int orig_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\
        \tfield:int dest_cpu;\toffset:36;\tsize:4;\tsigned:1;\n";

    #[test]
    fn the_classic_record_is_laid_out_as_each_kernel_says() {
        let later = RecordLayout { pid: 12, from: 20, to: 24 };
        assert_eq!(RecordLayout::parse(LATER), Some(later), "Linux 6.18: the name is elsewhere");
        let earlier = RecordLayout { pid: 24, from: 32, to: 36 };
        assert_eq!(RecordLayout::parse(EARLIER), Some(earlier), "Linux 6.1: sixteen bytes of name");
        assert_eq!(RecordLayout::parse("ID: 3\n"), None, "without the fields there is no layout");
        assert_eq!(RecordLayout::parse(&LATER.replace("size:4", "size:8")), None, "another size is another field");
    }

    #[test]
    fn a_slot_that_was_written_over_is_no_move() {
        let pair = |low: u32, high: u32| {
            let bytes: Vec<u8> = [low.to_ne_bytes(), high.to_ne_bytes()].concat();
            u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
        };
        let name = u64::from_ne_bytes(*b"forky\0xx");
        let slot = [5, 9, pair(77, 3), pair(4, 76), pair(2, 0), name, 0];
        let process = MovedProcess::new(76, 2, b"forky");
        let moved = RawMove { at_ns: 5, tid: 77, from: 3, to: 4, process: Some(process) };
        let reported = decode(slot, 9).expect("a move");
        assert_eq!((reported.tid, reported.process.map(|process| (process.pid, process.parent))), (77, Some((76, 2))));
        assert_eq!(reported.process.expect("told").name(), b"forky", "up to a NUL");
        assert_eq!(RawMove { process: Some(process), ..reported }, moved, "the fields are read");
        assert_eq!(decode(slot, 8), None, "a later one stands there");
        let without = [5, 9, pair(77, 3), pair(4, 0), 0, 0, 0];
        assert_eq!(decode(without, 9).expect("a move").process, None, "a kernel without BTF");
    }
}
