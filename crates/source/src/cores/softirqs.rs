//! `/proc/softirqs` → counts of every kind by core. Columns carry labels and are those of *possible* cores, so there are
//! more of them than online cores; rows carry the kernel's names and unknown ones are passed over.

use crate::scan;
use vnettop_sample::{CoreCounters, SOFTIRQ_KINDS, Word};

/// Fills `softirqs` of the rows. `columns` is a buffer: which row each column belongs to.
pub(super) fn parse_softirqs(bytes: &[u8], rows: &mut [CoreCounters], columns: &mut Vec<Option<usize>>) {
    let mut lines = scan::lines(bytes);
    columns.clear();
    columns.extend(scan::fields(lines.next().unwrap_or_default()).map(|label| row_of(label, rows)));
    for line in lines {
        let mut fields = scan::fields(line);
        let label = fields.next().and_then(|label| label.strip_suffix(b":"));
        let Some(kind) = SOFTIRQ_KINDS.iter().position(|kind| label == Some(kind.word().as_bytes())) else { continue };
        for (field, row) in fields.zip(columns.iter()) {
            if let Some(row) = row {
                rows[*row].softirqs[kind] = scan::number(field);
            }
        }
    }
}

/// The row of the core that a column's label names.
fn row_of(label: &[u8], rows: &[CoreCounters]) -> Option<usize> {
    let core = scan::number32(label.strip_prefix(b"CPU")?)?;
    rows.binary_search_by_key(&core, |row| row.core).ok()
}

#[cfg(test)]
mod tests {
    use super::super::stat::tests::rows;
    use super::*;
    use proptest::prelude::*;
    use vnettop_sample::SoftirqKind;

    fn of(rows: &[CoreCounters], core: u32, kind: SoftirqKind) -> Option<u64> {
        rows.iter().find(|row| row.core == core).expect("the core has a row").softirqs[kind as usize]
    }

    #[test]
    fn columns_are_told_by_label_so_offline_cores_shift_nothing() {
        let mut rows = rows(b"cpu0 1 1 1 1 1 1 1 1\ncpu2 1 1 1 1 1 1 1 1\n");
        let text = b"      CPU0   CPU1   CPU2\n NET_RX:  5  6  7\n HRTIMER: 8 9 10\n NEW: 1 1 1\n";
        parse_softirqs(text, &mut rows, &mut Vec::new());
        assert_eq!(of(&rows, 0, SoftirqKind::NetRx), Some(5), "core 0 is the first column");
        assert_eq!(
            of(&rows, 2, SoftirqKind::NetRx),
            Some(7),
            "core 2 is the third column, although it is the second row"
        );
        assert_eq!(of(&rows, 2, SoftirqKind::Hrtimer), Some(10), "every kind has its place");
        assert_eq!(of(&rows, 0, SoftirqKind::Rcu), None, "a kind without a row is unknown, not 0");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(text in "( CPU[0-9]{0,2}){0,5}\n((RCU|NET_RX|x):?( [0-9x]{1,3}){0,7}\n){0,5}", bytes: Vec<u8>) {
            let mut rows = rows(b"cpu0 1 1 1 1 1 1 1 1\ncpu2 1 1 1 1 1 1 1 1\n");
            parse_softirqs(text.as_bytes(), &mut rows, &mut Vec::new());
            parse_softirqs(&bytes, &mut rows, &mut Vec::new());
        }
    }
}
