//! Totals add up what happened, and stay when what they are of is gone.

use super::*;
use crate::placement::tests::machine::Machine;
use crate::{Basis, LinkMetrics, Loss, Losses, MachineMetrics, TestMetrics};
use std::sync::Arc;
use vnettop_sample::{Facts, Ifindex, LinkCounters, LinkFacts, LinkKey, Owned, Owner, OwnerBy, OwnerKind, Space};

const SECOND_NS: u64 = 1_000_000_000;

fn of_threads(moves: &[u64], node: u64, cpu_ns: u64) -> Metrics {
    let mut metrics = Machine::kunpeng().pair(5, 91).metrics();
    metrics.machine_mut().elapsed_s = Some(2.0);
    metrics.threads_mut().truncate(moves.len());
    for (thread, moves) in metrics.threads_mut().iter_mut().zip(moves) {
        (thread.moves, thread.sample.cpu_ns, thread.sample.name) = (*moves, cpu_ns, "iperf3".into());
        (thread.sample.side, thread.by_class) = (None, MovesByClass { node, ..MovesByClass::default() });
    }
    Metrics::of_everything(metrics)
}

#[test]
fn moves_count_from_the_first_sample_on_and_stay_when_their_thread_exits() {
    let mut totals = Totals::new(10);
    totals.observe(&of_threads(&[100], 0, 70 * SECOND_NS));
    // An event of the first comes before its move is in the kernel's count.
    totals.observe(&of_threads(&[100, 4], 1, 71 * SECOND_NS));
    totals.observe(&of_threads(&[105, 6], 3, 72 * SECOND_NS));
    totals.observe(&of_threads(&[], 0, 0));
    let (group, counts) = totals.threads().next().expect("one group");
    assert_eq!((&*group.program, counts.threads), ("iperf3", 0), "both threads are gone");
    let seen: Vec<_> = counts.by_class().into_iter().filter(|(_, moves)| *moves > 0).collect();
    assert_eq!(seen, [(Some(MoveClass::Node), 5), (None, 2)], "5 of the first, and 2 of one that was old when it came");
    assert!((counts.cpu_s - 3.0).abs() < 1e-9, "2 s of the one, 1 s of the other: {}", counts.cpu_s);
}

#[test]
fn losses_add_up_by_place_and_reason() {
    let loss = |place, packets| Loss { place, packets, ..Loss::default() };
    let places = vec![loss(LossPlace::Qdisc, 3.0), loss(LossPlace::Backlog, 1.0), loss(LossPlace::Qdisc, 2.0)];
    let losses = Losses { places, ..Losses::default() };
    let mut totals = Totals::new(10);
    for _ in 0..2 {
        let subject = TestMetrics { losses: losses.clone(), ..TestMetrics::default() };
        totals.observe(&Metrics::of_everything(subject));
    }
    let all: Vec<_> = totals.losses().map(|(group, packets)| (group.place, *packets)).collect();
    assert_eq!(all, [(LossPlace::Qdisc, 10.0), (LossPlace::Backlog, 2.0)]);
}

/// Links of vnettop's namespace, each with what it has received; those whose name starts with `veth` are a container's.
fn of_links(links: &[(&str, u32, u64)]) -> Metrics {
    let link = |&(name, ifindex, rx_bytes): &(&str, u32, u64)| {
        let facts = LinkFacts { netns: 1, ifindex: Ifindex(ifindex), name: name.into(), ..LinkFacts::default() };
        let row = LinkCounters { netns: 1, ifindex: facts.ifindex, rx_bytes, ..LinkCounters::default() };
        LinkMetrics { facts: Arc::new(facts), basis: Basis::None, counters: Some(row), rates: None, ovs: None }
    };
    let links: Vec<LinkMetrics> = links.iter().map(link).collect();
    let owner = Owner {
        kind: OwnerKind::Container,
        name: "web".to_owned(),
        id: None,
        by: OwnerBy::Docker,
        guess: false,
        pod_namespace: None,
    };
    let veths = links.iter().filter(|link| link.facts.name.starts_with("veth"));
    let owners = veths.map(|link| Owned { link: link.facts.key(), owner: owner.clone() }).collect();
    let (links, owners) = (Arc::new(links), Arc::new(owners));
    Metrics::of_machine(MachineMetrics { netns: 1, links, owners, ..MachineMetrics::default() })
}

fn received(totals: &Totals, metrics: &Metrics) -> Vec<(LinkName, u64)> {
    totals.links.of(metrics).into_iter().map(|link| (link.name, link.counts.rx_bytes)).collect()
}

#[test]
fn links_of_a_container_are_one_series_that_never_falls_while_it_runs() {
    let mut totals = Totals::new(10);
    let own = |name: &str| LinkName::Own(name.to_owned());
    let steps: [(&[_], &[_]); 4] = [
        (&[("eth0", 2, 10), ("veth1", 3, 100), ("veth2", 4, 50)], &[(own("eth0"), 10), (LinkName::OfOwner, 0)]),
        (&[("eth0", 2, 20), ("veth1", 3, 110)], &[(own("eth0"), 20), (LinkName::OfOwner, 10)]),
        (&[("eth0", 2, 20), ("veth1", 3, 1), ("veth3", 5, 7)], &[(own("eth0"), 20), (LinkName::OfOwner, 18)]),
        (&[("eth0", 2, 30)], &[(own("eth0"), 30)]),
    ];
    for (links, expected) in steps {
        let metrics = of_links(links);
        totals.observe(&metrics);
        assert_eq!(received(&totals, &metrics), expected, "after {links:?}");
    }
}

/// These links, those called `veth-NAMESPACE` of pods called `web-0`, whose own network namespaces are 2 and 3; and what was lost.
fn of_pods(links: &[(&str, u32, u64)], places: Vec<Loss>) -> Metrics {
    let pod = |namespace: &str| Owner {
        kind: OwnerKind::Pod,
        name: "web-0".to_owned(),
        id: Some(format!("uid of {namespace}")),
        by: OwnerBy::Kubernetes,
        guess: false,
        pod_namespace: Some(namespace.to_owned()),
    };
    let names = links.iter().filter_map(|(name, ifindex, _)| Some((name.strip_prefix("veth-")?, *ifindex)));
    let link = |netns, ifindex| LinkKey { netns, ifindex: Ifindex(ifindex) };
    let ends = names.clone().map(|(namespace, ifindex)| Owned { link: link(1, ifindex), owner: pod(namespace) });
    let inside = (2..).zip(names).map(|(netns, (namespace, _))| Owned { link: link(netns, 1), owner: pod(namespace) });
    let mut owners: Vec<Owned> = ends.chain(inside).collect();
    owners.sort_by_key(|owned| owned.link);
    let owners = Arc::new(owners);
    let space = |netns| Space { netns, name: None, pid: None, rests: false };
    let facts = Arc::new(Facts { spaces: Arc::new(vec![space(2), space(3)]), ..Facts::default() });
    let machine = Arc::new(MachineMetrics { facts, owners, ..(*of_links(links).machine).clone() });
    let losses = Losses { places, ..Losses::default() };
    Metrics::of_everything(TestMetrics { machine, losses, ..TestMetrics::default() })
}

#[test]
fn pods_of_one_name_in_two_kubernetes_namespaces_are_two_series() {
    let mut totals = Totals::new(10);
    totals.observe(&of_pods(&[("veth-shop", 2, 100), ("veth-test", 3, 1_000)], Vec::new()));
    let metrics = of_pods(&[("veth-shop", 2, 101), ("veth-test", 3, 1_010)], Vec::new());
    totals.observe(&metrics);
    let all = totals.links.of(&metrics);
    let seen: Vec<_> =
        all.iter().map(|link| (link.pod_namespace.as_deref(), &*link.owner, link.counts.rx_bytes)).collect();
    assert_eq!(seen, [(Some("shop"), "web-0", 1), (Some("test"), "web-0", 10)]);
    // Anew with the same name, as of a StatefulSet: the series goes on.
    let anew = of_pods(&[("veth-shop", 7, 5), ("veth-test", 3, 1_010)], Vec::new());
    totals.observe(&anew);
    let shop: Vec<u64> = totals.links.of(&anew).iter().map(|link| link.counts.rx_bytes).collect();
    assert_eq!(shop, [6, 10], "one series for each pod however often it is made");
}

#[test]
fn what_is_lost_in_a_pod_is_told_of_that_pod() {
    let lost = |netns| Loss { place: LossPlace::Qdisc, packets: 1.0, netns: Some(netns), ..Loss::default() };
    let metrics = of_pods(&[("veth-shop", 2, 0), ("veth-test", 3, 0)], vec![lost(2), lost(3), lost(3)]);
    let mut totals = Totals::new(10);
    totals.observe(&metrics);
    let seen: Vec<_> = totals.losses().map(|(group, packets)| (&*group.netns, group.pod.clone(), *packets)).collect();
    let pod = |namespace: &str| Some((namespace.to_owned(), "web-0".to_owned()));
    assert_eq!(seen, [("shop/web-0", pod("shop"), 1.0), ("test/web-0", pod("test"), 2.0)]);
}

#[test]
fn beyond_the_limit_links_are_counted_and_who_is_in_stays_in() {
    let mut totals = Totals::new(1);
    totals.observe(&of_links(&[("b", 2, 1)]));
    let metrics = of_links(&[("a", 1, 900), ("b", 2, 2)]);
    totals.observe(&metrics);
    assert_eq!(received(&totals, &metrics), [(LinkName::Own("b".to_owned()), 2)]);
    assert_eq!(totals.left_out()[0], ("links", 1));
}
