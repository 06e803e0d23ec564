//! The exact time of softirqs (`softirq_entry` to `softirq_exit`) per core and kind, while it is asked for.

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray};

/// Kinds of softirqs, in the kernel's order (`HI` to `RCU`).
pub const KINDS: usize = 10;

/// Time and number of one kind on one core since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoftirqTotal {
    /// ns from entry to exit; interrupts that came in between are in it.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

/// The table.
pub struct SoftirqTimes {
    table: PerCpuArray<MapData, [u64; 2]>,
}

impl SoftirqTimes {
    pub(super) fn take(ebpf: &mut Ebpf) -> Option<Self> {
        Some(Self { table: PerCpuArray::try_from(ebpf.take_map("softirqs")?).ok()? })
    }

    /// By core and kind; empty where it cannot be read.
    #[must_use]
    pub fn read(&self) -> Vec<[SoftirqTotal; KINDS]> {
        let mut cores = Vec::new();
        for kind in 0..KINDS {
            let Ok(values) = u32::try_from(kind).map_err(drop).and_then(|kind| self.table.get(&kind, 0).map_err(drop))
            else {
                return Vec::new();
            };
            cores.resize(values.len(), [SoftirqTotal::default(); KINDS]);
            for (core, &[ns, count]) in cores.iter_mut().zip(values.iter()) {
                core[kind] = SoftirqTotal { ns, count };
            }
        }
        cores
    }
}
