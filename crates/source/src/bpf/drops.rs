//! Dropped packets, as the tables of the object have them: of the watched flows (`drops`), of everything else in the
//! namespaces asked for (`others`, `strangers`), and of flows that nobody knew yet (`early`).

pub(super) mod others;

use super::reasons::Reasons;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData};
use others::{Bits, OtherDrops};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// `struct drop`: flow, namespace, ifindex, reason, address in two halves, whether it was untracked, nothing.
type RawDropKey = [u32; 8];
/// `struct tuple`, in words of four bytes.
pub(super) type Tuple = [u32; 10];
/// `struct early_count`: tuple and drop, two words in each; packets; since when; how many of them are in `others`.
type EarlyCount = [u64; 12];

/// What counts in `counted`.
const OF_FLOWS: u32 = 0;
const OF_OTHERS: u32 = 1;
const NO_ROOM: u32 = 2;
/// A drop older than this when flows were last asked for without its flow belongs to another flow with the same addresses, ns.
const EARLY_NS: u64 = 5_000_000_000;

/// One direction of a watched flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// `IPPROTO_TCP` or `IPPROTO_UDP`.
    pub proto: u8,
    /// The sender; unspecified with port 0 for any sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
}

/// Packets dropped at one place for one reason, since the programs were attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropRow {
    /// The watched flow; none of others.
    pub flow: Option<FlowKey>,
    /// Inode of the namespace, 0 where it is not known.
    pub netns: u32,
    /// Device, 0 where it is not known.
    pub ifindex: u32,
    /// Its name; none before Linux 5.17.
    pub reason: Option<Arc<str>>,
    /// Address inside the function that dropped it.
    pub address: u64,
    /// Netfilter dropped it, and connection tracking had given it no entry.
    pub untracked: bool,
    /// Packets.
    pub packets: u64,
}

/// What a table held when it was read last.
#[derive(Debug, Default)]
pub struct Rows {
    /// The packets counted until then; none: it is to be read again.
    counted: Option<u64>,
    /// Rises with every reading that found something else.
    pub generation: u64,
    /// In no order that means anything.
    pub rows: Vec<DropRow>,
}

impl Rows {
    fn replace(&mut self, counted: u64, rows: Vec<DropRow>) {
        self.counted = Some(counted);
        if rows != self.rows {
            self.generation += 1;
            self.rows = rows;
        }
    }
}

/// The tables.
pub struct DropTables {
    flows: HashMap<MapData, Tuple, u32>,
    ports: Bits,
    drops: HashMap<MapData, RawDropKey, u64>,
    others: OtherDrops,
    early: HashMap<MapData, u64, EarlyCount>,
    counted: Array<MapData, u64>,
    reasons: Reasons,
    /// The flows asked for, each with its number; a number is never given again.
    asked: BTreeMap<FlowKey, u32>,
    /// When flows were asked for last, ns: no flow could be found before that.
    asked_at_ns: u64,
    last_number: u32,
    /// What flows lost before they were asked for.
    before: BTreeMap<RawDropKey, u64>,
    /// How much of an entry of `early` was in rows of others when their namespace was seen first, and is taken from them already.
    early_bases: BTreeMap<u64, u64>,
    /// Packets of the watched flows as they were read last.
    pub of_flows: Rows,
    /// Packets of no watched flow in the namespaces asked for, as they were read last.
    pub of_others: Rows,
}

impl DropTables {
    pub(super) fn take(ebpf: &mut Ebpf, reasons: Reasons) -> Option<Self> {
        Some(Self {
            flows: HashMap::try_from(ebpf.take_map("flows")?).ok()?,
            ports: Bits::take(ebpf, "ports")?,
            drops: HashMap::try_from(ebpf.take_map("drops")?).ok()?,
            others: OtherDrops::take(ebpf)?,
            early: HashMap::try_from(ebpf.take_map("early")?).ok()?,
            counted: Array::try_from(ebpf.take_map("counted")?).ok()?,
            reasons,
            asked: BTreeMap::new(),
            asked_at_ns: 0,
            last_number: 0,
            before: BTreeMap::new(),
            early_bases: BTreeMap::new(),
            of_flows: Rows::default(),
            of_others: Rows::default(),
        })
    }

    /// Counts the packets of these flows, which are sorted, from now on, and what they lost just before; forgets all others.
    pub fn ask_flows<'a>(&mut self, wanted: impl Iterator<Item = &'a FlowKey> + Clone, now_ns: u64) {
        let before_ns = std::mem::replace(&mut self.asked_at_ns, now_ns);
        if self.asked.keys().eq(wanted.clone()) {
            return;
        }
        let wanted: BTreeSet<FlowKey> = wanted.copied().collect();
        let gone: Vec<FlowKey> = self.asked.keys().filter(|flow| !wanted.contains(flow)).copied().collect();
        for flow in gone {
            self.forget(flow);
        }
        let new: Vec<FlowKey> = wanted.iter().filter(|flow| !self.asked.contains_key(flow)).copied().collect();
        let mut numbers = BTreeMap::new();
        for flow in new {
            let number = self.last_number + 1;
            if self.flows.insert(tuple(flow), number, 0).is_err() {
                continue;
            }
            // Later fragments of a datagram carry no ports: they count for the first of several flows between two addresses.
            if let Some(portless) = portless(flow) {
                let _ = self.flows.insert(portless, number, NO_OVERWRITE);
                numbers.insert(portless, number);
            }
            self.last_number = number;
            self.asked.insert(flow, number);
            numbers.insert(tuple(flow), number);
        }
        // Later fragments go to port 0.
        let ports = self.asked.keys().flat_map(|flow| [flow.to.port().to_be(), 0]);
        self.ports.set(ports.map(u32::from));
        if !numbers.is_empty() {
            self.take_early(&numbers, before_ns);
            self.of_others.counted = None;
        }
        // Rows of flows that are gone, or have lost before: what was read says nothing of them.
        self.of_flows.counted = None;
    }

    fn forget(&mut self, flow: FlowKey) {
        let Some(number) = self.asked.remove(&flow) else { return };
        let _ = self.flows.remove(&tuple(flow));
        if let Some(portless) = portless(flow).filter(|key| self.flows.get(key, 0).is_ok_and(|of| of == number)) {
            let _ = self.flows.remove(&portless);
        }
        let rows: Vec<RawDropKey> = self.drops.keys().flatten().filter(|key| key[0] == number).collect();
        for key in rows {
            let _ = self.drops.remove(&key);
        }
        self.before.retain(|key, _| key[0] != number);
    }

    /// Moves drops of these tuples, counted before the flows were asked for, to their flows.
    fn take_early(&mut self, numbers: &BTreeMap<Tuple, u32>, before_ns: u64) {
        let counts: Vec<(u64, EarlyCount)> = self.early.iter().flatten().collect();
        for (key, count) in counts {
            let tuple: Tuple = std::array::from_fn(|at| word(&count, at));
            let Some(&number) = numbers.get(&tuple).or_else(|| numbers.get(&to_port_alone(tuple))) else { continue };
            let Ok([.., packets, since_ns, in_others]) = self.early.get(&key, 0) else { continue };
            let _ = self.early.remove(&key);
            if since_ns.saturating_add(EARLY_NS) >= before_ns {
                let mut drop = place(&count);
                let base = self.early_bases.remove(&key).unwrap_or(0);
                self.others.give(drop, in_others.saturating_sub(base));
                drop[0] = number;
                *self.before.entry(drop).or_default() += packets;
            }
        }
    }

    /// Counts drops of all but the watched flows in these namespaces, by inode; 0 stands for unknown namespaces. `everywhere`:
    /// in all other namespaces too.
    pub fn ask_namespaces(&mut self, wanted: BTreeSet<u32>, everywhere: bool) {
        if self.others.ask(wanted, everywhere) {
            self.of_others.counted = None;
        }
    }

    /// Begins anew for new namespaces: rows with their inodes are of earlier namespaces with the same inodes.
    pub fn begin_anew(&mut self, inodes: &BTreeSet<u32>) {
        self.others.begin_anew(inodes);
        let mut bases = BTreeMap::new();
        for (key, count) in self.early.iter().flatten() {
            let [.., in_others] = count;
            let is_theirs = inodes.contains(&place(&count)[1]);
            let base = if is_theirs { Some(in_others) } else { self.early_bases.get(&key).copied() };
            bases.extend(base.map(|base| (key, base)));
        }
        self.early_bases = bases;
        self.of_others.counted = None;
    }

    /// Reads the packets of the watched flows, anew only where some were dropped since.
    pub fn read_flows(&mut self) {
        if self.asked.is_empty() && self.of_flows.counted.is_some() {
            return;
        }
        let counted = self.count(OF_FLOWS);
        if self.of_flows.counted != Some(counted) {
            let mut sums = self.before.clone();
            for (key, packets) in self.drops.iter().flatten() {
                *sums.entry(key).or_default() += packets;
            }
            for key in sums.keys() {
                self.reasons.learn(key[3]);
            }
            let flows: BTreeMap<u32, FlowKey> = self.asked.iter().map(|(flow, number)| (*number, *flow)).collect();
            let row = |(key, packets): (RawDropKey, u64)| Some(self.row(Some(*flows.get(&key[0])?), key, packets));
            let rows = sums.into_iter().filter_map(row).collect();
            self.of_flows.replace(counted, rows);
        }
    }

    /// Reads the packets of no watched flow in the namespaces asked for, anew only where some were dropped since.
    pub fn read_others(&mut self) {
        let counted = self.count(OF_OTHERS);
        if self.of_others.counted != Some(counted) {
            let rows = self.others.read(counted);
            for (key, _) in &rows {
                self.reasons.learn(key[3]);
            }
            let rows = rows.into_iter().map(|(key, packets)| self.row(None, key, packets)).collect();
            self.of_others.replace(counted, rows);
        }
    }

    /// Packets that are in no row: a table had no room for them, or has let go of theirs.
    #[must_use]
    pub fn no_room(&self) -> u64 {
        self.count(NO_ROOM).saturating_add(self.others.evicted())
    }

    fn count(&self, which: u32) -> u64 {
        self.counted.get(&which, 0).unwrap_or(0)
    }

    fn row(&self, flow: Option<FlowKey>, key: RawDropKey, packets: u64) -> DropRow {
        let [_, netns, ifindex, reason, low, high, untracked, _] = key;
        let [low, high] = [low, high].map(u32::to_ne_bytes);
        let mut address = [0; 8];
        address[..4].copy_from_slice(&low);
        address[4..].copy_from_slice(&high);
        let address = u64::from_ne_bytes(address);
        DropRow { flow, netns, ifindex, reason: self.reasons.name(reason), address, untracked: untracked != 0, packets }
    }
}

/// Words of four bytes.
fn word(count: &EarlyCount, at: usize) -> u32 {
    u32::from_ne_bytes(count[at / 2].to_ne_bytes().as_chunks().0[at % 2])
}

/// Where and why, of an early count.
fn place(count: &EarlyCount) -> RawDropKey {
    std::array::from_fn(|at| word(count, 10 + at))
}

/// `BPF_NOEXIST`: the first one stays.
const NO_OVERWRITE: u64 = 1;

/// What a flow's packets carry, as the program writes it: addresses and ports in network order.
pub(super) fn tuple(flow: FlowKey) -> Tuple {
    let FlowKey { proto, from, to } = flow;
    let mut tuple = [0; 10];
    let is_anybody = from.ip().is_unspecified() && from.port() == 0;
    if !is_anybody {
        tuple[..4].copy_from_slice(&words(from.ip()));
        tuple[4..8].copy_from_slice(&words(to.ip()));
    }
    tuple[8] = ports(if is_anybody { 0 } else { from.port() }, to.port());
    tuple[9] = u32::from(proto);
    tuple
}

/// What later fragments of a flow's datagrams carry: no ports. `None` for a flow without addresses or not of UDP.
fn portless(flow: FlowKey) -> Option<Tuple> {
    let mut tuple = tuple(flow);
    tuple[8] = 0;
    (tuple[..8] != [0; 8] && i32::from(flow.proto) == libc::IPPROTO_UDP).then_some(tuple)
}

/// What a socket that is not connected is known by.
fn to_port_alone(tuple: Tuple) -> Tuple {
    let [_, _, c, d] = tuple[8].to_ne_bytes();
    let mut any = [0; 10];
    any[8] = u32::from_ne_bytes([0, 0, c, d]);
    any[9] = tuple[9];
    any
}

fn ports(from: u16, to: u16) -> u32 {
    let ([a, b], [c, d]) = (from.to_be_bytes(), to.to_be_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

fn words(address: IpAddr) -> [u32; 4] {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let bytes = address.octets();
    std::array::from_fn(|at| {
        u32::from_ne_bytes([bytes[at * 4], bytes[at * 4 + 1], bytes[at * 4 + 2], bytes[at * 4 + 3]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: &str, to: &str) -> FlowKey {
        FlowKey { proto: 17, from: from.parse().expect("an address"), to: to.parse().expect("an address") }
    }

    #[test]
    fn a_flow_is_known_by_what_its_packets_carry() {
        let bytes: Vec<u8> =
            tuple(flow("10.1.2.3:5201", "10.1.2.4:258")).iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes[10..16], [0xff, 0xff, 10, 1, 2, 3], "IPv4 is mapped");
        assert_eq!(bytes[28..32], [10, 1, 2, 4], "the receiver behind the sender");
        assert_eq!(bytes[32..36], [0x14, 0x51, 1, 2], "ports in network order");
        assert_eq!(tuple(flow("[::ffff:10.1.2.3]:5201", "[::ffff:10.1.2.4]:258"))[..9], {
            tuple(flow("10.1.2.3:5201", "10.1.2.4:258"))[..9].to_vec()
        });
        let any = tuple(flow("0.0.0.0:0", "10.1.2.4:258"));
        assert_eq!(any[..8], [0; 8], "a socket that is not connected takes from anybody");
        assert_eq!(to_port_alone(tuple(flow("10.1.2.3:5201", "10.1.2.4:258"))), any, "by its port");
        assert_eq!(portless(flow("0.0.0.0:0", "10.1.2.4:258")), None, "without addresses it would be everybody's");
    }
}
