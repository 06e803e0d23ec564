//! `/proc/net/softnet_stat` → the backlog's counters by core. A row is an online core: since Linux 5.10 its 13th column
//! names the core (15 columns since 6.10); before, rows are the online cores in order.

use crate::scan;
use vnettop_sample::{CoreCounters, Softnet};

/// Fills `softnet` of the rows.
pub(super) fn parse_softnet(bytes: &[u8], rows: &mut [CoreCounters]) {
    let unlabelled = scan::lines(bytes).next().is_some_and(|line| core(line).is_none());
    if unlabelled {
        parse_in_order(bytes, rows);
        return;
    }
    for line in scan::lines(bytes) {
        let row = core(line).and_then(|core| rows.binary_search_by_key(&core, |row| row.core).ok());
        if let Some(row) = row {
            rows[row].softnet = counters(line);
        }
    }
}

/// Rows without a core's number can only be told apart where there are as many of them as online cores.
fn parse_in_order(bytes: &[u8], rows: &mut [CoreCounters]) {
    if scan::lines(bytes).count() == rows.len() {
        rows.iter_mut().zip(scan::lines(bytes)).for_each(|(row, line)| row.softnet = counters(line));
    }
}

/// `processed dropped time_squeeze …`.
fn counters(line: &[u8]) -> Option<Softnet> {
    let mut fields = scan::fields(line);
    let mut next = || scan::hex32(fields.next()?);
    Some(Softnet { processed: next()?, dropped: next()?, squeezed: next()? })
}

/// The 13th column.
fn core(line: &[u8]) -> Option<u32> {
    scan::hex32(scan::fields(line).nth(12)?)
}

#[cfg(test)]
mod tests {
    use super::super::stat::tests::rows;
    use super::*;
    use proptest::prelude::*;

    const TWO: &[u8] = b"cpu0 1 1 1 1 1 1 1 1\ncpu2 1 1 1 1 1 1 1 1\n";

    fn processed(text: &str) -> Vec<Option<u32>> {
        let mut rows = rows(TWO);
        parse_softnet(text.as_bytes(), &mut rows);
        rows.iter().map(|row| row.softnet.map(|softnet| softnet.processed)).collect()
    }

    #[test]
    fn the_core_is_the_13th_column_whatever_follows_it() {
        let zeros = "00000000 ".repeat(9);
        let of = |count: &str, core: &str, rest: &str| format!("{count} 00000002 00000003 {zeros}{core}{rest}\n");
        let text = of("0000000a", "00000002", "") + &of("0000000b", "00000000", "");
        assert_eq!(processed(&text), [Some(11), Some(10)], "13 columns: rows follow their label, not their place");
        let text = of("ffffffff", "00000002", " 00000007 00000009");
        assert_eq!(processed(&text), [None, Some(u32::MAX)], "15 columns: the label is not the last one");
    }

    #[test]
    fn rows_without_a_label_are_the_online_cores_in_order_or_unknown() {
        let row = format!("00000001 00000002 00000003 {}00000000\n", "00000000 ".repeat(7));
        assert_eq!(processed(&row.repeat(2)), [Some(1), Some(1)], "as many rows as online cores: in order");
        assert_eq!(processed(&row), [None, None], "another number of rows cannot be told apart");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(text in "(([0-9a-g]{1,9} ){0,16}\n){0,4}", bytes: Vec<u8>) {
            let mut rows = rows(TWO);
            parse_softnet(text.as_bytes(), &mut rows);
            parse_softnet(&bytes, &mut rows);
        }
    }
}
