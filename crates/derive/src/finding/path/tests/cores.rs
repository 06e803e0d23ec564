//! On which cores a hop's packets are handled, and what is said where a setting puts them onto the flow's own.

use super::*;
use crate::FindingId;
use crate::paths::{self, SoftirqBy};
use vnettop_sample::{CoreId, CoreSet, Interrupts, NapiThread, Side, Steering};

const CLIENT: u32 = 39082;
const SERVER: u32 = 39081;

fn set(list: &str) -> CoreSet {
    list.parse().expect("a list of cores")
}

fn steering(netns: u64, ifindex: u32, rps: &str) -> Steering {
    let link = LinkKey { netns, ifindex: Ifindex(ifindex) };
    Steering {
        link,
        rps: vec![set(rps)],
        rfs: false,
        threaded: false,
        napi: Vec::new(),
        interrupts: None,
        irqs: Vec::new(),
    }
}

/// A client on one core that sends to a server on another, over `a0`, `x0` and `b0`, with the settings of all three.
pub(super) fn flowing(
    cores: u32,
    sender: CoreId,
    receiver: CoreId,
    change: impl FnOnce(&mut Vec<Steering>),
) -> TestMetrics {
    let machine = Machine::small(cores);
    let machine = machine.thread(SERVER, SERVER, Side::Server, receiver).thread(CLIENT, CLIENT, Side::Client, sender);
    let mut metrics = connected(metrics(|_, _| ()), 0, 9e9, 1448);
    let on = machine.metrics();
    metrics.machine_mut().threads = Arc::clone(&on.threads);
    (metrics.threads, metrics.machine_mut().cores) = (on.threads, on.machine.cores.clone());
    Arc::make_mut(&mut metrics.machine_mut().facts).topology = Arc::clone(&on.machine.facts.topology);
    for load in metrics.machine_mut().cores.iter_mut().filter_map(|core| core.load.as_mut()) {
        load.softnet_processed_per_s = Some(1e5);
    }
    let connection = &mut metrics.flow.connections[0];
    (connection.from.pid, connection.to.pid) = (Some(CLIENT), Some(SERVER));
    let path = &mut Arc::make_mut(&mut metrics.paths)[0];
    (path.hops[1].way, path.hops[2].way) = (HopWay::Received, HopWay::Received);
    let mut settings = vec![steering(NEAR, 2, ""), steering(NEAR, 3, ""), steering(FAR, 2, "")];
    change(&mut settings);
    Arc::make_mut(&mut metrics.machine_mut().facts).steering = Arc::new(settings);
    let gro = [Offload::Gro];
    let each = [offloads(NEAR, 2, &gro, &gro), offloads(NEAR, 3, &gro, &gro), offloads(FAR, 2, &gro, &gro)];
    Arc::make_mut(&mut metrics.machine_mut().facts).offloads = Arc::new(each.to_vec());
    metrics
}

/// `cores by` of each hop, or why that is not known.
fn hops(metrics: &TestMetrics) -> Vec<String> {
    let path = paths::of(metrics, &metrics.flow.connections[0]).expect("there is one");
    let reported = path.hops.into_iter().map(|hop| hop.softirq);
    reported
        .map(|hop| hop.map_or_else(|why| why.to_string(), |hop| format!("{} {}", hop.cores, hop.by.word())))
        .collect()
}

#[test]
fn a_virtual_link_is_handled_where_the_sender_runs() {
    assert_eq!(hops(&flowing(4, 1, 2, |_| ())), ["1 sender"; 3], "nothing else is set");
    let mut still = flowing(4, 1, 2, |_| ());
    still.machine_mut().cores[1].load.as_mut().expect("online").softnet_processed_per_s = Some(0.0);
    assert!(hops(&still)[0].starts_with("no thread of the sender"), "that core handles no packets");
    let mut alone = flowing(4, 1, 2, |_| ());
    alone.flow.connections[0].from.pid = None;
    assert_eq!(hops(&alone), ["the sender is not a watched process"; 3], "its core is not guessed");
}

#[test]
fn rps_moves_what_follows_and_rfs_makes_it_unknown() {
    let reported = hops(&flowing(4, 1, 2, |all| all[1].rps = vec![set("3")]));
    assert_eq!(reported, ["1 sender", "3 rps", "3 rps"], "from the link on whose queue it is set");
    let reported = hops(&flowing(4, 1, 2, |all| all[1].rps = vec![set("8-9")]));
    assert_eq!(reported, ["1 sender"; 3], "cores that are not online take nothing");
    let reported = hops(&flowing(4, 1, 2, |all| all[2].rfs = true));
    assert!(reported[2].starts_with("RFS may hand what comes to b0"), "{reported:?}");
    let reported = hops(&flowing(4, 1, 2, |all| all[1].rps = vec![set("0"), set("3")]));
    assert_eq!(reported[1], "0,3 rps", "of either queue");
    let reported = hops(&flowing(4, 1, 2, |all| all[1].rps = vec![set(""), set("3")]));
    assert_eq!(reported[1], "1,3 rps", "or where it was, if it comes by the first");
}

#[test]
fn a_thread_of_napi_takes_what_its_sender_could_not_put_together() {
    let thread = || NapiThread { pid: 77, core: 3, allowed: set("3") };
    let threaded = |all: &mut Vec<Steering>| (all[1].threaded, all[1].napi) = (true, vec![thread()]);
    assert_eq!(hops(&flowing(4, 1, 2, threaded)), ["1 sender"; 3], "with TSO it goes past the NAPI of a veth");
    let mut single = flowing(4, 1, 2, threaded);
    Arc::make_mut(&mut Arc::make_mut(&mut single.machine_mut().facts).offloads)[0].tso = false;
    assert_eq!(hops(&single), ["1 sender", "3 napi_thread", "3 napi_thread"], "single packets do not");
    Arc::make_mut(&mut Arc::make_mut(&mut single.machine_mut().facts).offloads).clear();
    assert!(hops(&single)[1].contains("has threaded NAPI, which may not"), "without knowing of TSO it is not known");
}

#[test]
fn what_a_program_or_a_device_does_is_unknown() {
    let mut metrics = flowing(4, 1, 2, |_| ());
    Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().links)[1].facts).kind = Kind::Tap;
    assert_eq!(hops(&metrics)[1..], ["the program that holds x0 handles it"; 2], "and what comes after");
    Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().links)[1].facts).kind = Kind::Physical;
    assert_eq!(hops(&metrics)[1], "the core that x0 interrupts is not known");
    Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().facts).steering)[1].interrupts =
        Some(Interrupts::Unknown("nobody says".to_owned()));
    assert_eq!(hops(&metrics)[1], "the core that x0 interrupts is not known: nobody says");
    let by_device = flowing(4, 1, 2, |all| all[1].rps = vec![set("3")]);
    assert_eq!(SoftirqBy::Rps.word(), hops(&by_device)[1].rsplit(' ').next().expect("a word"));
}

#[test]
fn what_a_card_receives_is_handled_where_it_interrupts() {
    let card = |rps: &[&str]| {
        let rps: Vec<CoreSet> = rps.iter().map(|cores| set(cores)).collect();
        let mut metrics = flowing(4, 1, 2, move |all| {
            (all[1].rps, all[1].interrupts) = (rps, Some(Interrupts::Cores(set("0,2"))));
        });
        Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine_mut().links)[1].facts).kind = Kind::Physical;
        metrics
    };
    assert_eq!(hops(&card(&["", ""])), ["1 sender", "0,2 interrupt", "0,2 interrupt"], "and what follows there");
    assert_eq!(hops(&card(&["3", "3"]))[1..], ["3 rps"; 2], "unless RPS hands it on");
    assert_eq!(hops(&card(&["3", ""]))[1], "0,2-3 rps", "from one of its two queues");
    let mut remote = card(&["", ""]);
    remote.flow.connections[0].from.pid = None;
    let reported = hops(&remote);
    assert_eq!(reported[1..], ["0,2 interrupt"; 2], "whoever sent it");
}

#[test]
fn a_setting_that_uses_only_the_flows_own_cores_is_named() {
    let rps = |cores: u32, list: &'static str| flowing(cores, 0, 1, move |all| all[2].rps = vec![set(list)]);
    let reported = said(&rps(4, "1"), "steered");
    assert_eq!(
        reported,
        "RPS puts packets from b0 (c2) on core 1, which the flow's receiver needs: core 2 is idle (echo 4 \
         > /sys/class/net/b0/queues/rx-0/rps_cpus)"
    );
    let reported = said(&rps(2, "1"), "steered");
    assert!(reported.contains("without that the sender's core handles them (echo 0 > "), "{reported}");
    let reported = said(&flowing(4, 0, 1, |all| all[2].rps = vec![set("1"), set("1")]), "steered");
    assert!(
        reported.ends_with("(echo 4 | tee /sys/class/net/b0/queues/rx-*/rps_cpus)"),
        "each queue is mended: {reported}"
    );
    let none = |metrics: &TestMetrics| findings(metrics).iter().all(|finding| finding.id != FindingId::Steered);
    assert!(none(&rps(4, "2-3")), "other cores do it");
    assert!(none(&rps(4, "1-2")), "another core may do it");
    assert!(none(&rps(2, "0-1")), "there is no other core");
    assert!(none(&rps(4, "")), "nothing is set");
    let mut threaded = flowing(4, 0, 1, |all| {
        all[2].threaded = true;
        all[2].napi = vec![NapiThread { pid: 77, core: 1, allowed: set("1") }];
    });
    assert!(none(&threaded), "what comes goes past it");
    Arc::make_mut(&mut Arc::make_mut(&mut threaded.machine_mut().facts).offloads)[1].tso = false;
    let reported = said(&threaded, "steered");
    assert!(reported.starts_with("the NAPI thread handles packets from b0 (c2) on core 1"), "{reported}");
    assert!(reported.ends_with("(taskset -cp 2 77)"), "{reported}");
}

#[test]
fn one_core_that_forwards_alone_is_named_with_the_file_that_spreads_it() {
    let mut metrics = flowing(40, 1, 2, |_| ());
    for core in &mut metrics.machine_mut().cores {
        let load = core.load.as_mut().expect("online");
        let shares = load.shares.as_mut().expect("known");
        let is_it = core.place.core == 0;
        (shares.softirq, shares.idle) =
            if is_it { (0.9, 0.1) } else { (0.0, f64::from(u8::from(core.place.core > 37))) };
        load.softirqs_per_s[3] = Some(if is_it { 9e4 } else { 1.0 });
    }
    let reported = said(&metrics, "one_core");
    assert!(reported.starts_with("core 0 forwards packets 90 % of the time; 2 of 40 cores are idle"), "{reported}");
    assert!(reported.ends_with("(echo c0,00000000 > /sys/class/net/x0/queues/rx-0/rps_cpus)"), "{reported}");
}
