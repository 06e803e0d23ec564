//! One page of the kernel's ring buffer, as `trace_pipe_raw` gives it → its records with their times. Pure: whatever the
//! bytes are, it neither panics nor reads beyond them; what makes no sense ends the page.

use super::format::PageLayout;

/// The kernel overwrote records before this page (`RB_MISSED_EVENTS`).
const MISSED: u32 = 1 << 31;
/// The low bits of `commit` are a length.
const LENGTH: u32 = (1 << 27) - 1;

const DATA_MOST: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
/// An absolute stamp has 59 bits; the others are those of the time before.
const STAMP_BITS: u32 = 59;

/// Calls `each` with the time and the bytes of every record. True when the kernel dropped records before this page.
pub(super) fn records(page: &[u8], layout: &PageLayout, mut each: impl FnMut(u64, &[u8])) -> bool {
    let Some(mut now) = page.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)) else { return false };
    let Some(commit) = commit(page, layout) else { return false };
    let length = usize::try_from(commit & LENGTH).unwrap_or(0);
    let whole = page.get(layout.data..).unwrap_or_default();
    let mut rest = &whole[..length.min(whole.len())];
    while let Some(entry) = Entry::first(rest) {
        match entry.kind {
            Kind::Absolute(stamp) => now = (now & !((1 << STAMP_BITS) - 1)) | stamp,
            Kind::Later(delta) => now = now.wrapping_add(delta),
            Kind::Record { delta, from } => {
                now = now.wrapping_add(delta);
                each(now, &rest[from..entry.length]);
            }
        }
        rest = &rest[entry.length..];
    }
    commit & MISSED != 0
}

/// The flags are in the low 32 bits, also where a `long` has more.
fn commit(page: &[u8], layout: &PageLayout) -> Option<u32> {
    let bytes = page.get(layout.commit..layout.commit + layout.commit_size)?;
    let low = if cfg!(target_endian = "big") { bytes.last_chunk() } else { bytes.first_chunk() };
    low.map(|bytes| u32::from_ne_bytes(*bytes))
}

struct Entry {
    /// Bytes it takes, header included; never 0 and never more than there are.
    length: usize,
    kind: Kind,
}

enum Kind {
    /// A record: ns since the one before, and where its bytes begin.
    Record { delta: u64, from: usize },
    /// Only time that passed.
    Later(u64),
    /// A new time.
    Absolute(u64),
}

impl Entry {
    /// The entry at the beginning of these bytes; none at the end of the page.
    fn first(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let header = word(0)?;
        // Bit fields begin at the low end, on big-endian machines at the high one.
        let (kind, delta) =
            if cfg!(target_endian = "big") { (header >> 27, header & LENGTH) } else { (header & 31, header >> 5) };
        let long = |value: u32| (u64::from(value) << 27) | u64::from(delta);
        let counted = |words: u32| usize::try_from(words).ok()?.checked_add(4);
        let delta = u64::from(delta);
        let (length, kind) = match kind {
            0 => (counted(word(4)?)?, Kind::Record { delta, from: 8 }),
            1..=DATA_MOST => (counted(kind * 4)?, Kind::Record { delta, from: 4 }),
            // The rest of the page is empty.
            PADDING if delta == 0 => return None,
            // A record that was taken back.
            PADDING => (counted(word(4)?)?, Kind::Later(delta)),
            TIME_EXTEND => (8, Kind::Later(long(word(4)?))),
            _ => (8, Kind::Absolute(long(word(4)?) & ((1 << STAMP_BITS) - 1))),
        };
        let least = if matches!(kind, Kind::Record { from: 8, .. }) { 8 } else { 4 };
        (length >= least && length <= bytes.len()).then_some(Self { length, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: PageLayout = PageLayout { commit: 8, commit_size: 8, data: 16, size: 4096 };

    fn page(time: u64, flags: u64, entries: &[&[u32]]) -> Vec<u8> {
        let data: Vec<u8> = entries.iter().flat_map(|words| words.iter().flat_map(|word| word.to_ne_bytes())).collect();
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.resize(4096, 0);
        page
    }

    fn header(kind: u32, delta: u32) -> u32 {
        if cfg!(target_endian = "big") { kind << 27 | delta } else { kind | delta << 5 }
    }

    fn all(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut seen = Vec::new();
        let missed = records(page, &LAYOUT, |at, bytes| seen.push((at, bytes.to_vec())));
        (seen, missed)
    }

    #[test]
    fn every_kind_of_entry_moves_the_time_as_the_kernel_means_it() {
        let high = 5_u64 << STAMP_BITS;
        let stamp = 1_u64 << 40;
        let bytes = page(
            high + 1000,
            0,
            &[
                &[header(1, 5), 11],
                &[header(TIME_EXTEND, 3), 2],
                &[header(0, 0), 12, 21, 22],
                &[header(PADDING, 4), 8, 0],
                &[header(2, 1), 31, 32],
                &[header(31, 7), u32::try_from(stamp >> 27).expect("fits")],
                &[header(1, 1), 41],
                &[header(PADDING, 0), 0],
                &[header(1, 1), 99],
            ],
        );
        let (seen, missed) = all(&bytes);
        let later = high + 1005 + (2 << 27) + 3;
        let expected = [
            (high + 1005, vec![11_u32]),
            (later, vec![21, 22]),
            (later + 5, vec![31, 32]),
            (high + stamp + 8, vec![41]),
        ];
        let expected: Vec<(u64, Vec<u8>)> = expected
            .into_iter()
            .map(|(at, words)| (at, words.iter().flat_map(|word| word.to_ne_bytes()).collect()))
            .collect();
        assert_eq!(seen, expected, "records have their times, padding ends the page");
        assert!(!missed, "nothing was dropped");
    }

    #[test]
    fn dropped_records_are_told_with_and_without_their_number() {
        assert!(all(&page(1, u64::from(MISSED), &[&[header(1, 1), 1]])).1, "the flag alone");
        let stored = page(1, u64::from(MISSED | 1 << 30), &[&[header(1, 1), 1]]);
        assert_eq!(all(&stored), (vec![(2, 1_u32.to_ne_bytes().to_vec())], true), "the number is not taken for data");
    }

    #[test]
    fn an_entry_that_is_longer_than_the_page_ends_it() {
        let (seen, _) = all(&page(1, 0, &[&[header(1, 1), 7], &[header(0, 1), 0xffff_fff0, 1]]));
        assert_eq!(seen.len(), 1, "what makes no sense is left out");
        assert_eq!(all(&page(1, 0, &[&[header(0, 1), 0, 1]])).0.len(), 0, "a record shorter than its header too");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let mut most = 0;
            records(&bytes, &LAYOUT, |_, record| most = most.max(record.len()));
            prop_assert!(most <= bytes.len(), "no record is longer than the page");
        }

        #[test]
        fn no_page_of_small_words_makes_it_panic(words in proptest::collection::vec(0_u32..64, 0..1020), time: u64) {
            all(&page(time, 0, &[&words]));
        }
    }
}
