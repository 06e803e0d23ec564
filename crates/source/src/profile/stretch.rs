//! Samples → one [`CoreProfile`]: every address gets its function, equal stacks become one.

use super::kernel_symbols::KernelSymbols;
use super::records::{Record, StackSample};
use super::user_symbols::UserSymbols;
use crate::proc_file;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use vnettop_sample::text;
use vnettop_sample::{CoreProfile, ProfiledFunction, ProfiledStack};

/// Functions of a stack that are kept, from the innermost on: all of a path through two namespaces and more.
const DEEPEST: usize = 80;
/// Functions of a program that are kept: without frame pointers the outer ones are chance.
const DEEPEST_OF_PROGRAM: usize = 16;
/// Most programs whose names are kept after they have ended.
const MOST_PROGRAMS: usize = 4096;

/// Names addresses, and collects the stacks of the stretch that runs.
pub(super) struct Stretch {
    proc: PathBuf,
    kernel: KernelSymbols,
    user: UserSymbols,
    /// Names of processes, of ended ones too.
    programs: BTreeMap<u32, String>,
    /// Functions by name, with their place in the list.
    places: BTreeMap<ProfiledFunction, u32>,
    /// Places by address of the kernel, and by process and address.
    of_kernel: BTreeMap<u64, u32>,
    of_programs: BTreeMap<(u32, u64), Option<u32>>,
    /// Samples and weight by process and functions.
    stacks: BTreeMap<(u32, Vec<u32>), (u32, u64)>,
    lost: u64,
}

impl Stretch {
    pub fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            kernel: KernelSymbols::read(proc),
            user: UserSymbols::new(proc),
            programs: BTreeMap::new(),
            places: BTreeMap::new(),
            of_kernel: BTreeMap::new(),
            of_programs: BTreeMap::new(),
            stacks: BTreeMap::new(),
            lost: 0,
        }
    }

    /// The kernel names its functions.
    pub fn names_kernel(&self) -> bool {
        self.kernel.is_known()
    }

    pub fn take(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.sample(&sample),
            Record::Named { pid, tid, name } if pid == tid => drop(self.programs.insert(pid, text::clean(&name))),
            Record::Named { .. } => {}
            Record::Lost(samples) => self.lost += samples,
        }
    }

    fn sample(&mut self, sample: &StackSample) {
        let pid = sample.pid;
        let met = self.stacks.range((pid, Vec::new())..).next();
        if pid != 0 && met.is_none_or(|((one, _), _)| *one != pid) {
            self.name(pid);
        }
        let mut functions = Vec::new();
        if sample.is_guest {
            let guest = Some("guest".to_owned());
            functions.push(self.place(ProfiledFunction { name: guest, module: None, kernel: false }));
        } else {
            for (at, &address) in sample.kernel.iter().enumerate() {
                // An outer address is where its call returns to, which may be behind the function.
                functions.push(self.kernel_function(address - u64::from(at > 0 && address > 0)));
            }
            for (at, &address) in sample.user.iter().take(DEEPEST_OF_PROGRAM).enumerate() {
                functions.extend(self.function_of(pid, address - u64::from(at > 0 && address > 0)));
            }
        }
        functions.truncate(DEEPEST);
        let (samples, weight) = self.stacks.entry((pid, functions)).or_default();
        (*samples, *weight) = (*samples + 1, *weight + sample.period);
    }

    /// Asks what a process is called, while it is there to be asked.
    fn name(&mut self, pid: u32) {
        if let Ok(name) = proc_file::comm(&self.proc.join(pid.to_string())) {
            self.programs.insert(pid, name);
        }
    }

    fn kernel_function(&mut self, address: u64) -> u32 {
        if let Some(&place) = self.of_kernel.get(&address) {
            return place;
        }
        let (name, module) = self.kernel.find(address).unzip();
        let module = module.flatten().map(str::to_owned);
        let place = self.place(ProfiledFunction { name: name.map(str::to_owned), module, kernel: true });
        self.of_kernel.insert(address, place);
        place
    }

    /// None where nothing is executed there: a chain without frame pointers leads anywhere.
    fn function_of(&mut self, pid: u32, address: u64) -> Option<u32> {
        if let Some(&place) = self.of_programs.get(&(pid, address)) {
            return place;
        }
        let found = self.user.find(pid, address);
        let place = found.map(|(name, file)| self.place(ProfiledFunction { name, module: Some(file), kernel: false }));
        self.of_programs.insert((pid, address), place);
        place
    }

    fn place(&mut self, function: ProfiledFunction) -> u32 {
        let next = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        match self.places.entry(function) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(next),
        }
    }

    /// What was collected, without core, time and clock; another stretch begins.
    pub fn close(&mut self) -> CoreProfile {
        let mut functions: Vec<_> = std::mem::take(&mut self.places).into_iter().collect();
        functions.sort_unstable_by_key(|(_, place)| *place);
        let functions = functions.into_iter().map(|(function, _)| function).collect();
        let programs = &self.programs;
        let stacks = std::mem::take(&mut self.stacks).into_iter().map(|((pid, functions), (samples, weight))| {
            ProfiledStack { program: programs.get(&pid).cloned(), pid, functions, samples, weight }
        });
        let mut stacks: Vec<_> = stacks.collect();
        stacks.sort_unstable();
        self.of_kernel.clear();
        self.of_programs.clear();
        self.user.begin_anew();
        if self.programs.len() > MOST_PROGRAMS {
            self.programs.clear();
        }
        CoreProfile { lost: std::mem::take(&mut self.lost), functions, stacks, ..CoreProfile::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_functions_have_their_names() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(
            tree.path().join("kallsyms"),
            "1000 T nft_do_chain\t[nf_tables]\n2000 T nf_hook_slow\n3000 T end\n",
        )
        .expect("writable");
        std::fs::create_dir(tree.path().join("7")).expect("a process");
        std::fs::write(tree.path().join("7/comm"), "iperf3\n").expect("writable");
        let mut stretch = Stretch::new(tree.path());
        // The return address is the first byte of the next function.
        let sample =
            |kernel: &[u64]| StackSample { pid: 7, period: 5, kernel: kernel.to_vec(), ..StackSample::default() };
        for kernel in [[0x1004, 0x3000], [0x1008, 0x3000], [0x2000, 0x2004]] {
            stretch.take(Record::Sample(sample(&kernel)));
        }
        stretch.take(Record::Lost(3));
        let profile = stretch.close();
        let names: Vec<_> = profile.functions.iter().map(|one| one.name.as_deref()).collect();
        assert_eq!((names, profile.lost), (vec![Some("nft_do_chain"), Some("nf_hook_slow")], 3));
        let stacks: Vec<_> = profile.stacks.iter().map(|one| (&one.functions[..], one.samples, one.weight)).collect();
        assert_eq!(stacks, [(&[0, 1][..], 2, 10), (&[1, 1][..], 1, 5)]);
        assert!(profile.stacks.iter().all(|stack| stack.program.as_deref() == Some("iperf3")));
        assert_eq!(stretch.close(), CoreProfile::default(), "each stretch has its own");
    }
}
