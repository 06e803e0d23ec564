//! Where the fields of a move sit in what the kernel writes: parsed from the event's `format` file and from
//! `events/header_page`, which differ from kernel to kernel. It opens nothing.

use crate::sample::Move;

/// Byte offsets of the fields of `sched_migrate_task`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventLayout {
    /// The event's number; none where it could not be told.
    pub id: Option<u16>,
    /// `pid`, four bytes.
    pub tid: usize,
    /// `orig_cpu`, four bytes.
    pub from: usize,
    /// `dest_cpu`, four bytes.
    pub to: usize,
}

impl EventLayout {
    /// From the `format` file; none when a field is missing or has another size.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        let offset = |name| field(text, name).filter(|&(_, size)| size == 4).map(|(offset, _)| offset);
        Some(Self { id, tid: offset("pid")?, from: offset("orig_cpu")?, to: offset("dest_cpu")? })
    }

    /// The move in a record; none when it is too short, of another event, or no move at all.
    pub(super) fn read(&self, at_ns: u64, record: &[u8]) -> Option<Move> {
        let number = |offset: usize| Some(u32::from_ne_bytes(*record.get(offset..)?.first_chunk()?));
        let id = u16::from_ne_bytes(*record.first_chunk()?);
        let (tid, from, to) = (number(self.tid)?, number(self.from)?, number(self.to)?);
        let is_one = self.id.is_none_or(|own| own == id) && from != to && tid > 0;
        is_one.then_some(Move { at_ns, tid, from, to })
    }
}

/// Byte offsets of the parts of a ring-buffer page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLayout {
    /// `commit`: how many bytes of data there are, and flags.
    pub commit: usize,
    /// Its size: that of the kernel's `long`.
    pub commit_size: usize,
    /// Where the data begin.
    pub data: usize,
    /// The size of the whole page.
    pub size: usize,
}

impl PageLayout {
    /// From `events/header_page`; none when it says something that cannot be.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (commit, commit_size) = field(text, "commit")?;
        let (data, data_size) = field(text, "data")?;
        let can_be = matches!(commit_size, 4 | 8) && commit >= 8 && data >= commit + commit_size;
        (can_be && data_size <= 1 << 20).then_some(Self { commit, commit_size, data, size: data + data_size })
    }
}

/// Offset and size of a field: `field: u64 timestamp;  offset:0;  size:8;  signed:0;`.
fn field(text: &str, name: &str) -> Option<(usize, usize)> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let last = parts.next()?.rsplit([' ', '\t']).next()?;
        if last.split('[').next()? != name {
            return None;
        }
        let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        Some((offset, parts.next()?.strip_prefix("size:")?.parse().ok()?))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of Linux 6.18.
    pub(in super::super) const LATER: &str = "name: sched_migrate_task\nID: 371\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:int orig_cpu;\toffset:20;\tsize:4;\tsigned:1;\n\tfield:int dest_cpu;\toffset:24;\tsize:4;\tsigned:1;\n";
    const EARLIER: &str = "ID: 320\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int orig_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\
        \tfield:int dest_cpu;\toffset:36;\tsize:4;\tsigned:1;\n";
    /// Of 64-bit kernels with pages of 4 KiB.
    pub(in super::super) const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn offsets_are_those_of_each_kernel() {
        let later = EventLayout { id: Some(371), tid: 12, from: 20, to: 24 };
        assert_eq!(EventLayout::parse(LATER), Some(later), "Linux 6.18: the name is elsewhere");
        let earlier = EventLayout { id: Some(320), tid: 24, from: 32, to: 36 };
        assert_eq!(EventLayout::parse(EARLIER), Some(earlier), "Linux 6.1: sixteen bytes of name");
        assert_eq!(EventLayout::parse("ID: 3\n"), None, "without the fields there is no layout");
        let page = PageLayout { commit: 8, commit_size: 8, data: 16, size: 4096 };
        assert_eq!(PageLayout::parse(PAGE), Some(page), "a page of 64-bit kernels");
        assert_eq!(PageLayout::parse("nonsense"), None, "nonsense is no page");
    }

    #[test]
    fn a_record_of_another_event_or_too_short_is_no_move() {
        let layout = EventLayout::parse(LATER).expect("parses");
        let mut record = vec![0; 28];
        record[..2].copy_from_slice(&371_u16.to_ne_bytes());
        for (offset, value) in [(12, 77_u32), (20, 1), (24, 5)] {
            record[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        assert_eq!(layout.read(9, &record), Some(Move { at_ns: 9, tid: 77, from: 1, to: 5 }), "the fields are read");
        assert_eq!(layout.read(9, &record[..27]), None, "a record that ends early is left out");
        record[0] ^= 1;
        assert_eq!(layout.read(9, &record), None, "another event is left out");
    }
}
