//! Owners of links of a machine made of files: containers by their processes, names by a Docker, names that stay.

use super::*;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use vnettop_sample::{LinkKey, PeerRef};

const ID: &str = "a51cac518006d1e5b7e2d64fbb2d2f0a1a8f7c1e0c9b8a7d6e5f4a3b2c1d0e9f";
const UID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const SECOND: u64 = 1_000_000_000;
const OWN: u64 = 10;

type Links = Arc<Vec<Arc<LinkFacts>>>;

struct OwnersMachine {
    root: tempfile::TempDir,
    reader: OwnerReader,
}

impl OwnersMachine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("writable");
        fs::create_dir(root.path().join("proc")).expect("writable");
        let docker = Docker::at(root.path().join("docker.sock"));
        let reader = OwnerReader::of(
            &root.path().join("proc"),
            OWN,
            docker,
            Pods::at(root.path().join("pods")),
            Networks::below(root.path().join("etc").to_str().expect("text")),
        );
        Self { root, reader }
    }

    fn process(&self, pid: u32, netns: u64, cgroup: &str) -> PathBuf {
        let directory = self.root.path().join("proc").join(pid.to_string());
        for name in ["ns", "fd", "fdinfo"] {
            fs::create_dir_all(directory.join(name)).expect("writable");
        }
        fs::write(directory.join("cgroup"), format!("0::{cgroup}\n")).expect("writable");
        symlink(format!("net:[{netns}]"), directory.join("ns/net")).expect("writable");
        directory
    }

    /// A process with a descriptor of this device.
    fn holder(&self, pid: u32, comm: &str, target: &str, link: &str) {
        let directory = self.process(pid, OWN, "/user.slice");
        fs::write(directory.join("comm"), format!("{comm}\n")).expect("writable");
        symlink(target, directory.join("fd/5")).expect("writable");
        fs::write(directory.join("fdinfo/5"), format!("pos:\t0\niff:\t{link}\n")).expect("writable");
    }

    /// In each namespace lives who is told of it.
    fn look(&mut self, spaces: &Arc<Vec<Space>>, links: &Links, now_ns: u64) -> Arc<Vec<Owned>> {
        let living = |netns| spaces.iter().filter(|space| space.netns == netns).filter_map(|space| space.pid).collect();
        let mut owned = self.reader.read(spaces, living, links, now_ns);
        while self.reader.holders.is_searching() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            owned = self.reader.read(spaces, living, links, now_ns);
        }
        owned
    }

    fn read(&mut self, spaces: &Arc<Vec<Space>>, links: &Links, now_ns: u64) -> Vec<(u32, String)> {
        let owned = self.look(spaces, links, now_ns);
        owned.iter().map(|owned| (owned.link.ifindex.0, owned.owner.name.clone())).collect()
    }
}

fn space(netns: u64, pid: Option<u32>) -> Space {
    Space { netns, name: None, pid, rests: false }
}

fn link(netns: u64, ifindex: u32, name: &str, kind: Kind) -> LinkFacts {
    LinkFacts { born: u64::from(ifindex), ..LinkFacts::new(LinkKey { netns, ifindex: Ifindex(ifindex) }, name, kind) }
}

fn veth(netns: u64, ifindex: u32, name: &str, peer: u64) -> LinkFacts {
    let peer = PeerRef { netnsid: Some(0), netns: Some(peer), ifindex: Ifindex(2) };
    LinkFacts { peer: Some(peer), ..link(netns, ifindex, name, Kind::Veth) }
}

fn links(all: Vec<LinkFacts>) -> Links {
    Arc::new(all.into_iter().map(Arc::new).collect())
}

/// A container's namespace 20 with eth0, its other end on docker0.
fn docker_host() -> (Arc<Vec<Space>>, Links) {
    let spaces = Arc::new(vec![space(OWN, Some(1)), space(20, Some(7))]);
    let bridge = link(OWN, 3, "docker0", Kind::Bridge);
    let port = LinkFacts { master: Some(Ifindex(3)), ..veth(OWN, 5, "vetha6c37c1", 20) };
    let links = vec![link(OWN, 1, "lo", Kind::Loopback), bridge, port, veth(20, 12, "eth0", OWN)];
    (spaces, Arc::new(links.into_iter().map(Arc::new).collect()))
}

/// Answers like Docker until it is dropped.
fn docker(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).expect("a socket");
    let served = listener.try_clone().expect("cloned");
    std::thread::spawn(move || {
        for mut stream in served.incoming().flatten() {
            let mut question = [0; 1024];
            let length = stream.read(&mut question).unwrap_or(0);
            let body = match String::from_utf8_lossy(&question[..length]).split(' ').nth(1) {
                Some("/networks") => include_str!("../../../../tests/fixtures/owners/networks.json"),
                _ => include_str!("../../../../tests/fixtures/owners/containers.json"),
            };
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    listener
}

#[test]
fn both_ends_of_a_container_s_pair_are_the_container_s() {
    let mut machine = OwnersMachine::new();
    machine.process(7, 20, &format!("/docker/{ID}"));
    let (spaces, links) = docker_host();
    let id = || "a51cac518006".to_owned();
    let by_id = [(3, "docker".to_owned()), (5, id()), (12, id())];
    assert_eq!(machine.read(&spaces, &links, SECOND), by_id, "by the id while nobody knows the name");
    let owned = machine.look(&spaces, &links, SECOND);
    assert!(owned[0].owner.guess && !owned[1].owner.guess, "what only the name of the bridge says is a guess");
    assert_eq!((&owned[1].owner.by, owned[1].owner.id.as_deref()), (&OwnerBy::Docker, Some("a51cac518006")));
}

#[test]
fn docker_s_name_replaces_the_id_and_never_goes_back() {
    let mut machine = OwnersMachine::new();
    machine.process(7, 20, &format!("/docker/{ID}"));
    let (spaces, links) = docker_host();
    let path = machine.root.path().join("docker.sock");
    let listener = docker(&path);
    let mut now_ns = 0;
    let named = [(3, "bridge".to_owned()), (5, "container1".to_owned()), (12, "container1".to_owned())];
    while machine.read(&spaces, &links, now_ns) != named {
        std::thread::sleep(std::time::Duration::from_millis(1));
        now_ns += 1_000_000;
        assert!(now_ns < 60 * SECOND, "the names are there before a minute has passed");
    }
    let settled = machine.look(&spaces, &links, now_ns);
    assert_eq!(machine.reader.due_ns, u64::MAX, "with every name known there is nothing left to do");
    fs::remove_file(&path).expect("removable");
    drop(listener);
    fs::remove_dir_all(machine.root.path().join("proc/7")).expect("removable");
    for (second, links) in [(10, docker_host().1), (20, docker_host().1)] {
        let owned = machine.look(&spaces, &links, now_ns + second * SECOND);
        assert!(Arc::ptr_eq(&owned, &settled), "without Docker and without the process the names are the same");
    }
    let reborn = links.iter().map(|link| Arc::new(LinkFacts { born: link.born + 100, ..(**link).clone() })).collect();
    let bridge = [(3, "bridge".to_owned())];
    let gone = Arc::new(vec![space(OWN, Some(1))]);
    assert_eq!(machine.read(&gone, &Arc::new(reborn), now_ns + 30 * SECOND), bridge, "a new pair has no old name");
}

#[test]
fn a_quiet_tick_touches_nothing() {
    let mut machine = OwnersMachine::new();
    let (spaces, links) = (Arc::new(vec![space(OWN, Some(1))]), links(vec![link(OWN, 1, "lo", Kind::Loopback)]));
    let first = machine.look(&spaces, &links, 0);
    assert_eq!(machine.reader.due_ns, u64::MAX, "nothing is to be asked on a machine without anybody");
    assert!(Arc::ptr_eq(&first, &machine.look(&spaces, &links, 100 * SECOND)), "the same list");
}

#[test]
fn a_pod_has_the_name_of_its_logs_and_a_network_is_guessed_by_its_name() {
    let mut machine = OwnersMachine::new();
    machine.process(7, 20, &format!("/kubepods/besteffort/pod{UID}/{ID}"));
    let spaces = Arc::new(vec![space(OWN, Some(1)), space(20, Some(7))]);
    let port = LinkFacts { master: Some(Ifindex(4)), ..veth(OWN, 9, "veth12345678", 30) };
    let links = links(vec![
        veth(OWN, 2, "cali1a2b3c", 20),
        veth(OWN, 3, "cali4d5e6f", 30),
        link(OWN, 4, "cni0", Kind::Bridge),
        link(OWN, 5, "flannel.1", Kind::Vxlan),
        veth(OWN, 6, "lxc0a1b2c3d", 30),
        link(OWN, 7, "cilium_host", Kind::Veth),
        link(OWN, 8, "br-0d2c4b6a8f9e", Kind::Bridge),
        port,
        link(OWN, 10, "br-office", Kind::Bridge),
        link(OWN, 11, "lxcfoo", Kind::Bridge),
    ]);
    let owned = machine.look(&spaces, &links, 0);
    let names: Vec<_> =
        owned.iter().map(|owned| (owned.link.ifindex.0, &*owned.owner.name, owned.owner.guess)).collect();
    let expected = [
        (2, UID, false),
        (3, "calico", true),
        (4, "cni", true),
        (5, "flannel", true),
        (6, "cilium", true),
        (7, "cilium", true),
        (8, "0d2c4b6a8f9e", true),
        (9, "cni", true),
    ];
    assert_eq!(names, expected, "a pod where the namespace tells, else a guess, else nobody");
    fs::create_dir_all(machine.root.path().join("pods").join(format!("default_web-7d4b9c_{UID}"))).expect("writable");
    let owned = machine.look(&spaces, &links, 2 * SECOND);
    assert_eq!(owned[0].owner.pod(), Some(("default", "web-7d4b9c")), "the kubelet's directory has the name");
    assert_eq!((owned[0].owner.kind, owned[0].owner.id.as_deref()), (OwnerKind::Pod, Some(UID)));
}

#[test]
fn who_holds_a_tap_owns_it() {
    let mut machine = OwnersMachine::new();
    machine.holder(70, "qemu", "/dev/net/tun", "tap0");
    fs::write(machine.root.path().join("proc/70/cmdline"), "qemu-kvm\0-name\0guest=web\0").expect("writable");
    machine.holder(71, "openvpn", "/dev/net/tun", "tun0");
    machine.holder(72, "passt", "/dev/tap9", "");
    let spaces = Arc::new(vec![space(OWN, Some(1))]);
    let tap = |ifindex, name, kind| link(OWN, ifindex, name, kind);
    let all = vec![
        tap(2, "tap0", Kind::Tap),
        tap(3, "tun0", Kind::Tun),
        tap(4, "tun1", Kind::Tun),
        tap(9, "mt", Kind::Macvtap),
    ];
    let mut now_ns = 0;
    let links = links(all);
    let owned = machine.read(&spaces, &links, now_ns);
    let expected = [(2, "web".to_owned()), (3, "openvpn 71".to_owned()), (9, "passt 72".to_owned())];
    assert_eq!(owned, expected, "each by its holder; a tun that nobody holds is nobody's");
    // It ends, and another takes the link, which has stayed.
    fs::remove_dir_all(machine.root.path().join("proc/71")).expect("removable");
    machine.holder(90, "tincd", "/dev/net/tun", "tun0");
    while machine.read(&spaces, &links, now_ns)[1].1 != "tincd 90" {
        now_ns += SECOND / 2;
        assert!(now_ns < 60 * SECOND, "the new holder is found");
    }
    assert!(now_ns <= 10 * SECOND, "within seconds, here {} s", now_ns / SECOND);
}

#[test]
fn of_two_links_of_one_name_the_holder_s_own_namespace_decides() {
    let mut machine = OwnersMachine::new();
    machine.holder(70, "openvpn", "/dev/net/tun", "tun0");
    let spaces = Arc::new(vec![space(OWN, Some(1)), space(20, None), space(30, None)]);
    let tun = |netns, name| link(netns, 5, name, Kind::Tun);
    let lo = || link(OWN, 1, "lo", Kind::Loopback);
    let both = links(vec![lo(), tun(OWN, "tun0"), tun(20, "tun0")]);
    let owned = machine.look(&spaces, &both, 0);
    assert_eq!(owned.iter().map(|owned| owned.link.netns).collect::<Vec<_>>(), [OWN], "the one beside it");
    let elsewhere = links(vec![lo(), tun(20, "tun0"), tun(30, "tun0")]);
    assert_eq!(machine.look(&spaces, &elsewhere, SECOND).len(), 0, "of two elsewhere nobody can tell which");
    let unseen = links(vec![tun(20, "tun0")]);
    assert_eq!(machine.look(&spaces, &unseen, SECOND).len(), 0, "nor whether one is meant that is not seen");
    let moved = links(vec![lo(), tun(20, "tun0"), tun(30, "tun1")]);
    assert_eq!(machine.look(&spaces, &moved, 2 * SECOND).len(), 1, "the only one was moved there");
}

#[test]
fn the_namespaces_of_an_overlay_and_of_its_balancer_are_its_network_s() {
    let mut machine = OwnersMachine::new();
    let _listener = docker(&machine.root.path().join("docker.sock"));
    let overlay = Space { name: Some("1-u4d4dqkmzz".to_owned()), ..space(20, None) };
    let balancer = Space { name: Some("lb_u4d4dqkmz".to_owned()), ..space(21, None) };
    let ingress = Space { name: Some("ingress_sbox".to_owned()), ..space(22, None) };
    let spaces = Arc::new(vec![space(OWN, Some(1)), overlay, balancer, ingress]);
    let lo = |netns| link(netns, 1, "lo", Kind::Loopback);
    let inside = vec![
        lo(20),
        link(20, 2, "br0", Kind::Bridge),
        link(20, 3, "vxlan0", Kind::Vxlan),
        lo(21),
        link(21, 4, "eth0", Kind::Veth),
        lo(22),
    ];
    let (links, mut now_ns) = (links(inside), 0);
    let over = |ifindex| (ifindex, "over".to_owned());
    let expected = [over(1), over(2), over(3), over(1), over(4), (1, "front".to_owned())];
    while machine.read(&spaces, &links, now_ns) != expected {
        std::thread::sleep(std::time::Duration::from_millis(1));
        now_ns += 1_000_000;
        assert!(now_ns < 60 * SECOND, "Docker's name for it is there before a minute has passed");
    }
}

#[test]
fn a_held_link_s_namesake_is_not_its_holder_s() {
    let mut machine = OwnersMachine::new();
    machine.holder(70, "openvpn", "/dev/net/tun", "tun0");
    let spaces = Arc::new(vec![space(OWN, Some(1)), space(20, None)]);
    let tun = |netns| link(netns, 5, "tun0", Kind::Tun);
    let both = links(vec![tun(OWN), tun(20)]);
    for second in 0..40 {
        let owned = machine.look(&spaces, &both, second * SECOND);
        let owners = owned.iter().map(|owned| owned.link.netns).collect::<Vec<_>>();
        assert_eq!(owners, [OWN], "the other tun0 stays nobody's, also after {second} s");
    }
}

#[test]
fn what_a_real_docker_answered_is_understood() {
    let mut machine = OwnersMachine::new();
    let path = machine.root.path().join("docker.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut question = [0; 1024];
            let length = stream.read(&mut question).unwrap_or(0);
            let answer = match String::from_utf8_lossy(&question[..length]).split(' ').nth(1) {
                Some("/networks") => {
                    &include_bytes!("../../../../tests/fixtures/owners/docker-20.10-networks.http")[..]
                }
                _ => &include_bytes!("../../../../tests/fixtures/owners/docker-20.10-containers.http")[..],
            };
            let _ = stream.write_all(answer);
        }
    });
    let id = "283257723f025754f0e7b3f7692b5f2d2ca509fca3c8b345690129a5e4b5d676";
    machine.process(7, 20, &format!("/docker/{id}"));
    let spaces = Arc::new(vec![space(OWN, Some(1)), space(20, Some(7))]);
    let bridge = link(OWN, 4, "br-c05cd12c0d73", Kind::Bridge);
    let links = links(vec![link(OWN, 3, "docker0", Kind::Bridge), bridge, veth(OWN, 6, "veth49302c0", 20)]);
    let expected = [(3, "bridge".to_owned()), (4, "bench-net".to_owned()), (6, "container1".to_owned())];
    let mut now_ns = 0;
    while machine.read(&spaces, &links, now_ns) != expected {
        std::thread::sleep(std::time::Duration::from_millis(1));
        now_ns += 1_000_000;
        assert!(now_ns < 60 * SECOND, "both networks and the container have their names before a minute has passed");
    }
}
