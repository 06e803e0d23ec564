//! One iperf3 test over a line: what iperf3 misses, what the kernel's own counters say, what vnettop says.

use super::counts::{Counts, Rise, missing};
use crate::ground::Netns;
use crate::ground::line::{Line, inode};
use crate::ground::unseen::{Unseen, is_all};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset", "nft", "python3"];

/// 8,000 datagrams/s of two sizes.
pub const SIZES: [&[&str]; 2] = [&["-u", "-l", "64", "-b", "4M"], &["-u", "-l", "1470", "-b", "94M"]];

/// Where and why: place, namespace, link, reason.
pub type Spot = (String, u64, String, String);

/// A spot of a namespace.
pub fn spot(place: &str, netns: &Netns, link: &str, reason: &str) -> Spot {
    (place.to_owned(), inode(netns), link.to_owned(), reason.to_owned())
}

/// Packets by spot, as vnettop tells them.
pub fn told(objects: &[Value]) -> BTreeMap<Spot, f64> {
    let mut sums = BTreeMap::new();
    for loss in objects.iter().flat_map(|object| object["losses"].as_array().expect("a list")) {
        let word = |field: &str| loss[field].as_str().unwrap_or_default().to_owned();
        let spot = (word("place"), loss["netns"].as_u64().unwrap_or(0), word("link"), word("reason"));
        *sums.entry(spot).or_insert(0.0) += loss["packets"].as_f64().expect("packets");
    }
    sums
}

/// One test at a time: two cores carry one, and all lines have the same addresses and ports.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often each loss is planted.
pub fn runs() -> usize {
    std::env::var("VNETTOP_LOSS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The number that a shell line prints inside; the sum where it prints several.
pub fn number(netns: &Netns, script: &str) -> f64 {
    let said = netns.output(script);
    let sum: Result<f64, _> = said.split_whitespace().map(str::parse::<f64>).sum();
    sum.unwrap_or_else(|_| panic!("a number from {script}: {said}"))
}

/// The packets that the rules of a namespace dropped, as `nft` counts them.
pub fn ruled(netns: &Netns) -> f64 {
    number(netns, "nft list ruleset | sed -n 's/.*counter packets \\([0-9]*\\) .*drop.*/\\1/p'")
}

/// Gives a namespace one rule of `nft` that counts and drops, in place of those it has. `hook` is as `forward priority 0`.
pub fn rule(netns: &Netns, family: &str, hook: &str, what: &str) {
    netns.run(&format!(
        "nft flush ruleset; nft add table {family} planted; \
         nft 'add chain {family} planted here {{ type filter hook {hook}; }}'; nft add rule {family} planted here {what} counter drop"
    ));
}

/// The packets that the root qdisc of a link dropped, as `tc` counts them.
pub fn queued(netns: &Netns, link: &str) -> f64 {
    number(netns, &format!("tc -s qdisc show dev {link} root | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'"))
}

/// What was planted in a run: the spot, and what its own counter counted meanwhile.
pub type Planted = (Spot, f64);

/// A test that is over.
pub struct Seen {
    report: Value,
    pub objects: Vec<Value>,
    near: Rise,
    far: Rise,
    unseen: BTreeMap<String, f64>,
}

impl Seen {
    /// Three seconds over a line; once more where iperf3 could not even begin, because the datagram that opens a stream comes
    /// only once.
    pub fn of(line: &Line, arguments: &[&str], meanwhile: impl Fn(&AtomicBool) + Send + Sync) -> Self {
        let arguments = [&["-t", "3"], arguments].concat();
        loop {
            let before = [&line.near, &line.far].map(Counts::of);
            let unseen = Unseen::begin();
            let (report, objects) = line.observe(&arguments, &meanwhile);
            let after = [&line.near, &line.far].map(Counts::of);
            let [near, far] = [0, 1].map(|end| Rise::between(before[end].clone(), after[end].clone()));
            if report["error"].is_null() {
                return Self { report, objects, near, far, unseen: unseen.by_reason() };
            }
            eprintln!("iperf3 could not begin: {}: once more", report["error"]);
        }
    }

    /// Datagrams that iperf3 counts as sent and did not receive, and those of them that never left its socket.
    fn missed(&self) -> [f64; 2] {
        let end = &self.report["end"];
        let number = |sum: &str, field: &str| {
            end[sum][field].as_f64().unwrap_or_else(|| panic!("iperf3 tells {field} in {sum}: {}", self.report))
        };
        let sent = number("sum_sent", "packets");
        let received = number("sum_received", "packets") - number("sum_received", "lost_packets");
        // Each stream is opened by a datagram that no sum has; the server answers it.
        let left = self.near.of("UdpOutDatagrams") + self.near.of("UdpSndbufErrors") - self.far.of("UdpOutDatagrams");
        [sent - received, sent - left]
    }

    /// Each spot is told with exactly what its own counter says, nothing else is told, and all together are what the kernel
    /// and iperf3 miss.
    pub fn holds(&self, what: &str, line: &Line, planted: &[Planted]) {
        let truth = missing(&[&self.near, &self.far]);
        let all: f64 = told(&self.objects).values().sum();
        eprintln!("{what}: {truth} packets arrived nowhere");
        self.holds_inside(what, line, "b0", planted);
        assert!(is_all(all, truth, self.unseen()), "{what}: all together arrived nowhere: {all} of {truth}");
    }

    /// The same of a tunnel, whose packets IP counts twice. On a loaded machine the receiver may be late too, with what comes
    /// in by a link.
    pub fn holds_inside(&self, what: &str, line: &Line, by: &str, planted: &[Planted]) {
        let late = (spot("receive_buffer", &line.far, by, "SOCKET_RCVBUFF"), self.far.of("UdpRcvbufErrors"));
        assert_told(what, &self.objects, &[&[late], planted].concat(), &self.unseen);
        self.sums(what);
    }

    /// All that is told is what iperf3 misses.
    fn sums(&self, what: &str) {
        let all: f64 = told(&self.objects).values().sum();
        let segments = |from: &Rise, to: &Rise| from.segments_sent() - to.segments_arrived();
        let segments = segments(&self.near, &self.far) + segments(&self.far, &self.near);
        eprintln!("{what}: beside {segments} segments; vnettop {all}: {:?}", told(&self.objects));
        let lost = self.lost(what) + segments;
        assert!(is_all(all, lost, self.unseen()), "{what}: all together is what iperf3 misses: {all} of {lost}");
    }

    /// Datagrams that were lost on their way to the receiver's socket or at it, by iperf3's own figures.
    pub fn lost(&self, what: &str) -> f64 {
        let ([missed, never_left], left_over) = (self.missed(), self.far.left_over());
        eprintln!(
            "{what}: iperf3 misses {missed}, of which {never_left} never left and {left_over} lay in a closed socket"
        );
        missed - never_left - left_over
    }

    /// Drops that the kernel told no program of.
    pub fn unseen(&self) -> f64 {
        self.unseen.values().sum()
    }
}

/// Each spot is told with exactly what its own counter says, and nothing else is told; what the whole machine has too much
/// work for has no counter of this test's alone.
pub fn assert_told(what: &str, objects: &[Value], planted: &[Planted], unseen: &BTreeMap<String, f64>) {
    let mut told = told(objects);
    let mut expected: BTreeMap<Spot, f64> = planted.iter().cloned().collect();
    expected.retain(|_, packets| *packets > 0.0);
    told.retain(|spot, _| spot.0 != "backlog" || expected.contains_key(spot));
    let mut open = unseen.clone();
    for (spot, counted) in expected {
        let packets = told.remove(&spot).unwrap_or(0.0);
        let unseen = open.entry(spot.3.clone()).or_default();
        assert!(is_all(packets, counted, *unseen), "{what}: {spot:?} has {packets} of {counted}, {unseen} unseen");
        *unseen -= counted - packets;
    }
    assert!(told.is_empty(), "{what}: nothing else is told: {told:?}");
    if !unseen.is_empty() {
        eprintln!("{what}: dropped while no program is told: {unseen:?}");
    }
    for loss in objects.iter().flat_map(|object| object["losses"].as_array().expect("a list")) {
        assert!(!loss["function"].is_null(), "{what}: with its function: {loss}");
        assert!(loss["share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)), "{what}: a share: {loss}");
    }
}

/// Runs a test of each size as often as asked; `count` reads the counter of each spot.
pub fn assert_exact(what: &str, line: &Line, spots: &[(Spot, &dyn Fn() -> f64)]) {
    assert_exact_with(what, line, &SIZES, spots, |_| ());
}

/// The same with these arguments for iperf3, and something that goes on beside it.
pub fn assert_exact_with(
    what: &str,
    line: &Line,
    sizes: &[&[&str]],
    spots: &[(Spot, &dyn Fn() -> f64)],
    meanwhile: impl Fn(&AtomicBool) + Send + Sync,
) {
    for arguments in sizes.iter().cycle().take(runs() * sizes.len()) {
        let before: Vec<f64> = spots.iter().map(|(_, count)| count()).collect();
        let seen = Seen::of(line, arguments, &meanwhile);
        let rise = |((spot, count), before): (&(Spot, &dyn Fn() -> f64), &f64)| (spot.clone(), count() - before);
        let planted: Vec<Planted> = spots.iter().zip(&before).map(rise).collect();
        let what = format!("{what}, {}", arguments.join(" "));
        assert!(planted.iter().all(|(_, packets)| *packets > 50.0), "{what}: enough is lost there: {planted:?}");
        seen.holds(&what, line, &planted);
    }
}
