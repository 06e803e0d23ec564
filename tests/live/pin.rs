//! Pinning on the real kernel: real busy threads, read back by taskset, a vnettop killed in the middle, a cpuset of one
//! core, another user's thread.

use crate::ground::{needs_two_cores, turn};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use vnettop::effect::{Kernel, Outcome, PinController, PinRequest, Pinner, undo};
use vnettop::sample::{CoreSet, ThreadId};

/// Which part this test binary plays when another test starts it as a process of its own.
const PART: &str = "VNETTOP_TEST_PART";
const THREADS: &str = "VNETTOP_TEST_THREADS";
const STATE: &str = "VNETTOP_TEST_STATE";

/// A process started by a test; it is killed and waited for when the test ends, however it ends.
struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    fn start(part: &str, change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        turn::take();
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "pin::a_part_played_by_a_child", "--include-ignored", "--nocapture"]).env(PART, part);
        let mut child = change(&mut command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test binary starts itself");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines }
    }

    /// What stands behind `word` in the next line that begins with it.
    fn next(&mut self, word: &str) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.expect("its output is text"));
        let found = lines.find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()));
        found.unwrap_or_else(|| panic!("the child ended without saying '{word}'"))
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
#[ignore = "started by the other tests as a process of its own"]
fn a_part_played_by_a_child() {
    match std::env::var(PART).as_deref() {
        Ok("spin") => spin(),
        Ok("pin") => pin_without_end(),
        _ => {}
    }
}

/// Two busy threads, until the parent goes away.
fn spin() {
    for _ in 0..2 {
        std::thread::spawn(|| {
            println!("\nthread {}", rustix::thread::gettid());
            loop {
                std::hint::spin_loop();
            }
        });
    }
    wait_for_the_parent();
}

/// A vnettop that pins the threads to one core after the other, until it is killed.
fn pin_without_end() {
    let threads = std::env::var(THREADS).expect("the threads are named");
    let mut controller =
        PinController::new(Box::new(Kernel), Some(std::env::var(STATE).expect("a directory").into()), false);
    let [a, b] = two_cores();
    std::thread::spawn(wait_for_the_parent);
    for core in [a, b].into_iter().cycle() {
        let requests: Vec<_> = threads
            .split(',')
            .map(|ids| ids.split_once('/').expect("pid/tid"))
            .map(|(pid, tid)| request(thread(pid.parse().expect("a pid"), tid.parse().expect("a tid")), core))
            .collect();
        let outcome = controller.pin(&requests);
        println!("\nsaid {}", said(&outcome).replace('\n', " | "));
    }
}

fn wait_for_the_parent() {
    let _ = std::io::stdin().lines().next();
    std::process::exit(0);
}

/// A child with two busy threads, and the threads.
fn busy() -> (Part, Vec<ThreadId>) {
    let mut part = Part::start("spin", |command| command);
    let pid = part.child.id();
    let threads = (0..2).map(|_| thread(pid, part.next("thread ").parse().expect("a tid"))).collect();
    (part, threads)
}

fn thread(pid: u32, tid: u32) -> ThreadId {
    let start = Kernel.start_of(ThreadId { pid, tid, start: 0 }).expect("the thread lives");
    ThreadId { pid, tid, start }
}

fn request(thread: ThreadId, core: u32) -> PinRequest {
    PinRequest { thread, label: "spin".to_owned(), cores: CoreSet::single(core) }
}

/// Two cores that this test may use.
fn two_cores() -> [u32; 2] {
    let mask = Kernel.mask_of(std::process::id()).expect("a process may read its own mask");
    let mut cores = mask.iter();
    [(); 2].map(|()| cores.next().expect("it needs two cores"))
}

/// The mask as taskset tells it: the other witness.
fn by_taskset(thread: ThreadId) -> Option<String> {
    let output = Command::new("taskset").args(["-cp", &thread.tid.to_string()]).output().expect("taskset runs");
    let text = String::from_utf8(output.stdout).expect("taskset writes text");
    Some(text.rsplit(": ").next()?.trim().to_owned())
}

fn said(outcome: &Outcome) -> String {
    outcome.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn journals(dir: &Path) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_busy_threads_are_pinned_and_get_their_exact_masks_back() {
    let [a, b] = two_cores();
    let (_busy, threads) = busy();
    let before = by_taskset(threads[0]).expect("it lives");
    let narrow = CoreSet::single(b);
    Kernel.set_mask(threads[1].tid, &narrow).expect("the user narrows the second thread");

    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut controller = PinController::new(Box::new(Kernel), Some(dir.path().join("vnettop")), false);
    let outcome = controller.pin(&[request(threads[0], b), request(threads[1], a)]);
    assert!(outcome.lines.iter().all(|line| !line.warning), "nothing went otherwise than asked: {}", said(&outcome));
    assert_eq!(by_taskset(threads[0]), Some(b.to_string()), "taskset sees the first thread on its core");
    assert_eq!(by_taskset(threads[1]), Some(a.to_string()), "and the second");
    assert_eq!((controller.pins(), journals(&dir.path().join("vnettop"))), (2, 1), "both are in force and journalled");

    controller.restore();
    assert_eq!(by_taskset(threads[0]), Some(before), "the first has exactly its old mask");
    assert_eq!(by_taskset(threads[1]), Some(b.to_string()), "the second has the user's");
    assert_eq!(journals(&dir.path().join("vnettop")), 0, "nothing is left behind");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_killed_vnettop_pinned_is_undone() {
    needs_two_cores();
    let (_busy, threads) = busy();
    let before: Vec<CoreSet> = threads.iter().map(|t| Kernel.mask_of(t.tid).expect("it lives")).collect();
    let ids: Vec<String> = threads.iter().map(|t| format!("{}/{}", t.pid, t.tid)).collect();
    for round in 0..10 {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut vnettop = Part::start("pin", |command| command.env(THREADS, ids.join(",")).env(STATE, dir.path()));
        for _ in 0..=round {
            let said = vnettop.next("said ");
            assert!(said.contains("2 of 2 pinned"), "it pins: {said}");
        }
        let running = said(&undo(&mut Kernel, dir.path()));
        assert_eq!(
            running,
            format!("vnettop {} still runs: press U there", vnettop.child.id()),
            "a living one is left alone"
        );
        vnettop.kill();
        let told = said(&undo(&mut Kernel, dir.path()));
        let after: Vec<CoreSet> = threads.iter().map(|t| Kernel.mask_of(t.tid).expect("it lives")).collect();
        assert_eq!(after, before, "killed at any moment, undo gives the exact masks back: {told}");
        assert_eq!(journals(dir.path()), 0, "and removes the journal: {told}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_undo_in_another_time_namespace_leaves_the_pins_to_the_right_one() {
    let apart = ["--time", "--boottime", "100000", "--"];
    let has_apart = Command::new("unshare").args(apart).arg("true").status().is_ok_and(|s| s.success());
    assert!(has_apart, "it needs time namespaces (Linux 5.6)");
    let (_busy, threads) = busy();
    let (tid, state) = (threads[0].tid, tempfile::tempdir().expect("a temporary directory"));
    let (before, dir) = (Kernel.mask_of(tid).expect("it lives"), state.path().join("vnettop"));
    let ids = format!("{}/{tid}", threads[0].pid);
    let mut vnettop = Part::start("pin", |command| command.env(THREADS, &ids).env(STATE, &dir));
    vnettop.next("said ");
    vnettop.kill();
    let mut there = Command::new("unshare");
    there.args(apart).args([env!("CARGO_BIN_EXE_vnettop"), "undo"]).env("XDG_STATE_HOME", state.path());
    let told = String::from_utf8(there.output().expect("unshare runs").stderr).expect("text");
    assert!(told.contains("1 pin in ") && told.contains("another namespace, time:[") && journals(&dir) == 1, "{told}");
    let told = said(&undo(&mut Kernel, &dir));
    assert_eq!((Kernel.mask_of(tid).expect("it lives"), journals(&dir)), (before, 0), "{told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_thread_that_ended_is_told() {
    let (mut busy, threads) = busy();
    busy.kill();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let outcome =
        PinController::new(Box::new(Kernel), Some(dir.path().to_owned()), false).pin(&[request(threads[0], 0)]);
    assert_eq!(said(&outcome), format!("spin {} exited before it could be pinned\n0 of 1 pinned", threads[0].tid));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn another_users_thread_is_refused_by_name_of_the_right() {
    needs_two_cores();
    let (_busy, threads) = busy();
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("the other user may write there");
    let ids = format!("{}/{}", threads[0].pid, threads[0].tid);
    let mut other = Part::start("pin", |command| {
        command.env(THREADS, ids).env(STATE, dir.path().join("state")).uid(65534).gid(65534)
    });
    let told = other.next("said ");
    let expected = format!("spin {} belongs to another user: run vnettop as root or with CAP_SYS_NICE", threads[0].tid);
    assert!(told.contains(&expected), "the sentence names the right that is missing: {told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn root_does_not_obey_another_users_journal() {
    needs_two_cores();
    let [a, _] = two_cores();
    let (_busy, threads) = busy();
    let before = Kernel.mask_of(threads[0].tid).expect("it lives");
    let nobody = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    let state = tempfile::tempdir().expect("a temporary directory");
    let dir = state.path().join("vnettop");
    fs::create_dir(&dir).expect("writable");
    let boot = Kernel.boot_id().expect("there is a /proc");
    let ThreadId { pid, tid, start } = threads[0];
    let ids = format!(r#""pid":{pid},"tid":{tid},"start":{start}"#);
    let lines = [
        format!(r#"{{"op":"begun","pid":4194303,"start":1,"boot":"{boot}"}}"#),
        format!(r#"{{"op":"pin",{ids},"label":"x","old":"{a}","asked":"{before}","wall_ms":0,"at_ns":1}}"#),
        format!(r#"{{"op":"pinned",{ids},"got":"{before}"}}"#),
    ];
    let journal = dir.join("pins-4194303-1.jsonl");
    fs::write(&journal, lines.join("\n") + "\n").expect("writable");
    nobody(&journal);
    let undo = || {
        let mut vnettop = Command::new(env!("CARGO_BIN_EXE_vnettop"));
        let output = vnettop.arg("undo").env("XDG_STATE_HOME", state.path()).output().expect("it runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (mode, owner) in [(0o777, 0), (0o755, 65534), (0o755, 0)] {
        std::os::unix::fs::chown(&dir, Some(owner), Some(owner)).expect("root may");
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("root may");
        let told = undo();
        assert_eq!(Kernel.mask_of(tid).expect("it lives"), before, "root's thread keeps its mask: {told}");
        let why = if mode == 0o777 { "is writable by others" } else { "belongs to another user (uid 65534)" };
        assert!(told.contains(why), "and it is said why: {told}");
        assert!(journal.exists(), "nothing is removed: {told}");
    }
    // The same lines are obeyed where they are root's own.
    std::os::unix::fs::chown(&journal, Some(0), Some(0)).expect("root may");
    let told = undo();
    assert_eq!(
        Kernel.mask_of(tid).expect("it lives"),
        CoreSet::single(a),
        "so the owner was what spoke against them: {told}"
    );
}

/// A cpuset of one core that the test made; removed at its end.
struct Cpuset(PathBuf);

impl Cpuset {
    /// Makes one, in whichever version this machine has mounted.
    fn of(core: u32) -> Result<Self, String> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpuset"), Path::new("/sys/fs/cgroup"));
        let name = format!("vnettop-test-{core}-{}", std::process::id());
        let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
        if v1.join("cpuset.cpus").exists() {
            let made = Self::make(v1.join(name))?;
            let mems = fs::read_to_string(v1.join("cpuset.mems")).map_err(|e| e.to_string())?;
            write(made.0.join("cpuset.mems"), mems.trim())?;
            write(made.0.join("cpuset.cpus"), &core.to_string())?;
            return Ok(made);
        }
        let controllers = fs::read_to_string(v2.join("cgroup.controllers")).map_err(|_| "no cpuset is mounted")?;
        if !controllers.split_whitespace().any(|word| word == "cpuset") {
            return Err("the mounted cgroup has no cpuset".to_owned());
        }
        write(v2.join("cgroup.subtree_control"), "+cpuset")?;
        let made = Self::make(v2.join(name))?;
        write(made.0.join("cpuset.cpus"), &core.to_string())?;
        Ok(made)
    }

    fn make(path: PathBuf) -> Result<Self, String> {
        fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_cpuset_of_one_core_shrinks_the_mask_and_that_is_told() {
    let [a, b] = two_cores();
    let cpuset = Cpuset::of(a).expect("a cpuset can be made");
    let (busy, threads) = busy();
    fs::write(cpuset.0.join("cgroup.procs"), busy.child.id().to_string()).expect("the child goes into the cpuset");
    let thread = threads[0];
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut controller = PinController::new(Box::new(Kernel), Some(dir.path().to_owned()), false);

    let both = PinRequest { cores: [a, b].into_iter().collect(), ..request(thread, a) };
    let told = said(&controller.pin(&[both]));
    let shrunk = format!(
        "asked for {}, the kernel gave {a}: the cpuset of its cgroup allows no more",
        [a, b].into_iter().collect::<CoreSet>()
    );
    assert!(told.contains(&shrunk), "what was asked and what was given: {told}");
    assert_eq!(Kernel.mask_of(thread.tid).expect("it lives"), CoreSet::single(a), "as the kernel has it");

    let told = said(&controller.pin(&[request(thread, b)]));
    assert!(told.contains(&format!("core {b} is offline or not allowed for it")), "wholly outside is refused: {told}");
    controller.restore();
    assert_eq!(Kernel.mask_of(thread.tid).expect("it lives"), CoreSet::single(a), "back to what the cpuset allows");
    drop(busy);
    drop(cpuset);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pin_behind_a_narrowed_cpuset_does_not_come_back_after_undo() {
    let [a, b] = two_cores();
    let cpuset = Cpuset::of(b).expect("a cpuset can be made");
    let both: CoreSet = [a, b].into_iter().collect();
    let allow = |cores: &CoreSet| fs::write(cpuset.0.join("cpuset.cpus"), cores.to_string()).expect("a cpuset");
    allow(&both);
    let (busy, threads) = busy();
    fs::write(cpuset.0.join("cgroup.procs"), busy.child.id().to_string()).expect("the child goes into the cpuset");
    let thread = threads[0];
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ids = format!("{}/{}", thread.pid, thread.tid);
    let mut vnettop = Part::start("pin", |command| command.env(THREADS, ids).env(STATE, dir.path()));
    while Kernel.mask_of(thread.tid).expect("it lives") != CoreSet::single(a) {
        vnettop.next("said ");
    }
    vnettop.kill();
    Kernel.set_mask(thread.tid, &CoreSet::single(a)).expect("as it was left, if it was killed in the next turn");
    allow(&CoreSet::single(b));
    assert_eq!(Kernel.mask_of(thread.tid).expect("it lives"), CoreSet::single(b), "the cpuset hides the pin");
    let told = said(&undo(&mut Kernel, dir.path()));
    allow(&both);
    assert_eq!(Kernel.mask_of(thread.tid).expect("it lives"), both, "no pin comes back: {told}");
    assert_eq!(journals(dir.path()), 0, "and the journal is done with: {told}");
    drop(busy);
    drop(cpuset);
}
