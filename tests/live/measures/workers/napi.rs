//! A kernel thread that takes what comes in through a link, instead of softirqs.

use super::{client, of_client, watch, worker};
use crate::ground::{Netns, await_that, iperf3_server, needs};
use crate::measures::faults::cable;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_kernels_thread_that_receives_for_a_link_is_a_worker() {
    needs(&["ethtool", "iperf3", "ip", "mount", "nsenter", "ps", "unshare"]);
    let (near, far) = (Netns::new(), Netns::new());
    cable((&near, "na0"), (&far, "nb0"));
    near.run("ip addr add 198.18.1.1/24 dev na0");
    // A veth gives to NAPI only what a sender without TSO sends.
    near.run("ethtool -K na0 tso off");
    far.run("ip addr add 198.18.1.2/24 dev nb0; ethtool -K nb0 gro on");
    far.run("unshare --mount sh -ec 'mount -t sysfs sysfs /sys; echo 1 > /sys/class/net/nb0/threaded'");
    let mut thread = None;
    await_that("the kernel's thread is there", 5, || {
        let listed = far.output("ps -eo pid,comm");
        let own = |line: &str| line.contains("napi/nb0-").then(|| line.split_whitespace().next()?.parse::<u32>().ok());
        thread = listed.lines().find_map(own).flatten();
        thread.is_some()
    });
    let thread = thread.expect("it is there");
    let _server = iperf3_server(&far, &[]);
    let mut watching = watch();
    let client = client(&near, "-c 198.18.1.2 -t 60 -b 500M");
    let mut told = None;
    await_that("it is a worker and does something", 20, || {
        let object = watching.next();
        told = of_client(&object, &client).and_then(|test| worker(test, thread)).cloned();
        told.as_ref().is_some_and(|told| told["cpu"].as_f64().is_some_and(|cpu| cpu > 0.01))
    });
    let told = told.expect("it was there");
    assert_eq!((&told["role"], &told["of"]), (&"napi".into(), &"nb0".into()), "{told}");
    assert_eq!(told["place"], "receives what comes in through nb0", "{told}");
    far.run("unshare --mount sh -ec 'mount -t sysfs sysfs /sys; echo 0 > /sys/class/net/nb0/threaded'");
    await_that("it is none when the thread is gone", 20, || {
        let object = watching.next();
        of_client(&object, &client).is_some_and(|test| worker(test, thread).is_none())
    });
}
