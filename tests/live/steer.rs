//! Steering on the real kernel: a veth pair in a namespace of the test's own, its files in sysfs read by `cat` inside, put back
//! byte for byte; a vnettop that is gone, a link that is renamed.

use crate::ground::{Netns, VNETTOP, needs};
use std::path::Path;
use std::process::Command;
use vnettop::effect::{Kernel, Outcome, PinController, SteerRequest};
use vnettop::sample::{CoreSet, Ifindex, LinkKey, SteerSetting, SteerValue};

/// Python: `ethtool -K v0 gro on`.
const GRO_ON: &str = "
import ctypes, fcntl, socket, struct
on = ctypes.create_string_buffer(struct.pack('II', 0x2c, 1))
fcntl.ioctl(socket.socket(), 0x8946, struct.pack('16sP16x', b'v0', ctypes.addressof(on)))";

/// A namespace with `v0` and `v1`, a pair with two queues each way.
struct SteeredPair {
    netns: Netns,
    link: LinkKey,
}

impl SteeredPair {
    fn new() -> Self {
        needs(&["ip", "unshare", "nsenter", "python3"]);
        let netns = Netns::new();
        netns.run(
            "ip link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1 numrxqueues 2 numtxqueues 2
             ip link set v0 up; ip link set v1 up",
        );
        let path = format!("/proc/{}/ns/net", netns.pid());
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("the namespace is there"));
        let link = LinkKey { netns: inode, ifindex: Ifindex(0) };
        let mut pair = Self { netns, link };
        pair.link.ifindex =
            Ifindex(pair.cat("ip link show v0 | cut -d: -f1 | head -1").trim().parse().expect("a number"));
        pair
    }

    /// What a shell line prints where /sys is that of the namespace.
    fn cat(&self, line: &str) -> String {
        let script = format!("mount -t sysfs sysfs /sys && {line}");
        let out = self.netns.command("unshare").args(["-m", "sh", "-ec", &script]).output().expect("unshare runs");
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("text")
    }

    /// Everything that may be steered of the link, as it is.
    fn all(&self, name: &str) -> String {
        self.cat(&format!(
            "cd /sys/class/net/{name}; cat queues/rx-*/rps_cpus queues/rx-*/rps_flow_cnt queues/tx-*/xps_cpus threaded"
        ))
    }

    fn request(&self, setting: SteerSetting, value: SteerValue) -> SteerRequest {
        SteerRequest { link: self.link, name: "v0".to_owned(), setting, value }
    }

    fn four(&self) -> [SteerRequest; 4] {
        let core = || SteerValue::Cores(CoreSet::single(0));
        [
            self.request(SteerSetting::RpsCpus, core()),
            self.request(SteerSetting::RpsFlowCnt, SteerValue::Number(1000)),
            self.request(SteerSetting::XpsCpus, core()),
            self.request(SteerSetting::Threaded, SteerValue::Number(1)),
        ]
    }
}

fn said(outcome: &Outcome) -> String {
    outcome.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn controller(state: &Path) -> PinController {
    PinController::new(Box::new(Kernel), Some(state.join("vnettop")), false)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn settings_are_steered_and_put_back_byte_for_byte() {
    let pair = SteeredPair::new();
    // `threaded` of a veth needs it.
    assert!(pair.netns.command("python3").args(["-c", GRO_ON]).status().expect("python3 runs").success());
    let before = pair.all("v0");
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let told = said(&controller.steer(&pair.four()));
    assert!(told.contains("rps_cpus of v0 (2 queues) set to 1 (before: "), "{told}");
    assert!(
        told.contains("rps_flow_cnt of v0 (2 queues) set to 1024: the kernel rounds 1000 up (before: 0)"),
        "{told}"
    );
    assert!(told.contains("xps_cpus of v0 (2 queues) set to 1 (before: "), "{told}");
    assert!(told.contains("threaded of v0 set to 1 (before: 0)\n4 of 4 settings of links changed"), "{told}");
    let during = pair.cat("cat /sys/class/net/v0/queues/rx-1/rps_cpus /sys/class/net/v0/queues/rx-0/rps_flow_cnt");
    assert!(during.starts_with(['0', '1']) && during.contains("1\n1024\n"), "{during}");
    pair.netns.run("ip link set v0 down; ip link set v0 name v9; ip link set v9 up");
    let told = said(&controller.restore());
    assert!(told.contains("rps_cpus of v9 (v0 before) (2 queues) is back to 0"), "{told}");
    assert_eq!((pair.all("v9"), controller.steers()), (before, 0), "{told}");
    assert_eq!(std::fs::read_dir(state.path().join("vnettop")).expect("made").count(), 0, "no journal is left");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_vnettop_that_is_gone_steered_is_undone() {
    let pair = SteeredPair::new();
    let before = pair.all("v0");
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut gone = controller(state.path());
    let told = said(&gone.steer(&pair.four()));
    assert_ne!(pair.all("v0"), before, "{told}");
    assert!(said(&gone.staying()).contains("settings of links stay changed: vnettop undo restores them"));
    drop(gone);
    let dir = state.path().join("vnettop");
    let undo = || {
        let out = Command::new(VNETTOP).arg("undo").env("XDG_STATE_HOME", state.path()).output().expect("it runs");
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    let told = undo();
    assert!(told.contains("still runs"), "the journal is that of a process that runs: {told}");
    // The writer is said to be another process, which is gone.
    let journal = std::fs::read_dir(&dir).expect("made").next().expect("a journal").expect("readable").path();
    let text = std::fs::read_to_string(&journal).expect("text");
    let (first, rest) = text.split_once('\n').expect("lines");
    let own = format!("\"pid\":{}", std::process::id());
    std::fs::write(&journal, first.replace(&own, "\"pid\":4194303") + "\n" + rest).expect("written");
    let xps = pair.cat("cat /sys/class/net/v0/queues/tx-1/xps_cpus; echo 2 > /sys/class/net/v0/queues/tx-1/xps_cpus");
    pair.netns.run("ip link set v0 down; ip link set v0 up");
    let told = undo();
    let line =
        "sh -c 'mount -t sysfs sysfs /sys && exec sh -c \"$0\"' 'echo 0 > /sys/class/net/v0/queues/tx-1/xps_cpus'";
    assert!(told.contains("set by another program since, and is not changed") && told.contains(line), "{told} {xps}");
    let mends = told.split("and is not changed; ").nth(1).expect("a line").split(" restores the value").next();
    let mended = Command::new("sh").args(["-c", mends.expect("a line")]).output().expect("sh runs");
    assert!(
        mended.status.success(),
        "what it tells to type works: {mends:?} {}",
        String::from_utf8_lossy(&mended.stderr)
    );
    assert_eq!(pair.all("v0"), before, "{told}");
    assert_eq!(std::fs::read_dir(&dir).expect("made").count(), 0, "no journal is left: {told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_the_kernel_refuses_to_steer_is_told() {
    let pair = SteeredPair::new();
    pair.netns.run("ip link add w0 numtxqueues 1 type veth peer name w1");
    let ifindex = pair.netns.output("cat /proc/net/igmp >/dev/null; ip -o link show w0 | cut -d: -f1");
    let link = LinkKey { ifindex: Ifindex(ifindex.trim().parse().expect("a number")), ..pair.link };
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let request = |setting, value| SteerRequest { link, name: "w0".to_owned(), setting, value };
    let told = said(&controller.steer(&[
        request(SteerSetting::XpsCpus, SteerValue::Cores(CoreSet::single(0))),
        request(SteerSetting::RpsCpus, SteerValue::Cores(CoreSet::single(8191))),
        request(SteerSetting::Threaded, SteerValue::Number(1)),
    ]));
    assert!(told.contains("w0 has one transmit queue: xps_cpus does not exist there"), "{told}");
    assert!(told.contains("this kernel does not have all of core 8191"), "{told}");
    assert!(told.contains("turn GRO on first (ethtool -K w0 gro on)"), "{told}");
    assert!(told.contains("0 of 3 settings of links changed") && controller.steers() == 0, "{told}");
    pair.netns.run("ip link del w0");
    let told = said(&controller.steer(&[request(SteerSetting::RpsCpus, SteerValue::Cores(CoreSet::single(0)))]));
    assert!(told.contains("rps_cpus of w0 was not changed: the link is gone"), "{told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn switches_the_root_qdisc_and_the_backlog_are_set_and_restored() {
    let pair = SteeredPair::new();
    needs(&["ethtool", "tc"]);
    pair.netns.run("ethtool -K v0 tso off");
    let all = || {
        let links = pair.cat("ethtool -k v0; ethtool -k v1; tc qdisc show dev v0; tc qdisc show dev v1");
        links + &std::fs::read_to_string(BACKLOG).expect("the machine has one")
    };
    let before = all();
    let own = format!("/proc/{}/ns/net", std::process::id());
    let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(own).expect("there is a /proc"));
    let own_lo = LinkKey { netns: inode, ifindex: Ifindex(1) };
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let requests = [
        pair.request(SteerSetting::Gro, SteerValue::Number(1)),
        pair.request(SteerSetting::Tso, SteerValue::Number(1)),
        pair.request(SteerSetting::Qdisc, SteerValue::Kind("pfifo_fast".to_owned())),
        SteerRequest {
            link: own_lo,
            name: "lo".to_owned(),
            setting: SteerSetting::NetdevMaxBacklog,
            value: SteerValue::Number(4321),
        },
    ];
    let told = said(&controller.steer(&requests));
    for line in [
        "gro of v0 set to 1 (before: 0)",
        "tso of v0 set to 1 (before: 0)",
        "qdisc of v0 set to pfifo_fast (before: noqueue)",
        "netdev_max_backlog set to 4321 (before: ",
        "4 of 4 settings of links changed",
    ] {
        assert!(told.contains(line), "{line} is missing: {told}");
    }
    let during = all();
    let has = |line: &str| during.contains(line);
    assert!(has("generic-receive-offload: on") && has("qdisc pfifo_fast") && has("4321"), "{during}");
    let told = said(&controller.restore());
    assert!(told.contains("qdisc of v0 is back to noqueue"), "{told}");
    assert_eq!((all(), controller.steers()), (before, 0), "{told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_switch_that_the_kernel_only_wishes_for_is_taken_back() {
    let pair = SteeredPair::new();
    needs(&["ethtool"]);
    // Without checksums there is no TSO.
    pair.netns.run("ethtool -K v0 tx off tso off");
    let before = pair.cat("ethtool -k v0");
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let told = said(&controller.steer(&[pair.request(SteerSetting::Tso, SteerValue::Number(1))]));
    assert!(told.contains("tso of v0 was not changed to 1: a feature it needs is off"), "{told}");
    assert_eq!((pair.cat("ethtool -k v0"), controller.steers()), (before, 0), "no wish stays: {told}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_qdisc_that_somebody_has_changed_since_is_left() {
    let pair = SteeredPair::new();
    needs(&["tc"]);
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let value = SteerValue::Kind("pfifo".to_owned());
    let told = said(&controller.steer(&[pair.request(SteerSetting::Qdisc, value.clone())]));
    assert!(told.contains("qdisc of v0 set to pfifo (before: noqueue)"), "{told}");
    pair.netns.run("tc qdisc change dev v0 root pfifo limit 77");
    let told = said(&controller.restore());
    assert!(told.contains("set by another program since, and is not changed"), "{told}");
    assert!(pair.cat("tc qdisc show dev v0").contains("limit 77p"), "{told}");
    pair.netns.run("ip link add w0 txqueuelen 0 type veth peer name w1; ip link set w0 up");
    let index = pair.cat("ip link show w0 | cut -d: -f1 | head -1");
    let link = LinkKey { ifindex: Ifindex(index.trim().parse().expect("a number")), ..pair.link };
    let request = SteerRequest { link, name: "w0".to_owned(), setting: SteerSetting::Qdisc, value };
    let told = said(&controller.steer(&[request]));
    assert!(told.contains("its queue has length 0, which a qdisc would change for good"), "{told}");
}

/// Packets that wait for a core at most, of the whole machine.
const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_qdisc_that_could_not_be_restored_is_left_alone() {
    let pair = SteeredPair::new();
    needs(&["tc"]);
    pair.netns.run("tc qdisc add dev v0 root tbf rate 1gbit burst 64k limit 1m");
    let before = pair.cat("tc qdisc show dev v0");
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let kind = |kind: &str| SteerValue::Kind(kind.to_owned());
    let told = said(&controller.steer(&[pair.request(SteerSetting::Qdisc, kind("pfifo_fast"))]));
    assert!(told.contains("qdisc of v0 was not changed: tbf could not be restored with its parameters"), "{told}");
    let told = said(&controller.steer(&[pair.request(SteerSetting::Qdisc, kind("netem loss 100%"))]));
    assert!(told.contains("qdisc of v0 was not changed: netem loss 100% is no value for it"), "{told}");
    let told = said(&controller.steer(&[pair.request(SteerSetting::Gro, SteerValue::Number(7))]));
    assert!(told.contains("gro of v0 was not changed: 7 is no value for it"), "{told}");
    let told = said(&controller.steer(&[pair.request(SteerSetting::Interrupt, SteerValue::Cores(CoreSet::single(0)))]));
    assert!(told.contains("its device names no interrupt for receiving"), "{told}");
    assert_eq!(pair.cat("tc qdisc show dev v0"), before, "nothing was touched");
    assert_eq!(std::fs::read_dir(state.path().join("vnettop")).map_or(0, Iterator::count), 0, "nor journalled");
}

/// The first link of the machine whose driver names an interrupt for what it receives, and that interrupt's number.
fn interrupted() -> Option<(String, u32)> {
    let table = std::fs::read_to_string("/proc/interrupts").ok()?;
    let names = std::fs::read_dir("/sys/class/net").ok()?.flatten();
    names.into_iter().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let device = std::fs::canonicalize(entry.path().join("device")).ok()?;
        let word = format!("{}-input.0", device.file_name()?.to_str()?);
        let line = table.lines().find(|line| line.ends_with(&word))?;
        Some((name, line.split(':').next()?.trim().parse().ok()?))
    })
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_interrupt_is_moved_to_a_core_and_back() {
    let Some((name, irq)) = interrupted() else {
        eprintln!("NOT RUN: an_interrupt_is_moved_to_a_core_and_back: no link of this machine names its interrupts");
        return;
    };
    let mask = || std::fs::read_to_string(format!("/proc/irq/{irq}/smp_affinity")).expect("it has cores");
    let before = mask();
    let index = std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).expect("it has a number");
    let own = format!("/proc/{}/ns/net", std::process::id());
    let netns = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(own).expect("there is a /proc"));
    let link = LinkKey { netns, ifindex: Ifindex(index.trim().parse().expect("a number")) };
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut controller = controller(state.path());
    let core = u32::from(before.trim().ends_with('1'));
    let value = SteerValue::Cores(CoreSet::single(core));
    let told = said(&controller.steer(&[SteerRequest { link, name, setting: SteerSetting::Interrupt, value }]));
    assert!(
        told.contains("smp_affinity of interrupts of ") && told.contains(&format!("(irq-{irq}) set to ")),
        "{told}"
    );
    assert_eq!(CoreSet::from_mask(mask().trim()), Some(CoreSet::single(core)), "{told}");
    let effective = std::fs::read_to_string(format!("/proc/irq/{irq}/effective_affinity")).unwrap_or_default();
    let is_there = CoreSet::from_mask(effective.trim()) == Some(CoreSet::single(core));
    assert!(is_there != told.contains("until then another core handles it"), "{effective} {told}");
    let told = said(&controller.restore());
    assert_eq!(mask(), before, "{told}");
}
