//! Owners on the real kernel: who holds a tun, a tap, a macvtap; whose a namespace is by a control group made for it; what
//! a Docker says that answers well, slowly, wrongly, endlessly or not at all. No Docker is needed.

mod inhabitants;
mod macvtaps;
mod taps;

use crate::ground::{self, Kept, Netns, Watching, await_that, left_out, link, needs};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ID: &str = "a51cac518006d1e5b7e2d64fbb2d2f0a1a8f7c1e0c9b8a7d6e5f4a3b2c1d0e9f";
const UID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

/// Opens a tun (1) or tap (2) of this name and holds it.
const HOLDER: &str = "
import fcntl, struct, sys, time
tun = open('/dev/net/tun', 'r+b', buffering=0)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH', sys.argv[1].encode(), int(sys.argv[2]) | 0x1000))
print('held', flush=True)
time.sleep(3600)";

/// The interpreter itself, called by another name; told where its modules are, which it finds by its name otherwise.
const PYTHON: &str = "eval $(python3 -c 'import sys; print(f\"program={sys.executable} home={sys.base_prefix}\")');
    PYTHONHOME=$home exec -a $0 $program";

/// An owner as JSON has it, that is no guess and no pod of a known Kubernetes namespace.
fn known(kind: &str, name: &str, id: Option<&str>, by: &str) -> Value {
    json!({"type": kind, "name": name, "id": id, "by": by, "guess": false, "pod_namespace": null})
}

/// A process in this namespace that holds a link, by this name for itself.
fn holder(netns: &Netns, call_it: &str, link: &str, mode: &str, options: &str) -> Kept {
    let script = format!("{PYTHON} -c \"$1\" {link} {mode} {options}");
    held(netns.command("bash").args(["-c", &script, call_it, HOLDER]))
}

/// Starts it and waits for its first word.
fn held(command: &mut Command) -> Kept {
    let mut child = Kept(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut word = [0; 5];
    child.0.stdout.as_mut().expect("piped").read_exact(&mut word).expect("it holds the link");
    child
}

/// vnettop there, ticking fast.
fn watch(netns: &Netns) -> Command {
    let mut command = netns.command(ground::VNETTOP);
    command.args(["-d", "0.1"]);
    command
}

/// The owner of a link, once it is as wanted.
fn await_owner(vnettop: &mut Watching, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut owner = Value::Null;
    await_that(&format!("{name} is {what}'s"), 20, || {
        let object = vnettop.next();
        owner = link(&object, name).map_or(Value::Null, |link| link["owner"].clone());
        is(&owner)
    });
    owner
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tun_is_its_holder_s_and_then_the_next_one_s() {
    needs(&["python3", "bash"]);
    let netns = Netns::new();
    netns.run("ip tuntap add dev tun7 mode tun; ip link set tun7 up; ip tuntap add dev tun8 mode tun");
    let first = holder(&netns, "python3", "tun7", "1", "");
    let mut vnettop = Watching::start(watch(&netns));
    let named =
        |pid: u32| move |owner: &Value| owner["name"].as_str().is_some_and(|name| name.ends_with(&pid.to_string()));
    let owner = await_owner(&mut vnettop, "tun7", "the first holder", named(ground::pid(&first)));
    let name = format!("python3 {}", ground::pid(&first));
    let expected = known("process", &name, None, "tun");
    assert_eq!(owner, expected, "its program and number");
    assert!(link(&vnettop.next(), "tun8").expect("it is there")["owner"].is_null(), "what nobody holds is nobody's");
    drop(first);
    assert_eq!(link(&vnettop.next(), "tun7").expect("it stays")["owner"], expected, "the last one known, for now");
    let second = holder(&netns, "python3", "tun7", "1", "");
    await_owner(&mut vnettop, "tun7", "the second holder", named(ground::pid(&second)));
    // One made while it is watched.
    let third = holder(&netns, "python3", "tun9", "1", "");
    await_owner(&mut vnettop, "tun9", "the third holder", named(ground::pid(&third)));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tap_and_a_macvtap_are_their_guest_s() {
    needs(&["python3", "bash"]);
    let netns = Netns::new();
    netns.run("ip link add br0 type bridge; ip link set br0 up; ip tuntap add dev vnet0 mode tap; ip link set vnet0 master br0 up");
    netns.run("ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up");
    netns.run("ip link add link v0 name mt0 type macvtap mode bridge; ip link set mt0 up");
    let guest = "-name guest=web-1,debug-threads=on -uuid 8d1f4a52-6f0e-4b6b-9a63-0c1f3f6a2d11";
    let _machine = holder(&netns, "qemu-system-x86_64", "vnet0", "2", guest);
    let mut vnettop = Watching::start(watch(&netns));
    let owner = await_owner(&mut vnettop, "vnet0", "the guest", |owner| owner["type"] == "vm");
    let id = "8d1f4a52-6f0e-4b6b-9a63-0c1f3f6a2d11";
    assert_eq!(owner, known("vm", "web-1", Some(id), "qemu"));

    let index = netns.output("ip -o link show mt0 | cut -d: -f1");
    let device = format!("/dev/tap{}", index.trim());
    if !Path::new(&device).exists() {
        left_out("the macvtap's part", &format!("this machine has no {device}"));
        return;
    }
    let opened = "import sys, time; tap = open(sys.argv[1], 'r+b', 0); print('held', flush=True); time.sleep(3600)";
    let script = format!("{PYTHON} -c \"$1\" {device} -name bench");
    let _other = held(netns.command("bash").args(["-c", &script, "/usr/bin/kvm", opened]));
    let owner = await_owner(&mut vnettop, "mt0", "the other guest", |owner| owner["type"] == "vm");
    assert_eq!(owner["name"], "bench", "a macvtap is found by its index");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_the_right_to_look_one_sentence_says_so() {
    needs(&["python3", "bash", "setpriv"]);
    let netns = Netns::new();
    let _holder = holder(&netns, "python3", "tun7", "1", "");
    netns.run("ip link set tun7 up");
    let mut command = netns.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", ground::VNETTOP, "-d", "0.1"]);
    let mut vnettop = Watching::start(command);
    let mut told = Vec::new();
    await_that("the missing right is told", 20, || {
        let problems = vnettop.next()["problems"].as_array().cloned().unwrap_or_default();
        told = problems.into_iter().filter(|problem| problem["source"] == "owners").collect();
        !told.is_empty()
    });
    let text = told[0]["text"].as_str().expect("a sentence");
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert!(text.contains("tun7") && text.contains("run as root"), "what is not seen and what to do: {text}");
}

/// A control group that is removed when the test ends.
struct Group(PathBuf);

impl Group {
    /// The directories are made one below the other, in the hierarchy of version 2; none where it cannot be written.
    fn new(parts: &[&str]) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").ok()?;
        let root = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?.to_owned();
        let path = parts.iter().fold(PathBuf::from(root), |path, part| path.join(part));
        fs::create_dir_all(&path).ok()?;
        Some(Self(path))
    }

    /// The process that holds a namespace, and the unshare that waits for it there.
    fn take_in(&self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("it has a parent").trim();
        for pid in [parent, &pid.to_string()] {
            fs::write(self.0.join("cgroup.procs"), pid).expect("a process may be moved");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its process has been killed; the kernel lets go of the group a moment later.
        for _ in 0..200 {
            match fs::remove_dir(&self.0) {
                Err(_) if self.0.exists() => std::thread::sleep(std::time::Duration::from_millis(10)),
                _ => break,
            }
        }
        let above = self.0.ancestors().skip(1);
        above.take_while(|path| path.join("cgroup.procs").exists()).for_each(|path| drop(fs::remove_dir(path)));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn both_ends_of_a_pair_are_the_container_s_by_its_control_group() {
    needs(&["unshare"]);
    let pod = format!("kubepods-burstable-pod{}.slice", UID.replace('-', "_"));
    let paths: [(&[&str], Value); 3] = [
        (&[&format!("docker-{ID}.scope")], known("container", "a51cac518006", Some("a51cac518006"), "docker")),
        (&[&pod, &format!("cri-containerd-{ID}.scope")], known("pod", UID, Some(UID), "kubernetes")),
        (&["lxc.payload.vnettop-test", "init.scope"], known("container", "vnettop-test", None, "lxc")),
    ];
    for (path, expected) in paths {
        let group = Group::new(path).expect("a control group can be made");
        let (host, container) = (Netns::new(), Netns::new());
        host.run(&format!("ip link add vown0 type veth peer name vown1 netns {}", container.pid()));
        let mut command = watch(&host);
        command.args(["--netns", "all"]).env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
        let mut vnettop = Watching::start(command);
        await_owner(&mut vnettop, "vown1", "nobody before its process is in the group", Value::is_null);
        group.take_in(container.pid());
        for name in ["vown0", "vown1"] {
            await_owner(&mut vnettop, name, "the container", |owner| *owner == expected);
        }
        let lo = |object: &Value| {
            let links = object["links"].as_array().expect("a list").clone();
            let inside = link(object, "vown1").expect("it is there")["netns"].clone();
            links.into_iter().find(|link| link["netns"] == inside && link["name"] == "lo").expect("it has one")
        };
        assert_eq!(lo(&vnettop.next())["owner"], expected, "so is everything in its namespace");
        host.run("ip link add vown2 type dummy || ip link add vown2 type bridge");
        let object = vnettop.next();
        assert_eq!(link(&object, "vown0").expect("it stays")["owner"], expected, "and it stays so");
    }
}

/// A Docker on a unix socket, good or bad as its second argument says.
const DOCKER: &str = r"
import json, socket, sys, threading, time
path, manner = sys.argv[1:3]
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(path); server.listen(8)
networks = [{'Name': 'bench-net', 'Id': '0d' * 32, 'Driver': 'bridge', 'Options': {'com.docker.network.bridge.name': 'docker0'}}]
def answer(peer):
    question = peer.recv(4096).split()[1]
    body = json.dumps(networks if question == b'/networks' else []).encode()
    head = b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n'
    try:
        if manner == 'silent': time.sleep(3600)
        if manner == 'early': return peer.close()
        if manner == 'wrong': return peer.sendall(b'220 mail.example ESMTP\r\n')
        while manner == 'endless': peer.sendall((head + b'[') if question else b' ' * 65536); question = None
        if manner == 'slow': time.sleep(1)
        peer.sendall(head)
        for byte in body:
            peer.sendall(b'%c' % byte)
            if manner == 'slow': time.sleep(0.002)
        peer.close()
    except OSError: pass
print('ready', flush=True)
while True:
    peer, _ = server.accept()
    threading.Thread(target=answer, args=[peer], daemon=True).start()
";

/// vnettop beside docker0 and such a Docker.
fn beside_docker(netns: &Netns, manner: &str) -> (Kept, Watching, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("docker.sock");
    let docker = held(netns.command("python3").args(["-c", DOCKER, path.to_str().expect("text"), manner]));
    let mut command = watch(netns);
    command.env("DOCKER_HOST", format!("unix://{}", path.display()));
    (docker, Watching::start(command), directory)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn docker_names_its_bridge_however_slowly_and_keeps_the_name_when_it_is_gone() {
    needs(&["python3"]);
    for manner in ["good", "slow"] {
        let netns = Netns::new();
        netns.run("ip link add docker0 type bridge");
        let (docker, mut vnettop, _directory) = beside_docker(&netns, manner);
        let first = link(&vnettop.next(), "docker0").expect("it is there")["owner"].clone();
        assert!(first["guess"] == true || first["name"] == "bench-net", "a guess until Docker has answered: {first}");
        let owner = await_owner(&mut vnettop, "docker0", "Docker's network", |owner| owner["name"] == "bench-net");
        let expected = known("network", "bench-net", Some("0d0d0d0d0d0d"), "docker");
        assert_eq!(owner, expected, "as Docker calls it");
        drop(docker);
        netns.run("ip link add dummy7 type bridge");
        for _ in 0..15 {
            let object = vnettop.next();
            assert_eq!(link(&object, "docker0").expect("it stays")["owner"], expected, "never back to a guess");
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_docker_that_misbehaves_costs_no_tick() {
    needs(&["python3"]);
    for (manner, told) in
        [("silent", "sent nothing"), ("early", "incomplete"), ("wrong", "not HTTP"), ("endless", "longer than")]
    {
        let netns = Netns::new();
        netns.run("ip link add docker0 type bridge");
        let (_docker, mut vnettop, _directory) = beside_docker(&netns, manner);
        let mut text = String::new();
        await_that(&format!("a Docker that is {manner} is told of"), 60, || {
            let object = vnettop.next();
            let elapsed = object["elapsed_s"].as_f64().expect("it has ticked");
            assert!(elapsed < 2.0, "a tick does not wait for a Docker that is {manner}, this took {elapsed} s");
            assert_eq!(link(&object, "docker0").expect("it is there")["owner"]["guess"], true, "it stays a guess");
            let problems = object["problems"].as_array().expect("a list");
            let owners: Vec<&Value> = problems.iter().filter(|problem| problem["source"] == "owners").collect();
            assert!(owners.len() <= 1, "one sentence: {owners:?}");
            text = owners.first().map_or_else(String::new, |problem| problem["text"].to_string());
            !text.is_empty()
        });
        assert!(text.contains(told), "why no name is known: {text}");
    }
}
