//! What a link receives is sent through an ifb first, as CNI's bandwidth plugin limits what a container sends.

use super::shape::Shape;
use super::{TOOLS, bridged};
use crate::ground::{left_out, needs};

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_filter_redirects_passes_the_ifb_first() {
    let programs = [&TOOLS[..], &["tc"]].concat();
    needs(&programs);
    let (host, one, two) = bridged();
    if host.output("ip link add bw0 type ifb 2>/dev/null && echo made").trim() != "made" {
        left_out("what_a_filter_redirects_passes_the_ifb_first", "this kernel has no ifb");
        return;
    }
    host.run(
        "ip link set bw0 up; tc qdisc add dev bw0 root tbf rate 800mbit burst 1mb latency 25ms
         tc qdisc add dev va ingress
         tc filter add dev va parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev bw0",
    );
    let spaces = [("h", &host), ("a", &one), ("b", &two)];
    let way = "a:eth0 sent route, h:va received peer, h:bw0 sent redirect, h:br0 passed bridge, h:vb sent fdb, \
               b:eth0 received peer";
    Shape::new(&spaces, "a", "b", "198.18.0.2").is_walked(way);
}
