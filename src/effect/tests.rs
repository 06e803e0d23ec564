//! Journeys of pinning, putting back and undoing on a fake machine that records what was done to it.

mod journals;
mod others;
mod pinning;
mod steered;
mod steering;

use super::{Kernel, LinkSettings, NumberSpaces, Outcome, PinController, PinRequest, Pinner};
use crate::sample::{CoreSet, LinkKey, ThreadId};
use crate::source::steering::LinkFolderError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use tempfile::TempDir;

/// A thread of the fake machine.
struct Thread {
    start: u64,
    mask: CoreSet,
    /// What its cgroup allows.
    cpuset: CoreSet,
    /// What was asked for last, which the kernel keeps behind the cpuset.
    asked: Option<CoreSet>,
    /// The errno that every attempt to set its mask meets.
    refuses: Option<i32>,
    /// What happens while its mask is set.
    twist: Option<Twist>,
}

#[derive(Clone, Copy)]
enum Twist {
    Ends,
    IsReused,
    SomeoneSets(u32),
    HidesItsMask,
}

#[derive(Default)]
struct World {
    threads: BTreeMap<u32, Thread>,
    boot: String,
    spaces: NumberSpaces,
    /// `tid → mask`, in the order they were set.
    set: Vec<String>,
    /// Where to look for the intention at the moment a mask is set.
    dir: Option<PathBuf>,
    links: steered::Links,
}

/// The fake machine; clones are the same machine.
#[derive(Clone, Default)]
struct Fake(Rc<RefCell<World>>);

impl Fake {
    /// Eight cores, this vnettop, and threads 101 to 103 that may run anywhere.
    fn new() -> Self {
        let fake = Self::default();
        fake.0.borrow_mut().boot = "this boot".to_owned();
        fake.add(std::process::id(), 77);
        (101..=103).for_each(|tid| fake.add(tid, 5000));
        fake
    }

    fn add(&self, tid: u32, start: u64) {
        let (mask, cpuset) = (cores("0-7"), cores("0-7"));
        self.0
            .borrow_mut()
            .threads
            .insert(tid, Thread { start, mask, cpuset, asked: None, refuses: None, twist: None });
    }

    fn change(&self, tid: u32, change: impl FnOnce(&mut Thread)) {
        change(self.0.borrow_mut().threads.get_mut(&tid).expect("the thread is there"));
    }

    /// The cpuset becomes another one.
    fn allow(&self, tid: u32, list: &str) {
        self.change(tid, |thread| {
            thread.cpuset = cores(list);
            let within = thread.asked.as_ref().map(|asked| asked.intersection(&thread.cpuset));
            thread.mask = within.filter(|within| !within.is_empty()).unwrap_or_else(|| thread.cpuset.clone());
        });
    }

    fn end(&self, tid: u32) {
        self.0.borrow_mut().threads.remove(&tid);
    }

    fn mask(&self, tid: u32) -> String {
        self.0.borrow().threads[&tid].mask.to_string()
    }

    fn set(&self) -> Vec<String> {
        self.0.borrow().set.clone()
    }
}

impl Pinner for Fake {
    fn start_of(&mut self, thread: ThreadId) -> io::Result<u64> {
        self.0.borrow().threads.get(&thread.tid).map(|t| t.start).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn mask_of(&mut self, tid: u32) -> io::Result<CoreSet> {
        let world = self.0.borrow();
        let thread = world.threads.get(&tid).ok_or_else(|| errno(libc::ESRCH))?;
        let hidden = matches!(thread.twist, Some(Twist::HidesItsMask)) && !world.set.is_empty();
        if hidden { Err(errno(libc::EACCES)) } else { Ok(thread.mask.clone()) }
    }

    fn cpuset_of(&mut self, tid: u32) -> Option<CoreSet> {
        self.0.borrow().threads.get(&tid).map(|thread| thread.cpuset.clone())
    }

    fn set_mask(&mut self, tid: u32, asked: &CoreSet) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        if let Some(dir) = &world.dir {
            let journal = text_of_the_journal(dir);
            assert!(journal.contains(&format!(r#""tid":{tid},"#)), "the intention is on disk before the mask is set");
        }
        world.set.push(format!("{tid} → {asked}"));
        let thread = world.threads.get_mut(&tid).ok_or_else(|| errno(libc::ESRCH))?;
        if let Some(number) = thread.refuses {
            return Err(errno(number));
        }
        let given = asked.intersection(&thread.cpuset);
        if given.is_empty() {
            return Err(errno(libc::EINVAL));
        }
        (thread.mask, thread.asked) = (given, Some(asked.clone()));
        match thread.twist {
            Some(Twist::Ends) => drop(world.threads.remove(&tid)),
            Some(Twist::IsReused) => thread.start += 1,
            Some(Twist::SomeoneSets(core)) => thread.mask = CoreSet::single(core),
            Some(Twist::HidesItsMask) | None => {}
        }
        Ok(())
    }

    fn boot_id(&mut self) -> io::Result<String> {
        Ok(self.0.borrow().boot.clone())
    }

    fn number_spaces(&mut self) -> NumberSpaces {
        self.0.borrow().spaces
    }

    fn link(&mut self, link: LinkKey) -> Result<Box<dyn LinkSettings>, LinkFolderError> {
        steered::open(self, link)
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn cores(list: &str) -> CoreSet {
    list.parse().expect("a list of cores")
}

fn request(tid: u32, list: &str) -> PinRequest {
    let thread = ThreadId { pid: 100, tid, start: 5000 };
    PinRequest { thread, label: "iperf3 server".to_owned(), cores: cores(list) }
}

fn controller(fake: &Fake, dir: &TempDir) -> PinController {
    fake.0.borrow_mut().dir = Some(dir.path().to_owned());
    PinController::new(Box::new(fake.clone()), Some(dir.path().to_owned()), false)
}

/// The sentences, one a line, warnings marked with an exclamation mark.
fn said(outcome: &Outcome) -> String {
    let line = |line: &super::OutcomeLine| format!("{}{}\n", if line.warning { "! " } else { "" }, line.text);
    outcome.lines.iter().map(line).collect()
}

fn journals_in(dir: &std::path::Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(dir).expect("the directory is there").map(|f| f.expect("a file").path()).collect();
    files.sort();
    files
}

fn text_of_the_journal(dir: &std::path::Path) -> String {
    journals_in(dir).iter().map(|path| std::fs::read_to_string(path).expect("a journal is text")).collect()
}

fn temporary() -> TempDir {
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().permissions(own).tempdir().expect("a temporary directory")
}

#[test]
fn the_real_machine_tells_its_boot() {
    assert!(Kernel.boot_id().expect("there is a /proc").len() > 30, "a boot id is a uuid");
}
