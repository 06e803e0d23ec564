//! How busy the machine was with other work, tick by tick: what has to be alike where two phases are compared.

use crate::derive::machine::MachineMetrics;
use crate::derive::window::{Ticked, TimeSpan};
use std::collections::VecDeque;

/// The ticks that are known, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Others(VecDeque<OthersTick>);

#[derive(Debug, Clone)]
struct OthersTick {
    span: TimeSpan,
    /// CPU time of others a second, cores' worth.
    cores: f64,
}

impl Ticked for OthersTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Others {
    /// Takes the next tick into account, in which others used so much of the machine, cores' worth.
    pub fn observe(&mut self, machine: &MachineMetrics, cores: Option<f64>) {
        let Some((cores, from_ns)) = cores.zip(machine.began_ns()) else { return };
        self.0.push_back(OthersTick { span: TimeSpan { from_ns, to_ns: machine.at_ns }, cores });
    }

    /// Lets go of what is older.
    pub fn forget(&mut self, before_ns: u64) {
        self.0.drain(..self.0.partition_point(|tick| tick.span.to_ns < before_ns));
    }

    /// The mean over some time, cores' worth; none where nothing of it is known.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let first = self.0.partition_point(|tick| tick.span.to_ns <= from_ns);
        let ticks = self.0.range(first..).take_while(|tick| tick.span.from_ns < to_ns);
        TimeSpan { from_ns, to_ns }.mean(ticks, |tick| Some(tick.cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_counts_as_far_as_it_lies_in_the_time_asked_for() {
        let tick = |from_ns, cores| OthersTick { span: TimeSpan { from_ns, to_ns: from_ns + 10 }, cores };
        let mut others = Others([tick(0, 1.0), tick(10, 2.0), tick(20, 0.0)].into());
        assert_eq!(others.between(5, 15), Some(1.5));
        assert_eq!(others.between(10, 30), Some(1.0));
        assert_eq!(others.between(30, 40), None, "nothing is known of it");
        others.forget(25);
        assert_eq!((others.between(0, 20), others.between(20, 30)), (None, Some(0.0)));
    }
}
