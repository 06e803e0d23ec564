//! Loads and attaches the object. With the kernel's BTF (Linux 5.5) everything; without it only migrations, by a classic
//! tracepoint program that needs to know where tracefs is and how the event's record is laid out.
//!
//! What the loader made of the object and of the kernel's types is dropped once the programs are attached: only links and
//! maps stay. So what is counted on request is loaded anew when it is asked for.

use super::datagrams::{self, DatagramTable};
use super::drops::DropTables;
use super::functions::UsualFunctions;
use super::hops::{HopCounts, HopRequest, HopTables};
use super::latency::LatencyTables;
use super::looked_at::{LookedAt, now_ns};
use super::moves::{MoveRings, RecordLayout};
use super::reasons::Reasons;
use super::softirqs::SoftirqTimes;
use super::{Maps, PacketLook, Refusal};
use crate::mounts;
use aya::maps::{Array, MapData};
use aya::programs::tp_btf::{BtfTracePointLink, BtfTracePointLinkId};
use aya::programs::trace_point::TracePointLink;
use aya::programs::{BtfTracePoint, ProgramError, TracePoint};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, Endianness, VerifierLogLevel};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Compiled by `bpf/build`.
static OBJECT: &[u8] = include_bytes!("../../bpf/vnettop.bpf.o");

/// The same of what is looked at on request.
static LATENCY_OBJECT: &[u8] = include_bytes!("../../bpf/latency.bpf.o");

/// Program, and the tracepoint it is for.
const DROPPED: (&str, &str) = ("dropped", "kfree_skb");
const MOVED: (&str, &str) = ("moved", "sched_migrate_task");
const DATAGRAMS: [(&str, &str); 2] = [("sent", "sock_send_length"), ("received", "sock_recv_length")];
const SOFTIRQS: [(&str, &str); 2] = [("softirq_begins", "softirq_entry"), ("softirq_ends", "softirq_exit")];
const HOPS: [(&str, &str); 2] = [("hop_receives", "netif_receive_skb"), ("hop_sends", "net_dev_start_xmit")];
const LATE_THREADS: [(&str, &str); 2] = [("thread_wakes", "sched_waking"), ("threads_switch", "sched_switch")];
/// Linux 6.3.
const READS: [(&str, &str); 2] = [("data_are_read", "sock_recv_length"), ("thread_sends", "sock_send_length")];
/// Where there are datagrams, whose queue loses what is dropped at its end.
const DROPPED_LAST: (&str, &str) = ("datagram_is_dropped", "kfree_skb");
const LATE_PACKETS: [(&str, &str); 4] = [
    ("receiving_is_raised", "softirq_raise"),
    ("receiving_begins", "softirq_entry"),
    ("packet_is_received", "netif_receive_skb"),
    ("packet_is_sent", "net_dev_start_xmit"),
];
/// Where links of a path have qdiscs.
const QUEUED: (&str, &str) = ("packet_is_queued", "net_dev_queue");
const MOVED_CLASSIC: &str = "moved_classic";

/// The attached programs; they end with this.
#[derive(Default)]
pub(super) struct Links {
    _btf: Vec<BtfTracePointLink>,
    _datagrams: Vec<BtfTracePointLink>,
    _classic: Option<TracePointLink>,
}

/// Loads what this kernel and these rights allow.
pub(super) fn load(proc: &Path, sys: &Path) -> Result<(Links, Maps), Refusal> {
    match types(sys).and_then(|bytes| with_btf(proc, sys, &bytes)) {
        Ok(loaded) => Ok(loaded),
        Err(Refusal::Rights) => Err(Refusal::Rights),
        Err(missing) => classic(proc, sys, &missing),
    }
}

/// What the kernel says of its types.
fn types(sys: &Path) -> Result<Vec<u8>, Refusal> {
    let path = sys.join("kernel/btf/vmlinux");
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Refusal::NoBtf,
        _ => Refusal::Unread(Arc::new(error)),
    };
    super::room::for_types(sys, fs::metadata(&path).map_err(refused)?.len())?;
    fs::read(path).map_err(refused)
}

fn parsed(bytes: &[u8]) -> Result<Btf, Refusal> {
    Btf::parse(bytes, Endianness::default()).map_err(|error| Refusal::Other(error.to_string()))
}

fn with_btf(proc: &Path, sys: &Path, bytes: &[u8]) -> Result<(Links, Maps), Refusal> {
    let btf = parsed(bytes)?;
    let slots = MoveRings::slots();
    let mut ebpf = lifted(Some(&btf), slots)?;
    // One missing tracepoint does not rule out the other: a kernel may be built without it.
    let both = [attached(&mut ebpf, &btf, MOVED), attached(&mut ebpf, &btf, DROPPED)];
    let [has_moves, has_drops] = [both[0].is_ok(), both[1].is_ok()];
    let (links, refusals): (Vec<_>, Vec<_>) = both.into_iter().partition(Result::is_ok);
    let missing = refusals.into_iter().find_map(Result::err);
    if let Some(refusal) = missing.clone().filter(|_| links.is_empty()) {
        return Err(refusal);
    }
    let drops = || DropTables::take(&mut ebpf, Reasons::read(bytes, &sys.join("kernel/btf/openvswitch")));
    let drops = has_drops.then(drops).flatten();
    let moves = has_moves.then(|| MoveRings::take(&mut ebpf, slots, RecordLayout::default())).flatten();
    let functions = if has_drops { UsualFunctions::read(proc) } else { UsualFunctions::default() };
    tell_freeing(&mut ebpf, &functions);
    // Without these programs UDP rates come from namespaces' counters or are unknown, which is said where it matters.
    let counting: Result<Vec<_>, _> = DATAGRAMS.map(|which| attached(&mut ebpf, &btf, which)).into_iter().collect();
    let counting = counting.unwrap_or_default();
    let datagrams = (!counting.is_empty()).then(|| DatagramTable::take(&mut ebpf)).flatten();
    let links = Links { _btf: links.into_iter().flatten().collect(), _datagrams: counting, _classic: None };
    Ok((links, Maps { moves, drops, datagrams, functions, missing }))
}

/// Tells the program where the kernel's `kfree_skb` is (`struct freeing`); it needs that where that was cut in two.
fn tell_freeing(ebpf: &mut Ebpf, functions: &UsualFunctions) {
    let mut pieces = [[0; 2]; 4];
    for (piece, at) in pieces.iter_mut().zip(functions.freeing()) {
        *piece = at;
    }
    if let Some(mut table) = ebpf.map_mut("freeing").and_then(|map| Array::<_, [[u64; 2]; 4]>::try_from(map).ok()) {
        let _ = table.set(0, pieces, 0);
    }
}

/// Migrations alone; `missing` is why not more. They are attached by way of tracefs, which an ordinary /sys has mounted in it,
/// and not the bare one that `ip netns exec` gives a command: then process 1 may have it, else it is mounted for a moment.
fn classic(proc: &Path, sys: &Path, missing: &Refusal) -> Result<(Links, Maps), Refusal> {
    let here = || attached_classically(sys, missing.clone());
    let mounted = || mounts::with_mounted("tracefs", sys, &sys.join("kernel/tracing"), here);
    let elsewhere = if event(sys).is_some() {
        return here();
    } else if event(&proc.join("1/root/sys")).is_some() {
        // CAP_SYS_ADMIN alone, as `rights` leaves it or a container has it, allows to mount but not to enter another mount
        // namespace.
        mounts::with_those_of(&proc.join("1/ns/mnt"), here).or_else(|_not_entered| mounted())
    } else {
        mounted()
    };
    elsewhere.unwrap_or_else(|error| Err(Refusal::NoTracefs(Arc::new(error))))
}

/// How the record of a migration is laid out, in tracefs' words.
pub(super) fn event(sys: &Path) -> Option<String> {
    ["kernel/tracing", "kernel/debug/tracing"]
        .iter()
        .map(|tracefs| sys.join(tracefs).join("events/sched/sched_migrate_task/format"))
        .find_map(|path| fs::read_to_string(path).ok())
}

fn attached_classically(sys: &Path, missing: Refusal) -> Result<(Links, Maps), Refusal> {
    let layout = event(sys).as_deref().and_then(RecordLayout::parse).ok_or_else(|| missing.clone())?;
    let slots = MoveRings::slots();
    let mut ebpf = lifted(None, slots)?;
    // The layout is in the map before the program reads it.
    let moves = MoveRings::take(&mut ebpf, slots, layout);
    let program: &mut TracePoint = program(&mut ebpf, MOVED_CLASSIC)?;
    let attach = |program: &mut TracePoint| {
        program.load()?;
        let link = program.attach("sched", "sched_migrate_task")?;
        program.take_link(link)
    };
    let link = attach(program).map_err(|error| refused(&error))?;
    let links = Links { _classic: Some(link), ..Links::default() };
    let (drops, datagrams, functions) = (None, None, UsualFunctions::default());
    Ok((links, Maps { moves, drops, datagrams, functions, missing: Some(missing) }))
}

/// Whether the kernel takes the programs of migrations and of dropped packets: they are loaded and let go of, never attached,
/// so nothing on the machine runs them. Without BTF the record of a migration must be readable where tracefs is mounted; where
/// it is not, that program is tried all the same, as for a tracefs that is mounted for a moment.
pub(super) fn try_loading(sys: &Path) -> [Result<(), Refusal>; 2] {
    let tried = types(sys).and_then(|bytes| {
        let btf = parsed(&bytes)?;
        let mut ebpf = lifted(Some(&btf), MoveRings::slots())?;
        Ok([MOVED, DROPPED].map(|which| prepare(&mut ebpf, &btf, which)))
    });
    match tried {
        Ok(both) => both,
        Err(Refusal::Rights) => [Err(Refusal::Rights), Err(Refusal::Rights)],
        Err(missing) => [try_loading_classically(), Err(missing)],
    }
}

fn try_loading_classically() -> Result<(), Refusal> {
    let mut ebpf = lifted(None, MoveRings::slots())?;
    let program: &mut TracePoint = program(&mut ebpf, MOVED_CLASSIC)?;
    program.load().map_err(|error| refused(&error))
}

/// What is counted on request: loaded by itself, attached only while it is asked for.
pub(super) struct Requested {
    ebpf: Ebpf,
    softirqs: Attached,
    hops: Attached,
    tables: HopTables,
}

/// The program's name and its link.
type Attached = Vec<(&'static str, BtfTracePointLinkId)>;

impl Requested {
    /// Loads the programs.
    pub fn load(sys: &Path) -> Result<(Self, SoftirqTimes), Refusal> {
        let btf = parsed(&types(sys)?)?;
        let mut ebpf = lifted(Some(&btf), 1)?;
        for which in SOFTIRQS.iter().chain(&HOPS) {
            prepare(&mut ebpf, &btf, *which)?;
        }
        let times = SoftirqTimes::take(&mut ebpf);
        let tables = times.zip(HopTables::take(&mut ebpf));
        let tables = tables.ok_or_else(|| Refusal::Other("the object has no tables".to_owned()));
        tables.map(|(times, tables)| (Self { ebpf, softirqs: Vec::new(), hops: Vec::new(), tables }, times))
    }

    /// Attaches the programs that time softirqs, or detaches them.
    pub fn time_softirqs(&mut self, wanted: bool) {
        if wanted == self.softirqs.is_empty() {
            detach(&mut self.ebpf, std::mem::take(&mut self.softirqs));
            if wanted {
                self.softirqs = attach(&mut self.ebpf, &SOFTIRQS);
            }
        }
    }

    /// Counts the packets of these hops from now on.
    pub fn begin_hops(&mut self, request: &HopRequest) {
        self.tables.ask(request);
        self.hops = attach(&mut self.ebpf, &HOPS);
        self.tables.begin();
    }

    /// What was counted since then; nothing more is.
    pub fn end_hops(&mut self) -> HopCounts {
        let counts = self.tables.read();
        detach(&mut self.ebpf, std::mem::take(&mut self.hops));
        counts
    }
}

/// What looks at how long packets and threads wait: loaded by itself, attached only while it is asked for.
pub(super) struct LatencyPrograms {
    ebpf: Ebpf,
    threads: Attached,
    packets: Attached,
    /// `struct look`.
    looks: Option<Array<MapData, [u64; 4]>>,
    /// Of the look that lasts, or the last one.
    look: [u64; 4],
    looked_at: Arc<LookedAt>,
    threads_at: Arc<LookedAt>,
}

impl LatencyPrograms {
    /// Loads the programs.
    pub fn load(sys: &Path) -> Result<(Self, LatencyTables), Refusal> {
        let btf = parsed(&types(sys)?)?;
        let mut ebpf = made(LATENCY_OBJECT, EbpfLoader::new().btf(Some(&btf)))?;
        for which in LATE_THREADS.iter().chain(&LATE_PACKETS).chain([&QUEUED, &DROPPED_LAST]) {
            prepare(&mut ebpf, &btf, *which)?;
        }
        // Without these the gaps of reading and sending are unknown, and how long packets wait for their reader.
        let tells_reads = READS.map(|which| prepare(&mut ebpf, &btf, which)).iter().all(Result::is_ok);
        let [looked_at, threads_at] = [(); 2].map(|()| Arc::new(LookedAt::default()));
        let both = [Arc::clone(&looked_at), Arc::clone(&threads_at)];
        let tables = LatencyTables::take(&mut ebpf, both, tells_reads);
        let tables = tables.ok_or_else(|| Refusal::Other("the object has no tables".to_owned()))?;
        let looks = ebpf.take_map("looks").and_then(|map| Array::try_from(map).ok());
        Ok((
            Self { ebpf, threads: Vec::new(), packets: Vec::new(), looks, look: [0; 4], looked_at, threads_at },
            tables,
        ))
    }

    /// Looks at threads from now on, or no longer.
    pub fn look_at_threads(&mut self, wanted: bool) {
        if wanted == self.threads.is_empty() {
            detach(&mut self.ebpf, std::mem::take(&mut self.threads));
            if wanted {
                self.look[2] = now_ns();
                if let Some(looks) = &mut self.looks {
                    let _ = looks.set(0, self.look, 0);
                }
                self.threads = attach(&mut self.ebpf, &LATE_THREADS);
                self.threads_at.begin();
            } else {
                self.threads_at.end();
            }
        }
    }

    /// Looks at packets from now on for so long, or, with none, until it is told otherwise; a look that lasts goes on.
    pub fn look_at_packets(&mut self, look: PacketLook) {
        let is_begun = self.packets.is_empty();
        if let Some(looks) = &mut self.looks {
            let [number, follows_until_ns] = self.looked_at.look(look.packets_for, is_begun);
            let since_ns = if is_begun { now_ns() } else { self.look[3] };
            self.look = [number, follows_until_ns, self.look[2], since_ns];
            let _ = looks.set(0, self.look, 0);
        }
        if is_begun {
            self.packets = attach(&mut self.ebpf, &[&LATE_PACKETS[..], &READS].concat());
        }
        for (program, is_wanted) in [(QUEUED, look.more.queues), (DROPPED_LAST, look.more.datagrams)] {
            if is_wanted && !self.packets.iter().any(|(name, _)| *name == program.0) {
                let more = attach(&mut self.ebpf, &[program]);
                self.packets.extend(more);
            }
        }
        if is_begun {
            self.looked_at.begin();
        }
    }

    /// Looks at packets no longer.
    pub fn end_look(&mut self) {
        if !self.packets.is_empty() {
            self.looked_at.end();
            detach(&mut self.ebpf, std::mem::take(&mut self.packets));
        }
    }
}

fn attach(ebpf: &mut Ebpf, which: &[(&'static str, &str)]) -> Attached {
    let attach = |&(name, _): &(&'static str, &str)| {
        let program: &mut BtfTracePoint = program(ebpf, name).ok()?;
        Some((name, program.attach().ok()?))
    };
    which.iter().filter_map(attach).collect()
}

fn detach(ebpf: &mut Ebpf, attached: Attached) {
    for (name, link) in attached {
        if let Ok(program) = program::<BtfTracePoint>(ebpf, name) {
            let _ = program.detach(link);
        }
    }
}

fn lifted(btf: Option<&Btf>, slots: u32) -> Result<Ebpf, Refusal> {
    let mut loader = EbpfLoader::new();
    loader.btf(btf).map_max_entries("moves", slots);
    loader.map_max_entries("datagrams", if slots > 1 { datagrams::room() } else { 1 });
    // What is counted on request alone has its room there alone.
    if slots > 1 {
        loader.map_max_entries("lanes", 1).map_max_entries("switchings", 1);
    }
    made(OBJECT, &mut loader)
}

/// Before Linux 5.11 maps count as locked memory, of which a process may have 64 KiB: lifted for as long as they are made,
/// so that a command started later has the limit that it would have without vnettop.
fn made(object: &[u8], loader: &mut EbpfLoader<'_>) -> Result<Ebpf, Refusal> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Memlock);
    let lifted = setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None }).is_ok();
    let result = loader.verifier_log_level(VerifierLogLevel::DISABLE).load(object);
    if lifted {
        let _ = setrlimit(Resource::Memlock, before);
    }
    result.map_err(|error| match &error {
        EbpfError::MapError(aya::maps::MapError::CreateError { io_error, .. }) if is_refusal(io_error) => {
            Refusal::Rights
        }
        error => Refusal::Other(error.to_string()),
    })
}

fn is_refusal(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Refusal>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let program = ebpf.program_mut(name).and_then(|program| program.try_into().ok());
    program.ok_or_else(|| Refusal::Other(format!("the object has no program {name}")))
}

fn prepare(ebpf: &mut Ebpf, btf: &Btf, (name, tracepoint): (&str, &str)) -> Result<(), Refusal> {
    let program: &mut BtfTracePoint = program(ebpf, name)?;
    program.load(tracepoint, btf).map_err(|error| refused(&error))
}

fn attached(ebpf: &mut Ebpf, btf: &Btf, which: (&str, &str)) -> Result<BtfTracePointLink, Refusal> {
    prepare(ebpf, btf, which)?;
    let program: &mut BtfTracePoint = program(ebpf, which.0)?;
    let link = program.attach().and_then(|link| program.take_link(link));
    link.map_err(|error| refused(&error))
}

fn refused(error: &ProgramError) -> Refusal {
    let io = match error {
        ProgramError::LoadError { io_error, .. } => Some(io_error),
        ProgramError::SyscallError(error) => Some(&error.io_error),
        _ => None,
    };
    if io.is_some_and(is_refusal) { Refusal::Rights } else { Refusal::Other(error.to_string()) }
}
