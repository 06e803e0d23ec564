//! What a core's time is called in words.

use crate::program_name::with_pids;
use std::collections::BTreeSet;
use vnettop_sample::Runner;

/// The shares of a core that programs have, together no more than this: they were measured over another time than the core.
pub(crate) fn within(mut programs: Vec<(&Runner, f64)>, most: f64) -> Vec<(&Runner, f64)> {
    let all: f64 = programs.iter().map(|(_, share)| share).sum();
    let scale = if all > most { most / all } else { 1.0 };
    for (_, share) in &mut programs {
        *share *= scale;
    }
    programs
}

/// Programs of one name as one, most first: with its process, or how many there are.
pub(crate) fn programs(strangers: &[(&Runner, f64)]) -> Vec<(String, f64)> {
    let mut all: Vec<(&str, BTreeSet<u32>, f64)> = Vec::new();
    for &(runner, share) in strangers {
        match all.iter_mut().find(|(known, ..)| *known == runner.name) {
            Some((_, pids, sum)) => {
                pids.insert(runner.pid);
                *sum += share;
            }
            None => all.push((&runner.name, BTreeSet::from([runner.pid]), share)),
        }
    }
    all.sort_by(|one, other| other.2.total_cmp(&one.2));
    let named = |(name, pids, share): (&str, BTreeSet<u32>, f64)| (with_pids(name, &pids, 1), share);
    all.into_iter().map(named).collect()
}

/// Whole percents that sum to what these shares do, and to at most 100: rounded each by itself they would not.
pub(crate) fn whole_percents(shares: &[f64]) -> Vec<u32> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares of one core")]
    let whole = |percents: f64| percents.clamp(0.0, 100.0) as u32;
    let mut percents: Vec<u32> = shares.iter().map(|share| whole((share * 100.0).floor())).collect();
    let all = whole((shares.iter().sum::<f64>() * 100.0).round());
    let mut by_rest: Vec<usize> = (0..shares.len()).collect();
    let rest = |at: usize| (shares[at] * 100.0).fract();
    by_rest.sort_by(|&one, &other| rest(other).total_cmp(&rest(one)));
    let missing = all.saturating_sub(percents.iter().sum()) as usize;
    by_rest.into_iter().take(missing).for_each(|at| percents[at] += 1);
    percents
}
