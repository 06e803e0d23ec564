//! The flight recorder on the real kernel: a dip that is planted is in the file with the time around it; who may ask for what is kept; and
//! what happens where nothing can be written.

use crate::ground::moving::{as_nobody, copy_for_others, signal};
use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, iperf3_server, needs, turn};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use vnettop::record::Recording;
use vnettop::sample::{Event, Item, Sample, TriggerKind};
use vnettop::source::now_ns;

const PROGRAMS: &[&str] = &["iperf3", "ip", "nsenter", "setpriv", "unshare"];
const SECOND_NS: u64 = 1_000_000_000;

/// A steady test over loopback, and folders of its own for whoever watches it.
pub(super) struct SteadyTest {
    pub netns: Netns,
    pub server: Kept,
    pub client: Kept,
    root: tempfile::TempDir,
}

impl SteadyTest {
    pub fn new() -> Self {
        let netns = Netns::new();
        let server = iperf3_server(&netns, &[]);
        // Small buffers: a server that stands still stops the sender at once.
        let client = netns.keep("iperf3", &["-c", "127.0.0.1", "-t", "600", "-b", "1G", "-w", "256K"]);
        Self { netns, server, client, root: tempfile::tempdir().expect("a directory") }
    }

    fn vnettop(&self, options: &[&str]) -> Command {
        let mut command = self.netns.command(VNETTOP);
        command.args(options).args(["--watch", "iperf3", "-d", "0.1"]);
        self.at_home(&mut command);
        command
    }

    /// Its folders instead of those of the user.
    fn at_home(&self, command: &mut Command) {
        command.env("XDG_STATE_HOME", self.root.path().join("state")).env("XDG_RUNTIME_DIR", self.root.path());
    }

    /// What was saved.
    fn files(&self) -> Vec<PathBuf> {
        recordings(&self.root.path().join("state/vnettop"))
    }

    /// `vnettop save` with these arguments.
    fn save(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(VNETTOP);
        command.arg("save").args(arguments).stdin(Stdio::null());
        self.at_home(&mut command);
        command.output().expect("vnettop runs")
    }

    /// The server stands still for 0.3 s; since when.
    fn dip(&self) -> u64 {
        let pid = self.server.0.id().to_string();
        let since_ns = now_ns();
        signal("-STOP", &pid);
        sleep(Duration::from_millis(300));
        signal("-CONT", &pid);
        since_ns
    }
}

/// The recordings of a folder, the oldest first.
pub(super) fn recordings(folder: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(folder);
    let mut all: Vec<PathBuf> = folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.extension().is_some_and(|ending| ending == "zst"));
    all.sort();
    all
}

/// What a recording says that it was saved for, when that began, and when its first sample was taken, ns.
pub(super) fn saved_for(path: &Path) -> (Option<TriggerKind>, u64, u64) {
    let mut recording = Recording::open(path).expect("a recording");
    let mut found = None;
    loop {
        match recording.next_item().expect("readable").expect("it has samples") {
            Item::Event(Event::Saved { trigger, at_ns }) => found = Some((trigger, at_ns)),
            Item::Event(_) => {}
            Item::Sample(sample) => {
                let (trigger, at_ns) = found.expect("before the first sample");
                return (trigger, at_ns, sample.at_ns);
            }
        }
    }
}

fn samples(path: &Path) -> Vec<Sample> {
    let mut recording = Recording::open(path).expect("a recording");
    let mut samples = Vec::new();
    while let Some(item) = recording.next_item().expect("readable") {
        if let Item::Sample(sample) = item {
            samples.push(*sample);
        }
    }
    assert_eq!(recording.truncated(), None, "it is whole");
    samples
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_planted_dip_is_saved_with_ten_seconds_before_and_five_after() {
    needs(PROGRAMS);
    turn::take();
    let test = SteadyTest::new();
    let mut watching = Watching::start(test.vnettop(&["--on", "dip"]));
    for _ in 0..120 {
        watching.next();
    }
    // Other work of the machine may make a sample late, or a dip of its own, though not each time.
    let mut in_time = 0;
    for _ in 0..8 {
        let known = test.files();
        // Anywhere within a bin and a tick.
        sleep(Duration::from_nanos(now_ns() % 1_000_000_000));
        let since_ns = test.dip();
        let mut object = watching.next();
        let late = object["own"]["late_ticks"].as_u64().expect("counted");
        for _ in 0..200 {
            object = watching.next();
            if test.files().len() > known.len() {
                break;
            }
        }
        let files = test.files();
        assert!(files.len() > known.len(), "a dip is saved: {files:?}");
        let is_planted = |file: &&PathBuf| saved_for(file).1.abs_diff(since_ns) < SECOND_NS / 2;
        let Some(file) = files.iter().filter(|file| !known.contains(file)).find(is_planted) else {
            // The planted one is in the file of another, or has its own later.
            (0..70).for_each(|_| drop(watching.next()));
            continue;
        };
        assert!(file.to_string_lossy().contains("vnettop-on-dip-"), "{file:?}");
        assert_eq!(saved_for(file).0, Some(TriggerKind::Dip), "it says why");
        let samples = samples(file);
        let (first, last) = (&samples[0], &samples[samples.len() - 1]);
        assert!(first.at_ns + 10 * SECOND_NS <= since_ns, "ten seconds before");
        assert!(last.at_ns >= since_ns + 5 * SECOND_NS, "five seconds after");
        let gap = |two: &[Sample]| two[1].at_ns - two[0].at_ns;
        assert!(samples.windows(2).map(gap).max() < Some(SECOND_NS / 2), "every sample is there");
        in_time += u32::from(object["own"]["late_ticks"].as_u64() == Some(late));
        let mode = fs::metadata(file).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "for nobody else to read");
        if in_time == 2 {
            watching.stop();
            return;
        }
    }
    panic!("saving makes no sample late: {in_time} of 8 times");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_kept_is_given_to_its_own_user_and_to_nobody_else() {
    needs(PROGRAMS);
    turn::take();
    let test = SteadyTest::new();
    let nobody = test.save(&[]);
    assert!(said(&nobody).contains("no vnettop of this user can be asked"), "{}", said(&nobody));
    let mut first = Watching::start(test.vnettop(&[]));
    first.next();
    first.next();
    let pid = first.pid().to_string();
    let out = test.root.path().join("own.zst");
    let out_name = out.display().to_string();
    let saved = test.save(&["-o", &out_name]);
    assert!(saved.status.success(), "{}", said(&saved));
    assert!(samples(&out).len() >= 2, "what there was");
    let again = test.save(&["-o", &out_name]);
    assert!(!again.status.success() && said(&again).contains("exists"), "{}", said(&again));
    // A second one: somebody has to say which.
    let mut second = Watching::start(test.vnettop(&[]));
    second.next();
    let which = said(&test.save(&[]));
    assert!(which.contains(&format!("{pid} (--json)")) && which.contains("several"), "{which}");
    assert!(test.save(&[&pid]).status.success());
    assert_eq!(test.files().len(), 1, "in the folder of R");
    // One that is killed leaves its socket behind; nobody is misled by it.
    signal("-KILL", &second.pid().to_string());
    await_that("only one is left", 10, || test.save(&[]).status.success());
    let switched_off = Watching::start(test.vnettop(&["--no-socket"]));
    let refused = said(&test.save(&[&switched_off.pid().to_string()]));
    assert!(refused.contains("--no-socket"), "{refused}");

    // Of another user: neither by his command nor at the socket itself.
    let copy = copy_for_others();
    let foreign = as_nobody(&copy, None).args(["save", &pid]).output().expect("it runs");
    assert!(said(&foreign).contains("belongs to another user (uid 0)"), "{}", said(&foreign));
    let folder = copy.path().join("runtime");
    fs::create_dir(&folder).expect("writable");
    let owned = Command::new("chown").arg("65534").arg(&folder).status().expect("chown runs");
    assert!(owned.success());
    let mut command = as_nobody(&copy, None);
    command.env("XDG_RUNTIME_DIR", &folder).env("XDG_STATE_HOME", &folder).args(["-d", "0.1"]);
    let mut theirs = Watching::start(command);
    theirs.next();
    let of_root = said(&test.save(&[&theirs.pid().to_string()]));
    assert!(of_root.contains("belongs to another user (uid 65534)"), "{of_root}");
    let socket = folder.join(format!("vnettop/{}.sock", theirs.pid()));
    let mut stream = UnixStream::connect(socket).expect("root may connect");
    stream.write_all(b"save\n").expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert_eq!(answer, "vnettop-save-1 refused it belongs to another user (uid 65534)\n");
    drop((first, theirs, switched_off));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_nothing_can_be_written_there_is_one_sentence() {
    needs(PROGRAMS);
    turn::take();
    let test = SteadyTest::new();
    let state = test.root.path().join("state");
    fs::create_dir(&state).expect("writable");
    for (options, why) in [("size=16k", "No space left"), ("size=16k,ro", "Read-only file system")] {
        let mounts = format!("mount -t tmpfs -o {options} none {} && exec \"$0\" \"$@\"", state.display());
        let mut command = test.netns.command("unshare");
        let options = ["-d", "0.1", "--watch", "iperf3", "--json", "--on", "dip", "--on-after", "0"];
        command.args(["-m", "sh", "-c", &mounts, VNETTOP]).args(options);
        test.at_home(&mut command);
        let mut child = Kept(
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"),
        );
        let mut lines = BufReader::new(child.0.stdout.take().expect("piped")).lines();
        let mut objects = |count: usize| (0..count).for_each(|_| drop(lines.next().expect("it goes on")));
        objects(50);
        for _ in 0..4 {
            test.dip();
            objects(20);
        }
        signal("-TERM", &child.0.id().to_string());
        drop(lines);
        let mut stderr = String::new();
        child.0.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        let told: Vec<&str> = stderr.lines().filter(|line| line.contains("nothing was ")).collect();
        assert!(told.len() == 1 && told[0].contains(why), "{why}: {stderr}");
        assert!(test.files().is_empty(), "nothing is left");
    }
}
