//! What a program is called in a sentence, so that it can be found: its name, and its processes.

use std::collections::BTreeSet;
use vnettop_sample::quoted;

/// `rustc (pid 7)`, of up to so many processes `rustc (pids 7, 8)`, else `rustc (9 processes)`.
pub(crate) fn with_pids(name: &str, pids: &BTreeSet<u32>, most: usize) -> String {
    let name = quoted(name);
    let numbers = || pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match pids.len() {
        1 => format!("{name} (pid {})", numbers()),
        count if count <= most => format!("{name} (pids {})", numbers()),
        count => format!("{name} ({count} processes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_told_one_by_one_where_they_are_few() {
        let told = |pids: &[u32], most| with_pids("rustc", &pids.iter().copied().collect(), most);
        assert_eq!(told(&[7, 7], 3), "rustc (pid 7)", "two threads of one process");
        assert_eq!(told(&[9, 7], 3), "rustc (pids 7, 9)");
        assert_eq!((&*told(&[9, 7], 1), &*told(&[1, 2, 3, 4], 3)), ("rustc (2 processes)", "rustc (4 processes)"));
    }
}
