//! Which cores handle a link's packets (`netif_receive_skb`, `net_dev_start_xmit`), counted for a moment while somebody looks.

use aya::maps::{MapData, PerCpuHashMap};
use std::time::Duration;

/// How long packets are counted at a time.
pub const COUNTED_FOR: Duration = Duration::from_millis(100);

/// Namespace (inode), link (ifindex), and 1 for packets that leave through it, 0 for those that come in.
pub type HopKey = [u32; 3];

/// Packets of one hop by core, those that had some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopCount {
    /// The hop.
    pub hop: HopKey,
    /// Core and packets, segments of a packet that is still to be cut.
    pub cores: Vec<(u32, u64)>,
}

/// Puts these hops into the table with nothing counted, and takes all others out of it.
pub(super) fn ask(table: &mut PerCpuHashMap<MapData, HopKey, u64>, hops: &[HopKey]) {
    let old: Vec<HopKey> = table.keys().flatten().filter(|hop| !hops.contains(hop)).collect();
    for hop in old {
        let _ = table.remove(&hop);
    }
    let cores = aya::util::nr_cpus().unwrap_or(0);
    for hop in hops {
        if let Ok(none) = aya::maps::PerCpuValues::try_from(vec![0; cores]) {
            let _ = table.insert(hop, none, 0);
        }
    }
}

/// What was counted of these hops.
pub(super) fn read(table: &PerCpuHashMap<MapData, HopKey, u64>, hops: &[HopKey]) -> Vec<HopCount> {
    let of = |hop: &HopKey| {
        let values = table.get(hop, 0).ok()?;
        let cores = (0..).zip(values.iter().copied()).filter(|&(_, packets)| packets > 0);
        Some(HopCount { hop: *hop, cores: cores.collect() })
    };
    hops.iter().filter_map(of).collect()
}
