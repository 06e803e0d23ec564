//! `vnettop compare` on the real kernel: its figures are iperf3's own, an ordinary user gets what user namespaces allow, and nothing is
//! left behind, at whatever moment it is stopped.

use crate::ground::{Kept, VNETTOP, await_that, needs, pid, turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/compare/schema.json");
const VALIDATE: &str = "
import json, jsonschema, sys
schema, document = (json.load(open(name)) for name in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.validate(document, schema)";
/// What a comparison may take that has been told to stop, or whose vnettop was killed.
const GONE_S: u64 = 20;

/// A comparison whose processes have a word in their environment that no other has.
struct Marked {
    word: String,
    folder: tempfile::TempDir,
}

impl Marked {
    fn new(name: &str) -> Self {
        turn::take();
        let folder = tempfile::tempdir().expect("a directory");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("others may write there");
        Self { word: format!("VNETTOP_COMPARED={name}.{}", std::process::id()), folder }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let (name, value) = self.word.split_once('=').expect("a word");
        let mut command = Command::new(program);
        command.args(arguments).env(name, value).current_dir(self.folder.path());
        command.env("HOME", self.folder.path()).env("XDG_STATE_HOME", self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Those that are still there.
    fn processes(&self) -> Vec<String> {
        let has_word = |entry: &fs::DirEntry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == self.word.as_bytes())
        };
        let entries = fs::read_dir("/proc").expect("readable").flatten().filter(has_word);
        entries.map(|entry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default()).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.folder.path()).expect("readable").flatten().map(|entry| entry.path()).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// What a comparison could leave where it was started: links, named namespaces, mounts, rules, switches.
fn surroundings() -> Vec<(&'static str, BTreeSet<String>)> {
    let listed = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let rules = Command::new("nft").args(["list", "tables"]).output().expect("nft runs").stdout;
    vec![
        ("links", listed("/sys/class/net")),
        ("namespaces", listed("/run/netns")),
        ("switches", listed("/run/openvswitch")),
        ("mounts", fs::read_to_string("/proc/self/mounts").expect("readable").lines().map(str::to_owned).collect()),
        ("tables", String::from_utf8_lossy(&rules).lines().map(str::to_owned).collect()),
    ]
}

fn valid(document: &Path) {
    let out = Command::new("python3").args(["-c", VALIDATE, SCHEMA]).arg(document).output().expect("python3 runs");
    assert!(out.status.success(), "the schema: {}", String::from_utf8_lossy(&out.stderr));
}

fn parsed(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", out.status, String::from_utf8_lossy(&out.stderr)))
}

fn measurements(path: &Value) -> &Vec<Value> {
    path["measurements"].as_array().expect("a list")
}

/// A stand-in that runs the real one and keeps what it said.
fn keeping(folder: &Path) {
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' -c '*) PATH=${{PATH#*:}} iperf3 \"$@\" | tee {0}/said.$$ ;; \
         *) PATH=${{PATH#*:}}; exec iperf3 \"$@\" ;; esac\n",
        folder.display()
    );
    fs::write(folder.join("iperf3"), script).expect("writable");
    fs::set_permissions(folder.join("iperf3"), fs::Permissions::from_mode(0o755)).expect("it may be run");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn its_rates_are_those_that_iperf3_reports() {
    needs(&["iperf3", "ip", "nft", "python3"]);
    let marked = Marked::new("rates");
    let before = surroundings();
    keeping(marked.folder.path());
    let path = format!("{}:{}", marked.folder.path().display(), std::env::var("PATH").expect("a path"));
    let json = marked.file("all.json");
    let arguments = ["compare", "--only", "veth,tun,unix", "--load", "tcp", "--time", "1", "--repeat", "2", "--json"];
    let out = marked.command(VNETTOP, &arguments).arg("-o").arg(&json).env("PATH", path).output().expect("it runs");
    let object = parsed(&out);
    assert_eq!(fs::read(&json).expect("written"), out.stdout, "the file has what standard output has");
    valid(&json);
    let rates: BTreeSet<String> = object["paths"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(measurements)
        .filter(|one| one["sender"] == "iperf3")
        .map(|one| format!("{:.0}", one["rate"].as_f64().unwrap_or_else(|| panic!("a rate: {one}"))))
        .collect();
    let said = marked.files().into_iter().filter(|file| file.display().to_string().contains("/said."));
    let own: BTreeSet<String> = said
        .map(|file| {
            let report: Value = serde_json::from_slice(&fs::read(file).expect("readable")).expect("iperf3's JSON");
            format!("{:.0}", report["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate"))
        })
        .collect();
    assert_eq!(own.len(), 8, "two paths, two rounds, unpinned and pinned");
    assert_eq!(rates, own, "to the bit");
    let unix = &object["paths"][2];
    assert!(measurements(unix).iter().all(|one| one["rate"].as_f64() > Some(1e8)), "a socket carries more: {unix}");
    for one in object["paths"].as_array().expect("a list").iter().flat_map(measurements) {
        let pins = one["pins"].as_array().expect("a list").len();
        assert_eq!(pins > 0, one["pinned"] == true, "what is called pinned has been: {one}");
    }
    assert_eq!(marked.processes(), [""; 0], "nothing runs on");
    assert_eq!(surroundings(), before, "and nothing is left");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_ordinary_user_gets_what_user_namespaces_allow() {
    needs(&["iperf3", "ip", "setpriv", "python3", "nft"]);
    let marked = Marked::new("user");
    let before = surroundings();
    fs::copy(VNETTOP, marked.file("vnettop")).expect("a copy for others");
    let own = marked.file("vnettop");
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", own.to_str().expect("a name")];
    let mut command = marked.command("setpriv", &nobody);
    command.args(["compare", "--only", "bridge,bridge-nat,macvtap", "--load", "tcp,rr"]);
    let out = command.args(["--time", "1", "--repeat", "1", "--unpinned", "--json"]).output().expect("it runs");
    let object = parsed(&out);
    assert_eq!(object["plan"]["is_root"], false);
    for path in &object["paths"].as_array().expect("a list")[..2] {
        let rates = measurements(path).iter().filter(|one| one["rate"].as_f64() > Some(0.0));
        assert_eq!(rates.count(), 2, "both loads: {path}");
    }
    let macvtap = &object["paths"][2];
    assert!(macvtap["skipped"].as_str().is_some_and(|why| why.len() > 20), "device nodes are root's: {macvtap}");
    assert_eq!(marked.processes(), [""; 0], "nothing runs on");
    assert_eq!(surroundings(), before, "and nothing is left");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nothing_is_left_behind_whenever_it_is_stopped() {
    needs(&["iperf3", "ip", "nft", "ovs-vswitchd"]);
    let before = surroundings();
    let moments = [50, 400, 1300, 3700];
    for (signal, moment) in
        [Signal::INT, Signal::TERM, Signal::KILL].into_iter().flat_map(|one| moments.map(|at| (one, at)))
    {
        let marked = Marked::new("stopped");
        let json = marked.file("part.json");
        let arguments = ["compare", "--only", "proxy,bridge-nat,ovs-userspace,tun", "--time", "1", "--repeat", "1"];
        let mut command = marked.command(VNETTOP, &arguments);
        command.arg("-o").arg(&json).stdout(Stdio::null()).stderr(Stdio::null());
        let mut vnettop = Kept(command.spawn().expect("it starts"));
        // The moment is what is tried, not an event.
        std::thread::sleep(Duration::from_millis(moment));
        let number = Pid::from_raw(i32::try_from(pid(&vnettop)).expect("a pid")).expect("a pid");
        kill_process(number, signal).expect("it runs");
        vnettop.0.wait().expect("it ends");
        let what = format!("{signal:?} after {moment} ms");
        await_that(&format!("no process is left of {what}"), GONE_S, || marked.processes().is_empty());
        assert_eq!(surroundings(), before, "nothing is left of {what}");
        let is_partial = |file: &PathBuf| {
            let object: Value = serde_json::from_slice(&fs::read(file).expect("readable")).expect("a comparison");
            *file == json && object["interrupted"] == true
        };
        let files = marked.files();
        assert!(files.iter().all(is_partial), "but for what was measured until then: {what}: {files:?}");
        assert!(signal == Signal::KILL || moment == 50 || !files.is_empty(), "which is kept: {what}");
    }
}
