//! The kernel's own description of its types (`/sys/kernel/btf/vmlinux`, Linux 5.4): where the fields of a move sit for
//! those who may not read tracefs. Read piece by piece: the file has several MiB, and one struct of it is wanted.

use super::format::EventLayout;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;

/// Where the two sections are.
struct Sections {
    types: u64,
    types_length: u64,
    strings: u64,
    strings_length: u64,
}

/// The layout of `sched_migrate_task`'s record; none when this kernel does not describe it.
pub(super) fn layout(file: &Path) -> io::Result<Option<EventLayout>> {
    let mut file = File::open(file)?;
    let Some(sections) = sections(&mut file)? else { return Ok(None) };
    let names = [&b"trace_event_raw_sched_migrate_task"[..], b"pid", b"orig_cpu", b"dest_cpu"];
    let names = find_names(&mut file, &sections, names)?;
    let [Some(record), Some(tid), Some(from), Some(to)] = names else { return Ok(None) };
    let Some(members) = find_struct(&mut file, &sections, record)? else { return Ok(None) };
    let offset = |name: u32| members.iter().find(|member| member.0 == name).map(|member| member.1);
    let layout = || Some(EventLayout { id: None, tid: offset(tid)?, from: offset(from)?, to: offset(to)? });
    Ok(layout())
}

fn words<const N: usize>(from: &mut impl Read) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes)?;
        *word = u32::from_ne_bytes(bytes);
    }
    Ok(words)
}

fn sections(file: &mut File) -> io::Result<Option<Sections>> {
    let [first, header, types, types_length, strings, strings_length] = words(file)?;
    let magic = u16::from_ne_bytes([first.to_ne_bytes()[0], first.to_ne_bytes()[1]]);
    let at = |offset: u32| u64::from(header) + u64::from(offset);
    Ok((magic == MAGIC).then(|| Sections {
        types: at(types),
        types_length: u64::from(types_length),
        strings: at(strings),
        strings_length: u64::from(strings_length),
    }))
}

/// The offsets of these names in the string section. Every name is there once.
fn find_names<const N: usize>(file: &mut File, sections: &Sections, names: [&[u8]; N]) -> io::Result<[Option<u32>; N]> {
    file.seek(SeekFrom::Start(sections.strings))?;
    let mut found = [None; N];
    let (mut name, mut begins) = (Vec::new(), 0_u32);
    for byte in BufReader::with_capacity(1 << 16, file.take(sections.strings_length)).bytes() {
        match byte? {
            0 => {
                if let Some(which) = names.iter().position(|wanted| *wanted == name) {
                    found[which] = found[which].or(Some(begins));
                }
                begins += u32::try_from(name.len()).unwrap_or(u32::MAX - begins - 1) + 1;
                name.clear();
            }
            byte => name.push(byte),
        }
    }
    Ok(found)
}

/// Name and byte offset of each member of the struct of that name.
fn find_struct(file: &mut File, sections: &Sections, name: u32) -> io::Result<Option<Vec<(u32, usize)>>> {
    file.seek(SeekFrom::Start(sections.types))?;
    let mut types = BufReader::with_capacity(1 << 16, file).take(sections.types_length);
    while types.limit() >= 12 {
        let [of, info, _size] = words(&mut types)?;
        let (count, kind) = (info & 0xffff, info >> 24 & 31);
        if kind == STRUCT && of == name {
            // With the flag the upper byte of a member's offset is the width of a bit field.
            let bits = |offset: u32| if info >> 31 == 0 { offset } else { offset & 0x00ff_ffff };
            let member = |_| words(&mut types).map(|[of, _, offset]| (of, bits(offset) as usize / 8));
            return (0..count).map(member).collect::<io::Result<Vec<_>>>().map(Some);
        }
        io::copy(&mut (&mut types).take(trailer(kind, count)), &mut io::sink())?;
    }
    Ok(None)
}

/// Bytes behind the three words of a type (`Documentation/bpf/btf.rst`).
fn trailer(kind: u32, count: u32) -> u64 {
    let count = u64::from(count);
    match kind {
        // int, var, declaration tag
        1 | 14 | 17 => 4,
        // array
        3 => 12,
        // struct, union, section, 64-bit enum
        4 | 5 | 15 | 19 => count * 12,
        // enum, function prototype
        6 | 13 => count * 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(strings: &[u8], types: &[u32]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short");
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, length(&types), length(&types), length(strings)] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(types);
        bytes.extend(strings);
        std::fs::write(file.path(), bytes).expect("writable");
        file
    }

    #[test]
    fn the_struct_is_found_behind_other_types() {
        let strings = b"\0pid\0orig_cpu\0dest_cpu\0trace_event_raw_sched_migrate_task\0";
        let (int, array, record) = ([1, 1 << 24, 4, 32], [0, 3 << 24, 0, 1, 1, 5], [23, 4 << 24 | 3, 40]);
        let members = [1, 1, 192, 5, 1, 256, 14, 1, 288];
        let types: Vec<u32> = int.into_iter().chain(array).chain(record).chain(members).collect();
        let found = layout(file(strings, &types).path()).expect("readable");
        assert_eq!(found, Some(EventLayout { id: None, tid: 24, from: 32, to: 36 }), "offsets in bytes");
        let found = layout(file(b"\0pid\0", &types).path()).expect("readable");
        assert_eq!(found, None, "a kernel that does not describe it");
    }

    #[test]
    fn this_kernel_and_its_format_file_agree() {
        let format = std::fs::read_to_string("/sys/kernel/tracing/events/sched/sched_migrate_task/format");
        let (Ok(format), Ok(Some(found))) = (format, layout(Path::new("/sys/kernel/btf/vmlinux"))) else { return };
        let expected = EventLayout::parse(&format).expect("a layout");
        assert_eq!(found, EventLayout { id: None, ..expected }, "two descriptions of one record");
    }
}
