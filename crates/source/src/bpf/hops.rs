//! Which cores handle a link's packets (`netif_receive_skb`, `net_dev_start_xmit`), and on which those of a flow are handled
//! there and how often these change core; counted for a part of each second while somebody looks.

use super::drops::others::Bits;
use super::drops::{FlowKey, Tuple, tuple};
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray, PerCpuHashMap, PerCpuValues};
use std::time::{Duration, Instant};

/// How long of each second packets are counted while somebody looks: half of it costs half as much.
pub const LOOKED_AT: Duration = Duration::from_millis(500);
/// How long where nobody does, and a flow's packets overtake each other.
pub const GLANCED_AT: Duration = Duration::from_millis(100);
/// Lanes: flows at hops that are told apart at most, from 1 on.
const MOST_LANES: u32 = 1024;

/// Namespace (inode), link (ifindex), and 1 for packets that leave through it, 0 for those that come in.
pub type HopKey = [u32; 3];
/// A hop and the number of a flow.
type FlowHopKey = [u32; 4];
/// `struct hop_count`: packets; hashes and lanes of flows that were met last.
type RawHopCount = [u64; 5];

/// What is to be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopRequest {
    /// The hops.
    pub hops: Vec<HopKey>,
    /// The flows that are told apart there.
    pub flows: Vec<FlowHops>,
}

/// A flow and where it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowHops {
    /// What it is called.
    pub flow: FlowKey,
    /// What its packets carry, which differs along the way where addresses are translated.
    pub carried: Vec<FlowKey>,
    /// Its hops.
    pub hops: Vec<HopKey>,
}

/// Packets of one hop by core, those that had some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopCount {
    /// The hop.
    pub hop: HopKey,
    /// Core and packets, segments of a packet that is still to be cut.
    pub cores: Vec<(u32, u64)>,
    /// The flows that had some there.
    pub flows: Vec<FlowHopCount>,
}

/// Packets of one flow at one hop by core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowHopCount {
    /// What it is called.
    pub flow: FlowKey,
    /// As of the hop.
    pub cores: Vec<(u32, u64)>,
    /// How often a packet came on another core than the one before it.
    pub switches: u64,
}

/// What was counted, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// The hops that were asked for.
    pub hops: Vec<HopCount>,
    /// Over how long.
    pub counted_for: Duration,
    /// When it was read.
    pub read_at: Option<Instant>,
}

/// The tables.
pub(super) struct HopTables {
    hops: PerCpuHashMap<MapData, HopKey, RawHopCount>,
    lane_numbers: HashMap<MapData, FlowHopKey, u32>,
    lanes: PerCpuArray<MapData, u64>,
    /// `struct switching`: core of the last packet and nothing; switches.
    switchings: Array<MapData, [u64; 2]>,
    flows: HashMap<MapData, Tuple, u32>,
    ports: Bits,
    asked: HopRequest,
    since: Instant,
}

impl HopTables {
    pub fn take(ebpf: &mut Ebpf) -> Option<Self> {
        Some(Self {
            hops: PerCpuHashMap::try_from(ebpf.take_map("hops")?).ok()?,
            lane_numbers: HashMap::try_from(ebpf.take_map("lane_numbers")?).ok()?,
            lanes: PerCpuArray::try_from(ebpf.take_map("lanes")?).ok()?,
            switchings: Array::try_from(ebpf.take_map("switchings")?).ok()?,
            flows: HashMap::try_from(ebpf.take_map("flows")?).ok()?,
            ports: Bits::take(ebpf, "ports")?,
            asked: HopRequest::default(),
            since: Instant::now(),
        })
    }

    /// Has these counted from now on, from nothing, and nothing else.
    pub fn ask(&mut self, request: &HopRequest) {
        let old: Vec<HopKey> = self.hops.keys().flatten().collect();
        for hop in old {
            let _ = self.hops.remove(&hop);
        }
        let old: Vec<(FlowHopKey, u32)> = self.lane_numbers.iter().flatten().collect();
        for (key, lane) in old {
            let _ = self.lane_numbers.remove(&key);
            let _ = self.switchings.set(lane, [0; 2], 0);
            if let Some(nothing) = nothing(0) {
                let _ = self.lanes.set(lane, nothing, 0);
            }
        }
        let old: Vec<Tuple> = self.flows.keys().flatten().collect();
        for tuple in old {
            let _ = self.flows.remove(&tuple);
        }
        for (number, one) in (1..).zip(&request.flows) {
            one.carried.iter().for_each(|&carried| drop(self.flows.insert(tuple(carried), number, 0)));
        }
        for (lane, key) in (1..MOST_LANES).zip(lane_keys(request)) {
            let _ = self.lane_numbers.insert(key, lane, 0);
        }
        let ports = request.flows.iter().flat_map(|one| &one.carried).map(|flow| flow.to.port().to_be());
        self.ports.set(ports.map(u32::from));
        // Hops last: from here on it is counted.
        for hop in &request.hops {
            if let Some(nothing) = nothing([0; 5]) {
                let _ = self.hops.insert(hop, nothing, 0);
            }
        }
        (self.asked, self.since) = (request.clone(), Instant::now());
    }

    /// The programs are attached: it is counted from here on.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// What was counted since they were asked for.
    pub fn read(&self) -> HopCounts {
        let now = Instant::now();
        let hops = self.asked.hops.iter().map(|hop| self.count(*hop)).collect();
        HopCounts { hops, counted_for: now.saturating_duration_since(self.since), read_at: Some(now) }
    }

    fn count(&self, hop: HopKey) -> HopCount {
        let [netns, ifindex, sent] = hop;
        let here = (1..).zip(&self.asked.flows).filter(|(_, one)| one.hops.contains(&hop));
        let flow = |(number, one): (u32, &FlowHops)| {
            let lane = self.lane_numbers.get(&[netns, ifindex, sent, number], 0).ok()?;
            let cores = used(self.lanes.get(&lane, 0).ok()?.iter().copied());
            let [_, switches] = self.switchings.get(&lane, 0).ok()?;
            (!cores.is_empty()).then_some(FlowHopCount { flow: one.flow, cores, switches })
        };
        let cores = self.hops.get(&hop, 0).map(|values| used(values.iter().map(|count| count[0]))).unwrap_or_default();
        HopCount { hop, cores, flows: here.filter_map(flow).collect() }
    }
}

/// Nothing counted, on each core; none where the number of cores is not known.
fn nothing<T: aya::Pod>(of: T) -> Option<PerCpuValues<T>> {
    PerCpuValues::try_from(vec![of; aya::util::nr_cpus().ok()?]).ok()
}

/// The cores that had some.
fn used(packets: impl Iterator<Item = u64>) -> Vec<(u32, u64)> {
    (0..).zip(packets).filter(|&(_, packets)| packets > 0).collect()
}

/// Each flow at each of its hops.
fn lane_keys(request: &HopRequest) -> impl Iterator<Item = FlowHopKey> + '_ {
    let of = |(number, one): (u32, &FlowHops)| {
        one.hops.iter().map(|&[netns, ifindex, sent]| [netns, ifindex, sent, number]).collect::<Vec<_>>()
    };
    (1..).zip(&request.flows).flat_map(of)
}
