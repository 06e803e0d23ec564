//! The inhabitants of one namespace: their numbers, and when each was started. It reads no file.

use std::collections::BTreeMap;

/// From this number of inhabitants on, and whenever it has doubled since, those that have gone are forgotten.
const MANY: usize = 32;

/// The inhabitants; a few that have gone may be among them.
#[derive(Debug, Default)]
pub(super) struct NetnsHolders {
    /// By process, in clock ticks since boot.
    started: BTreeMap<u32, u64>,
    /// Inhabitants that were left when those that have gone were forgotten last.
    left: usize,
}

impl NetnsHolders {
    pub fn is_empty(&self) -> bool {
        self.started.is_empty()
    }

    pub fn len(&self) -> usize {
        self.started.len()
    }

    pub fn has(&self, pid: u32) -> bool {
        self.started.contains_key(&pid)
    }

    /// Numbers wrap: the smallest one may be the youngest.
    pub fn oldest(&self) -> Option<u32> {
        self.started.iter().min_by_key(|&(&pid, &started)| (started, pid)).map(|(&pid, _)| pid)
    }

    /// The oldest first.
    pub fn by_age(&self) -> Vec<u32> {
        let mut all: Vec<(u64, u32)> = self.started.iter().map(|(&pid, &started)| (started, pid)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, pid)| pid).collect()
    }

    /// One more; where there are many, each is asked whether it is there still.
    pub fn take_in(&mut self, pid: u32, started: u64, mut lives: impl FnMut(u32) -> bool) {
        if self.started.len() >= MANY.max(2 * self.left) {
            self.started.retain(|&pid, _| lives(pid));
            self.left = self.started.len();
        }
        self.started.insert(pid, started);
    }

    pub fn forget(&mut self, pid: u32) {
        self.started.remove(&pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_told_by_its_start_and_not_by_its_number() {
        let mut living = NetnsHolders::default();
        for (pid, started) in [(32_000, 500), (40, 900), (41, 900), (7, 1_000)] {
            living.take_in(pid, started, |_| true);
        }
        assert_eq!(living.oldest(), Some(32_000), "the numbers wrapped after it");
        assert_eq!(living.by_age(), [32_000, 40, 41, 7]);
        living.forget(32_000);
        assert_eq!(living.oldest(), Some(40), "of two that were started at once the first");
    }

    #[test]
    fn those_that_come_and_go_are_not_kept_for_ever() {
        let mut living = NetnsHolders::default();
        let mut most = 0;
        for pid in 0..10_000 {
            living.take_in(pid, u64::from(pid), |one| one == 0 || one + 3 > pid);
            most = most.max(living.len());
        }
        assert!(living.has(0) && living.oldest() == Some(0), "who stays is kept");
        assert!(most <= MANY, "and of the others no more than {MANY}, not {most}");
    }
}
