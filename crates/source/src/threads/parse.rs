//! The text of one thread's files (`stat`, `sched`, `schedstat`, `status`) → the few numbers wanted of it. Pure: bytes
//! in, `None` where they are not as the kernel writes them.

use crate::scan;
use vnettop_sample::{CoreId, CoreSet};

/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `PF_IO_WORKER` and `PF_USER_WORKER` of it: threads of a user's process that never leave the kernel, those of `io_uring` have both.
const IO_WORKER: u64 = 0x0010;
const USER_WORKER: u64 = 0x4000;

/// What `/proc/PID/task/TID/stat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat<'a> {
    /// Field 2, as the thread (or whoever named it) chose it: any bytes, also blanks and parentheses.
    pub comm: &'a [u8],
    /// Field 3: `R`, `S`, `D`, `Z`, …
    pub state: u8,
    /// Field 4: the process that it is a child of.
    pub parent: u32,
    /// Field 9, one flag of it: a thread of the kernel's own.
    pub kernel: bool,
    /// Two more of them: a thread that works for its process within the kernel, but not for `io_uring` (Linux 6.4).
    pub user_worker: bool,
    /// Fields 14 and 15 together, clock ticks.
    pub cpu_ticks: u64,
    /// Field 20: threads of its process.
    pub threads: u64,
    /// Field 22, clock ticks since boot.
    pub start: u64,
    /// Field 39: the core it last ran on.
    pub core: CoreId,
    /// Field 43: time in which it ran a guest, clock ticks; 0 where the line ends before.
    pub guest_ticks: u64,
}

/// Fields are counted from the last parenthesis, because the command name may hold anything.
pub(crate) fn parse_stat(bytes: &[u8]) -> Option<Stat<'_>> {
    let open = bytes.iter().position(|&byte| byte == b'(')?;
    let close = bytes.iter().rposition(|&byte| byte == b')')?;
    let comm = bytes.get(open + 1..close)?;
    let mut fields = scan::fields(bytes.get(close + 1..)?.trim_ascii_end());
    let state = *fields.next()?.first()?;
    let mut passed = 3;
    let mut field = |number: usize| {
        let field = fields.nth(number - passed - 1);
        passed = number;
        scan::number(field?)
    };
    let parent = u32::try_from(field(4)?).ok()?;
    let flags = field(9)?;
    Some(Stat {
        comm,
        state,
        parent,
        kernel: flags & KERNEL_THREAD != 0,
        user_worker: flags & (USER_WORKER | IO_WORKER) == USER_WORKER,
        cpu_ticks: field(14)?.checked_add(field(15)?)?,
        threads: field(20)?,
        start: field(22)?,
        core: u32::try_from(field(39)?).ok()?,
        guest_ticks: field(43).unwrap_or(0),
    })
}

/// What `/proc/PID/task/TID/sched` tells, each where the line is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sched {
    /// `se.nr_migrations`.
    pub migrations: Option<u64>,
    /// `nr_voluntary_switches`.
    pub voluntary: Option<u64>,
    /// `nr_involuntary_switches`.
    pub involuntary: Option<u64>,
}

/// Lines of the form `name   :   value`; the three wanted stand among the first dozens, in this order.
pub(super) fn parse_sched(bytes: &[u8]) -> Sched {
    let mut sched = Sched::default();
    for line in scan::lines(bytes) {
        let value = |key: &str| scan::value_of(line, key.as_bytes()).and_then(scan::number);
        match line.get(3..6) {
            Some(b"nr_") if sched.migrations.is_none() => sched.migrations = value("se.nr_migrations"),
            Some(b"vol") => sched.voluntary = value("nr_voluntary_switches"),
            Some(b"inv") => {
                sched.involuntary = value("nr_involuntary_switches");
                break;
            }
            _ => {}
        }
    }
    sched
}

/// What `/proc/PID/task/TID/schedstat` tells. All zero where the kernel does not count, or the thread never ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Schedstat {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Run-queue wait, ns.
    pub wait_ns: u64,
    /// How often it was given a core.
    pub slices: u64,
}

/// Three numbers on one line.
pub(super) fn parse_schedstat(bytes: &[u8]) -> Option<Schedstat> {
    let mut fields = scan::fields(bytes.trim_ascii_end());
    let mut next = || scan::number(fields.next()?);
    Some(Schedstat { cpu_ns: next()?, wait_ns: next()?, slices: next()? })
}

/// `Tgid` of `/proc/TID/status`: the process a thread belongs to.
pub(super) fn parse_tgid(status: &[u8]) -> Option<u32> {
    scan::lines(status).find_map(|line| scan::number32(scan::value_of(line, b"Tgid")?))
}

/// `Cpus_allowed_list` of `/proc/TID/status`.
pub(super) fn parse_allowed(status: &[u8]) -> Option<CoreSet> {
    let list = scan::lines(status).find_map(|line| scan::value_of(line, b"Cpus_allowed_list"))?;
    std::str::from_utf8(list).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "915 (iperf3) R 889 889 889 0 -1 4194560 403 0 0 0 3 273 0 0 20 0 1 0 659 7471104 823 \
        18446744073709551615 187650871394304 187650871399528 281474742422688 0 0 0 0 4100 16387 0 0 0 17 6 0 0 0 0 0\n";

    #[test]
    fn stat_gives_the_documented_fields() {
        let stat = parse_stat(STAT.as_bytes()).expect("a captured line");
        assert_eq!((stat.comm, stat.state, stat.kernel), (&b"iperf3"[..], b'R', false), "who it is");
        assert_eq!(stat.parent, 889, "field 4");
        assert_eq!((stat.cpu_ticks, stat.threads, stat.start, stat.core), (276, 1, 659, 6), "14+15, 20, 22 and 39");
    }

    #[test]
    fn a_command_name_may_hold_anything() {
        let text = STAT.replace("iperf3", ") R 1 (\n 2) Z");
        let stat = parse_stat(text.as_bytes()).expect("a hostile name");
        assert_eq!(stat.comm, b") R 1 (\n 2) Z", "the name ends at the last parenthesis");
        assert_eq!((stat.start, stat.core), (659, 6), "and shifts no field");
    }

    #[test]
    fn what_is_cut_short_is_unknown() {
        for end in 0..STAT.find(" 6 0 0").expect("field 39") {
            assert_eq!(parse_stat(&STAT.as_bytes()[..end]), None, "stat cut after {end} bytes is no thread");
        }
    }

    #[test]
    fn sched_gives_moves_and_switches() {
        let text = b"iperf3 (915, #threads: 1)\n---\nse.exec_start : 11083.905680\nse.nr_migrations    :    13\n\
            nr_switches : 182\nnr_voluntary_switches   :  101\nnr_involuntary_switches :   81\nse.load.weight : 5\n";
        let expected = Sched { migrations: Some(13), voluntary: Some(101), involuntary: Some(81) };
        assert_eq!(parse_sched(text), expected, "each from its own line");
        assert_eq!(parse_sched(b"se.nr_migrations : x\n"), Sched::default(), "what is no number is unknown");
    }

    #[test]
    fn status_tells_process_and_mask() {
        let status = b"Name:\tx\nTgid:\t915\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7,64\n";
        assert_eq!(parse_tgid(status), Some(915), "the process");
        assert_eq!(
            parse_allowed(status).map(|set| set.to_string()).as_deref(),
            Some("0-7,64"),
            "the list, not the mask"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, text in "(se.nr_migrations|nr_voluntary_switches|x \\(\\)){0,2} *:? *[0-9 ]{0,60}\n") {
            for bytes in [&bytes[..], text.as_bytes()] {
                let _ = (parse_stat(bytes), parse_sched(bytes), parse_schedstat(bytes), parse_tgid(bytes), parse_allowed(bytes));
            }
        }
    }
}
