//! CPU time of one tick of the link reader against the bare `RTM_GETSTATS` dump it cannot do without, in namespaces of
//! 20 to 8,000 links that this program makes (it needs root) and that end with it. The promise: within 2×.
//!
//! `cargo bench -p vnettop-source --bench links` prints medians in µs of CPU time, user and system; `-- 20 200` chooses the sizes.
#![allow(unsafe_code, reason = "unshare has no safe wrapper; a thread of its own enters the namespace")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs, reason = "a benchmark")]

use netlink_packet_core::NetlinkMessage;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io::Write;
use std::process::{Command, Stdio};
use vnettop_source::links::LinkReader;

const SIZES: [usize; 4] = [20, 200, 2000, 8000];

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if !rustix::process::geteuid().is_root() {
        println!("NOT RUN: benches/links needs root to make namespaces");
        return;
    }
    println!("links  bare dump  + crate parser  tick (ratio)     tick after a change  notification");
    for size in if asked.is_empty() { SIZES.to_vec() } else { asked } {
        std::thread::spawn(move || {
            // SAFETY: only this thread's network namespace is left; no descriptor table is unshared.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
            measure(size);
        })
        .join()
        .unwrap();
    }
}

/// `lo`, veth pairs in a bridge up to 200 links, the rest ifb (cheap to make).
fn measure(size: usize) {
    let mut lines = vec!["link add br0 type bridge".to_owned()];
    let pairs = size.min(200) / 2 - 1;
    lines.extend((0..pairs).map(|n| format!("link add a{n} master br0 type veth peer name b{n}")));
    lines.extend((0..size - 2 * pairs - 2).map(|n| format!("link add f{n} type ifb")));
    batch(lines);
    let rounds = (400_000 / size).clamp(60, 4000);
    let mut bare = Bare::open();
    let mut reader = LinkReader::open().unwrap();
    assert_eq!(reader.read().unwrap().counters.len(), size, "every link is counted");
    // For a second after any news every tick asks for the claims too; the quiet tick is the one with a promise.
    let settled = std::time::Instant::now() + std::time::Duration::from_millis(1500);
    while std::time::Instant::now() < settled {
        reader.read().unwrap();
    }
    // Interleaved, so that a noisy minute of the machine falls on all of them.
    let mut times: [Vec<u64>; 3] = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        times[0].push(cpu(|| bare.dump(|_| 0)));
        times[1].push(cpu(|| bare.dump(parse_with_crate)));
        times[2].push(cpu(|| reader.read().unwrap().counters.len()));
    }
    let [bare_us, crate_us, tick_us] = times.map(median);
    let changed_us = median((0..60).map(|n| {
        batch([format!("link set br0 mtu {}", 1400 + n % 2)]);
        cpu(|| reader.read().unwrap().counters.len())
    }));
    let storm = 300;
    batch((0..storm).map(|n| format!("link set br0 mtu {}", 1402 + n % 2)));
    let notification_us = cpu(|| reader.drain().unwrap()) as f64 / 1e3 / f64::from(storm);
    println!(
        "{size:5}  {bare_us:9.1}  {crate_us:14.1}  {tick_us:6.1} ({:.2}×)  {changed_us:19.1}  {notification_us:12.2}",
        tick_us / bare_us
    );
}

/// `ip -batch`.
fn batch(lines: impl IntoIterator<Item = String>) {
    let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let lines = lines.into_iter().collect::<Vec<_>>().join("\n") + "\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "`ip -batch` failed");
}

/// CPU time of this thread, user and system, ns.
fn cpu<T>(work: impl FnOnce() -> T) -> u64 {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    };
    let before = now();
    std::hint::black_box(work());
    now() - before
}

fn median(times: impl IntoIterator<Item = u64>) -> f64 {
    let mut times: Vec<u64> = times.into_iter().collect();
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e3
}

/// The floor: the dump is asked for and received, nothing is looked at but where it ends.
struct Bare {
    socket: Socket,
    buffer: Vec<u8>,
    request: [u8; 28],
}

impl Bare {
    fn open() -> Self {
        let mut socket = Socket::new(NETLINK_ROUTE).unwrap();
        socket.bind_auto().unwrap();
        socket.set_netlink_get_strict_chk(true).unwrap();
        let mut request = [0; 28];
        request[0] = 28;
        request[4] = 94;
        request[6..8].copy_from_slice(&0x301_u16.to_ne_bytes());
        request[24] = 1;
        Self { socket, buffer: vec![0; 64 * 1024], request }
    }

    fn dump(&mut self, look: impl Fn(&[u8]) -> usize) -> usize {
        self.socket.send_to(&self.request, &SocketAddr::new(0, 0), 0).unwrap();
        let mut seen = 0;
        loop {
            let length = self.socket.recv(&mut &mut self.buffer[..], 0).unwrap();
            let datagram = &self.buffer[..length];
            seen += look(datagram);
            // NLMSG_DONE ends the dump: a datagram of its own, or the last 20 bytes of one (newer kernels).
            if datagram[length - 20..][4..6] == 3_u16.to_ne_bytes() {
                return seen;
            }
        }
    }
}

fn parse_with_crate(mut datagram: &[u8]) -> usize {
    let mut seen = 0;
    while datagram.len() >= 16 {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(datagram).unwrap();
        let length = message.header.length as usize;
        std::hint::black_box(message);
        seen += 1;
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    seen
}
