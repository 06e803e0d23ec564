//! `vnettop run` on the real kernel: what passes through, what is pinned and put back, and a card that can be made again.

mod figures;
mod pins;
mod release;
mod tune;

use crate::ground::{Kept, Netns, VNETTOP, await_that, iperf3_server, turn, veth_pair};
use figures::printed_rate;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// `vnettop run` with these options and this command.
fn run(options: &[&str], command: &[&str]) -> Command {
    turn::take();
    let mut vnettop = Command::new(VNETTOP);
    vnettop.arg("run").args(options).arg("--").args(command).stdin(Stdio::null());
    vnettop
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("vnettop runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs");
    assert!(sent.success(), "{pid} gets {name}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("the card is an object ({error}): {text}"))
}

fn kept(mut command: Command) -> Kept {
    Kept(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("vnettop starts"))
}

#[test]
fn output_input_and_exit_code_pass_through() {
    let (code, out, err) = output(run(&[], &["sh", "-c", "printf 'o\\000ut'; echo err >&2; exit 7"]));
    assert_eq!(
        (code, out.as_str()),
        (Some(7), "o\0ut"),
        "the exit code and the output are the command's, byte for byte"
    );
    assert!(err.starts_with("err\nvnettop run: sh -c"), "the card comes after what the command said: {err}");

    let mut command = run(&["--card", "/dev/null"], &["cat"]);
    command.stdin(Stdio::from(fs::File::open("/proc/version").expect("readable")));
    let (code, out, err) = output(command);
    let version = fs::read_to_string("/proc/version").expect("readable");
    assert_eq!(
        (code, out, err.as_str()),
        (Some(0), version, ""),
        "the command has vnettop's input, and nothing is added"
    );
}

#[test]
fn a_signal_that_ended_the_command_is_its_exit_code() {
    let (code, ..) = output(run(&[], &["sh", "-c", "kill -9 $$"]));
    assert_eq!(code, Some(137), "128 and the signal, as shells tell it");
}

#[test]
fn what_cannot_be_started_is_one_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("no-program");
    fs::write(&file, "text").expect("writable");
    let script = dir.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("writable");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it may be run");
    let cases = [
        ("no-such-command-anywhere", 127, "not found"),
        (file.to_str().expect("text"), 126, "cannot be run"),
        (script.to_str().expect("text"), 126, "its interpreter is missing"),
    ];
    for (program, code, says) in cases {
        let (got, out, err) = output(run(&["--max-cv", "5%"], &[program]));
        assert_eq!((got, out.as_str()), (Some(code), ""), "{program}: {err}");
        assert!(err.lines().count() == 1 && err.contains(says), "{program} is told in one sentence: {err}");
    }
}

#[test]
fn wrong_arguments_are_one_sentence_and_two() {
    let cases: &[(&[&str], &str)] = &[
        (&["run"], "needs a command"),
        (&["run", "--"], "needs a command"),
        (&["run", "true"], "put -- before"),
        (&["run", "--max-cv", "5", "--", "true"], "5% or 0.05"),
        (&["run", "--max-drops", "-1", "--", "true"], "-1"),
        (&["run", "--pin", "always", "--", "true"], "compare"),
        (&["run", "--repeat", "0", "--", "true"], "repeat"),
        (&["run", "--stretch", "0.2", "--", "true"], "between 1 and 3600"),
        (&["run", "--pin", "compare", "--phase", "2", "--settle", "2", "--", "true"], "--settle"),
        (&["run", "--pin", "compare", "--readonly", "--", "true"], "--readonly"),
        (&["run", "--pin", "search", "--readonly", "--", "true"], "--readonly"),
        (&["run", "--pin", "search", "--repeat", "2", "--", "true"], "--repeat"),
        (&["run", "--pin", "compare", "--phase", "0.5", "--", "true"], "between 1 and 3600"),
        (&["run", "--json", "--", "true"], "--format json"),
        (&["run", "--print", "80x24", "--", "true"], "--print"),
        (&["run", "-n", "3", "--", "true"], "--count"),
        (&["run", "--bytes", "--", "true"], "in bits"),
        (&["run", "--format", "xml", "--", "true"], "markdown"),
        (&["card", "/nowhere/at/all", "--format", "xml"], "markdown"),
    ];
    for (arguments, says) in cases {
        let mut vnettop = Command::new(VNETTOP);
        vnettop.args(*arguments).stdin(Stdio::null());
        let (code, out, err) = output(vnettop);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.lines().count() == 1 && err.contains(says), "{arguments:?} says one sentence with {says:?}: {err}");
    }
}

#[test]
fn what_cannot_be_written_is_told_before_the_command_runs() {
    for option in ["--card", "--record"] {
        let (code, out, err) = output(run(&[option, "/nowhere/at/all"], &["echo", "ran"]));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{option}: the command was not started: {err}");
        assert!(err.lines().count() == 1 && err.contains("/nowhere/at/all"), "{option}: {err}");
    }
}

#[test]
fn a_card_destroys_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (recording, notes, fresh) = (file("r.jsonl"), file("notes.md"), file("fresh.md"));
    assert_eq!(output(run(&["--record", &recording, "--card", "/dev/null"], &["true"])).0, Some(0));
    let recorded = fs::read(&recording).expect("recorded");
    fs::hard_link(&recording, file("link")).expect("a second name");
    for card in [&recording, &file("link")] {
        let mut again = Command::new(VNETTOP);
        again.args(["card", &recording, "--card", card]);
        for command in [again, run(&["--card", card], &["echo", "ran"])] {
            let (code, out, err) = output(command);
            assert_eq!((code, out.as_str()), (Some(1), ""), "nothing ran: {err}");
            assert!(err.contains("is a recording: name another file for the card"), "{err}");
        }
    }
    assert_eq!(fs::read(&recording).expect("there"), recorded, "the recording is as it was");

    let (code, out, err) = output(run(&["--card", &fresh, "--record", &fresh], &["echo", "ran"]));
    assert_eq!((code, out.as_str()), (Some(1), ""), "one file for both is refused before anything runs: {err}");
    assert!(err.contains("cannot hold both the card and the recording"), "{err}");

    fs::write(&notes, "x".repeat(5000)).expect("writable");
    for card in [&notes, &fresh] {
        assert_eq!(output(run(&["--card", card], &["no-such-command-anywhere"])).0, Some(127));
    }
    assert_eq!(fs::read_to_string(&notes).expect("there").len(), 5000, "without a card the file is as it was");
    assert!(!Path::new(&fresh).exists(), "and a new one is not left behind");
    assert_eq!(output(run(&["--card", &notes], &["true"])).0, Some(0));
    let card = fs::read_to_string(&notes).expect("there");
    assert!(card.starts_with("vnettop run: true\n") && !card.contains('x'.to_string().repeat(9).as_str()), "{card}");
}

#[test]
fn a_card_reaches_a_fifo_and_one_that_nobody_reads_keeps_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo");
    let path = fifo.to_str().expect("text");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().expect("cat runs");
    assert_eq!(output(run(&["--card", path], &["true"])).0, Some(0));
    let read = reader.wait_with_output().expect("cat ends").stdout;
    assert!(String::from_utf8_lossy(&read).starts_with("vnettop run: true\n"), "the reader has the card");

    // Full, and held open by us, who never read.
    let mut full = fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("it opens");
    std::io::Write::write_all(&mut full, &vec![0; 65536]).expect("that much fits");
    let mut vnettop = kept(run(&["--card", path], &["true"]));
    let waits =
        || fs::read_to_string(format!("/proc/{}/wchan", vnettop.0.id())).is_ok_and(|at| at.contains("pipe_write"));
    await_that("it waits for the reader", 10, waits);
    signal(vnettop.0.id(), "-TERM");
    await_that("the signal ends it", 5, || vnettop.0.try_wait().expect("a child").is_some());
}

#[test]
fn a_signal_that_the_command_understands_does_not_end_the_run() {
    let script = "trap 'echo told; exit 0' USR1; echo ready; while :; do sleep 0.1; done";
    let runs = run(&["--card", "/dev/null", "--repeat", "2"], &["sh", "-c", script]);
    let mut vnettop = Kept({ runs }.stdout(Stdio::piped()).spawn().expect("vnettop starts"));
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(vnettop.0.stdout.take().expect("piped")));
    let mut next = || lines.next().map(|line| line.expect("text"));
    for _ in 0..2 {
        assert_eq!(next().as_deref(), Some("ready"), "the command runs, the second time too");
        signal(vnettop.0.id(), "-USR1");
        assert_eq!(next().as_deref(), Some("told"), "it is the command that gets the signal");
    }
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(0), "and its exit code counts");
}

#[test]
fn help_is_for_somebody_new() {
    let (code, out, _) = output({
        let mut vnettop = Command::new(VNETTOP);
        vnettop.args(["run", "--help"]);
        vnettop
    });
    assert_eq!(code, Some(0));
    assert!(out.matches("    vnettop run ").count() == 6, "there are six examples:\n{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 160), "no line is endless:\n{out}");
}

#[test]
fn nothing_of_vnettop_is_inherited() {
    // Which descriptors, which signals blocked and ignored, which cores, which policy.
    let script = "ls /proc/$$/fd; grep -E 'Sig(Blk|Ign)|Cpus_allowed_list' /proc/self/status; cut -d' ' -f41 /proc/self/stat; \
        umask; ulimit -n";
    let without = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().expect("sh runs");
    let (_, out, _) = output(run(&["--card", "/dev/null"], &["sh", "-c", script]));
    let without = String::from_utf8(without.stdout).expect("text");
    assert_eq!(usual(&out), usual(&without), "the command finds what it would find without vnettop");
}

/// Without the two signals that the C library keeps for itself (32 and 33) and leaves ignored now and then.
fn usual(text: &str) -> Vec<String> {
    let line = |line: &str| match line.strip_prefix("SigIgn:\t").and_then(|mask| u64::from_str_radix(mask, 16).ok()) {
        Some(mask) => format!("ignored {:x}", mask & !(0b11 << 31)),
        None => line.to_owned(),
    };
    text.lines().map(line).collect()
}

#[test]
fn too_short_a_run_says_what_is_missing() {
    let (code, out, err) = output(run(&["--format", "json", "--max-cv", "1%"], &["sh", "-c", "echo out"]));
    assert_eq!((code, out.as_str()), (Some(0), "out\n"), "the command's code counts where nothing could be measured");
    let mut lines = err.lines();
    let card = json(lines.next().expect("a card"));
    assert_eq!((&card["jitter"], &card["limits"][0]["measured"]), (&Value::Null, &Value::Null), "no figure is made up");
    assert_eq!(card["missing"].as_array().map(Vec::len), Some(1), "one sentence says what is missing: {card}");
    assert!(lines.next().is_some_and(|line| line.contains("was not checked")), "an unchecked limit is told: {err}");
}

#[test]
fn a_comparison_that_could_not_be_made_is_told_on_its_own() {
    let (code, _, err) = output(run(&["--pin", "compare", "--card", "/dev/null"], &["sh", "-c", "exit 0"]));
    assert_eq!(code, Some(0), "the command went well");
    assert!(err.contains("vnettop: unpinned and pinned were not compared: "), "standard error says so: {err}");
}

/// The mask of every thread of a process, as the kernel writes it.
fn masks(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap_or_default();
    let mask = |text: String| text.lines().find(|line| line.starts_with("Cpus_allowed_list")).map(str::to_owned);
    tasks.filter_map(|task| mask(status(task.ok()?))).collect()
}

/// A busy process named `vnt-busy`, on cores `on`.
fn busy(dir: &Path, on: &str) -> Kept {
    let program = dir.join("vnt-busy");
    if !program.exists() {
        fs::copy("/bin/dash", &program).or_else(|_| fs::copy("/bin/sh", &program)).expect("there is a shell");
    }
    let mut command = Command::new("taskset");
    command.args(["-c", on]).arg(&program).args(["-c", "while :; do :; done"]);
    Kept(command.stdin(Stdio::null()).spawn().expect("taskset runs"))
}

fn journals(state: &Path) -> usize {
    fs::read_dir(state.join("vnettop")).map_or(0, Iterator::count)
}

/// Options and a command that pin `vnt-busy` every other second for ever.
fn pinning(state: &Path) -> Command {
    let mut vnettop = run(&["--watch", "vnt-busy", "--pin", "compare", "--phase", "1"], &["sleep", "120"]);
    vnettop.env("XDG_STATE_HOME", state);
    vnettop
}

fn events(record: &Path) -> Vec<Value> {
    let text = fs::read_to_string(record).expect("a recording");
    text.lines().map(json).filter_map(|mut line| line.get_mut("event").map(Value::take)).collect()
}

/// Two that keep both cores busy take each other's pace: one test at a time.
static IPERF3: Mutex<()> = Mutex::new(());

/// iperf3 between two namespaces under observation; the options come first.
fn iperf3(dir: &Path, options: &[&str], seconds: &str) -> (Option<i32>, String, PathBuf, (Netns, Netns)) {
    let (near, far) = veth_pair();
    let server = iperf3_server(&far, &[]);
    let before = masks(server.0.id());
    let (record, card) = (dir.join("run.zst"), dir.join("card.json"));
    let mut vnettop = near.command(VNETTOP);
    vnettop.args(["run", "--format", "json", "--card", card.to_str().expect("text")]).args(options);
    vnettop.args(["--record", record.to_str().expect("text"), "--", "iperf3", "-c", "198.18.0.2", "-t", seconds]);
    vnettop.env("XDG_STATE_HOME", dir).stdin(Stdio::null());
    let (code, out, err) = output(vnettop);
    assert!(out.contains("iperf Done."), "iperf3 ran and its output is there: {out}{err}");
    assert_eq!(masks(server.0.id()), before, "the server has its old mask");
    let printed = fs::read_to_string(card).expect("a card");
    (code, printed, record, (near, far))
}

fn made_again(record: &Path) -> String {
    let mut vnettop = Command::new(VNETTOP);
    vnettop.arg("card").arg(record).args(["--format", "json"]).stdin(Stdio::null());
    output(vnettop).1
}
