//! The functions of the kernel by address (`/proc/kallsyms`, which needs `CAP_SYSLOG`), read once: some 4 MB for as long as a
//! core is looked at.

use crate::bpf::functions;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A function is no longer than this: what lies farther behind the last one is in none that is known.
const LONGEST: u64 = 1 << 20;

/// Where each function begins, and its name.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols {
    /// Begin, where its name begins and ends in `names`, and the number of its module; sorted.
    functions: Vec<(u64, u32, u16, u16)>,
    names: String,
    /// The kernel itself is the first.
    modules: Vec<String>,
}

impl KernelSymbols {
    /// Reads all; empty where the kernel keeps its addresses to itself.
    pub fn read(proc: &Path) -> Self {
        File::open(proc.join("kallsyms")).map_or_else(|_| Self::default(), |file| Self::of(BufReader::new(file)))
    }

    pub fn of(lines: impl BufRead) -> Self {
        let mut all = Self { modules: vec![String::new()], ..Self::default() };
        functions::each(lines, |begins, name, module| {
            let of = module.unwrap_or_default();
            let at = all.modules.iter().rposition(|known| known == of).unwrap_or_else(|| {
                all.modules.push(of.to_owned());
                all.modules.len() - 1
            });
            let places = (u32::try_from(all.names.len()), u16::try_from(name.len()), u16::try_from(at));
            if let (Ok(from), Ok(length), Ok(module)) = places {
                all.names.push_str(name);
                all.functions.push((begins, from, length, module));
            }
        });
        all.functions.sort_unstable();
        all
    }

    /// The kernel names its functions.
    pub fn is_known(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The function of an address, and its module.
    pub fn find(&self, address: u64) -> Option<(&str, Option<&str>)> {
        let before = self.functions.partition_point(|(begins, ..)| *begins <= address).checked_sub(1)?;
        let &(begins, from, length, module) = &self.functions[before];
        let from = usize::try_from(from).ok().filter(|_| address - begins < LONGEST)?;
        let name = self.names.get(from..from + usize::from(length))?;
        Some((name, Some(self.modules[usize::from(module)].as_str()).filter(|module| !module.is_empty())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_function_and_module() {
        let text = "0000000000001000 T first\n0000000000003000 t third.isra.0\n0000000000002000 t second\t[nf_tables]\n\
                    0000000000002100 d data\n0000000000009000 t bpf_prog_7f2a_sent\t[bpf]\n";
        let known = KernelSymbols::of(text.as_bytes());
        let found = [0x1000, 0x2fff, 0x3001, 0x9010].map(|at| known.find(at));
        let expected =
            [("first", None), ("second", Some("nf_tables")), ("third", None), ("bpf_prog_7f2a_sent", Some("bpf"))];
        assert_eq!(found, expected.map(Some));
        assert_eq!([known.find(0xfff), known.find(0x9000 + LONGEST)], [None, None], "in none that is known");
        assert!(!KernelSymbols::of(&b"0000000000000000 T first\n"[..]).is_known(), "a kernel that hides its addresses");
    }
}
