//! What held a test back, each limit with how long it was so.

use crate::limit::Limit;

/// Limits that are kept.
const MOST_LIMITS: usize = 64;

/// What held a test back, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSeen {
    /// As it was last on that core and by that name.
    pub limit: Limit,
    /// Seconds.
    pub seconds: f64,
    /// The sample that its figures are of, monotonic ns.
    pub at_ns: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LimitsTrack(Vec<LimitSeen>);

impl LimitsTrack {
    /// Each core and each name by itself: a test that was elsewhere first was limited by another one. Of very many the rest is told
    /// by its kind.
    pub fn add(&mut self, limit: &Limit, (elapsed_s, at_ns): (f64, u64)) {
        let is_same = |seen: &LimitSeen| {
            seen.limit.kind == limit.kind && seen.limit.core == limit.core && seen.limit.name == limit.name
        };
        let is_full = self.0.len() >= MOST_LIMITS;
        let mut known = self.0.iter().position(is_same);
        if known.is_none() && is_full {
            known = self.0.iter().position(|seen| seen.limit.kind == limit.kind);
        }
        match known {
            Some(at) => {
                self.0[at].seconds += elapsed_s;
                self.0[at].limit.clone_from(limit);
                self.0[at].at_ns = at_ns;
            }
            None => self.0.push(LimitSeen { limit: limit.clone(), seconds: elapsed_s, at_ns }),
        }
    }

    /// The longest first.
    pub fn summaries(&self) -> Vec<LimitSeen> {
        let mut all = self.0.clone();
        all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        all
    }
}
