//! The case that vnettop exists for, rebuilt: one TCP stream between two containers on a docker bridge of a Kunpeng 920,
//! first as the scheduler likes it, then with both ends pinned. The rate of every second is a published one; how a second's
//! rate is made up of tenths, and where threads and softirqs ran, is illustrative: a slow second is one with moves, each
//! of which is followed by a tenth at a fraction of the rate.

use super::scenes::{PINNED, SWINGS};
use super::{QUIET, Traffic, Work, World};
use std::net::SocketAddr;
use vnettop::sample::*;

/// The unpinned seconds are shown once and then so many of them again: the pin comes in the middle of the second dip.
const AGAIN: usize = 16;
/// The pinned ones are shown so often, so that there is as much after the pin as before it.
const PINNED_TIMES: usize = 3;
/// Unpinned seconds before the pin.
pub const PINNED_FROM_S: usize = SWINGS.len() + AGAIN;

const BINS_A_SECOND: usize = 10;
const BIN_NS: u64 = 100_000_000;
/// Bins of a sample.
const BINS_A_TICK: usize = 5;
/// A second below this many Gbit/s has moves; what it lacks to this rate is what they cost.
const FULL: f64 = 34.0;
/// A tenth after a move runs at least at this share of the full rate.
const DEEPEST: f64 = 0.12;
/// The problem that says what this is stands on screen so many seconds.
const TOLD_S: usize = 12;
/// A packet as the kernel counts it with segmentation offload, and what of it is payload.
const PACKET: f64 = 65_226.0;
const PAYLOAD: f64 = 65_160.0;

/// Where the two ends are while nothing moves them, and where they are pinned: `taskset -cp 0` and `-cp 1`.
const HOME: [CoreId; 2] = [4, 6];
const PIN: [CoreId; 2] = [0, 1];
const SERVER: usize = 0;
const CLIENT: usize = 1;
const TIDS: [u32; 2] = [39_081, 39_082];

/// Gbit/s of every second, in order.
pub fn seconds() -> Vec<f64> {
    let mut seconds = SWINGS.to_vec();
    seconds.extend(&SWINGS[..AGAIN]);
    seconds.extend(PINNED.repeat(PINNED_TIMES));
    seconds
}

/// A tenth of a second.
#[derive(Clone, Copy)]
pub struct Tenth {
    /// Gbit/s.
    pub rate: f64,
    /// It begins with a move.
    moved: bool,
}

/// Every tenth of a second; ten together have the published mean.
pub fn bins(seconds: &[f64]) -> Vec<Tenth> {
    let mut dice = Dice(6426);
    seconds.iter().flat_map(|&mean| second(mean, &mut dice)).collect()
}

/// As few moves as can cost what the second lacks, at tenths chosen by lot, and a percent of noise on all.
fn second(mean: f64, dice: &mut Dice) -> [Tenth; BINS_A_SECOND] {
    let tenths = BINS_A_SECOND as f64;
    let lacks = ((FULL - mean) * tenths).max(0.0);
    let moves = super::whole((lacks / (FULL * (1.0 - DEEPEST))).ceil());
    let slow = if moves > 0 { FULL - lacks / moves as f64 } else { mean };
    let mut is_slow = [false; BINS_A_SECOND];
    for _ in 0..moves {
        let free: Vec<usize> = (0..BINS_A_SECOND).filter(|&bin| !is_slow[bin]).collect();
        is_slow[free[dice.below(u32::try_from(free.len()).expect("ten")) as usize]] = true;
    }
    let full = if moves > 0 { FULL } else { mean };
    let noise: [f64; BINS_A_SECOND] = std::array::from_fn(|_| (f64::from(dice.below(2001)) / 1000.0 - 1.0) * 0.015);
    let raw: [f64; BINS_A_SECOND] =
        std::array::from_fn(|bin| (if is_slow[bin] { slow } else { full }) * (1.0 + noise[bin]));
    let scale = mean * tenths / raw.iter().sum::<f64>();
    std::array::from_fn(|bin| Tenth { rate: raw[bin] * scale, moved: is_slow[bin] })
}

/// A thread is on this core from this instant on (ns since the beginning).
type Arrival = (u64, usize, CoreId);

/// Where the threads go: about while the flow is slow, home when it recovers, to their pins at the end.
fn arrivals(bins: &[Tenth]) -> Vec<Arrival> {
    let mut all = Vec::new();
    let mut cores = HOME;
    let mut dice = Dice(920);
    let seconds: Vec<&[Tenth]> = bins.chunks(BINS_A_SECOND).take(PINNED_FROM_S).collect();
    for (second, tenths) in seconds.iter().enumerate() {
        let mut go = |tenth: usize, ms: u64, end: usize, core: CoreId| {
            if cores[end] != core {
                cores[end] = core;
                all.push(((second * BINS_A_SECOND + tenth) as u64 * BIN_NS + ms * 1_000_000, end, core));
            }
        };
        let last = tenths.iter().rposition(|tenth| tenth.moved);
        let recovers = seconds.get(second + 1).is_some_and(|next| !next.iter().any(|tenth| tenth.moved));
        for (tenth, _) in tenths.iter().enumerate().filter(|(_, tenth)| tenth.moved) {
            if recovers && Some(tenth) == last {
                go(tenth, 3, SERVER, HOME[SERVER]);
                go(tenth, 5, CLIENT, HOME[CLIENT]);
            } else {
                let away = |core: CoreId, dice: &mut Dice| (core + 32 * (1 + dice.below(3)) + dice.below(7)) % 128;
                let end = if dice.below(3) == 0 { SERVER } else { CLIENT };
                let to = away(HOME[end] + dice.below(24), &mut dice);
                go(tenth, 2 + u64::from(dice.below(6)), end, to);
            }
        }
    }
    let pinned_ns = (PINNED_FROM_S * BINS_A_SECOND) as u64 * BIN_NS;
    all.extend([SERVER, CLIENT].map(|end| (pinned_ns + 1_000_000 * (1 + end as u64), end, PIN[end])));
    all
}

/// The same throws every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// The machine before the first sample.
fn machine() -> (World, [ThreadId; 2]) {
    let mut world = World::kunpeng();
    world.host = Host { name: "kp920 rebuilt".into(), kernel: "–".into(), arch: "aarch64".into(), ..Host::default() };
    let bridge = world.link("docker0", Kind::Bridge, Some(10_000), Traffic::default());
    for (name, container, netnsid) in [("vetha6c37c1", "container1", 0), ("vethe61f5c0", "container2", 1)] {
        let port = world.link(name, Kind::Veth, Some(10_000), Traffic::default());
        let facts = world.facts(port);
        facts.master = Some(bridge);
        facts.alias = Some(container.to_owned());
        facts.peer = Some(PeerRef { netnsid: Some(netnsid), netns: None, ifindex: Ifindex(2) });
    }
    world.link("lo", Kind::Loopback, None, Traffic::default());
    let threads = [0, 1].map(|end| world.iperf3(TIDS[end], &[HOME[end]], 0.0));
    // As much as its core is busy, its softirqs among it.
    world.threads[SERVER].cpu = 0.94;
    world.paths = std::sync::Arc::new(vec![path(bridge)]);
    (world, threads)
}

/// From one container's port over the bridge to the other's; what lies in the containers is not part of it.
fn path(bridge: Ifindex) -> FlowPath {
    let hop = |ifindex, way, by| Hop { link: LinkKey { netns: super::NETNS, ifindex }, way, by };
    let address = |text: &str| text.parse().expect("an address");
    FlowPath {
        netns: 4_026_531_840 + 452,
        proto: Proto::Tcp,
        from: address("172.17.0.3:43210"),
        to: address("172.17.0.2:5201"),
        hops: vec![
            hop(Ifindex(bridge.0 + 2), HopWay::Received, HopBy::Peer),
            hop(bridge, HopWay::Passed, HopBy::Bridge),
            hop(Ifindex(bridge.0 + 1), HopWay::Sent, HopBy::Fdb),
        ],
        gap: None,
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    }
}

/// One end of the connection, with a pulse for every bin of a tick.
fn flow(end: usize, pulses: &[(u64, u64)]) -> FlowSample {
    let addresses: [SocketAddr; 2] =
        ["172.17.0.2:5201", "172.17.0.3:43210"].map(|address| address.parse().expect("an address"));
    let pulse = |&(at_ns, bytes): &(u64, u64)| {
        let (acked, received) = if end == CLIENT { (bytes, 0) } else { (0, bytes) };
        FlowProgress { at_ns, acked, received }
    };
    FlowSample {
        pulses: pulses.iter().map(pulse).collect(),
        ..FlowSample::new(1 + end as u64, (4_026_532_291 + end as u64, TIDS[end]), (addresses[end], addresses[1 - end]))
    }
}

/// What each end's work does to the core it is on: the sender's core also does the softirq work of the whole path.
fn work(world: &mut World, shares: &[[f64; 128]; 2], packets: f64) {
    for core in 0..128_u32 {
        let [server, client] = [0, 1].map(|end: usize| shares[end][core as usize]);
        *world.work(core) = Work {
            user: 0.01 + 0.05 * server + 0.03 * client,
            system: 0.01 + 0.85 * server + 0.40 * client,
            softirq: 0.02 * server + 0.52 * client,
            net_rx: packets * client,
            ..QUIET
        };
    }
}

/// The share of a tick that each end spent on each core.
fn shares(arrivals: &[Arrival], mut cores: [CoreId; 2], from_ns: u64, to_ns: u64) -> [[f64; 128]; 2] {
    let mut shares = [[0.0; 128]; 2];
    let mut since = [from_ns; 2];
    let mut spend = |end: usize, core: CoreId, ns: u64| {
        shares[end][core as usize] += ns as f64 / (to_ns - from_ns) as f64;
    };
    for &(at_ns, end, core) in arrivals {
        spend(end, cores[end], at_ns - since[end]);
        (cores[end], since[end]) = (core, at_ns);
    }
    for end in [SERVER, CLIENT] {
        spend(end, cores[end], to_ns - since[end]);
    }
    shares
}

/// The whole recording.
pub fn items() -> Vec<Item> {
    let bins = bins(&seconds());
    let arrivals = arrivals(&bins);
    let (mut world, threads) = machine();
    let mut items = Vec::new();
    let (mut cores, mut bytes, mut begin_ns) = (HOME, 0.0, None);
    for tick in 0..=bins.len() / BINS_A_TICK {
        world.problems = if tick < TOLD_S * 2 { vec![told()] } else { Vec::new() };
        let passed = &bins[tick.saturating_sub(1) * BINS_A_TICK..tick * BINS_A_TICK];
        let to_ns = (tick * BINS_A_TICK) as u64 * BIN_NS;
        let from_ns = to_ns - passed.len() as u64 * BIN_NS;
        let moves: Vec<Arrival> =
            arrivals.iter().filter(|(at_ns, ..)| (from_ns..to_ns).contains(at_ns)).copied().collect();
        let rate = passed.iter().map(|tenth| tenth.rate).sum::<f64>() * 1e9 / BINS_A_TICK as f64;
        travel(&mut world, rate);
        work(&mut world, &shares(&moves, cores, from_ns, to_ns.max(1)), rate / 8.0 / PAYLOAD);
        let mut sample = world.tick(0.5);
        let begin_ns = *begin_ns.get_or_insert(sample.at_ns);
        let mut pulses = Vec::new();
        for (nth, tenth) in (1..).zip(passed) {
            bytes += tenth.rate * 1e9 / 8.0 / BINS_A_SECOND as f64;
            pulses.push((begin_ns + from_ns + nth * BIN_NS, super::whole(bytes)));
        }
        if tick == 0 {
            pulses.push((begin_ns, 0));
        }
        let step = |&(at_ns, end, to): &Arrival| {
            let from = std::mem::replace(&mut cores[end], to);
            *world.threads[end].sample.migrations.as_mut().expect("counted") += 1;
            Move { at_ns: begin_ns + at_ns, tid: TIDS[end], from, to }
        };
        let moves = moves.iter().map(step).collect();
        sample.trace =
            Some(Trace { source: TraceSource::Ftrace, lost: 0, partly: Vec::new(), short_lived: None, moves });
        sample.flows = vec![flow(SERVER, &pulses), flow(CLIENT, &pulses)];
        for end in [SERVER, CLIENT] {
            sample.threads[end].core = cores[end];
            sample.threads[end].migrations = world.threads[end].sample.migrations;
        }
        items.push(Item::Sample(Box::new(sample)));
        if tick == PINNED_FROM_S * 2 {
            items.extend(pin(&mut world, threads));
        }
    }
    items
}

/// The problem that says what this recording is.
fn told() -> Problem {
    Problem {
        source: ProblemSource::Other("recording".to_owned()),
        text: format!(
            "rebuilt from the per-second rates published for one TCP stream over a docker bridge on a Kunpeng 920: {} s \
             unpinned, the first {AGAIN} of them again, then {} s pinned, {PINNED_TIMES} times; how a second is made up of \
             tenths, and where threads and softirqs ran, is illustrative",
            SWINGS.len(),
            PINNED.len()
        ),
    }
}

/// Payload at this rate crosses the bridge from one port to the other, with its headers, and is acknowledged.
fn travel(world: &mut World, bits_per_s: f64) {
    let packets = bits_per_s / 8.0 / PAYLOAD;
    let (there, back) = (packets * PACKET * 8.0, packets / 2.0 * 66.0 * 8.0);
    let container1 =
        Traffic { rx_bits: back, tx_bits: there, rx_packets: packets / 2.0, tx_packets: packets, ..Traffic::default() };
    let container2 =
        Traffic { rx_bits: there, tx_bits: back, rx_packets: packets, tx_packets: packets / 2.0, ..Traffic::default() };
    *world.traffic(Ifindex(2)) = container1;
    *world.traffic(Ifindex(3)) = container2;
}

/// Both ends are pinned.
fn pin(world: &mut World, threads: [ThreadId; 2]) -> [Item; 2] {
    [SERVER, CLIENT].map(|end| {
        let mask = CoreSet::single(PIN[end]);
        let old = world.threads[end].sample.allowed.replace(mask.clone()).expect("a mask");
        Item::Event(Event::Pinned { thread: threads[end], old, asked: mask.clone(), got: mask, at_ns: 0 })
    })
}
