//! Whole frames.

mod world;
use vnettop::sample::*;
use world::stage::Stage;
use world::*;

fn iperf_over_bridge() -> World {
    let mut world = World::small();
    world.link("lo", Kind::Loopback, None, Traffic::default());
    world.link(
        "eth0",
        Kind::Virtio,
        None,
        Traffic { rx_bits: 12_000.0, tx_bits: 90_000.0, rx_packets: 14.0, tx_packets: 18.0, ..Traffic::default() },
    );
    let bridge = world.link("docker0", Kind::Bridge, Some(10_000), stream(34.8e9, 212e6));
    for (name, rx, tx) in [("vetha6c37c1", 34.8e9, 106e6), ("vethe61f5c0", 106e6, 34.8e9)] {
        let port = world.link(name, Kind::Veth, Some(10_000), stream(rx, tx));
        let facts = world.facts(port);
        facts.master = Some(bridge);
        facts.peer = Some(PeerRef { netnsid: Some(port.0 as i32), ifindex: Ifindex(2) });
    }
    let tun = world.link("tun0", Kind::Tun, Some(10_000), Traffic::default());
    world.facts(tun).state = LinkState::Down;
    world.iperf3(39_081, &[0, 0, 1, 0, 1, 1], 38.0);
    world.iperf3(39_082, &[1, 1, 0, 1, 0, 0], 22.0);
    *world.work(0) = Work { user: 0.04, system: 0.30, softirq: 0.55, net_rx: 412_000.0, hrtimer: 12_000.0, ..QUIET };
    *world.work(1) =
        Work { user: 0.06, system: 0.81, softirq: 0.04, irq: 0.01, steal: 0.02, net_rx: 900.0, squeezed: 3.0, ..QUIET };
    world
}

#[test]
fn look() {
    let mut stage = Stage::after(12, iperf_over_bridge());
    stage.press("j");
    println!("{}", stage.text(80, 24));
    println!("{}", stage.text(60, 15));
    println!("{}", stage.text(120, 40));
    println!("{}", stage.text(200, 60));
    println!("{}", stage.frame(80, 24));
    stage.press("?");
    println!("{}", stage.text(80, 24));
}
#[test]
fn look2() {
    let mut world = World::kunpeng();
    for n in 0..30 {
        world.link(&format!("veth{n}"), Kind::Veth, Some(10_000), stream(n as f64 * 1e8, 1e6));
    }
    for n in 0..8u32 {
        world.iperf3(39_081 + n, &[5 + n * 9, 91, 40], 12.0);
    }
    *world.work(5) = Work { softirq: 0.61, net_rx: 400_000.0, ..QUIET };
    *world.work(91) = Work { softirq: 0.31, net_rx: 400_000.0, ..QUIET };
    world.offline(127);
    world.isolated = "120-123".parse().unwrap();
    let mut stage = Stage::after(12, world);
    println!("{}", stage.text(80, 24));
    println!("{}", stage.text(120, 40));
    println!("{}", stage.text(200, 60));
    println!("{}", stage.text(60, 40));
    stage.press("<tab>");
    println!("{}", stage.text(60, 15));
    println!("{}", stage.text(50, 15));
    println!("{}", stage.text(300, 80));
}
