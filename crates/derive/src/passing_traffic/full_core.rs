//! Cores that have no time left while traffic passes, and who has it.

use crate::limit::IDLE;
use crate::limit::words::{programs, whole_percents, within};
use crate::machine::MachineMetrics;
use vnettop_sample::{CoreId, Runner};

/// A smaller part is not named.
const LEAST: f64 = 0.05;
/// So many programs are named.
const MOST_PROGRAMS: usize = 2;

/// A full core, and shares of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct FullCore {
    /// The core.
    pub core: CoreId,
    /// All but idle and stolen time.
    pub busy: f64,
    /// Softirqs and interrupts: packets, for the most part.
    pub softirq: f64,
    /// What the hypervisor gave to others.
    pub steal: f64,
    /// Programs and the kernel for them.
    pub process: f64,
    /// The programs that were seen there, most first: with its process each, or how many there are.
    pub programs: Vec<(String, f64)>,
}

impl FullCore {
    /// `core 0 is 100 % busy: 62 % rustc (pid 591), 31 % softirqs, 7 % others`
    #[must_use]
    pub fn sentence(&self) -> String {
        let named: f64 = self.programs.iter().map(|(_, share)| share).sum();
        let mut parts = self.programs.clone();
        parts.push(("softirqs".to_owned(), self.softirq));
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let rest = if self.programs.is_empty() { "programs not visible from here" } else { "others" };
        parts.push((rest.to_owned(), (self.process - named).max(0.0)));
        parts.push(("taken by the hypervisor".to_owned(), self.steal));
        parts.retain(|(_, share)| *share >= LEAST);
        let shares: Vec<f64> = parts.iter().map(|(_, share)| *share).collect();
        let words: Vec<String> =
            parts.iter().zip(whole_percents(&shares)).map(|((who, _), share)| format!("{share} % {who}")).collect();
        let all = crate::figure::percent(self.busy + self.steal);
        format!("core {} is {all} % busy: {}", self.core, words.join(", "))
    }
}

/// The full cores, the one with most softirqs first.
pub(super) fn list(machine: &MachineMetrics) -> Vec<FullCore> {
    let full = |core: &crate::cores::CoreMetrics| {
        let shares = core.shares().filter(|shares| shares.idle <= IDLE)?;
        let process = shares.user + shares.system;
        let runners = machine.facts.runners.iter();
        let here: Vec<(&Runner, f64)> = runners
            .filter(|one| one.core == core.place.core && !one.is_ksoftirqd())
            .map(|one| (one, one.cpu_ns as f64 / one.over_ns.max(1) as f64))
            .collect();
        let mut programs = programs(&within(here, process));
        programs.retain(|(_, share)| *share >= LEAST);
        programs.truncate(MOST_PROGRAMS);
        let (busy, softirq, steal) = (shares.busy(), shares.softirq + shares.irq, shares.steal);
        Some(FullCore { core: core.place.core, busy, softirq, steal, process, programs })
    };
    let mut all: Vec<FullCore> = machine.cores.iter().filter_map(full).collect();
    all.sort_by(|one, other| other.softirq.total_cmp(&one.softirq));
    all
}
