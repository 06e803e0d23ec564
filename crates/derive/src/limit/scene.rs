//! The figures that a judgement rests on: means over the last second of one test, and nothing of how they came about.

use crate::flow::BusyShares;
use crate::losses::Loss;
use std::net::{IpAddr, SocketAddr};
use vnettop_sample::{Congestion, CoreId, CoreSet, LinkKey, Proto, Runner};

/// Everything that is looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    /// Time that the figures are the means of.
    pub seconds: f64,
    /// Sorted by core.
    pub cores: Vec<Core>,
    /// The test's own.
    pub threads: Vec<Thread>,
    /// The threads that carry its packets between the ends.
    pub workers: Vec<WorkerThread>,
    /// Workers of which nothing is known yet: they were found in the last tick.
    pub unmeasured: Vec<WorkerPlace>,
    /// Cores on which the test's packets are handled by a setting or a device: RPS, threads of NAPI, interrupts.
    pub handling: CoreSet,
    /// Whose threads use cores, most first.
    pub runners: Vec<Runner>,
    /// What carries the test; none where that is not known.
    pub proto: Option<Proto>,
    /// Connections that carry it.
    pub streams: usize,
    /// Payload: of UDP what was sent, else what arrived.
    pub rate_bits_per_s: Option<f64>,
    /// What the client was asked to send (`-b`), all streams together.
    pub asked_bits_per_s: Option<f64>,
    /// The program that sends, where it is watched.
    pub sender: Option<String>,
    /// The sender's TCP; none of another protocol, and where the sender is elsewhere.
    pub tcp: Option<Tcp>,
    /// Places where its packets are lost, the worst first; `packets` is a rate a second.
    pub losses_per_s: Vec<Loss>,
    /// Share of the segments of the last five seconds that were sent again while nothing could tell whether they were lost
    /// here.
    pub sent_again: Option<f64>,
    /// A neighbour that does not answer: the link that asks for it, and its address.
    pub silent: Option<(String, IpAddr)>,
    /// Of TCP: what waits in the receivers' sockets to be read, bytes.
    pub unread_bytes: Option<f64>,
    /// Of TCP: the largest of the receivers' buffers, bytes.
    pub receive_buffer_bytes: Option<f64>,
    /// Of UDP: what waits in the senders' sockets, bytes.
    pub waiting_bytes: Option<f64>,
    /// The worst place of its last losses, however long ago; `packets` are those of that tick.
    pub last_lost: Option<Loss>,
    /// Why it has not sent anything yet.
    pub unbegun: Option<Unbegun>,
    /// Share of the datagrams sent that did not arrive, whether or not the place is known.
    pub missing: Option<f64>,
    /// What makes its packets or threads wait longest, as a clause, where latency is looked at.
    pub waits: Option<String>,
    /// Where a place of losses was looked for, in words.
    pub looked_at: String,
    /// Qdiscs on the path that hold packets back.
    pub held: Vec<HoldingQdisc>,
    pub quota: Option<QuotaUse>,
    pub claim: Option<RealSpeed>,
    /// The clock that core 0 is held to, and what it could do.
    pub clock_khz: Option<(f64, f64)>,
}

/// What a test waits for that never sent anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unbegun {
    /// An answer to the request to connect.
    Answer(SocketAddr),
    /// The other end of the connection, which waits too.
    Word(SocketAddr),
}

/// Shares of a core's time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the words of /proc/stat; process is user and system, softirq has irq in it")]
pub(super) struct Core {
    pub number: CoreId,
    pub process: f64,
    pub softirq: f64,
    pub steal: f64,
    pub idle: f64,
}

/// A thread of the test; shares of one core.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// Its name and role: `iperf3 server`.
    pub label: String,
    /// What of `cpu` it used on which core.
    pub cores: Vec<(CoreId, f64)>,
    pub cpu: f64,
    /// It went to another core within the last second.
    pub moved: bool,
    /// Run-queue wait.
    pub wait: f64,
    pub sends: bool,
    pub receives: bool,
}

/// A thread between the ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkerThread {
    pub thread: Thread,
    /// What a sentence calls it, and whose it is.
    pub noun: &'static str,
    pub place: WorkerPlace,
    /// It polls all the time.
    pub polls: bool,
    /// Threads that it stands for.
    pub count: usize,
}

/// Whose worker it is, and the link that gives it the packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkerPlace {
    pub carrier: String,
    pub pid: u32,
    pub before: Option<LinkKey>,
}

/// Means over the connections that carry the test.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tcp {
    /// What TCP was busy with; `None` before Linux 4.10.
    pub busy: Option<BusyShares>,
    /// How often TCP had no more to send.
    pub app_limited: Option<f64>,
    /// Share of the congestion window that is under way.
    pub under_way: Option<f64>,
    pub retransmits_per_s: f64,
    pub cwnd_bytes: Option<f64>,
    pub rtt_us: Option<f64>,
    pub mss_bytes: Option<f64>,
    /// What all of them together are paced to: by themselves, and by `SO_MAX_PACING_RATE`.
    pub paced_bits_per_s: Option<f64>,
    pub allowed_bits_per_s: Option<f64>,
    pub congestion: Option<Congestion>,
    /// Segments with data a second: sent, and come back.
    pub segments_per_s: Option<[f64; 2]>,
}

/// A qdisc that holds packets back because its rate is reached.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HoldingQdisc {
    /// `tbf on eth0`.
    pub name: String,
    /// What it lets pass, bits/s.
    pub bits_per_s: f64,
    /// What it is set to; none where that is not known.
    pub set_bits_per_s: Option<f64>,
    /// How often it held one back for each packet that it let pass.
    pub times: f64,
    /// Share of the looks at which packets waited in it.
    pub waits: f64,
}

/// A quota of a cgroup: how many cores' time it allows, and the share of its periods in which that was used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuotaUse {
    pub cores: f64,
    pub throttled: f64,
}

/// A link on the path with a real speed, and what it moves in the test's direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RealSpeed {
    pub name: String,
    pub bits_per_s: f64,
    pub speed_bits_per_s: f64,
}

impl Thread {
    /// CPU time on that core.
    pub fn on(&self, core: CoreId) -> f64 {
        self.cores.iter().find(|(on, _)| *on == core).map_or(0.0, |(_, cpu)| *cpu)
    }

    /// The core that it used most; none where it used none.
    pub fn home(&self) -> Option<CoreId> {
        self.cores.iter().max_by(|one, other| one.1.total_cmp(&other.1)).map(|(core, _)| *core)
    }
}

impl Scene {
    pub fn core(&self, core: CoreId) -> Option<&Core> {
        self.cores.iter().find(|row| row.number == core)
    }
}
