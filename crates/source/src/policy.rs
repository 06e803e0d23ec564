//! What the machine does with frequencies, pages and interrupts behind a benchmark's back: read once at the start. What
//! a machine does not tell stays unknown; it changes nothing.

use super::{Roots, proc_file};
use std::path::Path;
use vnettop_sample::Policy;
use vnettop_sample::text;

/// Processes looked at for irqbalance; a machine with more keeps the answer to itself.
const MOST_PROCESSES: usize = 4_096;

/// The policy of the machine of these trees.
#[must_use]
pub fn read(roots: &Roots) -> Policy {
    let frequency = roots.sys.join("devices/system/cpu/cpu0/cpufreq");
    let word = |path: &Path| proc_file::text(path).ok().map(|word| text::clean(word.as_bytes()));
    let number = |path: &Path| proc_file::text(path).ok()?.parse().ok();
    Policy {
        governor: word(&frequency.join("scaling_governor")).filter(|word| !word.is_empty()),
        limit_khz: number(&frequency.join("scaling_max_freq")),
        most_khz: number(&frequency.join("cpuinfo_max_freq")),
        // 0 off, 1 normal, 2 memory tiering (Linux 6.1).
        numa_balancing: number(&roots.proc.join("sys/kernel/numa_balancing")).map(|mode| mode & 1 == 1),
        irqbalance: irqbalance(&roots.proc),
        netdev_max_backlog: number(&roots.proc.join("sys/net/core/netdev_max_backlog"))
            .and_then(|most| u32::try_from(most).ok()),
        default_qdisc: word(&roots.proc.join("sys/net/core/default_qdisc")).filter(|word| !word.is_empty()),
    }
}

/// A process of that name runs; none where there are too many to look at, or none can be seen.
fn irqbalance(proc: &Path) -> Option<bool> {
    let entries = std::fs::read_dir(proc).ok()?;
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
    let processes = entries.flatten().filter(|entry| is_process(&entry.file_name()));
    let (mut seen, mut found) = (0, false);
    for process in processes {
        seen += 1;
        found |= proc_file::text(&process.path().join("comm")).is_ok_and(|name| name == "irqbalance");
        if found || seen > MOST_PROCESSES {
            break;
        }
    }
    (found || (1..=MOST_PROCESSES).contains(&seen)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(roots: &Roots, file: &str, content: &str) {
        let path = match file.strip_prefix("sys/") {
            Some(file) => roots.sys.join(file),
            None => roots.proc.join(file.trim_start_matches("proc/")),
        };
        fs::create_dir_all(path.parent().expect("in a directory")).expect("writable");
        fs::write(path, content).expect("writable");
    }

    #[test]
    fn the_policy_is_what_the_files_say_and_unknown_where_there_are_none() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: directory.path().join("proc"), sys: directory.path().join("sys") };
        assert_eq!(read(&roots), Policy::default(), "nothing is known of an empty tree");
        write(&roots, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
        write(&roots, "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "1200000\n");
        write(&roots, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "2600000\n");
        write(&roots, "proc/sys/kernel/numa_balancing", "1\n");
        write(&roots, "proc/1/comm", "systemd\n");
        write(&roots, "proc/sys/net/core/default_qdisc", "fq_codel\n");
        write(&roots, "proc/812/comm", "irqbalance\n");
        let policy = read(&roots);
        assert_eq!(policy.governor.as_deref(), Some("powersave"), "the governor");
        assert_eq!((policy.limit_khz, policy.most_khz), (Some(1_200_000), Some(2_600_000)), "the cap");
        assert_eq!(
            (policy.numa_balancing, policy.irqbalance),
            (Some(true), Some(true)),
            "what moves pages and interrupts"
        );
        assert_eq!(policy.default_qdisc.as_deref(), Some("fq_codel"), "what a new link gets");
        fs::remove_dir_all(roots.proc.join("812")).expect("writable");
        assert_eq!(read(&roots).irqbalance, Some(false), "it does not run");
    }
}
