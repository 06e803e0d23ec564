//! Several vnettops on the same threads at once, on the real kernel: who pins is told, who may not says whom to ask, and
//! when all have ended, or were killed and undone, every mask is the thread's own.

use crate::ground::{Kept, VNETTOP, await_that, needs, needs_two_cores, pid};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vnettop::effect::{Kernel, PinController, PinRequest, Pinner};
use vnettop::sample::{CoreSet, ThreadId};

/// A busy thread on cores 0 and 1, and a directory for the journals of those who pin it.
struct WalkState {
    busy: Kept,
    dir: TempDir,
}

const OWN: &str = "0,1";

impl WalkState {
    fn new() -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", OWN, "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
        let ground =
            Self { busy: Kept(command.spawn().expect("taskset runs")), dir: tempfile::tempdir().expect("a directory") };
        await_that("the thread spins on its cores", 10, || {
            ground.mask() == OWN && fs::read_to_string(ground.proc("comm")).is_ok_and(|name| name == "sh\n")
        });
        ground
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(pid(&self.busy).to_string()).join(file)
    }

    /// As taskset tells it.
    fn mask(&self) -> String {
        let out = Command::new("taskset").args(["-cp", &pid(&self.busy).to_string()]).output().expect("taskset runs");
        String::from_utf8_lossy(&out.stdout).rsplit(": ").next().unwrap_or_default().trim().to_owned()
    }

    /// `vnettop run --pin compare` on the thread, with turns of a second.
    fn comparing(&self, command: &[&str]) -> Command {
        let mut vnettop = Command::new(VNETTOP);
        vnettop.args(["run", "--watch", &pid(&self.busy).to_string(), "--pin", "compare", "--phase", "1"]);
        vnettop.args(["--card", "/dev/null", "--"]).args(command);
        vnettop.env("XDG_STATE_HOME", self.dir.path()).stdin(Stdio::null());
        vnettop
    }

    fn undo(&self) -> String {
        let out = Command::new(VNETTOP).arg("undo").env("XDG_STATE_HOME", self.dir.path()).output().expect("it runs");
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    }

    fn journals(&self) -> usize {
        fs::read_dir(self.dir.path().join("vnettop")).map_or(0, Iterator::count)
    }

    fn is_pinned(&self) -> bool {
        self.mask().parse::<u32>().is_ok()
    }

    fn request(&self, core: u32) -> PinRequest {
        let pid = pid(&self.busy);
        let start = Kernel.start_of(ThreadId { pid, tid: pid, start: 0 }).expect("the thread lives");
        let thread = ThreadId { pid, tid: pid, start };
        PinRequest { thread, label: "sh worker".to_owned(), cores: CoreSet::single(core) }
    }

    /// This test as a vnettop with a screen.
    fn controller(&self) -> PinController {
        PinController::new(Box::new(Kernel), Some(self.dir.path().join("vnettop")), false)
    }
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn terminate(vnettop: &mut Kept) {
    let sent = Command::new("kill").args(["-TERM", &pid(vnettop).to_string()]).status().expect("kill runs");
    assert!(sent.success(), "it gets the signal");
    vnettop.0.wait().expect("it ends");
}

fn quiet(mut command: Command) -> Kept {
    Kept(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vnettop starts"))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_comparison_of_threads_that_another_compares_is_refused_before_its_command_starts() {
    needs_two_cores();
    let ground = WalkState::new();
    let mut first = quiet(ground.comparing(&["sleep", "120"]));
    await_that("the first one pins", 20, || ground.is_pinned());
    let until = Instant::now() + Duration::from_secs(3);
    // In pinned and in unpinned turns of the first one.
    while Instant::now() < until {
        let out = ground.comparing(&["echo", "ran"]).output().expect("vnettop runs");
        let expected = format!(
            "vnettop: the command was not started: another vnettop (pid {}) \
             compares pins of sh ",
            pid(&first)
        );
        assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0), "nothing ran: {}", told(&out));
        assert!(told(&out).starts_with(&expected) && told(&out).lines().count() == 1, "it says why: {}", told(&out));
    }
    terminate(&mut first);
    assert_eq!((ground.mask(), ground.journals()), (OWN.to_owned(), 0), "nothing stays of either");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn of_two_comparisons_begun_at_once_one_gives_way_and_its_command_is_not_disturbed() {
    needs_two_cores();
    let ground = WalkState::new();
    let start = || {
        let mut command = ground.comparing(&["sh", "-c", "sleep 6; echo done; exit 5"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vnettop starts")
    };
    let both = [start(), start()];
    let pids = [both[0].id(), both[1].id()];
    let outs = both.map(|child| child.wait_with_output().expect("it ends"));
    for out in &outs {
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(5), &b"done\n"[..]), "its command ran: {}", told(out));
    }
    let gave_way = |nth: usize| told(&outs[nth]).contains(&format!("another vnettop (pid {}) compares", pids[1 - nth]));
    let said = || outs.iter().map(told).collect::<Vec<_>>().join("---\n");
    assert!(gave_way(0) != gave_way(1), "one of the two names the other:\n{}", said());
    assert_eq!((ground.mask(), ground.journals()), (OWN.to_owned(), 0), "every mask is back:\n{}", said());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_screen_has_pinned_is_not_compared_and_what_is_compared_is_not_pinned_from_a_screen() {
    needs_two_cores();
    let ground = WalkState::new();
    let mut screen = ground.controller();
    screen.pin(&[ground.request(1)]);
    assert_eq!(ground.mask(), "1", "the screen pins");
    let out = ground.comparing(&["echo", "ran"]).output().expect("vnettop runs");
    let names = format!("another vnettop (pid {}) has pinned sh ", std::process::id());
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0), "nothing ran: {}", told(&out));
    assert!(told(&out).contains(&names) && told(&out).contains("press U there"), "it says why: {}", told(&out));
    screen.restore();

    let mut run = quiet(ground.comparing(&["sleep", "120"]));
    await_that("the run pins", 20, || ground.is_pinned());
    let outcome = screen.pin(&[ground.request(1)]);
    let notice = &outcome.lines[0];
    let names = format!("another vnettop (pid {}) compares pins of sh ", pid(&run));
    assert!(notice.warning && notice.text.starts_with(&names), "the notice names the other: {outcome:?}");
    assert_eq!(screen.pins(), 0, "and nothing was pinned: {outcome:?}");
    terminate(&mut run);
    assert_eq!((ground.mask(), ground.journals()), (OWN.to_owned(), 0), "nothing stays of either");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn killed_at_any_moment_of_two_comparisons_undo_gives_the_own_mask_back() {
    needs_two_cores();
    let ground = WalkState::new();
    for round in 0..6_u64 {
        let start = || ground.comparing(&["sleep", "120"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut both = [start().expect("vnettop starts"), start().expect("vnettop starts")];
        // Moments all over two turns; nothing is waited for that could be awaited.
        std::thread::sleep(Duration::from_millis(900 + round * 337 % 1900));
        let mut commands = Vec::new();
        for vnettop in &mut both {
            let id = vnettop.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            commands.extend(children.split_whitespace().map(str::to_owned));
            vnettop.kill().expect("it is killed");
            vnettop.wait().expect("it is gone");
        }
        if !commands.is_empty() {
            Command::new("kill").arg("-KILL").args(&commands).status().expect("kill runs");
        }
        let said = ground.undo();
        assert_eq!((ground.mask(), ground.journals()), (OWN.to_owned(), 0), "round {round}: {said}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_lock_that_somebody_holds_is_told_and_holds_nobody_up() {
    needs(&["taskset"]);
    let ground = WalkState::new();
    let dir = ground.dir.path().join("vnettop");
    fs::create_dir(&dir).expect("writable");
    let held = fs::File::open(&dir).expect("readable");
    held.lock().expect("nobody else has it");
    let told = ground.undo();
    assert!(told.contains("has held the lock on") && told.contains("nothing was restored"), "{told}");
    // The command is started, and its end is not waited for behind the lock.
    let out = ground.comparing(&["sleep", "6"]).output().expect("vnettop runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), ground.mask().as_str()), (Some(0), OWN), "{said}");
    assert!(said.contains("has held the lock on"), "it says why nothing was pinned: {said}");
    drop(held);
    assert!(ground.undo().contains("nothing to undo"), "and now it is free");
}
