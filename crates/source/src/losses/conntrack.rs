//! `/proc/net/stat/nf_conntrack` → what connection tracking has refused in one namespace. Columns are found by name: the
//! kernel keeps dead ones and renames others. A namespace without an entry that never refused anything does not track.

use crate::scan;
use vnettop_sample::Conntrack;

/// A line of names, then a line of hexadecimal numbers for each possible core; `entries` is the namespace's own count on each.
pub(super) fn parse(bytes: &[u8], max: u64) -> Option<Conntrack> {
    let mut lines = scan::lines(bytes);
    let names = lines.next()?;
    let mut all = Conntrack { max, ..Conntrack::default() };
    for line in lines {
        for (name, value) in scan::fields(names).zip(scan::fields(line)) {
            let Some(value) = scan::hex32(value).map(u64::from) else { continue };
            match name {
                b"entries" => all.count = value,
                b"drop" => all.drop += value,
                b"early_drop" => all.early_drop += value,
                b"insert_failed" => all.insert_failed += value,
                b"invalid" => all.invalid += value,
                _ => {}
            }
        }
    }
    let is_used = all.count > 0 || all.drop > 0 || all.early_drop > 0 || all.insert_failed > 0;
    is_used.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: &str = "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n";

    fn row(entries: u32, insert_failed: u32, drop: u32) -> String {
        let zero = "00000000 ";
        format!("{entries:08x}  {}{insert_failed:08x} {drop:08x} {}\n", zero.repeat(8), zero.repeat(6))
    }

    #[test]
    fn the_cores_add_up_and_the_entries_do_not() {
        let text = format!("{NAMES}{}{}", row(262_144, 1, 20), row(262_144, 2, 300));
        let reported = parse(text.as_bytes(), 262_144);
        let expected =
            Conntrack { count: 262_144, max: 262_144, drop: 320, early_drop: 0, insert_failed: 3, invalid: 0 };
        assert_eq!(reported, Some(expected), "each core has its own drops and the same number of entries");
    }

    #[test]
    fn a_namespace_that_tracks_nothing_has_none() {
        let text = format!("{NAMES}{}", row(0, 0, 0));
        assert_eq!(parse(text.as_bytes(), 262_144), None, "all zero is not tracking");
        assert_eq!(parse(b"", 5), None, "an empty file is no tracking");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            parse(&bytes, 1);
        }
    }
}
