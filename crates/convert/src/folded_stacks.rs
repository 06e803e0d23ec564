//! The stacks of the cores that were profiled, a line a stack.

use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_derive::Metrics;
use vnettop_derive::profile::CoreStacks;
use vnettop_sample::CoreId;

/// Stacks of a core that are kept, 200 bytes each.
const STACKS: usize = 100_000;

/// Stacks being added up; they are written at the end.
#[derive(Debug)]
pub struct FoldedStacks<W> {
    out: W,
    since_ns: u64,
    /// By core, with the end of the last stretch that was taken, ns.
    cores: BTreeMap<CoreId, (u64, CoreStacks)>,
}

impl<W: Write> FoldedStacks<W> {
    /// Stretches that end at this moment or before are left out, monotonic ns.
    pub fn new(out: W, since_ns: u64) -> Self {
        Self { out, since_ns, cores: BTreeMap::new() }
    }

    /// Takes the stretches of a core that are new.
    pub fn observe(&mut self, metrics: &Metrics) {
        let Some(activity) = &metrics.machine.profile else { return };
        let begun = || (self.since_ns, CoreStacks::new(STACKS));
        let (taken_ns, stacks) = self.cores.entry(activity.core).or_insert_with(begun);
        for stretch in &activity.stretches {
            if stretch.to_ns > *taken_ns {
                *taken_ns = stretch.to_ns;
                stacks.add(stretch, &activity.own);
            }
        }
    }

    /// Nothing comes after it.
    pub fn finish(&mut self) -> io::Result<()> {
        for (core, (_, stacks)) in &self.cores {
            for line in stacks.lines(*core) {
                writeln!(self.out, "{line}")?;
            }
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_derive::Derivation;
    use vnettop_sample::{CoreProfile, Event, Item, ProfiledFunction, ProfiledStack, Sample};

    #[test]
    fn each_stretch_is_counted_once_and_those_of_before_are_left_out() {
        let stretch = |second: u64| {
            let function = ProfiledFunction { name: Some("do_idle".to_owned()), module: None, kernel: true };
            let stack = ProfiledStack { program: None, pid: 0, functions: vec![0], samples: 10, weight: 1 };
            Event::Profiled(Box::new(CoreProfile {
                core: 2,
                from_ns: second * 1_000_000_000,
                to_ns: (second + 1) * 1_000_000_000,
                functions: vec![function],
                stacks: vec![stack],
                ..CoreProfile::default()
            }))
        };
        let (mut derivation, mut out) = (Derivation::default(), Vec::new());
        let mut stacks = FoldedStacks::new(&mut out, 2_000_000_000);
        for second in 0..8 {
            assert!(derivation.advance(Item::Event(stretch(second))).is_none());
            for half in 0..2 {
                let at_ns = (second + 1) * 1_000_000_000 + half * 500_000_000;
                let sample = Item::Sample(Box::new(Sample { at_ns, ..Sample::default() }));
                derivation.advance(sample).iter().for_each(|metrics| stacks.observe(metrics));
            }
        }
        stacks.finish().expect("memory takes it");
        assert_eq!(String::from_utf8(out).expect("text"), "core 2;idle;do_idle_[k] 60\n");
    }
}
