//! `vnettop doctor` on this machine: as root, as nobody, where /sys or /proc is hidden, with too few files. What it says is held
//! against what can be seen here in other ways; what cannot run here says so by name.

use crate::ground::{VNETTOP, left_out, needs};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What it printed as text and as JSON, run in the same way.
struct Seen {
    code: Option<i32>,
    text: String,
    object: Value,
}

/// Checks of what the cores do at the moment.
const MOMENTARY: [&str; 2] = ["steal", "foreign load"];

impl Seen {
    /// Runs vnettop twice behind these words, which begin with a program that starts another one.
    fn behind(words: &[&str]) -> Self {
        Self::of(VNETTOP, words)
    }

    fn of(vnettop: &str, words: &[&str]) -> Self {
        let run = |more: &[&str]| {
            let mut words = words.iter().copied().chain([vnettop, "doctor"]).chain(more.iter().copied());
            let mut command = Command::new(words.next().expect("a program"));
            command.args(words).stdin(Stdio::null()).env("LC_ALL", "C").env_remove("LANG").output().expect("it runs")
        };
        let (lines, json): (Output, Output) = (run(&[]), run(&["--json"]));
        assert_eq!(lines.status.code(), json.status.code(), "both faces end alike");
        assert!(lines.stderr.is_empty(), "nothing is left to be said: {}", String::from_utf8_lossy(&lines.stderr));
        let object = serde_json::from_slice(&json.stdout).expect("one JSON object");
        let seen = Self { code: lines.status.code(), text: String::from_utf8(lines.stdout).expect("text"), object };
        seen.agrees();
        seen
    }

    /// Text and object have the same checks; the text is plain.
    fn agrees(&self) {
        let text = &self.text;
        assert!(text.is_ascii() && !text.contains('\u{1b}'), "plain ASCII without a UTF-8 locale:\n{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "lines fit into 100 columns:\n{text}");
        let checks = self.object["checks"].as_array().expect("a list");
        let states = ["ok", "note", "missing", "unknown"];
        let rows = text.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
        let of_text: Vec<String> = rows.map(|row| row.chars().take(29).collect::<String>().trim().to_owned()).collect();
        let of_object = checks.iter().map(|check| {
            let word = |field: &str| check[field].as_str().expect("a word");
            assert!(states.contains(&word("state")), "{check}");
            assert!(word("state") != "missing" || !check["remedy"].is_null(), "what is missing can be had: {check}");
            format!("{:9}{}", word("state"), word("name"))
        });
        // What changes from moment to moment may do so between the two runs.
        let lasting =
            |check: &String| if MOMENTARY.contains(&check[9..].trim()) { check[9..].to_owned() } else { check.clone() };
        let (of_text, of_object) = (of_text.iter().map(lasting), of_object.map(|check| lasting(&check)));
        assert_eq!(of_text.collect::<Vec<_>>(), of_object.collect::<Vec<_>>(), "the same checks in both:\n{text}");
        let words = |verdict: Option<&str>| verdict.map(|words| words.split([':', ';']).next().map(str::to_owned));
        assert_eq!(words(text.lines().last()), words(self.object["verdict"].as_str()), "the verdict is the last line");
        assert_eq!(self.object["works"], Value::Bool(self.code == Some(0)), "the exit code is the verdict's");
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.object["checks"].as_array().expect("a list");
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("a check {name}: {}", self.text))
    }

    fn state(&self, name: &str) -> &str {
        self.check(name)["state"].as_str().expect("a word")
    }
}

fn modules() -> Vec<String> {
    let list = fs::read_to_string("/proc/modules").unwrap_or_default();
    list.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// As an engine mounts it into each of its containers; a file that was left behind is none.
fn is_mounted(place: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(place))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn root_is_told_what_this_machine_has_and_nothing_is_loaded_for_it() {
    needs(&["env", "ip"]);
    let before = modules();
    let seen = Seen::behind(&["env"]);
    let loaded: Vec<String> = modules().into_iter().filter(|module| !before.contains(module)).collect();
    assert!(loaded.is_empty(), "no kernel module is loaded by looking: {loaded:?}");
    assert_eq!(seen.code, Some(0), "vnettop works where its tests do:\n{}", seen.text);
    let has_btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(seen.state("BTF") == "ok", has_btf, "{}", seen.text);
    assert_eq!(seen.state("user"), "ok", "{}", seen.text);
    if has_btf {
        assert_eq!(seen.state("migrations"), "ok", "{}", seen.text);
    }
    let links = Command::new("ip").args(["-o", "link"]).output().expect("ip runs").stdout;
    let links = String::from_utf8_lossy(&links).lines().count();
    let found = seen.check("link counters")["found"].as_str().expect("words");
    assert!(found.starts_with(&format!("{links} link")), "as many as ip lists ({links}): {found}");
    let version = Command::new("iperf3").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).lines().next().map(str::to_owned));
    if let Ok(Some(version)) = version {
        let found = seen.check("iperf3")["found"].as_str().expect("words");
        assert!(found.starts_with(version.trim()), "iperf3's own words, {version:?}: {found}");
    } else {
        assert_eq!(seen.state("iperf3"), "missing", "{}", seen.text);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nobody_is_told_which_rights_are_missing_and_that_it_works() {
    needs(&["setpriv"]);
    // Where vnettop was built nobody else may look.
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("its own");
    let program = dir.path().join("vnettop");
    fs::copy(VNETTOP, &program).expect("copied");
    let program = program.display().to_string();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"];
    let seen = Seen::of(&program, &nobody);
    assert_eq!(seen.code, Some(0), "an ordinary user sees what he may:\n{}", seen.text);
    let is_program = |name: &str| Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    let way = match is_program("sudo") {
        _ if is_mounted("/run/.containerenv") => "podman run --user 0 ",
        _ if is_mounted("/etc/hostname") => "docker run --user 0 ",
        Ok(found) if found.status.success() => "sudo vnettop",
        _ => "run vnettop as root",
    };
    for name in ["migrations", "pins, priority", "function names", "network namespaces"] {
        assert_eq!(seen.state(name), "missing", "{name}:\n{}", seen.text);
        let remedy = seen.check(name)["remedy"].as_str().expect("a way");
        assert!(remedy.starts_with(way), "{name}: {remedy}");
    }
    assert_eq!(seen.state("user"), "note", "{}", seen.text);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_hidden_sys_is_unknown_and_a_hidden_proc_ends_with_one() {
    needs(&["unshare", "mount"]);
    let hidden = |place: &str| format!("mount -t tmpfs none {place} && exec \"$@\"");
    let seen = Seen::behind(&["unshare", "--mount", "sh", "-c", &hidden("/sys"), "sh"]);
    assert_eq!(seen.code, Some(0), "links, cores and threads need no /sys:\n{}", seen.text);
    assert_eq!(seen.state("/sys"), "missing", "{}", seen.text);
    for name in ["BTF", "topology", "governor"] {
        assert_eq!(seen.state(name), "unknown", "{name} is not guessed:\n{}", seen.text);
    }
    let seen = Seen::behind(&["unshare", "--mount", "sh", "-c", &hidden("/proc"), "sh"]);
    assert_eq!(seen.code, Some(1), "without /proc the main job cannot work:\n{}", seen.text);
    assert!(seen.text.ends_with("vnettop cannot work here without: link counters, /proc.\n"), "{}", seen.text);
    for name in ["processes", "network namespaces", "topology", "TCP sockets", "migrations"] {
        assert_eq!(seen.state(name), "unknown", "{name} is not guessed:\n{}", seen.text);
    }
    let mut without = Command::new("unshare");
    without.args(["--mount", "sh", "-c", &hidden("/proc"), "sh", VNETTOP]);
    let out = without.args(["--json", "-n", "1"]).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1), "and it does not: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn namespaces_that_no_engine_made_are_told_of_no_engine() {
    needs(&["unshare", "mount"]);
    let of = |words: &[&str]| {
        let seen = Seen::behind(&[&["unshare"], words].concat());
        assert!(
            is_mounted("/etc/hostname") || !seen.text.contains("docker run"),
            "nothing is a container:\n{}",
            seen.text
        );
        seen
    };
    let own = of(&["--pid", "--fork", "--mount-proc"]);
    assert_eq!((own.state("processes"), own.state("migrations")), ("note", "missing"), "{}", own.text);
    let foreign = of(&["--pid", "--fork"]);
    assert_eq!(foreign.check("processes")["remedy"], "unshare --mount-proc vnettop", "{}", foreign.text);
    let user = of(&["--user", "--map-root-user"]);
    assert_eq!((user.state("user"), user.state("network namespaces")), ("note", "missing"), "{}", user.text);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn types_that_are_mounted_over_are_unknown() {
    needs(&["unshare", "mount"]);
    if !Path::new("/sys/kernel/btf").exists() {
        left_out("types_that_are_mounted_over_are_unknown", "this kernel has no BTF");
        return;
    }
    let over = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let seen = Seen::behind(&["unshare", "--mount", "sh", "-c", over, "sh"]);
    for name in ["BTF", "lost packets"] {
        assert_eq!(seen.state(name), "unknown", "the kernel has them: {}", seen.text);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn too_few_files_end_with_one() {
    needs(&["sh"]);
    let seen = Seen::behind(&["sh", "-c", "ulimit -n 100; exec \"$@\"", "sh"]);
    assert_eq!((seen.code, seen.state("open files")), (Some(1), "missing"), "{}", seen.text);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_reader_who_has_seen_enough_is_no_failure() {
    needs(&["bash"]);
    let pipe = format!("set -o pipefail; {VNETTOP} doctor | (exec <&-; sleep 2)");
    let out = Command::new("bash").args(["-c", &pipe]).stdin(Stdio::null()).output().expect("bash runs");
    assert_eq!((out.status.code(), out.stderr.as_slice()), (Some(0), &b""[..]), "it ends quietly and well");
}

/// A socket that somebody listens on and never answers, and an iperf3 that never ends.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn who_does_not_answer_is_not_waited_for() {
    needs(&["env"]);
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let listener = UnixListener::bind(at("docker.sock")).expect("it binds");
    listener.set_nonblocking(true).expect("settable");
    fs::write(at("iperf3"), "#!/bin/sh\nexec sleep 600\n").expect("writable");
    fs::set_permissions(at("iperf3"), PermissionsExt::from_mode(0o755)).expect("its own");
    let began = Instant::now();
    let mut command = Command::new(VNETTOP);
    command.args(["doctor", "--json", "--docker-socket", &at("docker.sock")]).stdin(Stdio::null());
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let out = command.env("PATH", path).process_group(0).output().expect("it runs");
    assert!(began.elapsed() < Duration::from_secs(30), "it ends: {:?}", began.elapsed());
    let object: Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    let seen = Seen { code: out.status.code(), text: String::new(), object };
    assert_eq!(seen.code, Some(0), "neither is needed");
    assert_eq!(seen.state("Docker"), "ok", "the socket is there and may be opened");
    assert!(listener.accept().is_err(), "and nobody connected to it");
    assert_eq!(seen.state("iperf3"), "unknown", "{}", seen.check("iperf3"));
    let found = seen.check("iperf3")["found"].as_str().expect("words");
    assert!(found.contains("within 2 s"), "with the reason: {found}");
}
