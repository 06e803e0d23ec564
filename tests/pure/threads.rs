//! Watched threads as a user meets them: captured ones, made ones, and real ones of this process and its children.

use crate::fixture::{Thread, Tree};
use rustix::thread::gettid;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vnettop::sample::{CoreSet, Duty, Side, ThreadSample};
use vnettop::sched;
use vnettop::sched::{get_affinity, set_affinity};
use vnettop::source::Roots;
use vnettop::source::threads::{ThreadReader, Watch};

fn reader(roots: &Roots, watches: &[&str]) -> ThreadReader {
    ThreadReader::open(roots, watches.iter().map(|&text| Watch::from(text)).collect()).expect("/proc can be listed")
}

fn own_threads() -> ThreadReader {
    reader(&Roots::default(), &[&std::process::id().to_string()])
}

fn own_tid() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

fn sample(samples: &[ThreadSample], tid: u32) -> &ThreadSample {
    samples.iter().find(|sample| sample.id.tid == tid).unwrap_or_else(|| panic!("thread {tid} is among {samples:?}"))
}

fn shows(samples: &[ThreadSample], tid: u32) -> bool {
    samples.iter().any(|sample| sample.id.tid == tid)
}

/// Waits for something the kernel is about to do.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what} within 10 s");
        std::thread::yield_now();
    }
}

/// A thread that waits until it is told to end.
struct Waiting {
    tid: u32,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Waiting {
    fn start() -> Self {
        let (end, ended): (Sender<()>, Receiver<()>) = channel();
        let (say, hear) = channel();
        let thread = std::thread::spawn(move || {
            say.send(own_tid()).expect("someone listens");
            let _ = ended.recv();
        });
        Self { tid: hear.recv().expect("the thread runs"), end, thread }
    }

    fn end(self) {
        drop(self.end);
        self.thread.join().expect("it ends");
        let task = format!("/proc/self/task/{}", self.tid);
        until("a thread that ended leaves /proc", || !Path::new(&task).exists());
    }
}

/// A process that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn captured_iperf3_processes_show_their_ends_cores_and_moves() {
    let tree = Tree::captured("arm64-128");
    let mut reader = reader(&tree.roots(), &["iperf3"]);
    let first = reader.read();
    tree.overlay("arm64-128-later");
    let later = reader.read();
    assert_eq!(reader.problems(), [], "nothing is missing");
    let of = |samples: &[ThreadSample]| -> Vec<_> {
        samples.iter().map(|s| (s.id.pid, s.role(), s.core, s.migrations)).collect()
    };
    assert_eq!(of(&first), [(915, "server", 0, Some(14)), (918, "client", 5, Some(4))], "the first snapshot");
    assert_eq!(of(&later), [(915, "server", 92, Some(17)), (918, "client", 85, Some(6))], "the second one");
    let (from, to) = (&first[0], &later[0]);
    assert_eq!((from.id.start, from.name.as_str()), (659, "iperf3"), "field 22 and the command name");
    assert_eq!(from.allowed.as_ref().map(CoreSet::len), Some(128), "all cores are allowed");
    assert_eq!((from.voluntary, from.involuntary), (Some(101), Some(84)), "switches as captured");
    let cpu_s = (to.cpu_ns - from.cpu_ns) as f64 / 1e9;
    assert!((1.3..1.9).contains(&cpu_s), "the server was busy most of the 1.8 s: {cpu_s}");
    assert!(to.wait_ns >= from.wait_ns && from.wait_ns.is_some(), "run-queue wait is known and never falls");
}

#[test]
fn a_multi_threaded_iperf3_has_a_control_thread_and_workers() {
    let tree = Tree::new();
    let threads = [700, 701, 702].map(|tid| Thread { core: tid % 4, moves: 5, ..Thread::new(tid) });
    tree.process(&["iperf3", "-c", "198.18.0.1", "-P", "2"], &threads);
    tree.process(&["bash"], &[Thread { comm: "bash", ..Thread::new(710) }]);
    let hostile = "\u{1b}[31m) R 0\u{202e}";
    tree.process(
        &["qemu"],
        &[Thread { comm: "qemu", ..Thread::new(720) }, Thread { comm: hostile, ..Thread::new(721) }],
    );
    let mut by_name = reader(&tree.roots(), &["iperf3"]);
    let samples = by_name.read();
    let of: Vec<_> = samples.iter().map(|s| (s.id.tid, s.duty, s.role())).collect();
    let worker = |tid| (tid, Duty::Worker, "client");
    assert_eq!(of, [(700, Duty::Control, "control"), worker(701), worker(702)], "the main thread only controls");
    assert!(samples.iter().all(|sample| sample.side == Some(Side::Client)), "all belong to the sending end");
    let by_number = reader(&tree.roots(), &["721"]).read();
    assert_eq!(by_number.len(), 1, "a thread's number watches that thread alone");
    assert_eq!(by_number[0].name, "?[31m) R 0?", "a hostile name is only text");
    tree.remove("proc/700/task/702");
    assert_eq!(
        by_name.read().len(),
        3,
        "an open file of a captured tree outlives its name; in a real /proc it does not"
    );
}

#[test]
fn what_the_kernel_does_not_count_is_unknown_and_told() {
    let tree = Tree::new();
    tree.process(&["iperf3"], &[Thread { cpu_ms: 1230, ..Thread::new(700) }]);
    tree.remove("proc/700/task/700/sched");
    tree.remove("proc/700/task/700/schedstat");
    let mut reader = reader(&tree.roots(), &["iperf3", "4711"]);
    let samples = reader.read();
    assert_eq!(
        (samples[0].migrations, samples[0].voluntary, samples[0].wait_ns),
        (None, None, None),
        "unknown, not zero"
    );
    assert_eq!(samples[0].cpu_ns, 1_230_000_000, "CPU time from the clock ticks of stat");
    let texts: Vec<_> = reader.problems().iter().map(|problem| problem.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("only sampled")), "moves are sampled: {texts:?}");
    assert!(texts.iter().any(|text| text.contains("no process 4711")), "a pid that nobody has is told: {texts:?}");
}

#[test]
fn threads_appear_on_the_next_reading_and_are_gone_on_the_one_after_their_end() {
    let mut reader = own_threads();
    reader.read();
    let threads = [Waiting::start(), Waiting::start(), Waiting::start()];
    let tids = threads.each_ref().map(|thread| thread.tid);
    let samples = reader.read();
    assert!(tids.iter().all(|tid| shows(&samples, *tid)), "the three are shown at once");
    assert!(samples.is_sorted_by_key(|sample| (sample.id.pid, sample.id.tid)), "in order");
    assert_eq!(sample(&samples, std::process::id()).duty, Duty::Control, "the main thread has others beside it");
    assert_eq!(sample(&samples, tids[0]).duty, Duty::Worker, "which are workers");
    threads.into_iter().for_each(Waiting::end);
    let samples = reader.read();
    assert!(!tids.iter().any(|tid| shows(&samples, *tid)), "and gone at once");
}

#[test]
fn moves_and_mask_are_those_of_the_kernels_files() {
    let thread = Waiting::start();
    let samples = own_threads().read();
    let shown = sample(&samples, thread.tid);
    let file =
        |name: &str| std::fs::read_to_string(format!("/proc/self/task/{}/{name}", thread.tid)).expect("it is there");
    let line = |name: &str, key: &str| -> String {
        let text = file(name);
        let value = text.lines().find_map(|line| line.strip_prefix(key)).expect("the line is there");
        value.trim_start_matches([' ', ':', '\t']).to_owned()
    };
    assert_eq!(shown.migrations.map(|moves| moves.to_string()), Some(line("sched", "se.nr_migrations")), "moves");
    assert_eq!(
        shown.voluntary.map(|count| count.to_string()),
        Some(line("sched", "nr_voluntary_switches")),
        "switches"
    );
    assert_eq!(shown.allowed.as_ref().map(ToString::to_string), Some(line("status", "Cpus_allowed_list")), "mask");
    if let Ok(taskset) = Command::new("taskset").args(["-cp", &thread.tid.to_string()]).output() {
        let text = String::from_utf8_lossy(&taskset.stdout);
        let list: Option<CoreSet> = text.trim().rsplit(' ').next().and_then(|list| list.parse().ok());
        assert_eq!(shown.allowed, list, "the mask is what taskset prints: {text}");
    }
    assert!(shown.cpuset.as_ref().is_none_or(|set| !set.is_empty()), "a cpuset that is known has cores");
    thread.end();
}

#[test]
fn fifty_moves_of_a_busy_thread_are_counted_to_the_last() {
    let mut words = Vec::new();
    let allowed = get_affinity(own_tid(), &mut words).expect("the own mask");
    let Some((one, other)) = allowed.iter().zip(allowed.iter().skip(1)).next() else {
        assert!(std::env::var_os("CI").is_none(), "CI must have two cores");
        eprintln!("fifty_moves_of_a_busy_thread_are_counted_to_the_last: not run, there is one core only");
        return;
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (say, hear) = channel();
    let busy = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            say.send(own_tid()).expect("someone listens");
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    });
    let tid = hear.recv().expect("the thread runs");
    let set = |core| set_affinity(tid, &CoreSet::single(core)).expect("an allowed core");
    let counted = || -> u64 {
        let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/sched")).expect("it is there");
        let line = text.lines().find(|line| line.starts_with("se.nr_migrations")).expect("moves are counted here");
        line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    };
    set(one);
    let mut reader = own_threads();
    let before = sample(&reader.read(), tid).migrations;
    assert_eq!(before, Some(counted()), "before");
    for _ in 0..25 {
        set(other);
        set(one);
    }
    let after = reader.read();
    assert_eq!(sample(&after, tid).migrations, Some(counted()), "after, as the kernel's file says");
    assert_eq!(sample(&after, tid).migrations, before.map(|before| before + 50), "fifty moves more");
    assert_eq!(
        (sample(&after, tid).core, &sample(&after, tid).allowed),
        (one, &Some(CoreSet::single(one))),
        "it is pinned"
    );
    sched::set_affinity(tid, &allowed).expect("put back");
    stop.store(true, Ordering::Relaxed);
    busy.join().expect("it ends");
}

#[test]
fn a_process_is_shown_from_the_tick_after_it_became_iperf3_until_it_ends() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("iperf3");
    std::fs::copy("/bin/sh", &program).expect("a shell to give that name to");
    let script = format!("read go; exec {} -s", program.display());
    let child = Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
    let (pid, mut child) = (child.id(), Running(child));
    let mut reader = reader(&Roots::default(), &["iperf3"]);
    assert!(!shows(&reader.read(), pid), "it is a shell that waits");
    child.0.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("the shell reads");
    let comm = format!("/proc/{pid}/comm");
    until("the shell executes iperf3", || std::fs::read_to_string(&comm).is_ok_and(|comm| comm == "iperf3\n"));
    let arguments = format!("/proc/{pid}/cmdline");
    until("its arguments are in place", || std::fs::read(&arguments).is_ok_and(|line| line.ends_with(b"iperf3\0-s\0")));
    let samples = reader.read();
    let shown = sample(&samples, pid);
    assert_eq!(
        (shown.role(), shown.duty, shown.side),
        ("server", Duty::Worker, Some(Side::Server)),
        "a server's only thread"
    );
    child.0.kill().expect("it runs");
    until("it has ended", || {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert!(!shows(&reader.read(), pid), "what has ended and only waits for its parent is not shown");
    child.0.wait().expect("it ends");
    assert!(!shows(&reader.read(), pid), "nor is what is gone");
}
