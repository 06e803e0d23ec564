//! What the user is told where the kernel cannot be asked: what is missing, why, and what to do about it.

use crate::bpf::Refusal;
use crate::{Roots, way_out};

/// The process namespace of the machine itself (`PROC_PID_INIT_INO`, Linux 3.8): the kernel tells no other's numbers.
const OF_THE_MACHINE: &str = "pid:[4026531836]";
const ELSEWHERE: &str = "this is not the machine's own PID namespace";
const NO_MORE: &str = "softirqs are not timed and the cores of hops are not counted";
const NO_BTF: &str = "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF of Linux 5.5 and newer)";
/// The number of `CAP_BPF` (Linux 5.8).
const CAP_BPF: u32 = 39;

/// What is missing, and what it would add.
pub(super) fn sentence(roots: &Roots, refusal: &Refusal, has_moves: bool) -> String {
    let without = if has_moves {
        "losses come from drop counters only"
    } else {
        "migrations are only counted, and losses come from drop counters only"
    };
    let adds = if has_moves { "the reason and function of each loss" } else { "time, reason and function of each" };
    let way = way(roots, refusal);
    match refusal {
        Refusal::Rights if rustix::process::geteuid().is_root() => format!("{without}: {way}; missing: {adds}"),
        Refusal::Rights => format!("{without}: {way} to see {adds}"),
        Refusal::NoTracefs(_) => format!("{without}: {way} to see each migration"),
        Refusal::NoBtf | Refusal::NoMemory { .. } | Refusal::Unread(_) | Refusal::Other(_) => {
            format!("{without}: {way}; missing: {adds}")
        }
    }
}

/// Why what is counted only on request is not.
pub(super) fn no_more(roots: &Roots, refusal: &Refusal) -> String {
    format!("{NO_MORE}: {}", way(roots, refusal))
}

/// Why nothing is counted on request outside of the machine's own process namespace.
pub(super) fn no_more_elsewhere() -> String {
    format!("{NO_MORE}: {ELSEWHERE}; run vnettop outside of the container")
}

/// What is in the way, or what to do about it.
fn way(roots: &Roots, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Rights if rustix::process::geteuid().is_root() => {
            "vnettop is root without CAP_BPF and CAP_PERFMON, or the kernel is locked down".to_owned()
        }
        Refusal::Rights if knows_cap_bpf(roots) => "run vnettop as root or with CAP_BPF and CAP_PERFMON".to_owned(),
        Refusal::Rights => "run vnettop as root or with CAP_SYS_ADMIN".to_owned(),
        Refusal::NoBtf => NO_BTF.to_owned(),
        Refusal::NoTracefs(error) => {
            format!("{NO_BTF}, and tracefs cannot be reached ({error}); {}", way_out(error, "run vnettop as root"))
        }
        Refusal::Unread(error) => {
            let mends = way_out(error, "run vnettop as root");
            format!("the kernel's types cannot be read ({error}); {mends}")
        }
        Refusal::NoMemory { needed_mb, left_mb } => no_memory(*needed_mb, *left_mb),
        Refusal::Other(why) => format!("the kernel refused the BPF programs ({why})"),
    }
}

/// What a control group has too little of.
pub(crate) fn no_memory(needed_mb: u64, left_mb: u64) -> String {
    format!("BPF needs {needed_mb} MB for a moment; this cgroup has {left_mb} MB of memory left")
}

/// Before Linux 5.8 there is no `CAP_BPF` to ask for.
pub(crate) fn knows_cap_bpf(roots: &Roots) -> bool {
    let last = std::fs::read_to_string(roots.proc.join("sys/kernel/cap_last_cap"));
    last.ok().and_then(|last| last.trim().parse::<u32>().ok()).is_some_and(|last| last >= CAP_BPF)
}

/// The kernel could not speak of the threads of this /proc.
pub(crate) fn is_elsewhere(roots: &Roots) -> bool {
    elsewhere(roots).is_some()
}

/// Why this machine's kernel could not speak of the threads of this /proc, where that is so; a sentence where there is
/// anything to be done about it.
#[allow(clippy::option_option, reason = "no reason, a reason without words, a reason")]
pub(super) fn elsewhere(roots: &Roots) -> Option<Option<String>> {
    let target = |link: &str| std::fs::read_link(roots.proc.join(link)).ok();
    let is = |link: &str, expected: &str| target(link).is_some_and(|target| target.as_os_str() == expected);
    if is("self", &std::process::id().to_string()) && is("self/ns/pid", OF_THE_MACHINE) {
        return None;
    }
    // A captured /proc has nobody to trace.
    let sentence = format!(
        "migrations are only counted, and losses come from drop counters only: {ELSEWHERE}; run vnettop outside of \
         the container to see time, reason and function of each"
    );
    Some(target("self").map(|_| sentence))
}

/// What is said of dropped packets that stand in no row; none where every one does. Only the first digit is told, so that it is another
/// sentence seldom.
pub(super) fn no_row(packets: u64) -> Option<String> {
    let unit = 10_u64.pow(packets.checked_ilog10()?);
    let least = packets / unit * unit;
    Some(format!("at least {least} dropped packets are in no row of drops: the table was full"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_drops_that_vanish_are_told() {
        assert_eq!(no_row(0), None, "every packet is in a row");
        let reported = |packets| no_row(packets).expect("some are in none");
        assert!(
            reported(9728).starts_with("at least 9000 dropped packets are in no row of drops"),
            "{}",
            reported(9728)
        );
        assert_eq!(reported(9728), reported(9001), "and not anew for each packet");
        assert!(reported(1).starts_with("at least 1 dropped packets"), "{}", reported(1));
    }
}
