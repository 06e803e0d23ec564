//! Dropped packets of no watched flow: in the namespaces that somebody is shown, and, where the whole machine is asked for, in
//! all others, which have a table of their own.

use super::RawDropKey;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData};
use std::collections::{BTreeMap, BTreeSet};

/// Rows at most: what tables of so many show is what is dropped most recently.
const MOST: usize = 1536;
/// Bits of the table `namespaces`, and behind them that of all others.
const NAMESPACE_BITS: u32 = 4096;

/// A table of bits by which the program skips at once what is not asked for.
pub(in crate::bpf) struct Bits {
    table: Array<MapData, u64>,
    /// The words that were written.
    reported: BTreeMap<u32, u64>,
}

impl Bits {
    pub fn take(ebpf: &mut Ebpf, name: &str) -> Option<Self> {
        Some(Self { table: Array::try_from(ebpf.take_map(name)?).ok()?, reported: BTreeMap::new() })
    }

    /// Sets these, and takes all others away.
    pub fn set(&mut self, bits: impl Iterator<Item = u32>) {
        let mut words: BTreeMap<u32, u64> = self.reported.keys().map(|word| (*word, 0)).collect();
        for bit in bits {
            *words.entry(bit / 64).or_default() |= 1 << (bit % 64);
        }
        for (word, bits) in words.iter().filter(|(word, bits)| self.reported.get(word) != Some(bits)) {
            let _ = self.table.set(*word, bits, 0);
        }
        self.reported = words;
    }
}

/// The tables, and what their counts mean.
pub(super) struct OtherDrops {
    tables: [HashMap<MapData, RawDropKey, u64>; 2],
    namespaces: Bits,
    asked: (BTreeSet<u32>, bool),
    counts: OtherCounts,
}

/// What of a row is whose.
#[derive(Default)]
pub(super) struct OtherCounts {
    /// What stood in a row when its namespace was seen first: of another one, whose inode the kernel has given again.
    bases: BTreeMap<RawDropKey, u64>,
    /// What has turned out to be a watched flow's.
    taken: BTreeMap<RawDropKey, u64>,
    /// Packets that were counted and are in no row any more: the oldest kinds made room.
    evicted: u64,
}

impl OtherDrops {
    pub fn take(ebpf: &mut Ebpf) -> Option<Self> {
        let mut table = |name| HashMap::try_from(ebpf.take_map(name)?).ok();
        let tables = [table("others")?, table("strangers")?];
        let (namespaces, asked) = (Bits::take(ebpf, "namespaces")?, (BTreeSet::new(), false));
        Some(Self { tables, namespaces, asked, counts: OtherCounts::default() })
    }

    /// Counts in these namespaces, and in all others too or not; whether that is anything new.
    pub fn ask(&mut self, wanted: BTreeSet<u32>, everywhere: bool) -> bool {
        let asked = (wanted, everywhere);
        if self.asked == asked {
            return false;
        }
        let all = everywhere.then_some(NAMESPACE_BITS);
        self.namespaces.set(asked.0.iter().map(|inode| inode % NAMESPACE_BITS).chain(all));
        self.asked = asked;
        true
    }

    /// Begins anew for new namespaces: rows with their inodes are of earlier namespaces with the same inodes.
    pub fn begin_anew(&mut self, inodes: &BTreeSet<u32>) {
        let sums = self.sums();
        self.counts.begin_anew(&sums, inodes);
    }

    /// Takes packets out of a row that are a watched flow's.
    pub fn give(&mut self, key: RawDropKey, packets: u64) {
        *self.counts.taken.entry(key).or_default() += packets;
    }

    /// The rows of the namespaces asked for, when so many packets had been counted.
    pub fn read(&mut self, counted: u64) -> Vec<(RawDropKey, u64)> {
        let sums = self.sums();
        let (asked, everywhere) = &self.asked;
        let is_asked = |key: &RawDropKey| *everywhere || asked.contains(&key[1]);
        self.counts.read(&sums, counted).filter(|(key, _)| is_asked(key)).take(MOST).collect()
    }

    pub fn evicted(&self) -> u64 {
        self.counts.evicted
    }

    /// A namespace may have rows in both, from before it was shown to anybody.
    fn sums(&self) -> BTreeMap<RawDropKey, u64> {
        let mut sums = BTreeMap::new();
        for (key, packets) in self.tables.iter().flat_map(|table| table.iter().flatten()) {
            *sums.entry(key).or_default() += packets;
        }
        sums
    }
}

impl OtherCounts {
    fn begin_anew(&mut self, sums: &BTreeMap<RawDropKey, u64>, inodes: &BTreeSet<u32>) {
        let theirs = sums.iter().filter(|(key, _)| inodes.contains(&key[1]));
        for (&key, &packets) in theirs {
            self.bases.insert(key, packets);
            self.taken.remove(&key);
        }
    }

    /// The rows without what was taken from them. A row that made room and came again begins at 0.
    fn read(
        &mut self,
        sums: &BTreeMap<RawDropKey, u64>,
        counted: u64,
    ) -> impl Iterator<Item = (RawDropKey, u64)> + use<> {
        // Packets are counted after they are in a row: what was counted before the rows were read is in one, or made room.
        self.evicted = self.evicted.max(counted.saturating_sub(sums.values().sum()));
        self.bases.retain(|key, base| sums.get(key).is_some_and(|now| *now >= *base));
        self.taken.retain(|key, taken| sums.get(key).is_some_and(|now| *now >= *taken));
        let less = |key: &RawDropKey| {
            let [base, taken] = [&self.bases, &self.taken].map(|of| of.get(key).copied().unwrap_or(0));
            base + taken
        };
        let left: Vec<_> = sums.iter().map(|(key, packets)| (*key, packets.saturating_sub(less(key)))).collect();
        left.into_iter().filter(|(_, packets)| *packets > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(inode: u32, ifindex: u32) -> RawDropKey {
        [0, inode, ifindex, 2, 3, 4, 0, 0]
    }

    fn rows<const N: usize>(rows: [(RawDropKey, u64); N]) -> BTreeMap<RawDropKey, u64> {
        rows.into()
    }

    fn left(counts: &mut OtherCounts, sums: &BTreeMap<RawDropKey, u64>, counted: u64) -> Vec<(RawDropKey, u64)> {
        counts.read(sums, counted).collect()
    }

    #[test]
    fn a_namespace_does_not_inherit_the_drops_of_a_dead_one_with_its_inode() {
        let mut counts = OtherCounts::default();
        let (dead, other) = (key(7, 2), key(8, 2));
        assert_eq!(left(&mut counts, &rows([(dead, 9664), (other, 5)]), 9669).len(), 2, "both are shown");
        // Packets of the row that a watched flow had lost are the dead one's too.
        counts.taken.insert(dead, 64);
        counts.begin_anew(&rows([(dead, 9664), (other, 5)]), &BTreeSet::from([7]));
        assert_eq!(
            left(&mut counts, &rows([(dead, 9664), (other, 6)]), 9670),
            [(other, 6)],
            "the new one has lost none"
        );
        assert_eq!(left(&mut counts, &rows([(dead, 9666), (other, 6)]), 9672)[0], (dead, 2), "and then its own two");
        // The table lets go of the row; it comes again and begins at 0.
        assert_eq!(left(&mut counts, &rows([(dead, 3), (other, 6)]), 9675)[0], (dead, 3));
    }

    #[test]
    fn rows_that_made_room_are_missed() {
        let mut counts = OtherCounts::default();
        left(&mut counts, &rows([(key(7, 2), 9728), (key(8, 2), 5)]), 9733);
        assert_eq!(counts.evicted, 0, "everything counted is in a row");
        left(&mut counts, &rows([(key(8, 2), 9)]), 9737);
        assert_eq!(counts.evicted, 9728, "a row is gone");
        left(&mut counts, &rows([(key(8, 2), 30)]), 9740);
        assert_eq!(
            counts.evicted, 9728,
            "rows that are read after the total may be ahead of it, and that mends nothing"
        );
        assert!(counts.bases.is_empty() && counts.taken.is_empty(), "and nothing is kept of what is gone");
    }
}
