//! The class of hand-made moves on machines as their kernels describe them: captured ones, and made ones without cluster
//! files and with offline cores.

use crate::fixture::Tree;
use crate::fixture::machine::Machine;
use vnettop::derive::MoveClass;
use vnettop::derive::MoveClass::{Cluster, Llc, Node, Smt, Socket};
use vnettop::sample::CoreSet;
use vnettop::source::cores::CoreReader;

/// Both directions of every pair have the class.
fn assert_classes(tree: &Tree, pairs: &[(u32, u32, Option<MoveClass>)], machine: &str) {
    let reading = CoreReader::open(&tree.roots()).expect("the tree has /proc/stat").read().expect("it reads");
    for &(a, b, class) in pairs {
        assert_eq!(MoveClass::of(&reading.topology, a, b), class, "{machine}: {a} to {b}");
        assert_eq!(MoveClass::of(&reading.topology, b, a), class, "{machine}: {b} to {a}");
    }
}

#[test]
fn a_128_core_server_without_smt_has_four_classes() {
    let pairs = [
        (0, 1, Some(Cluster)),
        (0, 3, Some(Cluster)),
        (3, 4, Some(Llc)),
        (0, 31, Some(Llc)),
        (31, 32, Some(Node)),
        (0, 63, Some(Node)),
        (63, 64, Some(Socket)),
        (0, 127, Some(Socket)),
        (96, 127, Some(Llc)),
        (124, 127, Some(Cluster)),
        (0, 128, None),
    ];
    assert_classes(&Tree::captured("arm64-128"), &pairs, "captured");
}

#[test]
fn siblings_are_the_innermost_class() {
    let captured = [(0, 1, Some(Smt)), (0, 2, Some(Llc))];
    assert_classes(&Machine::smt().tree(), &captured, "two threads a core");
    // As on Kunpeng 920 7270Z, but smaller: two threads a core, clusters of four cores.
    let machine = Machine { smt: 2, cluster: Some(8), llc: 16, node: Some(16), socket: 32, ..Machine::kunpeng(64) };
    let pairs = [
        (0, 1, Some(Smt)),
        (1, 2, Some(Cluster)),
        (6, 7, Some(Smt)),
        (7, 8, Some(Llc)),
        (15, 16, Some(Node)),
        (31, 32, Some(Socket)),
    ];
    assert_classes(&machine.tree(), &pairs, "SMT and clusters");
}

#[test]
fn before_linux_5_16_there_are_no_clusters_and_the_others_stay_right() {
    let machine = Machine { cluster: None, llc: 16, node: Some(16), socket: 32, ..Machine::kunpeng(64) };
    let pairs = [(0, 1, Some(Llc)), (0, 15, Some(Llc)), (0, 16, Some(Node)), (0, 32, Some(Socket))];
    assert_classes(&machine.tree(), &pairs, "no cluster files");
}

#[test]
fn offline_cores_shift_no_class() {
    let offline: CoreSet = "1,4-7,33-40,64".parse().expect("a list");
    let machine = Machine { offline, ..Machine::kunpeng(128) };
    let pairs = [
        (0, 2, Some(Cluster)),
        (3, 8, Some(Llc)),
        (0, 32, Some(Node)),
        (32, 41, Some(Llc)),
        (63, 65, Some(Socket)),
        (65, 66, Some(Cluster)),
        // Where an offline core sits is not told.
        (0, 1, None),
    ];
    assert_classes(&machine.tree(), &pairs, "offline cores");
}
