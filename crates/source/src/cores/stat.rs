//! The `cpuN` lines of `/proc/stat` → one row a core. Cores are told by their label; offline cores have no line.

use crate::scan;
use vnettop_sample::CoreCounters;

/// Fills `rows` with the online cores, sorted by core.
pub(super) fn parse_stat(bytes: &[u8], rows: &mut Vec<CoreCounters>) {
    rows.clear();
    rows.extend(scan::lines(bytes).take_while(|line| line.starts_with(b"cpu")).filter_map(row));
    if !rows.is_sorted_by(|a, b| a.core < b.core) {
        rows.sort_by_key(|row| row.core);
        rows.dedup_by_key(|row| row.core);
    }
}

/// `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; the line of all cores together has no N.
fn row(line: &[u8]) -> Option<CoreCounters> {
    let mut fields = scan::fields(line.strip_prefix(b"cpu")?);
    let core = line.get(3).filter(|byte| byte.is_ascii_digit()).and_then(|_| scan::number32(fields.next()?))?;
    let mut next = || scan::number(fields.next()?);
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        [next()?, next()?, next()?, next()?, next()?, next()?, next()?, next()?];
    Some(CoreCounters {
        core,
        user: user.checked_add(nice)?,
        system,
        irq,
        softirq,
        steal,
        idle: idle.checked_add(iowait)?,
        softirqs: [None; 10],
        softnet: None,
        ksoftirqd_ns: None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn rows(text: &[u8]) -> Vec<CoreCounters> {
        let mut rows = Vec::new();
        parse_stat(text, &mut rows);
        rows
    }

    #[test]
    fn cores_are_told_by_label_and_time_is_summed_as_documented() {
        let rows = rows(b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 1 1\ncpu3 10 20 30 40 50 60 70 80 0 0\nintr 5 5\ncpu9 1 1 1 1 1 1 1 1\n");
        assert_eq!(
            rows.iter().map(|row| row.core).collect::<Vec<_>>(),
            [0, 3],
            "cores 1 and 2 are offline, intr ends it"
        );
        let row = &rows[0];
        assert_eq!((row.user, row.idle), (3, 9), "nice is user, iowait is idle, guest is already in user");
        assert_eq!((row.system, row.irq, row.softirq, row.steal), (3, 6, 7, 8), "the rest as the kernel names it");
    }

    #[test]
    fn a_line_cut_short_is_left_out() {
        assert_eq!(rows(b"cpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3 4 5").len(), 1, "half a line is no core");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_sorted(text in "(cpu[0-9]{0,3}( [0-9x]{1,21}){0,10}\n){0,9}", bytes: Vec<u8>) {
            prop_assert!(rows(text.as_bytes()).is_sorted_by(|a, b| a.core < b.core));
            rows(&bytes);
        }
    }
}
