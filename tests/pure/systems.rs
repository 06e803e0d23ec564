//! What vnettop showed of the virtual networks that people benchmark, in the last moments of a benchmark through each:
//! recordings of the real kernel, taken by the live tests (tests/fixtures/systems/README.md), replayed to whole frames.

use crate::frames::replayed::Replayed;
use std::fs;
use std::path::{Path, PathBuf};
use vnettop::record::Recording;
use vnettop::sample::Item;

/// What it may need of a repository, bytes.
const ROOM: u64 = 1 << 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/systems")
}

/// Freezes the screen and the way of a system.
fn freeze(name: &str) {
    freeze_at(name, 120, 40);
}

fn freeze_at(name: &str, width: u16, height: u16) {
    let mut shown = Replayed::at_the_benchmark(&folder().join(format!("{name}.vnettop.zst")));
    insta::with_settings!({snapshot_suffix => format!("{width}x{height}"), omit_expression => true}, {
        insta::assert_snapshot!(name, shown.frame(width, height));
        shown.press("v");
        insta::assert_snapshot!(format!("{name}_way"), shown.frame(width, height));
    });
}

#[test]
fn loopback() {
    freeze("loopback");
}

#[test]
fn an_own_address() {
    freeze("own-address");
}

#[test]
fn docker_from_container_to_container() {
    freeze("docker-containers");
}

#[test]
fn docker_from_the_host_to_a_container() {
    freeze("docker-from-host");
}

#[test]
fn a_published_port_by_the_proxy() {
    freeze("docker-proxy");
}

#[test]
fn a_published_port_by_nat() {
    freeze("docker-nat");
}

#[test]
fn an_overlay_of_two_hosts() {
    freeze("docker-overlay");
    freeze_at("docker-overlay", 200, 60);
}

#[test]
fn open_vswitch_with_veth_ports() {
    freeze("open-vswitch");
}

#[test]
fn a_linux_bridge_before_open_vswitch() {
    freeze("bridge-and-open-vswitch");
}

#[test]
fn a_vxlan_between_two_open_vswitches() {
    freeze("open-vswitch-vxlan");
    freeze_at("open-vswitch-vxlan", 200, 60);
}

#[test]
fn macvlans_on_two_hosts() {
    freeze("macvlan");
}

#[test]
fn flannel_host_gw() {
    freeze("flannel-host-gw");
}

#[test]
fn flannel_vxlan() {
    freeze("flannel-vxlan");
}

#[test]
fn calico() {
    freeze("calico");
}

#[test]
fn canal() {
    freeze("canal");
}

#[test]
fn a_vpn_on_tuns() {
    freeze("vpn");
}

#[test]
fn a_guest_on_a_bridge() {
    freeze("guest-on-bridge");
}

#[test]
fn a_guest_on_a_macvtap() {
    freeze("guest-on-macvtap");
}

#[test]
fn the_recordings_are_small_and_tell_nothing_of_where_they_were_taken() {
    let mut bytes = 0;
    for file in fs::read_dir(folder()).expect("the folder is readable").flatten() {
        let name = file.file_name().into_string().expect("a plain name");
        let Some(system) = name.strip_suffix(".vnettop.zst") else { continue };
        assert!(include_str!("systems.rs").contains(&format!("\"{system}\"")), "a test looks at {name}");
        bytes += file.metadata().expect("it is there").len();
        let mut recording = Recording::open(&file.path()).unwrap_or_else(|error| panic!("{error}"));
        while let Some(item) = recording.next_item().unwrap_or_else(|error| panic!("{error}")) {
            tells_nothing(&name, &item);
        }
        assert_eq!(recording.truncated(), None, "{name} is whole");
    }
    assert!(bytes < ROOM, "{bytes} bytes of recordings");
}

/// The machine has the test's name, its kernel only numbers, and no text of it is a path of the user's.
fn tells_nothing(name: &str, item: &Item) {
    if let Item::Sample(sample) = item {
        let numbers = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
        let host = &sample.facts.host;
        assert!(host.name == "bench" && numbers(&host.kernel), "{name}: {host:?}");
    }
    let all = format!("{item:?}");
    let paths = all.split(['"', ' ']).filter(|word| word.starts_with('/') && word.len() > 1);
    let strange: Vec<_> =
        paths.filter(|path| !["/run/", "/proc/", "/sys/"].iter().any(|at| path.starts_with(at))).collect();
    assert!(strange.is_empty(), "{name} names {strange:?}");
}
