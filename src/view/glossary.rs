//! Every mark, column and word of the screen in a line each: the second page of the help.

/// What stands on the screen, and what it means.
pub(super) const GLOSSARY: &[(&str, &str)] = &[
    ("–", "unknown: never the same as 0"),
    ("≥", "at least: more may have been missed"),
    ("*", "left its core and returned; drops: yours"),
    ("?", "behind an owner: a guess"),
    ("▸", "the pane or row that keys act on"),
    ("t", "a core that your threads run on"),
    ("[p]", "this finding is answered by the key p"),
    ("● • ·", "migrated to another cache; within it; cluster"),
    ("┬ ◆", "a pin or unpin; a marker set with m"),
    ("█ ▒ ░ ▓", "low, high rate; pinned; dip (no colours)"),
    ("! ▾", "packets lost; a dip of the rate"),
    ("2▄▄▄ core 2▄▄", "migrated to node 2, core 2; ▄ stays there"),
    ("CV ±", "deviation / mean; unsteady from 10 %"),
    ("p5 p50 p95", "rate that 5, 50, 95 % of bins stay below"),
    ("⡇ below ·", "time zoomed out (<): lowest and highest rate"),
    ("p99", "99 % of packets took less; 1 us to 1 s"),
    ("dip", "longest time below half of the median"),
    ("Unsteady", "the rate varied by 10 % or more (CV)"),
    ("LIMIT", "what holds the test back now"),
    ("SPEED", "nominal speed, as the driver says:"),
    ("  const", "hard-coded, not enforced"),
    ("  real", "of hardware: a limit"),
    ("  inherit", "of the interface below"),
    ("  max(2), sum", "the fastest of 2 ports; all together"),
    ("  set", "by somebody with ethtool"),
    ("×SPEED", "rate / nominal speed; blank: not above it"),
    ("RX ↓ TX ↑", "received, sent; of a bridge: the host's own"),
    ("PPS AVG B", "packets/s, RX + TX; mean bytes (> MTU: GSO)"),
    ("WIRE WIRE%", "bytes/packet on a wire; part of its limit"),
    ("DROP/s ERR/s", "dropped and faulty packets (own counters)"),
    ("LAST", "the last seconds as bars"),
    ("NETNS", "network namespace"),
    ("KIND STATE", "kind of interface; up or down"),
    ("OWNER", "container, pod, guest or program behind"),
    ("PEER MTU", "other end of a pair; largest packet"),
    ("QUEUES", "queues to send by / to receive by"),
    ("softirq", "kernel work for packets on that core"),
    ("sampled", "softirq time by clock ticks; x measures it"),
    ("test softirqs", "those of the packets of your test"),
    ("NET_RX", "softirqs of received packets"),
    ("HRTIMER RCU", "other softirqs, as in /proc/softirqs"),
    ("squeezed", "softirq budget used up, packets wait"),
    ("processed", "packets that softirqs took on that core"),
    ("steal", "time the hypervisor gave to others"),
    ("ksoftirqd", "kernel thread that takes softirqs when there are many"),
    ("TID PID NAME", "number, process and name of a thread"),
    ("PORT → PEER", "its connection: own port, other end"),
    ("▲ ▼", "sorted by it: smallest, largest on top"),
    ("ROLE", "server, client; between: vcpu, vpn …"),
    ("CORE ALLOWED", "core it runs on; cores it may use"),
    ("CPU%", "of one core; mostly with its softirqs"),
    ("MIGR MIGR/s", "core changes: total; per second of 10"),
    ("CLASS", "last migration: smt, cluster, llc (one cache), node, socket"),
    ("WAIT%", "time ready to run, waiting for a core"),
    ("VOL/s INVOL/s", "context switches: waits; preempted"),
    ("CORES", "core history: where the thread was"),
    ("pin", "thread kept on one core; unpin undoes it"),
    ("others", "cores that other programs used, summed"),
    ("THERE NOW", "your threads on that core; +1: one more"),
    ("HOP BY", "path: the table that chose this hop"),
    ("OFFLOADS OFF", "path: offloads switched off at that link"),
    ("late", "samples taken late: the CPU was busy"),
    ("card", "before and after a pin: did it help?"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_explained() {
        let titles = super::super::links::titles().chain(super::super::threads::titles());
        for title in titles {
            let is_there = |(words, _): &&(&str, &str)| words.contains(title);
            assert!(GLOSSARY.iter().any(|entry| is_there(&entry)), "the second page of the help explains {title}");
        }
    }

    #[test]
    fn a_line_is_a_line() {
        for (words, meaning) in GLOSSARY {
            assert!(words.chars().count() <= 13 && meaning.chars().count() <= 70, "'{words}' '{meaning}'");
        }
    }
}
