//! Cores as a user meets them: captured machines, made ones, and the kernel that runs the tests.

use crate::fixture::Tree;
use crate::fixture::machine::Machine;
use std::collections::HashSet;
use std::sync::Arc;
use vnettop::sample::{CorePlace, CoreSet, SoftirqKind, Topology};
use vnettop::source::cores::{CoreReader, CoreReading};
use vnettop::source::{Roots, SourceError};

fn read(tree: &Tree) -> CoreReading {
    CoreReader::open(&tree.roots()).expect("the tree has /proc/stat").read().expect("it reads")
}

fn numbers(topology: &Topology, level: fn(&CorePlace) -> Option<u32>) -> usize {
    topology.cores.iter().filter_map(level).collect::<HashSet<_>>().len()
}

fn place(topology: &Topology, core: u32) -> CorePlace {
    *topology.place(core).expect("the core is present")
}

#[test]
fn a_128_core_arm_server_shows_all_its_circles() {
    let tree = Tree::captured("arm64-128");
    let by_device_tree = read(&tree).topology;
    tree.overlay("arm64-128-acpi");
    let by_acpi = read(&tree).topology;
    assert_eq!(by_device_tree, by_acpi, "firmware numbers differ, the machine does not");
    assert_eq!(by_acpi.cores.len(), 128, "every core is there");
    assert_eq!(by_acpi.nodes, 4, "four NUMA nodes");
    assert_eq!(numbers(&by_acpi, |place| place.socket), 2, "two sockets");
    assert_eq!(numbers(&by_acpi, |place| place.cluster), 32, "32 clusters");
    assert_eq!(numbers(&by_acpi, |place| place.physical), 128, "no SMT");
    for place in &by_acpi.cores {
        let core = place.core;
        let expected = CorePlace {
            core,
            online: true,
            physical: Some(core),
            cluster: Some(core / 4),
            llc: Some(core / 32),
            node: Some(core / 32),
            socket: Some(core / 64),
            capacity: None,
        };
        assert_eq!(*place, expected, "core {core} sits where the machine has it; equal capacities say nothing");
    }
}

#[test]
fn an_smt_server_shows_its_physical_cores_and_no_false_clusters() {
    let topology = read(&Tree::captured("amd64-16-smt")).topology;
    assert_eq!((topology.cores.len(), topology.nodes), (16, 2), "16 cores, 2 nodes");
    assert_eq!(numbers(&topology, |place| place.physical), 8, "8 physical cores");
    assert_eq!(numbers(&topology, |place| place.cluster), 0, "a cluster of one physical core is none");
    let eleven = place(&topology, 11);
    assert_eq!(
        (eleven.physical, eleven.llc, eleven.node, eleven.socket),
        (Some(10), Some(1), Some(1), Some(1)),
        "core 11"
    );
}

#[test]
fn captured_counters_advance_as_their_load_did() {
    let tree = Tree::captured("arm64-128");
    let mut reader = CoreReader::open(&tree.roots()).expect("the tree has /proc/stat");
    let first = reader.read().expect("it reads");
    tree.overlay("arm64-128-later");
    let later = reader.read().expect("it reads again");
    assert_eq!(reader.problems(), [], "nothing is missing");
    assert!(Arc::ptr_eq(&first.topology, &later.topology), "no core came or went, so the topology is the same value");
    let ticks = |reading: &CoreReading| -> Vec<u64> {
        reading.cores.iter().map(|row| row.user + row.system + row.irq + row.softirq + row.steal + row.idle).collect()
    };
    for (core, (from, to)) in ticks(&first).into_iter().zip(ticks(&later)).enumerate() {
        assert!((100..260).contains(&(to - from)), "core {core} counted {} ticks in 1.8 s", to - from);
    }
    let busy = |reading: &CoreReading| reading.cores.iter().map(|row| row.user + row.system + row.softirq).sum::<u64>();
    let busy = busy(&later) - busy(&first);
    assert!(
        (600..1100).contains(&busy),
        "three loops, a sender and a receiver make about five busy cores: {busy} ticks"
    );
    let received = |reading: &CoreReading| -> u64 {
        reading.cores.iter().filter_map(|row| row.softirqs[SoftirqKind::NetRx as usize]).sum()
    };
    assert!(received(&later) > received(&first) + 1000, "iperf3 makes NET_RX softirqs");
    let row = first.cores[127];
    assert!(row.core == 127 && row.softnet.is_some(), "the 128th row of softnet_stat is beyond the first 4 KiB");
    assert_eq!(first.cores[0].softnet.map(|row| (row.processed, row.squeezed)), Some((0x408, 3)), "as captured");
}

#[test]
fn offline_cores_are_present_and_bring_the_topology_up_to_date() {
    let mut machine = Machine::smt();
    machine.offline = [3, 8, 9].into_iter().collect();
    let tree = machine.tree();
    tree.write("proc/stat", &machine.stat(|core| [u64::from(core), 1, 0, 0, 0, 0, 0, 0]));
    tree.write("proc/softirqs", &machine.softirqs(|core, kind| u64::from(core) + u64::from(kind == "NET_RX") * 100));
    tree.write("proc/net/softnet_stat", &machine.softnet(|core| [core, 0, 0]));
    let mut reader = CoreReader::open(&tree.roots()).expect("the tree has /proc/stat");
    let before = reader.read().expect("it reads");
    assert_eq!((before.cores.len(), before.topology.cores.len()), (13, 16), "13 of 16 cores count");
    for row in &before.cores {
        let core = u64::from(row.core);
        assert_eq!(row.user, core + 1, "core {core} has its own line of stat");
        assert_eq!(row.softirqs[SoftirqKind::NetRx as usize], Some(core + 100), "core {core} has its own column");
        assert_eq!(row.softnet.map(|row| u64::from(row.processed)), Some(core), "core {core} has its own row");
    }
    let offline = place(&before.topology, 3);
    assert_eq!((offline.online, offline.physical, offline.node), (false, None, None), "an offline core sits nowhere");
    assert_eq!(place(&before.topology, 2).physical, Some(2), "its sibling is alone");
    machine.offline = CoreSet::new();
    machine.write_online(&tree);
    let after = reader.read().expect("it reads");
    assert_eq!(after.cores.len(), 16, "cores that came online are counted at once");
    assert_eq!(place(&after.topology, 3).physical, Some(2), "and have found their place");
    assert!(!Arc::ptr_eq(&before.topology, &after.topology), "the topology is a new value");
}

#[test]
fn what_an_old_or_small_kernel_does_not_tell_is_unknown() {
    let no_clusters = Machine { cluster: None, node: None, ..Machine::kunpeng(64) };
    let topology = read(&no_clusters.tree()).topology;
    assert_eq!(numbers(&topology, |place| place.cluster), 0, "before Linux 5.16 there are no clusters");
    assert_eq!(topology.nodes, 1, "a kernel without NUMA is one node");
    assert_eq!(place(&topology, 63).node, Some(0), "its node 0");
    let big_little = Machine { capacity: Some(|core| if core < 4 { 446 } else { 1024 }), ..Machine::kunpeng(8) };
    let topology = read(&big_little.tree()).topology;
    assert_eq!((place(&topology, 0).capacity, place(&topology, 7).capacity), (Some(446), Some(1024)), "unequal cores");
    let huge = read(&Machine::kunpeng(512).tree());
    assert_eq!((huge.cores.len(), huge.topology.nodes), (512, 16), "512 cores are read whole");
    assert_eq!(place(&huge.topology, 511).cluster, Some(127), "to the last cluster");
}

#[test]
fn a_machine_without_sysfs_shows_its_cores_and_says_what_is_missing() {
    let tree = Machine::kunpeng(8).tree();
    tree.remove("sys");
    tree.remove("proc/softirqs");
    tree.remove("proc/net");
    let mut reader = CoreReader::open(&tree.roots()).expect("the tree has /proc/stat");
    let reading = reader.read().expect("it reads");
    assert_eq!(reading.topology.cores.len(), 8, "the cores of /proc/stat");
    let bare = place(&reading.topology, 5);
    assert_eq!(
        (bare.online, bare.node, bare.socket, bare.llc, bare.physical),
        (true, None, None, None, None),
        "no level"
    );
    assert_eq!((reading.cores[5].softnet, reading.cores[5].softirqs), (None, [None; 10]), "unknown, not zero");
    let texts: Vec<_> = reader.problems().iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!(texts.len(), 3, "one sentence each: {texts:?}");
    assert!(texts.iter().any(|text| text.contains("mount sysfs")), "with what to do next: {texts:?}");
}

#[test]
fn no_proc_at_all_is_an_error_with_a_path() {
    let tree = Tree::new();
    let error = CoreReader::open(&tree.roots()).expect_err("there is no /proc/stat");
    assert!(error.to_string().contains("proc/stat"), "it names the file: {error}");
    tree.write("proc/stat", "not what the kernel writes\n");
    let error = CoreReader::open(&tree.roots()).expect("it opens").read().expect_err("no core is listed");
    assert!(matches!(error, SourceError::Format { .. }), "it says so: {error}");
}

#[test]
fn the_machine_that_runs_the_tests_reads_as_its_own_files_say() {
    let mut reader = CoreReader::open(&Roots::default()).expect("/proc/stat is there");
    let first = reader.read().expect("it reads");
    let second = reader.read().expect("it reads again");
    assert!(Arc::ptr_eq(&first.topology, &second.topology), "the topology is read once");
    let online: CoreSet =
        std::fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs is there").parse().expect("a list");
    assert_eq!(first.topology.online(), online, "online cores");
    assert_eq!(first.cores.iter().map(|row| row.core).collect::<CoreSet>(), online, "each has its counters");
    for (from, to) in first.cores.iter().zip(&second.cores) {
        let softirqs = from.softirqs.iter().zip(&to.softirqs);
        assert!(softirqs.into_iter().all(|(from, to)| from <= to), "softirqs of core {} never fall", from.core);
        assert!(from.user <= to.user && from.system <= to.system, "time of core {} never falls", from.core);
        assert!(from.ksoftirqd_ns <= to.ksoftirqd_ns, "ksoftirqd's time never falls");
        assert!(from.softnet.is_some(), "core {} has a backlog", from.core);
    }
    let kthreadd = std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
    assert_eq!(first.cores[0].ksoftirqd_ns.is_some(), kthreadd, "ksoftirqd is seen where kernel threads are");
}
