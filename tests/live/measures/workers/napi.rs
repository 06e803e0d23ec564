//! A kernel thread that takes what comes in through a link, instead of softirqs.

use super::{client, of_client, watch, worker};
use crate::ground::threaded::{FAR, PROGRAMS, Threaded};
use crate::ground::{await_that, iperf3_server, needs};

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_kernels_thread_that_receives_for_a_link_is_a_worker() {
    needs(&PROGRAMS);
    let link = Threaded::start();
    let thread = link.thread().expect("it is there");
    let _server = iperf3_server(&link.far, &[]);
    let mut watching = watch();
    let client = client(&link.near, &format!("-c {FAR} -t 60 -b 500M"));
    let mut told = None;
    await_that("it is a worker and does something", 20, || {
        let object = watching.next();
        told = of_client(&object, &client).and_then(|test| worker(test, thread)).cloned();
        told.as_ref().is_some_and(|told| told["cpu"].as_f64().is_some_and(|cpu| cpu > 0.01))
    });
    let told = told.expect("it was there");
    assert_eq!((&told["role"], &told["of"]), (&"napi".into(), &"nb0".into()), "{told}");
    assert_eq!(told["place"], "receives what comes in through nb0", "{told}");
    link.set(false);
    await_that("it is none when the thread is gone", 20, || {
        let object = watching.next();
        of_client(&object, &client).is_some_and(|test| worker(test, thread).is_none())
    });
}
