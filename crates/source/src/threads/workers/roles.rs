//! One look at a thread of a program on a path, and as what it carries packets: by what its process holds, by the kernel's flags,
//! by guest time. Of names only those of poll-mode threads count, which Open vSwitch gives them itself.

use crate::threads::parse::{parse_schedstat, parse_stat};
use crate::threads::proc_dir::ProcDir;
use vnettop_sample::{CarrierKind, WorkerRole};

/// How the name of a poll-mode thread begins.
const POLLING: &[u8] = b"pmd";

/// What one look tells of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    pub tid: u32,
    at_ns: u64,
    start: u64,
    /// CPU time and time that it waited for a core, ns.
    used_ns: u64,
    /// Field 43 of stat: time in which it ran a guest, clock ticks.
    pub guest_ticks: u64,
    /// The kernel's own work in this process (`PF_USER_WORKER` without `PF_IO_WORKER`): vhost from Linux 6.4 on.
    is_kernels: bool,
    polls: bool,
}

impl Glance {
    /// `None` when there is no such thread.
    pub fn of(proc: &mut ProcDir, (pid, tid): (u32, u32), tick_ns: u64, at_ns: u64) -> Option<Self> {
        let times = proc.read_file(pid, tid, "schedstat").ok().and_then(parse_schedstat);
        let read = parse_stat(proc.read_file(pid, tid, "stat").ok()?)?;
        let booked_ns = read.cpu_ticks.saturating_mul(tick_ns);
        let used_ns = times.map_or(booked_ns, |times| times.cpu_ns.saturating_add(times.wait_ns).max(booked_ns));
        Some(Self {
            tid,
            at_ns,
            start: read.start,
            used_ns,
            guest_ticks: read.guest_ticks,
            is_kernels: read.user_worker,
            polls: read.comm.starts_with(POLLING),
        })
    }

    /// Share of a core that it used and waited for since then; 0 of another thread of the same number.
    pub fn share_since(&self, before: &Self) -> f64 {
        let over_ns = self.at_ns.saturating_sub(before.at_ns);
        if over_ns == 0 || self.start != before.start {
            return 0.0;
        }
        self.used_ns.saturating_sub(before.used_ns) as f64 / over_ns as f64
    }

    /// It counts however little it does: the only thread of a program, the main one of a guest or a switch, poll-mode threads,
    /// vhost.
    pub fn always_counts(&self, pid: u32, kind: CarrierKind, threads: usize) -> bool {
        let is_main = self.tid == pid;
        match kind {
            CarrierKind::Guest => is_main || self.is_kernels,
            CarrierKind::Switch => is_main || self.polls,
            CarrierKind::Vpn | CarrierKind::Relay => is_main && threads == 1,
        }
    }
}

/// As what a thread of that program carries packets.
pub(super) fn role(glance: &Glance, pid: u32, kind: CarrierKind, has_guest_time: bool) -> WorkerRole {
    match kind {
        CarrierKind::Vpn => WorkerRole::Vpn,
        CarrierKind::Relay => WorkerRole::Relay,
        CarrierKind::Switch if glance.polls => WorkerRole::Pmd,
        CarrierKind::Switch => WorkerRole::Ovs,
        CarrierKind::Guest if glance.is_kernels => WorkerRole::Vhost,
        CarrierKind::Guest if glance.tid == pid => WorkerRole::Vmm,
        // With KVM a thread that never ran a guest does its I/O.
        CarrierKind::Guest if has_guest_time && glance.guest_ticks == 0 => WorkerRole::Vmm,
        CarrierKind::Guest => WorkerRole::Vcpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glance(tid: u32, guest_ticks: u64) -> Glance {
        Glance { tid, at_ns: 0, start: 1, used_ns: 0, guest_ticks, is_kernels: false, polls: false }
    }

    #[test]
    fn what_a_process_holds_says_what_its_threads_are() {
        let of = |glance: &Glance, kind, kvm| <&str>::from(role(glance, 7, kind, kvm));
        let (main, other, ran_guest) = (glance(7, 0), glance(8, 0), glance(9, 5));
        let guest = CarrierKind::Guest;
        assert_eq!([of(&main, guest, false), of(&other, guest, false)], ["vmm", "vcpu"], "emulated");
        assert_eq!([of(&other, guest, true), of(&ran_guest, guest, true)], ["vmm", "vcpu"], "with KVM");
        assert_eq!(of(&Glance { is_kernels: true, ..other }, guest, true), "vhost");
        assert_eq!([of(&main, CarrierKind::Vpn, false), of(&other, CarrierKind::Relay, false)], ["vpn", "relay"]);
        let polling = Glance { polls: true, ..other };
        assert_eq!([of(&main, CarrierKind::Switch, false), of(&polling, CarrierKind::Switch, false)], ["ovs", "pmd"]);
    }

    #[test]
    fn a_thread_that_waits_for_a_core_is_busy_and_a_reused_number_is_nobody() {
        let before = glance(8, 0);
        let now = Glance { at_ns: 1_000, used_ns: 400, ..before };
        assert!((now.share_since(&before) - 0.4).abs() < 1e-9, "used or waited for");
        assert!(Glance { start: 2, ..now }.share_since(&before) < 1e-9, "another thread");
        assert!(before.share_since(&before) < 1e-9, "no time has passed");
    }
}
