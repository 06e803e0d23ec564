//! Kernel threads that work for a guest: up to Linux 6.3 vhost is one, called `vhost-` and the number of the thread that became
//! its owner. Each kernel thread is looked at once, in slices.

use crate::scan;
use crate::threads::proc_dir::ProcDir;
use std::collections::{BTreeMap, BTreeSet};

/// The process that all kernel threads descend from.
const KTHREADD: u32 = 2;
/// How the name of a thread of vhost begins.
const VHOST: &[u8] = b"vhost-";
/// Kernel threads that are looked at in one listing: some 2 ms.
const MOST_A_LISTING: usize = 256;

/// What is known of the kernel threads.
#[derive(Debug, Default)]
pub(super) struct KernelThreads {
    looked_at: BTreeSet<u32>,
    /// Threads of vhost, by number, with the thread that owns each.
    owners: BTreeMap<u32, u32>,
}

impl KernelThreads {
    /// The threads of vhost that work for these processes, each with its process; nothing is read without processes.
    pub fn vhosts(&mut self, guests: impl Iterator<Item = u32>, proc: &mut ProcDir) -> Vec<(u32, u32)> {
        let mut guests = guests.peekable();
        if guests.peek().is_none() {
            return Vec::new();
        }
        self.look(proc);
        if self.owners.is_empty() {
            return Vec::new();
        }
        let threads: BTreeMap<u32, u32> =
            guests.flat_map(|pid| proc.tasks(pid).into_iter().map(move |tid| (tid, pid))).collect();
        let of_guest = |(&tid, owner): (&u32, &u32)| Some((tid, *threads.get(owner)?));
        self.owners.iter().filter_map(of_guest).collect()
    }

    fn look(&mut self, proc: &mut ProcDir) {
        let Ok(text) = proc.read_long(KTHREADD, "children") else { return };
        let now: BTreeSet<u32> = scan::fields(&text).filter_map(scan::number32).collect();
        self.looked_at.retain(|tid| now.contains(tid));
        self.owners.retain(|tid, _| now.contains(tid));
        let new: Vec<u32> =
            now.iter().rev().copied().filter(|tid| !self.looked_at.contains(tid)).take(MOST_A_LISTING).collect();
        for tid in new {
            self.looked_at.insert(tid);
            let stat = proc.stat(tid, tid).filter(|stat| stat.kernel);
            let owner = stat.and_then(|stat| scan::number32(stat.comm.strip_prefix(VHOST)?));
            self.owners.extend(owner.map(|owner| (tid, owner)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roots;

    #[test]
    fn a_kernel_thread_of_vhost_works_for_the_process_whose_thread_it_is_called_after() {
        let root = tempfile::tempdir().expect("writable");
        let write = |path: &str, text: String| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            std::fs::write(path, text).expect("writable");
        };
        let stat = |comm: &str, flags: u32| {
            format!("1 ({comm}) S 2 0 0 0 0 {flags} 0 0 0 0 0 0 0 0 0 0 1 0 7 {}1 0\n", "0 ".repeat(16))
        };
        write("2/task/2/children", "40 41 42".to_owned());
        write("40/task/40/stat", stat("vhost-701", 0x0020_0000));
        write("41/task/41/stat", stat("vhost-701", 0));
        write("42/task/42/stat", stat("vhost-9", 0x0020_0000));
        write("700/task/700/stat", stat("qemu", 0));
        write("700/task/701/stat", stat("qemu", 0));
        let roots = Roots { proc: root.path().to_owned(), sys: root.path().to_owned() };
        let mut proc = ProcDir::open(&roots).expect("it is there");
        let mut threads = KernelThreads::default();
        assert_eq!(threads.vhosts([].into_iter(), &mut proc), [], "nobody asks");
        assert_eq!(threads.vhosts([700].into_iter(), &mut proc), [(40, 700)], "no program can call itself so");
        write("2/task/2/children", "42".to_owned());
        assert_eq!(threads.vhosts([700].into_iter(), &mut proc), [], "it has ended");
    }
}
