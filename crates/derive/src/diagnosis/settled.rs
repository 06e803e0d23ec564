//! What a test finds in one second and not in the next, though nothing has changed: shown once it was found twice in a row, and until it
//! was not found for some seconds. A sentence that comes and goes is worth less than one that is a little late.

/// What was found is shown so long without being found again, ns.
const KEPT_NS: u64 = 5_000_000_000;

/// What is shown of what was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled<T> {
    /// What was found last, and when.
    found: Option<(T, u64)>,
    is_shown: bool,
}

impl<T> Default for Settled<T> {
    fn default() -> Self {
        Self { found: None, is_shown: false }
    }
}

impl<T: Copy> Settled<T> {
    /// Takes in what was found at an instant (`CLOCK_MONOTONIC`, ns), if anything; what is to be shown. Two findings may not be
    /// `alike`: then the earlier one was not found again.
    pub(super) fn observe(&mut self, found: Option<T>, alike: impl Fn(&T, &T) -> bool, at_ns: u64) -> Option<T> {
        let again = found.filter(|found| self.found.as_ref().is_none_or(|(before, _)| alike(before, found)));
        match (again, self.found) {
            (Some(found), before) => {
                self.is_shown |= before.is_some();
                self.found = Some((found, at_ns));
            }
            (None, Some((_, found_ns))) if self.is_shown && at_ns.saturating_sub(found_ns) < KEPT_NS => {}
            (None, _) => {
                self.is_shown = false;
                self.found = found.map(|found| (found, at_ns));
            }
        }
        self.found.filter(|_| self.is_shown).map(|(found, _)| found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_stands_and_what_came_once_is_not_shown() {
        let mut settled = Settled::default();
        let mut shown = |second: u64, found: Option<char>| {
            settled.observe(found, |one, other| one == other, second * 1_000_000_000).unwrap_or('-')
        };
        let reported: String = "a--aa-aa----------bbaaaaaaaa"
            .chars()
            .zip(0..)
            .map(|(one, at)| shown(at, Some(one).filter(|one| *one != '-')))
            .collect();
        assert_eq!(reported, "----aaaaaaaa-------bbbbb-aaa");
    }
}
