//! Tables of what was derived: bins and links and threads row by row, tests one a row. Units are in the names of columns; times are
//! `CLOCK_MONOTONIC`, and seconds since the first sample of the recording.

use super::bin_follower::BinFollower;
use super::csv::CsvWriter;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use vnettop_derive::{Bin, Metrics, Test};
use vnettop_sample::Word;

/// What a table has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TableKind {
    /// Each bin of 100 ms of each test.
    Bins,
    /// Each link in each sample.
    Links,
    /// Each watched thread in each sample.
    Threads,
    /// Each test.
    Tests,
}

const BINS: [&str; 11] = [
    "test",
    "from_s",
    "from_ns",
    "to_ns",
    "rate_bits_per_s",
    "migrations_smt",
    "migrations_cluster",
    "migrations_llc",
    "migrations_node",
    "migrations_socket",
    "migrations_unclassed",
];
const LINKS: [&str; 16] = [
    "at_s",
    "at_ns",
    "netns_inode",
    "netns",
    "ifindex",
    "name",
    "kind",
    "nominal_mbits_per_s",
    "rx_bits_per_s",
    "tx_bits_per_s",
    "rx_packets_per_s",
    "tx_packets_per_s",
    "rx_dropped_packets_per_s",
    "tx_dropped_packets_per_s",
    "rx_errors_per_s",
    "tx_errors_per_s",
];
const THREADS: [&str; 14] = [
    "at_s",
    "at_ns",
    "pid",
    "tid",
    "start_ticks",
    "name",
    "role",
    "core",
    "allowed_cores",
    "cpu_cores",
    "wait_share",
    "migrations",
    "migrations_per_s",
    "migrations_evidence",
];
const TESTS: [&str; 13] = [
    "test",
    "description",
    "client",
    "server",
    "began_s",
    "began_ns",
    "ended_ns",
    "mean_bits_per_s",
    "mean_from_ns",
    "mean_to_ns",
    "mean_over_s",
    "lost_packets",
    "rate_of",
];

/// A table being written.
#[derive(Debug)]
pub struct CsvTable<W> {
    kind: TableKind,
    out: CsvWriter<W>,
    /// The first sample of the recording; none before it is known, monotonic ns.
    origin_ns: Option<u64>,
    since_ns: u64,
    /// A sample came before.
    has_begun: bool,
    /// Bins of running tests by number; none is everything that is watched.
    bins: BTreeMap<Option<u32>, BinFollower>,
    tests: BTreeMap<u32, Arc<Test>>,
}

impl<W: Write> CsvTable<W> {
    /// A table of this kind, of what begins at this moment or later; seconds are counted from the first one. Monotonic ns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(kind: TableKind, out: W, origin_ns: Option<u64>, since_ns: u64) -> io::Result<Self> {
        let columns: &[&str] = match kind {
            TableKind::Bins => &BINS,
            TableKind::Links => &LINKS,
            TableKind::Threads => &THREADS,
            TableKind::Tests => &TESTS,
        };
        let out = CsvWriter::new(out, columns)?;
        Ok(Self { kind, out, origin_ns, since_ns, has_begun: false, bins: BTreeMap::new(), tests: BTreeMap::new() })
    }

    /// Takes a sample. Of the first one, what it says of the time before it is left out.
    pub fn observe(&mut self, metrics: &Metrics) -> io::Result<()> {
        self.origin_ns.get_or_insert(metrics.machine.at_ns);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match self.kind {
            TableKind::Links if !is_first => self.links(metrics),
            TableKind::Threads if !is_first => self.threads(metrics),
            TableKind::Bins => self.bins(metrics),
            TableKind::Tests => self.tests(metrics),
            TableKind::Links | TableKind::Threads => Ok(()),
        }
    }

    /// Nothing comes after it.
    pub fn finish(&mut self) -> io::Result<()> {
        for (number, mut bins) in std::mem::take(&mut self.bins) {
            self.bin_rows(number, &bins.rest())?;
        }
        for test in std::mem::take(&mut self.tests).into_values() {
            self.test_row(&test)?;
        }
        self.out.flush()
    }

    fn seconds(&self, at_ns: u64) -> f64 {
        // Before the first sample: a bin, or a test of a part.
        let (origin_ns, sign) =
            (self.origin_ns.unwrap_or(at_ns), if self.origin_ns > Some(at_ns) { -1.0 } else { 1.0 });
        sign * at_ns.abs_diff(origin_ns) as f64 / 1e9
    }

    fn links(&mut self, metrics: &Metrics) -> io::Result<()> {
        let machine = &metrics.machine;
        let at_s = self.seconds(machine.at_ns);
        for link in machine.links.iter() {
            let facts = &link.facts;
            let rates = link.rates.unwrap_or_default();
            self.out.real(at_s).whole(machine.at_ns).whole(facts.netns).text(&machine.space_label(facts.netns));
            self.out.whole(u64::from(facts.ifindex.0)).text(&facts.name).text(facts.kind.word());
            self.out.whole(facts.speed_mbps.map(u64::from));
            for rate in [
                rates.rx_bits_per_s,
                rates.tx_bits_per_s,
                rates.rx_packets_per_s,
                rates.tx_packets_per_s,
                rates.rx_dropped_per_s,
                rates.tx_dropped_per_s,
                rates.rx_errors_per_s,
                rates.tx_errors_per_s,
            ] {
                self.out.real(rate);
            }
            self.out.end_row()?;
        }
        Ok(())
    }

    fn threads(&mut self, metrics: &Metrics) -> io::Result<()> {
        let machine = &metrics.machine;
        let at_s = self.seconds(machine.at_ns);
        for thread in machine.threads.iter() {
            let one = &thread.sample;
            let allowed = one.allowed.as_ref().map_or_else(String::new, ToString::to_string);
            self.out.real(at_s).whole(machine.at_ns).whole(u64::from(one.id.pid)).whole(u64::from(one.id.tid));
            self.out.whole((one.id.start > 0).then_some(one.id.start)).text(&one.name).plain(one.role());
            self.out.whole(u64::from(one.core)).text(&allowed).real(thread.cpu).real(thread.wait);
            self.out.whole(thread.moves).real(thread.moves_per_s).plain(thread.evidence.word()).end_row()?;
        }
        Ok(())
    }

    fn bins(&mut self, metrics: &Metrics) -> io::Result<()> {
        let since_ns = self.since_ns;
        let running = metrics.tests.iter().filter(|test| test.ended_ns.is_none());
        let mut all: Vec<_> = running.map(|test| (Some(test.number), &test.metrics)).collect();
        if metrics.test.is_none() && !metrics.subject.timeline.bins.is_empty() {
            all.push((None, &metrics.subject));
        }
        for (number, of) in &all {
            let follower = self.bins.entry(*number).or_insert_with(|| BinFollower::since(since_ns));
            let settled = follower.follow(&of.timeline.bins);
            self.bin_rows(*number, &settled)?;
        }
        let is_over = |number: &Option<u32>| number.is_some() && !all.iter().any(|(running, _)| running == number);
        for (number, mut bins) in self.bins.extract_if(.., |number, _| is_over(number)).collect::<Vec<_>>() {
            // As its last bins were known last.
            let last = metrics.tests.iter().find(|test| Some(test.number) == number);
            let settled = last.map_or_else(Vec::new, |test| bins.follow(&test.metrics.timeline.bins));
            self.bin_rows(number, &settled)?;
            self.bin_rows(number, &bins.rest())?;
        }
        Ok(())
    }

    fn bin_rows(&mut self, number: Option<u32>, bins: &[Bin]) -> io::Result<()> {
        for bin in bins {
            let moves = bin.moves;
            let from_s = self.seconds(bin.from_ns);
            self.out.whole(number.map(u64::from)).real(from_s).whole(bin.from_ns).whole(bin.to_ns).real(bin.bits_per_s);
            for count in [moves.smt, moves.cluster, moves.llc, moves.node, moves.socket] {
                self.out.whole(count);
            }
            self.out.real(bin.unclassed).end_row()?;
        }
        Ok(())
    }

    fn tests(&mut self, metrics: &Metrics) -> io::Result<()> {
        let is_known = |number: &u32| metrics.tests.iter().any(|test| test.number == *number);
        for (_, test) in self.tests.extract_if(.., |number, _| !is_known(number)).collect::<Vec<_>>() {
            self.test_row(&test)?;
        }
        let since_ns = self.since_ns;
        let within = metrics.tests.iter().filter(|test| test.ended_ns.is_none_or(|ended_ns| ended_ns >= since_ns));
        self.tests.extend(within.map(|test| (test.number, Arc::clone(test))));
        Ok(())
    }

    fn test_row(&mut self, test: &Test) -> io::Result<()> {
        let ends = test.ends().map(|end| end.map_or_else(String::new, |end| end.address.to_string()));
        let began_s = self.seconds(test.began_ns);
        let mean = test.mean;
        self.out.whole(u64::from(test.number)).text(&test.words()).text(&ends[0]).text(&ends[1]);
        self.out.real(began_s).whole(test.began_ns).whole(test.ended_ns);
        self.out.real(mean.map(|mean| mean.bits_per_s)).whole(mean.map(|mean| mean.from_ns));
        self.out.whole(mean.map(|mean| mean.to_ns)).real(mean.map(|mean| mean.known_s)).real(test.lost);
        let basis = test.metrics.flow.basis.as_ref().map_or_else(String::new, vnettop_derive::FlowBasis::word);
        self.out.text(&basis).end_row()
    }
}
