//! The finder over a made /proc, with a made clock.

use super::super::watch::Watch;
use super::*;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A /proc of our own namespace, as far as the finder looks at it.
struct Proc {
    root: TempDir,
    roots: Roots,
    finder: ProcessFinder,
    directory: ProcDir,
    now_ns: u64,
}

impl Proc {
    fn watching(texts: &[&str]) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: root.path().to_owned(), sys: root.path().join("sys") };
        fs::write(root.path().join("loadavg"), "0 0 0 1/1 5000\n").expect("writable");
        let watched = Watched::new(texts.iter().map(|&text| Watch::from(text)).collect());
        let finder = ProcessFinder::new(&roots, Namespace::Own, watched);
        let directory = ProcDir::open(&roots).expect("it is there");
        Self { root, roots, finder, directory, now_ns: 1 }
    }

    fn newest(&self, id: u32) {
        fs::write(self.roots.proc.join("loadavg"), format!("0.10 0.20 0.30 1/90 {id}\n")).expect("writable");
    }

    /// Adds a thread; `/proc/TID` of a thread that is no process is there for those who ask for it, as in a real /proc.
    fn task(&self, pid: u32, tid: u32, comm: &str, start: u64, threads: u32) {
        for directory in [format!("{pid}/task/{tid}"), format!("{tid}/task/{tid}")] {
            let directory = self.root.path().join(directory);
            fs::create_dir_all(&directory).expect("writable");
            let zeros = "0 ".repeat(20);
            let line = format!("{tid} ({comm}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 0 {zeros}");
            let status = format!("Name:\t{comm}\nTgid:\t{pid}\n");
            for (file, text) in [("stat", line), ("comm", format!("{comm}\n")), ("status", status)] {
                fs::write(directory.join(file), text).expect("writable");
            }
        }
    }

    fn end(&self, id: u32) {
        fs::remove_dir_all(self.root.path().join(id.to_string())).expect("it was there");
    }

    fn look(&mut self) -> Vec<Change> {
        self.now_ns += 100_000_000;
        self.finder.look(&mut self.directory, self.now_ns).collect()
    }
}

fn watch(pid: u32, tid: u32) -> Change {
    Change::Watch { pid, tid, for_itself: false }
}

/// The start of a task that was born just now.
fn just_now() -> u64 {
    clock_ns(ClockId::Boottime) / (SECOND_NS / procfs::ticks_per_second())
}

#[test]
fn who_is_there_already_is_found_by_the_first_look() {
    let mut proc = Proc::watching(&["iperf3", "worker", "77"]);
    proc.task(40, 40, "bash", 5, 1);
    proc.task(50, 50, "iperf3", 6, 1);
    proc.task(60, 60, "server", 6, 2);
    proc.task(60, 61, "worker", 6, 2);
    proc.task(77, 77, "sh", 6, 1);
    proc.end(61);
    let for_itself = Change::Watch { pid: 60, tid: 61, for_itself: true };
    assert_eq!(proc.look(), [watch(50, 50), for_itself, watch(77, 77)], "by name, by a thread's name, by number");
    assert_eq!(proc.look(), [], "nothing is told twice");
}

#[test]
fn who_is_named_by_number_for_a_while_is_watched_for_a_while() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.task(40, 40, "netserver", 5, 1);
    proc.task(50, 50, "iperf3", 6, 1);
    proc.look();
    proc.finder.set_extra_pids(&mut proc.directory, BTreeSet::from([40, 50]));
    assert_eq!(proc.look(), [watch(40, 40)], "whatever it is called; who is watched already is not watched twice");
    assert_eq!(proc.look(), [], "nothing is told twice");
    proc.finder.set_extra_pids(&mut proc.directory, BTreeSet::new());
    assert_eq!(proc.look(), [Change::Unwatch(40)], "who bears the name asked for goes on being watched");
}

#[test]
fn a_birth_is_found_by_its_number_alone() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.task(50, 50, "iperf3", 6, 1);
    proc.look();
    proc.task(5001, 5001, "iperf3", just_now(), 1);
    assert_eq!(proc.look(), [], "while the kernel gives no number, nobody looks");
    proc.newest(5001);
    assert_eq!(proc.look(), [watch(5001, 5001)], "a new number is looked at");
    proc.task(50, 5003, "iperf3", just_now(), 2);
    proc.newest(5003);
    assert_eq!(proc.look(), [watch(50, 5003)], "a new thread of a watched process, too");
}

#[test]
fn a_number_whose_task_shows_up_late_is_looked_at_again() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.look();
    proc.newest(5001);
    assert_eq!(proc.look(), [], "the number is given, the task is not there yet");
    proc.task(5001, 5001, "iperf3", just_now(), 1);
    assert_eq!(proc.look(), [watch(5001, 5001)], "it is found a tick later although no number was given");
}

#[test]
fn a_young_process_that_executes_is_found_on_the_next_look() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.look();
    proc.task(5001, 5001, "bash", just_now(), 1);
    proc.newest(5001);
    assert_eq!(proc.look(), [], "it is a shell");
    proc.task(5001, 5001, "iperf3", just_now(), 1);
    assert_eq!(proc.look(), [watch(5001, 5001)], "it has become iperf3");
    proc.task(5001, 5001, "cat", just_now(), 1);
    assert_eq!(proc.look(), [Change::Unwatch(5001)], "it has become something else");
}

#[test]
fn an_old_process_that_executes_is_found_within_a_second() {
    let mut proc = Proc::watching(&["iperf3"]);
    (100..140).for_each(|pid| proc.task(pid, pid, "bash", 5, 1));
    proc.look();
    proc.task(117, 117, "iperf3", 5, 1);
    let looks = (1..=20).find(|_| proc.look().contains(&watch(117, 117)));
    assert!(looks.is_some_and(|looks| looks <= 10), "at 10 looks a second, found after {looks:?}");
}

#[test]
fn a_number_given_again_is_another_process() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.task(300, 300, "iperf3", 6, 1);
    proc.look();
    proc.newest(5);
    proc.task(300, 300, "iperf3", 900, 1);
    proc.look();
    proc.newest(301);
    assert_eq!(proc.look(), [Change::Unwatch(300), watch(300, 300)], "the old one goes before the new one comes");
}

#[test]
fn more_births_than_can_be_looked_at_one_by_one_are_listed() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.look();
    proc.task(90_000, 90_000, "iperf3", just_now(), 1);
    proc.newest(90_001);
    assert_eq!(proc.look(), [watch(90_000, 90_000)], "the list has it");
    proc.task(350, 350, "iperf3", just_now(), 1);
    proc.newest(350);
    assert!(proc.look().contains(&watch(350, 350)), "so it has when the numbers begin again");
}

#[test]
fn numbers_out_of_order_are_found_by_the_listing() {
    let mut proc = Proc::watching(&["iperf3"]);
    proc.look();
    proc.task(3000, 3000, "iperf3", just_now(), 1);
    let looks = (1..=60).find(|_| !proc.look().is_empty());
    assert!(looks.is_some_and(|looks| looks <= 50), "within 5 s: {looks:?}");
    proc.end(3000);
    let looks = (1..=60).find(|_| proc.look() == [Change::Unwatch(3000)]);
    assert!(looks.is_some(), "and its end is noticed");
}

#[test]
fn a_number_nobody_bears_is_missing() {
    let mut proc = Proc::watching(&["77", "78"]);
    proc.task(77, 77, "sh", 6, 1);
    proc.look();
    assert_eq!(proc.finder.missing_pid(|_| false), Some(78), "77 is there, 78 is not");
    assert_eq!(proc.finder.missing_pid(|tid| tid == 78), None, "unless it is a thread's");
    assert!(Path::new("/proc").exists(), "there is a real /proc, which none of this has touched");
}
