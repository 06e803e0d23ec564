//! A VPN of a program: what it is given through a tun it sends in datagrams of its own.

use super::TOOLS;
use super::shape::{Shape, cable};
use crate::ground::{Netns, await_that, needs};

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
    let shape = Shape::new(&[("n", &hosts[0]), ("f", &hosts[1])], "n", "f", "198.19.0.2");
    shape.is_walked("n:tun0 sent route, n:u0 sent route, f:u1 received peer, f:tun0 received tunnel");
    drop(programs);
}
