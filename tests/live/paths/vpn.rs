//! A VPN of a program: what it is given through a tun it sends in datagrams of its own.

use super::TOOLS;
use super::shape::{Shape, cable};
use crate::ground::{Kept, Netns, await_that, needs, pid};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vpn_of_a_program_goes_on_over_its_connected_socket() {
    let programs = [&TOOLS[..], &["socat"]].concat();
    needs(&programs);
    let hosts = [Netns::new(), Netns::new()];
    cable((&hosts[0], "u0"), (&hosts[1], "u1"));
    // Long packets, beside which the headers are little.
    let programs = [0, 1].map(|at: usize| {
        let (own, far) = (at + 1, 2 - at);
        hosts[at].run(&format!("ip link set u{at} mtu 9000; ip addr add 198.18.1.{own}/24 dev u{at}"));
        let socket = format!("UDP4:198.18.1.{far}:5555,bind=198.18.1.{own}:5555");
        let tun = format!("TUN:198.19.0.{own}/24,tun-name=tun0,iff-no-pi,iff-up");
        let program = hosts[at].keep("socat", &["-b", "9000", &socket, &tun]);
        await_that("the tun is there", 10, || hosts[at].output("ip addr show tun0 2>&1").contains("198.19.0"));
        hosts[at].run("ip link set tun0 mtu 8000");
        program
    });
    let note = is_walked_through(&hosts, "tun0");
    assert!(note.is_null(), "a connected socket says where it sends: {note}");
    drop(programs);
}

/// What is sent to 198.19.0.2 crosses the VPN's link at both ends, and the wire between. Returns the path's note.
fn is_walked_through(hosts: &[Netns; 2], tun: &str) -> Value {
    let shape = Shape::new(&[("n", &hosts[0]), ("f", &hosts[1])], "n", "f", "198.19.0.2");
    shape.is_walked(&format!("n:{tun} sent route, n:u0 sent route, f:u1 received peer, f:{tun} received tunnel"))
}

/// Two hosts with a wire for long packets, `u0` 198.18.1.1 and `u1` 198.18.1.2; on each a tun of nobody and one of a program
/// that sends to nobody in particular.
fn hosts_with_tuns() -> ([Netns; 2], [Kept; 2]) {
    let hosts = [Netns::new(), Netns::new()];
    cable((&hosts[0], "u0"), (&hosts[1], "u1"));
    let others = [0, 1].map(|at: usize| {
        hosts[at].run(&format!(
            "ip link set u{at} mtu 9000; ip addr add 198.18.1.{}/24 dev u{at}
             ip tuntap add dev tun7 mode tun; ip addr add 198.19.7.1/24 dev tun7; ip link set tun7 up",
            at + 1
        ));
        let tun = format!("TUN:198.19.8.{}/32,tun-name=tun8,iff-no-pi,iff-up", at + 1);
        let other = hosts[at].keep("socat", &[&tun, "UDP4-DATAGRAM:198.18.1.9:7777,bind=:7777"]);
        await_that("the other tun is there", 10, || hosts[at].output("ip addr show tun8 2>&1").contains("198.19.8"));
        other
    });
    (hosts, others)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn openvpn_goes_on_to_its_far_end_though_its_socket_is_not_connected() {
    needs(&[&TOOLS[..], &["socat", "openvpn"]].concat());
    let (hosts, others) = hosts_with_tuns();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let key = directory.path().join("static.key").display().to_string();
    let made = Command::new("openvpn").args(["--genkey", "secret", &key]).status();
    assert!(made.is_ok_and(|status| status.success()), "openvpn makes a key");
    let programs = [0, 1].map(|at: usize| {
        let ends = [at + 1, 2 - at].map(|end| format!("198.19.0.{end}"));
        let far = format!("198.18.1.{}", 2 - at);
        let plain =
            ["--dev", "tun0", "--proto", "udp", "--cipher", "AES-256-CBC", "--tun-mtu", "8000", "--mssfix", "0"];
        let own = ["--remote", &far, "--secret", &key, "--ifconfig", &ends[0], &ends[1]];
        let program = hosts[at].keep("openvpn", &[&plain[..], &own].concat());
        await_that("the tun is there", 20, || hosts[at].output("ip addr show tun0 2>&1").contains("198.19.0"));
        program
    });
    let told = is_walked_through(&hosts, "tun0");
    let [near, far] = [&programs[0], &programs[1]].map(pid);
    let note = format!("assumes that openvpn {near} sends directly to openvpn {far}: its socket is not connected");
    assert_eq!(told, note.as_str(), "what nobody can know is said");
    drop((programs, others));
}

/// wireguard-go with a link wg0, on whose control socket nobody else's name is in the way.
fn wireguard_go(host: &Netns, keys: &Path, at: usize) -> Kept {
    let script = "mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard && exec wireguard-go -f wg0";
    let program = host.keep("unshare", &["--mount", "env", "WG_PROCESS_FOREGROUND=1", "sh", "-c", script]);
    let (own, far, keys) = (at + 1, 2 - at, keys.display());
    let set = format!(
        "wg set wg0 private-key {keys}/key{own} listen-port 51820 \
             peer $(cat {keys}/pub{far}) allowed-ips 198.19.0.0/24 endpoint 198.18.1.{far}:51820 &&
         ip addr add 198.19.0.{own}/24 dev wg0 && ip link set wg0 mtu 8000 up"
    );
    await_that("its link takes a peer", 20, || {
        let mut inside = Command::new("nsenter");
        inside.args(["-t", &pid(&program).to_string(), "--mount", "--net", "sh", "-c", &set]);
        inside.output().is_ok_and(|out| out.status.success())
    });
    program
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn wireguard_go_goes_on_to_its_far_end_though_its_sockets_are_not_connected() {
    needs(&[&TOOLS[..], &["socat", "unshare", "wg", "wireguard-go"]].concat());
    let (hosts, others) = hosts_with_tuns();
    let keys = tempfile::tempdir().expect("a temporary directory");
    let made = "umask 077; for N in 1 2; do wg genkey > $0/key$N && wg pubkey < $0/key$N > $0/pub$N; done";
    let status = Command::new("sh").args(["-ec", made]).arg(keys.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "wg makes keys");
    let programs = [0, 1].map(|at| wireguard_go(&hosts[at], keys.path(), at));
    is_walked_through(&hosts, "wg0");
    drop((programs, others));
}
