//! The functions of programs by address: what is mapped where (`/proc/PID/maps`), and the symbols of those files. A program that may not be
//! looked at has neither. Files of other users can make their reader wait: that is the profile's own thread.

use object::elf;
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use vnettop_sample::text;

/// Most of a list of mappings that is read, bytes.
const LONGEST_MAPS: u64 = 1 << 20;
/// A file with longer tables of symbols than this is shown by its name alone: reading them would keep the ring waiting.
const LONGEST_TABLE: u64 = 16 << 20;
/// A symbol of a 64-bit file, bytes: place of its name, kind, and so on, address, length.
const SYMBOL: usize = 24;
/// Most files whose symbols are kept.
const MOST_FILES: usize = 48;

/// A part of a file that a process executes.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    begin: u64,
    end: u64,
    offset: u64,
    inode: u64,
    path: String,
}

/// What a file calls its functions.
#[derive(Debug, Default)]
struct FileSymbols {
    /// Where a part of the file lies in its own addresses: offset, length, address.
    segments: Vec<(u64, u64, u64)>,
    /// Begin, length (0: not known) and where its name begins, sorted.
    functions: Vec<(u64, u64, u32)>,
    /// Names, each with a zero byte behind it.
    names: Vec<u8>,
}

/// What is known of programs.
#[derive(Debug, Default)]
pub(super) struct UserSymbols {
    proc: PathBuf,
    /// By process.
    mappings: BTreeMap<u32, Vec<Mapping>>,
    /// By inode and path; none where it cannot be read.
    files: BTreeMap<(u64, String), Option<FileSymbols>>,
}

impl UserSymbols {
    pub fn new(proc: &Path) -> Self {
        Self { proc: proc.to_owned(), ..Self::default() }
    }

    /// What is mapped is asked again: libraries come and go, and numbers of processes are used again.
    pub fn begin_anew(&mut self) {
        self.mappings.clear();
    }

    /// The function of an address, where it has a name, and the file that it is in; none where nothing executable is mapped there.
    pub fn find(&mut self, pid: u32, address: u64) -> Option<(Option<String>, String)> {
        let Self { proc, mappings, files } = self;
        let process = proc.join(pid.to_string());
        let mapped = mappings.entry(pid).or_insert_with(|| mappings_of(&process));
        let mapping = mapped.iter().find(|one| (one.begin..one.end).contains(&address))?;
        let file = mapping.path.rsplit('/').next().unwrap_or_default();
        if mapping.inode == 0 {
            return Some((None, file.to_owned()));
        }
        if files.len() >= MOST_FILES {
            files.clear();
        }
        let known = files.entry((mapping.inode, mapping.path.clone())).or_insert_with(|| symbols(&process, mapping));
        let name = known.as_ref().and_then(|known| known.find((address - mapping.begin).checked_add(mapping.offset)?));
        Some((name, file.to_owned()))
    }
}

impl FileSymbols {
    /// Takes the functions of a table, and their names.
    fn take(&mut self, symbols: &[u8], names: &[u8]) {
        let of = |symbol: &[u8; SYMBOL]| {
            let (head, numbers) = symbol.split_first_chunk::<8>()?;
            let (begin, length) = numbers.split_first_chunk::<8>()?;
            let name = u32::from_ne_bytes(*head.first_chunk()?);
            let [begin, length] = [u64::from_ne_bytes(*begin), u64::from_ne_bytes(*length.first_chunk()?)];
            // The kind is in the lower half of a byte; a function of another file has no section here.
            let is_function = matches!(head[4] & 15, elf::STT_FUNC | elf::STT_GNU_IFUNC) && head[6..8] != [0, 0];
            is_function.then_some((begin, length, name))
        };
        self.functions = symbols.as_chunks::<SYMBOL>().0.iter().filter_map(of).collect();
        self.functions.sort_unstable();
        self.functions.dedup_by_key(|(begin, ..)| *begin);
        names.clone_into(&mut self.names);
    }

    /// The function of a place in the file.
    fn find(&self, place: u64) -> Option<String> {
        let (offset, _, begins) =
            self.segments.iter().find(|(offset, length, _)| place >= *offset && place - offset < *length)?;
        // A file may say that it lies where no address is.
        let address = (place - offset).checked_add(*begins)?;
        let before = self.functions.partition_point(|(begin, ..)| *begin <= address).checked_sub(1)?;
        let (begin, length, name) = &self.functions[before];
        let name = self.names.get(usize::try_from(*name).ok()?..)?.split(|&byte| byte == 0).next()?;
        (*length == 0 || address - begin < *length).then(|| text::clean(name))
    }
}

/// What a process executes; empty where it may not be asked.
fn mappings_of(process: &Path) -> Vec<Mapping> {
    let mut text = Vec::new();
    let read = File::open(process.join("maps")).and_then(|file| file.take(LONGEST_MAPS).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    String::from_utf8_lossy(&text).lines().filter_map(mapping).collect()
}

/// `7f12a000-7f12b000 r-xp 00026000 fe:01 1234   /usr/lib/libc.so.6`
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (begin, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let offset = hexadecimal(fields.next()?)?;
    let _device = fields.next()?;
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim().trim_end_matches(" (deleted)");
    let path = if path.is_empty() { "JIT-compiled code".to_owned() } else { text::clean(path.as_bytes()) };
    is_code.then_some(Mapping { begin: hexadecimal(begin)?, end: hexadecimal(end)?, offset, inode, path })
}

/// The symbols of the very file that is mapped: by its mapping where that may be opened, else by its name if it is still that file.
fn symbols(process: &Path, mapping: &Mapping) -> Option<FileSymbols> {
    let mapped = format!("map_files/{:x}-{:x}", mapping.begin, mapping.end);
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|is| is.is_file() && is.ino() == mapping.inode);
    let places = [process.join(mapped), PathBuf::from(&mapping.path)];
    let file = places.iter().filter(|place| is_it(place)).find_map(|place| File::open(place).ok())?;
    of_file(&ReadCache::new(file))
}

/// The symbols of a file.
fn of_file<'data>(bytes: impl ReadRef<'data>) -> Option<FileSymbols> {
    let object = object::File::parse(bytes).ok().filter(object::Object::is_64)?;
    let segments = object
        .segments()
        .filter(|segment| matches!(segment.flags(), object::SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0));
    let segments = segments.map(|segment| {
        let (offset, length) = segment.file_range();
        (offset, length, segment.address())
    });
    let mut known = FileSymbols { segments: segments.collect(), ..FileSymbols::default() };
    // What was stripped has the names of what it offers to others.
    for [symbols, names] in [[".symtab", ".strtab"], [".dynsym", ".dynstr"]] {
        let section = |name| object.section_by_name(name).filter(|section| section.size() <= LONGEST_TABLE);
        if known.functions.is_empty()
            && let (Some(symbols), Some(names)) = (section(symbols), section(names))
            && let (Ok(symbols), Ok(names)) = (symbols.data(), names.data())
        {
            known.take(symbols, names);
        }
    }
    Some(known)
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    String::from_utf8_lossy(bytes).lines().for_each(|line| drop(mapping(line)));
    if let Some(known) = of_file(bytes) {
        for (offset, length, _) in known.segments.iter().take(8) {
            let _ = (known.find(*offset), known.find(offset.wrapping_add(length / 2)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_what_is_executed() {
        let line = "7f12a000-7f12b000 r-xp 00026000 fe:01 1234                       /usr/lib/libc.so.6 (deleted)";
        let expected = Mapping {
            begin: 0x7f12_a000,
            end: 0x7f12_b000,
            offset: 0x26000,
            inode: 1234,
            path: "/usr/lib/libc.so.6".to_owned(),
        };
        assert_eq!(mapping(line), Some(expected));
        assert_eq!(mapping("7f12a000-7f12b000 rw-p 00000000 00:00 0"), None, "data");
        assert_eq!(mapping("rubbish"), None);
    }

    #[test]
    fn a_file_that_lies_beyond_the_last_address_has_no_functions_there() {
        let functions = vec![(1, 0, 0)];
        let known = FileSymbols { segments: vec![(0, u64::MAX, u64::MAX)], functions, names: b"a\0".to_vec() };
        assert_eq!([known.find(0), known.find(1)], [Some("a".to_owned()), None]);
    }

    #[test]
    fn this_program_finds_its_own_functions() {
        let mut known = UserSymbols::new(Path::new("/proc"));
        let at = std::hint::black_box(a_line_of_maps_is_what_is_executed as fn() as usize as u64);
        let (name, file) = known.find(std::process::id(), at).expect("this very code is mapped");
        let name = name.expect("tests are not stripped");
        assert!(name.contains("a_line_of_maps_is_what_is_executed"), "{name} of {file}");
        assert_eq!(known.find(std::process::id(), 1), None, "nothing is mapped there");
    }
}
