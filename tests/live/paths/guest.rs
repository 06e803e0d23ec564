//! A virtual machine that forwards between two of its links: the path goes through it.

use super::shape::Shape;
use crate::ground::forwarder::{FAR, Forwarder, PROGRAMS};
use crate::ground::needs;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_guest_between_two_taps_is_passed_through() {
    needs(&PROGRAMS);
    let guest = Forwarder::start(&[]);
    let shape = Shape::new(&[("n", &guest.near), ("h", &guest.host), ("f", &guest.far)], "n", "f", FAR);
    shape.is_walked(
        "n:eth0 sent route, h:va received peer, h:br1 passed bridge, h:t1 sent fdb, h:t2 received guest, \
         h:br2 passed bridge, h:vb sent fdb, f:eth0 received peer",
    );
}
