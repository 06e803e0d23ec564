//! What iperf 3 said itself of the tests of a run, next to what was measured over the same time.

use super::CommandRun;
use crate::experiment::traffic;
use crate::ledger::{Bin, FlowBasis, Ledger, Mean};
use vnettop_sample::{Side, Whole};

/// A test as iperf 3 reported it at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnFigures {
    /// In which start of the command it ended, counted from 0.
    pub run: usize,
    /// Process that reported them; where `vnettop run` started the command, the command's.
    pub pid: u32,
    /// Which side these figures are of; `None` when it did not say.
    pub side: Option<Side>,
    /// What it told.
    pub whole: Whole,
    /// What was measured over the same time; none where another test ran too, where only a link stands for it, and where
    /// most of that time is unknown.
    pub measured: Option<MeasuredRate>,
}

/// A rate that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRate {
    /// Its mean, bits/s.
    pub bits_per_s: f64,
    /// Over how much of the time, seconds.
    pub seconds: f64,
}

/// Every reported test once: as the clients report it when one does, because servers know only half of it.
pub(super) fn figures(
    reported: &[OwnFigures],
    runs: &[CommandRun],
    bins: &Ledger<Bin>,
    basis: Option<&FlowBasis>,
) -> Vec<OwnFigures> {
    let by_server = |one: &&OwnFigures| one.side == Some(Side::Server);
    let has_client = reported.iter().any(|one| !by_server(&one));
    let counts = |one: &&OwnFigures| !has_client || !by_server(one);
    let mut figures: Vec<OwnFigures> = reported.iter().filter(counts).copied().collect();
    let is_exact = matches!(basis, Some(FlowBasis::Sockets(_) | FlowBasis::Datagrams(_)));
    for at in 0..figures.len() {
        let run = figures[at].run;
        let is_alone = figures.iter().filter(|one| one.run == run).count() == 1;
        let measured = || measured(bins, runs.get(run)?, figures[at].whole.length_ms);
        figures[at].measured = if is_alone && is_exact { measured() } else { None };
    }
    figures
}

/// What is longer than its test by this was not all of the test: something was left out at its start (`-O`), ns.
const EDGES_NS: u64 = 400_000_000;
/// The least part of a test that a mean is told of.
const LEAST: f64 = 0.8;

/// The mean over the last `length_ms` with traffic of a run, but for the bins at its edges: they are partly idle.
fn measured(bins: &Ledger<Bin>, run: &CommandRun, length_ms: u64) -> Option<MeasuredRate> {
    let (began_ns, ended_ns) = run.span();
    let bins = bins.within(began_ns, ended_ns);
    let test_ns = length_ms.checked_mul(1_000_000)?;
    let (first_ns, last_ns) = traffic(bins.clone(), None)?;
    let is_longer = last_ns.saturating_sub(first_ns) > test_ns.saturating_add(EDGES_NS);
    let from_ns = if is_longer { last_ns - test_ns } else { first_ns };
    let mut mean = Mean::default();
    for bin in bins.filter(|bin| bin.from_ns > from_ns && bin.to_ns < last_ns) {
        mean.add(bin.bits_per_s, bin.length_s());
    }
    let is_most = mean.weight >= test_ns as f64 / 1e9 * LEAST;
    Some(MeasuredRate { bits_per_s: mean.value().filter(|_| is_most)?, seconds: mean.weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::BIN_NS;
    use crate::moves::MovesByClass;

    const S: u64 = 1_000_000_000;

    fn reported(pid: u32, side: Side, length_ms: u64) -> OwnFigures {
        let whole = Whole { length_ms, received_bits_per_s: Some(1_000_000_000), ..Whole::default() };
        OwnFigures { run: 0, pid, side: Some(side), whole, measured: None }
    }

    /// Bins of a second of nothing, and then these rates, a tenth of a second each.
    fn bins(rates: impl IntoIterator<Item = f64>) -> Ledger<Bin> {
        let bin = |(nth, rate): (usize, f64)| {
            let from_ns = nth as u64 * BIN_NS;
            let to_ns = from_ns + BIN_NS;
            Bin { from_ns, to_ns, bits_per_s: Some(rate), moves: MovesByClass::default(), unclassed: 0.0 }
        };
        std::iter::repeat_n(0.0, 10).chain(rates).enumerate().map(bin).collect()
    }

    /// Mean and tenths of a second.
    fn measured_of(reported: &[OwnFigures], bins: &Ledger<Bin>, basis: &FlowBasis) -> Vec<Option<(f64, f64)>> {
        let runs = [CommandRun { from_ns: 0, to_ns: Some(60 * S), code: Some(0) }];
        let measured = |one: &OwnFigures| one.measured.map(|of| (of.bits_per_s.round(), (of.seconds * 10.0).round()));
        figures(reported, &runs, bins, Some(basis)).iter().map(measured).collect()
    }

    #[test]
    fn what_was_measured_is_of_the_same_time() {
        let client = reported(7, Side::Client, 4000);
        let (only, sockets) = (std::slice::from_ref(&client), FlowBasis::Sockets(1));
        // Four seconds of traffic lie in 4.1 s of bins, of which the first and the last are half idle.
        let rates = || std::iter::once(5e8).chain(std::iter::repeat_n(1e9, 39)).chain([5e8, 0.0, 0.0]);
        assert_eq!(measured_of(only, &bins(rates()), &sockets), [Some((1e9, 39.0))], "without the bins at its edges");
        let slow_start = std::iter::repeat_n(2e8, 20).chain(std::iter::repeat_n(1e9, 40));
        assert_eq!(
            measured_of(only, &bins(slow_start), &sockets),
            [Some((1e9, 38.0))],
            "what the test leaves out at its start is left out"
        );
        let mut gaps = bins(rates());
        gaps.iter_mut().skip(20).take(4).for_each(|bin| bin.bits_per_s = None);
        assert_eq!(measured_of(only, &gaps, &sockets), [Some((1e9, 35.0))], "what is unknown is no zero");
        let short = std::iter::repeat_n(1e9, 20);
        assert_eq!(measured_of(only, &bins(short), &sockets), [None], "half of it was not seen");
        let link = FlowBasis::Link("v0".to_owned());
        assert_eq!(measured_of(only, &bins(rates()), &link), [None], "a link counts other things");
        let two = [client, reported(8, Side::Client, 4000)];
        assert_eq!(measured_of(&two, &bins(rates()), &sockets), [None, None], "two tests have one rate together");
        let both = [reported(9, Side::Server, 4000), client];
        assert_eq!(
            measured_of(&both, &bins(rates()), &sockets),
            [Some((1e9, 39.0))],
            "both ends of a test are one test"
        );
    }
}
