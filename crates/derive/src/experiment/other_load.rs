//! How busy the machine was with other work, tick by tick: what has to be alike where two phases are compared.

use crate::ledger::{Ledger, Ticked, TimeSpan};
use crate::machine::MachineMetrics;

/// What others used of the machine in a tick.
#[derive(Debug, Clone)]
pub struct OtherLoad {
    span: TimeSpan,
    /// CPU time a second, cores' worth.
    cores: f64,
}

impl OtherLoad {
    /// In the newest tick; none where it is not known how much they used, cores' worth.
    pub(crate) fn of(machine: &MachineMetrics, cores: Option<f64>) -> Option<Self> {
        let (cores, from_ns) = cores.zip(machine.began_ns())?;
        Some(Self { span: TimeSpan { from_ns, to_ns: machine.at_ns }, cores })
    }
}

impl Ticked for OtherLoad {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Ledger<OtherLoad> {
    /// The mean over some time, cores' worth; none where nothing of it is known.
    pub(super) fn mean_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let span = TimeSpan { from_ns, to_ns };
        span.mean(self.reaching_in(span), |tick| Some(tick.cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_counts_as_far_as_it_lies_in_the_time_asked_for() {
        let tick = |from_ns, cores| OtherLoad { span: TimeSpan { from_ns, to_ns: from_ns + 10 }, cores };
        let mut others: Ledger<OtherLoad> = [tick(0, 1.0), tick(10, 2.0), tick(20, 0.0)].into_iter().collect();
        assert_eq!(others.mean_between(5, 15), Some(1.5));
        assert_eq!(others.mean_between(10, 30), Some(1.0));
        assert_eq!(others.mean_between(30, 40), None, "nothing is known of it");
        others.forget(25);
        assert_eq!((others.mean_between(0, 20), others.mean_between(20, 30)), (None, Some(0.0)));
    }
}
