//! What a frame costs. Not a test of right or wrong: run it in release and read it,
//! `cargo test --release --test pure screens_cost -- --ignored --nocapture`.

use crate::world::stage::Stage;
use crate::world::{World, stream};
use ratatui::backend::TestBackend;
use std::time::{Duration, Instant};
use vnettop::derive::Metrics;
use vnettop::sample::{Item, Kind};
use vnettop::ui::{Colors, Painter, Theme};
use vnettop::view::prepare;

fn busy_world(cores: World, links: u32, threads: u32) -> World {
    let mut world = cores;
    for n in 0..links {
        world.link(&format!("veth{n}"), Kind::Veth, Some(10_000), stream(1e9 + f64::from(n) * 1e6, 1e6));
    }
    for n in 0..threads {
        world.iperf3(39_081 + n, &[0, 1, 1], 12.0);
    }
    world
}

fn measure(name: &str, world: World, keys: &str) {
    let mut stage = Stage::after(60, world);
    stage.press(keys);
    let rounds = 200;
    let mut derived = Vec::new();
    let mut derive = |_| {
        let item = Item::Sample(Box::new(stage.world.tick(0.5)));
        let start = Instant::now();
        let metrics = stage.derivation.advance(item).expect("a sample gives metrics");
        derived.push(start.elapsed());
        metrics
    };
    let metrics: Vec<Metrics> = (0..rounds).map(&mut derive).collect();
    let (mut painter, mut terminal) = (Painter::default(), TestBackend::new(200, 60));
    let theme = Theme { colors: Colors::Terminal, utf8: true };
    let (mut received, mut laid_out, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for metrics in metrics {
        let start = Instant::now();
        stage.state.receive(metrics);
        received.push(start.elapsed());
        let start = Instant::now();
        let view = prepare(&stage.state, stage.derivation.history(), 200, 60);
        laid_out.push(start.elapsed());
        let start = Instant::now();
        painter.show(&view, theme, &mut terminal).expect("a test terminal takes everything");
        shown.push(start.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e6
    };
    println!(
        "{name}: derive {:.0} µs, receive {:.0} µs, prepare {:.0} µs, paint {:.0} µs (medians of {rounds} at 200×60)",
        median(&mut derived),
        median(&mut received),
        median(&mut laid_out),
        median(&mut shown)
    );
}

#[test]
#[ignore = "prints times, run it in release"]
fn what_a_frame_costs() {
    measure("20 links, 2 cores, 20 threads", busy_world(World::small(), 20, 20), "");
    measure("20 links, 128 cores, 64 threads", busy_world(World::kunpeng(), 20, 64), "");
    measure("2000 links by name", busy_world(World::small(), 2000, 20), "");
    measure("2000 links by rx, idle hidden", busy_world(World::small(), 2000, 20), "si");
    measure("60 links, 128 cores, 64 threads", busy_world(World::kunpeng(), 60, 64), "");
    measure("60 links, 512 cores, 64 threads", busy_world(World::new(512, 8, Some(4)), 60, 64), "");
}
