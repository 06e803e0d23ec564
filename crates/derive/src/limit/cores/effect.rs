//! What a full core does to the test, in clauses.

use super::super::LimitKind;
use super::super::scene::Thread;
use super::words::programs;
use super::{Full, LEAST};
use crate::figure::percent;
use vnettop_sample::Runner;

impl Full<'_> {
    /// How long a thread waits for it.
    pub(super) fn wait(&self) -> Option<String> {
        let wait = |one: &Thread| {
            format!("{} waits {} % of the time for core {}", one.label, percent(one.wait), self.core.number)
        };
        self.waits.map(wait)
    }

    /// What that does to the test.
    pub(super) fn because(&self, kind: LimitKind, strangers: &[(&Runner, f64)]) -> Option<String> {
        let (core, waits) = (self.core.number, self.waits);
        let share = |of: f64| format!("{} %", percent(of));
        Some(match kind {
            LimitKind::Others => {
                let programs = programs(strangers);
                let who = match programs.first() {
                    Some((name, most)) if self.others - most >= LEAST => format!("{name} and others take"),
                    Some((name, _)) => format!("{name} takes"),
                    None => "other programs take".to_owned(),
                };
                let (label, wait) = waits.map(|one| (&one.label, share(one.wait)))?;
                format!("{who} {} of core {core}, for which {label} waits {wait} of the time", share(self.others))
            }
            LimitKind::Steal => {
                format!("{}, of which the hypervisor takes {}", self.wait()?, share(self.core.steal))
            }
            LimitKind::OwnSoftirq => format!("softirqs of the test use {} of core {core}", share(self.softirq)),
            _ => {
                let (thread, part) = self.threads.first()?;
                format!("{} needs more than the {} of core {core} that it has", thread.label, share(*part))
            }
        })
    }
}
