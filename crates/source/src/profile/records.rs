//! The records of a perf ring, from bytes: samples, names of programs, how many samples were lost.

/// What `PERF_RECORD_*` number a record has.
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
/// Marks in a call chain begin here (`PERF_CONTEXT_MAX`): what follows one is of the kernel, of a program, of a guest.
const MARKS: u64 = (-4095_i64).cast_unsigned();
const IN_KERNEL: u64 = (-128_i64).cast_unsigned();
const IN_USER: u64 = (-512_i64).cast_unsigned();
/// `PERF_RECORD_MISC_CPUMODE`: 4 and 5 are a guest's kernel and programs.
const MODES: u16 = 7;
const OF_GUEST: [u16; 2] = [4, 5];

/// One record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A sample.
    Sample(StackSample),
    /// A program that was started, or has named itself.
    Named { pid: u32, tid: u32, name: Vec<u8> },
    /// So many samples had no room.
    Lost(u64),
}

/// A stack at one instant.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StackSample {
    /// Its process; 0 for the idle task.
    pub pid: u32,
    /// What it stands for: ns or cycles.
    pub period: u64,
    /// A guest ran: its addresses are none of this kernel.
    pub is_guest: bool,
    /// Addresses in the kernel, from the innermost on.
    pub kernel: Vec<u64>,
    /// Addresses in the program, from the innermost on.
    pub user: Vec<u64>,
}

/// Calls `with` for each record.
pub(super) fn each(mut bytes: &[u8], mut with: impl FnMut(Record)) {
    while let Some((head, _)) = bytes.split_first_chunk::<8>() {
        let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let (mode, size) = (u16::from_ne_bytes([head[4], head[5]]) & MODES, u16::from_ne_bytes([head[6], head[7]]));
        let Some((record, rest)) = bytes.split_at_checked(usize::from(size)).filter(|_| size >= 8) else { return };
        if let Some(record) = read(kind, mode, &record[8..]) {
            with(record);
        }
        bytes = rest;
    }
}

fn read(kind: u32, mode: u16, mut body: &[u8]) -> Option<Record> {
    match kind {
        SAMPLE => sample(mode, body).map(Record::Sample),
        COMM => {
            let [pid, tid] = [half(&mut body)?, half(&mut body)?];
            let name = body.split(|&byte| byte == 0).next()?.to_vec();
            Some(Record::Named { pid, tid, name })
        }
        LOST => {
            let _id = word(&mut body)?;
            word(&mut body).map(Record::Lost)
        }
        _ => None,
    }
}

/// In the order of `PERF_SAMPLE_*`: address, process and thread, time, core, period, chain.
fn sample(mode: u16, mut body: &[u8]) -> Option<StackSample> {
    let _address = word(&mut body)?;
    let [pid, _tid] = [half(&mut body)?, half(&mut body)?];
    let [_time, _core, period, length] = [word(&mut body)?, word(&mut body)?, word(&mut body)?, word(&mut body)?];
    let mut sample = StackSample { pid, period, is_guest: OF_GUEST.contains(&mode), ..StackSample::default() };
    let mut place = 0;
    for _ in 0..length {
        match (word(&mut body)?, place) {
            (mark @ MARKS.., _) => place = mark,
            (address, IN_KERNEL) => sample.kernel.push(address),
            (address, IN_USER) => sample.user.push(address),
            _ => {}
        }
    }
    Some(sample)
}

fn word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_ne_bytes(*word))
}

fn half(bytes: &mut &[u8]) -> Option<u32> {
    let (half, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_ne_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, mode: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(8 + body.len()).expect("short");
        [&kind.to_ne_bytes()[..], &mode.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn all(bytes: &[u8]) -> Vec<Record> {
        let mut found = Vec::new();
        each(bytes, |record| found.push(record));
        found
    }

    #[test]
    fn a_sample_has_the_kernels_part_and_the_programs() {
        let tid = 7_u64 | 8 << 32;
        let body = words(&[1, tid, 5, 1, 2_004_008, 5, IN_KERNEL, 0xffff_0001, 0xffff_0002, IN_USER, 0x40]);
        let bytes = [record(SAMPLE, 1, &body), record(LOST, 0, &words(&[1, 12]))].concat();
        let sample = StackSample {
            pid: 7,
            period: 2_004_008,
            is_guest: false,
            kernel: vec![0xffff_0001, 0xffff_0002],
            user: vec![0x40],
        };
        assert_eq!(all(&bytes), [Record::Sample(sample), Record::Lost(12)]);
        let named = record(COMM, 0, &[&words(&[tid])[..], b"nft\0\0\0\0\0"].concat());
        assert_eq!(all(&named), [Record::Named { pid: 7, tid: 8, name: b"nft".to_vec() }]);
        let guest = record(SAMPLE, 5, &words(&[1, tid, 5, 1, 1, 0]));
        assert!(matches!(&all(&guest)[..], [Record::Sample(one)] if one.is_guest));
    }

    proptest! {
        #[test]
        fn there_are_no_more_records_than_heads(bytes: Vec<u8>) {
            prop_assert!(all(&bytes).len() <= bytes.len() / 8);
        }
    }
}
