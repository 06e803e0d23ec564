//! Many links on one screen: what is worth looking at is on its first rows, what is not is counted, and nothing jumps.

use crate::world::change::own;
use crate::world::scenes;
use crate::world::stage::Stage;
use crate::world::{NETNS, Traffic, World, stream};
use vnettop::sample::{
    FlowPath, Hop, HopBy, HopWay, Ifindex, Kind, LinkKey, OvsBridge, OvsPort, OvsSwitch, Owner, OwnerBy, OwnerKind,
    Proto,
};
use vnettop::state::Settings;

/// The names in the rows of the links, top to bottom.
fn names(stage: &Stage) -> Vec<String> {
    let metrics = stage.state.metrics().expect("a sample was shown");
    stage.state.links.rows().iter().map(|row| metrics.machine.links[row.index].facts.name.clone()).collect()
}

fn at(names: &[String], name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| panic!("{name} has a row: {names:?}"))
}

/// The marked row of the links.
fn selected(stage: &Stage) -> String {
    let frame = stage.text(120, 40);
    let row = frame.lines().skip(2).find(|line| line.contains('▸')).expect("a row is marked");
    row.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_busy_ones_of_hundreds_are_on_the_first_screen() {
    let stage = Stage::after(6, scenes::containers_by_the_hundred());
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let frame = stage.text(width, height);
        for name in ["h150", "h300", "c150", "c300"] {
            assert!(frame.contains(name), "{name} carries 9.4 Gbit/s and is seen at {width}x{height}:\n{frame}");
        }
    }
}

#[test]
fn what_stands_still_is_one_line_that_counts_it_and_names_the_key() {
    let mut stage = Stage::after(6, scenes::containers_by_the_hundred());
    let line = "600 idle links, 150 namespaces as a whole, hidden (i to show)";
    assert!(
        stage.text(80, 24).contains(line),
        "150 containers are down, and every lo is quiet:\n{}",
        stage.text(80, 24)
    );
    stage.press("/h1<enter>");
    assert!(stage.text(80, 24).contains("idle links"), "with a filter too:\n{}", stage.text(80, 24));
    let told = "56 idle links";
    assert!(stage.text(80, 24).contains(told), "of what the filter lets through:\n{}", stage.text(80, 24));
    stage.press("i");
    assert!(
        !stage.text(80, 24).contains("(i to show)"),
        "shown, they are not counted as hidden:\n{}",
        stage.text(80, 24)
    );
    assert_eq!(names(&stage).iter().filter(|name| name.starts_with("h1")).count(), 111, "h1, h10 to h19, h100 to h199");
}

#[test]
fn a_down_link_that_never_moved_is_hidden_from_the_first_sample_on() {
    let mut stage = Stage::new(scenes::containers_by_the_hundred(), Settings::default());
    stage.tick();
    assert!(!names(&stage).contains(&"h1".to_owned()), "nothing is to be learnt of it by waiting");
}

#[test]
fn a_link_that_stops_for_a_moment_keeps_its_place() {
    let mut stage = Stage::after(6, scenes::containers_by_the_hundred());
    let before = names(&stage);
    assert!(at(&before, "h300") < at(&before, "h2"), "busy links stand before those that only hear others");
    let (port, traffic) = (Ifindex(301), Traffic::default());
    let was = std::mem::replace(stage.world.traffic(port), traffic);
    for _ in 0..8 {
        stage.tick();
        assert_eq!(names(&stage), before, "a pause of seconds moves no row");
    }
    *stage.world.traffic(port) = was;
    stage.tick();
    assert_eq!(names(&stage), before, "nor does its end");
}

#[test]
fn the_selection_stays_on_its_link_when_another_becomes_busy() {
    let mut stage = Stage::after(6, scenes::containers_by_the_hundred());
    stage.press("jjj");
    let chosen = selected(&stage);
    *stage.world.traffic(Ifindex(3)) = stream(5e9, 1e6);
    stage.tick();
    let rows = names(&stage);
    assert!(at(&rows, "h2") < at(&rows, "h150"), "h2 is busy now, and before h150 by name");
    assert_eq!(selected(&stage), chosen, "the selection went down with its link");
}

#[test]
fn the_links_of_a_benchmark_come_before_busier_ones() {
    let mut world = World::small();
    for n in 0..40 {
        world.link(&format!("a{n}"), Kind::Veth, Some(10_000), stream(5e9, 1e6));
    }
    let tested = world.link("z0", Kind::Veth, Some(10_000), Traffic { rx_packets: 3.0, ..Traffic::default() });
    let mut stage = Stage::after(1, world);
    assert_eq!(at(&names(&stage), "z0"), 40, "by itself it is the last");
    let mut metrics = stage.derive();
    let end = |text: &str| text.parse().expect("an address");
    let hop = Hop { link: LinkKey { netns: NETNS, ifindex: tested }, way: HopWay::Sent, by: HopBy::Route };
    let path = FlowPath {
        netns: NETNS,
        proto: Proto::Tcp,
        from: end("192.0.2.1:40000"),
        to: end("192.0.2.2:5201"),
        hops: vec![hop],
        gap: None,
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    };
    own(&mut metrics).paths = std::sync::Arc::new(vec![path]);
    stage.state.receive(metrics);
    assert_eq!(at(&names(&stage), "z0"), 0, "what a benchmark goes through is looked for first");
}

#[test]
fn links_that_come_later_are_hidden_too_unless_the_user_chose() {
    let few = || {
        let mut world = World::small();
        world.link("lo", Kind::Loopback, None, Traffic::default());
        Stage::after(6, world)
    };
    let grow = |stage: &mut Stage| {
        for n in 0..40 {
            stage.world.link(&format!("veth{n}"), Kind::Veth, Some(10_000), Traffic::default());
        }
        for _ in 0..12 {
            stage.tick();
        }
    };
    let mut stage = few();
    assert_eq!(names(&stage), ["lo"], "few links are all shown");
    grow(&mut stage);
    assert_eq!(names(&stage), Vec::<String>::new(), "forty more that stand still are not");
    let mut stage = few();
    stage.press("ii");
    grow(&mut stage);
    assert_eq!(names(&stage).len(), 41, "who chose to see idle links sees them");
}

#[test]
fn a_port_of_open_vswitch_names_its_bridge_only_where_the_tree_does_not() {
    let mut world = World::small();
    let bridge = world.link("br-int", Kind::OpenVSwitch, None, stream(1e9, 1e6));
    let port = world.link("p1", Kind::Veth, Some(10_000), stream(1e9, 1e6));
    let tap = world.link("vnet7", Kind::Tap, Some(10_000), stream(1e9, 1e6));
    let (kind, name) = (OwnerKind::Vm, "guest7".to_owned());
    world.owned(tap, Owner { kind, name, id: None, by: OwnerBy::Qemu, guess: false, pod_namespace: None });
    let ports = [("br-int", bridge), ("p1", port), ("vnet7", tap)];
    let mut stage = Stage::new(world, Settings::default());
    for _ in 0..3 {
        let mut sample = stage.world.tick(0.5);
        sample.facts_mut().ovs = std::sync::Arc::new(vec![switch(&ports)]);
        let item = vnettop::sample::Item::Sample(Box::new(sample));
        let metrics = stage.derivation.advance(item).expect("a sample gives metrics");
        let owner = metrics.machine.owner(LinkKey { netns: NETNS, ifindex: port }).expect("JSON keeps the owner");
        assert_eq!((owner.kind, &*owner.name), (OwnerKind::Ovs, "br-int"), "it is the bridge");
        stage.state.receive(metrics);
    }
    // What passes is said above the panes.
    let times = |stage: &Stage, text| {
        let frame = stage.text(120, 40);
        frame.lines().filter(|line| !line.contains("Traffic")).map(|line| line.matches(text).count()).sum::<usize>()
    };
    let frame = stage.text(120, 40);
    assert!(frame.contains("; no test is running ") && frame.contains("CARRYING  86k packets/s"), "{frame}");
    assert_eq!(times(&stage, "br-int"), 1, "the tree says it once:\n{}", stage.text(120, 40));
    assert_eq!(times(&stage, "guest7"), 1, "another owner is told:\n{}", stage.text(120, 40));
    stage.press("t");
    assert_eq!(times(&stage, "br-int"), 2, "without the tree the port says whose it is:\n{}", stage.text(120, 40));
}

/// An Open vSwitch with the bridge `br-int` and these ports.
fn switch(ports: &[(&str, Ifindex)]) -> OvsSwitch {
    let port =
        |&(name, ifindex): &(&str, Ifindex)| OvsPort::new(name, "system", Some(LinkKey { netns: NETNS, ifindex }));
    let ports = ports.iter().map(port).collect();
    let bridge = OvsBridge { name: "br-int".to_owned(), datapath: "system".into(), fail_mode: None, ports };
    OvsSwitch {
        socket: "/run/openvswitch/db.sock".to_owned(),
        netns: NETNS,
        version: None,
        pid: None,
        bridges: vec![bridge],
    }
}
