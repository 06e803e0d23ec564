//! A link whose packets are received by a thread of the kernel (threaded NAPI) instead of softirqs.

use super::{Netns, await_that};

/// What the tests need beside it.
pub const PROGRAMS: [&str; 7] = ["ethtool", "iperf3", "ip", "mount", "nsenter", "ps", "unshare"];

/// The far end's address.
pub const FAR: &str = "198.18.1.2";

/// `na0` 198.18.1.1 in the first namespace – `nb0` 198.18.1.2 in the second, which the kernel's thread receives for.
pub struct Threaded {
    pub near: Netns,
    pub far: Netns,
}

impl Threaded {
    /// Up, and the thread is there.
    pub fn start() -> Self {
        let (near, far) = (Netns::new(), Netns::new());
        near.run(&format!("ip link add na0 type veth peer name nb0 netns {}; ip link set na0 up", far.pid()));
        // A veth gives to NAPI only what a sender without TSO sends.
        near.run("ip addr add 198.18.1.1/24 dev na0; ethtool -K na0 tso off");
        far.run("ip addr add 198.18.1.2/24 dev nb0; ip link set nb0 up; ethtool -K nb0 gro on");
        let link = Self { near, far };
        link.set(true);
        await_that("the kernel's thread is there", 5, || link.thread().is_some());
        link
    }

    /// Has a thread receive, or softirqs.
    pub fn set(&self, threaded: bool) {
        let value = u8::from(threaded);
        self.far.run(&format!(
            "unshare --mount sh -ec 'mount -t sysfs sysfs /sys; echo {value} > /sys/class/net/nb0/threaded'"
        ));
    }

    /// The thread.
    pub fn thread(&self) -> Option<u32> {
        let listed = self.far.output("ps -eo pid,comm");
        listed
            .lines()
            .find_map(|line| line.contains("napi/nb0-").then(|| line.split_whitespace().next()?.parse().ok())?)
    }
}
