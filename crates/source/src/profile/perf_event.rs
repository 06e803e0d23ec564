//! `perf_event_open` and its ring: samples of one core, copied out as bytes. Written here because it is one system call and one
//! mapping: the crates for it (perf-event2 with six more, perf-event-open-sys) bring tables of every event there is and leave the records to be parsed.
#![allow(unsafe_code, reason = "perf_event_open and its mapping have no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use vnettop_sample::{CoreId, ProfileClock};

/// `struct perf_event_attr` as of `PERF_ATTR_SIZE_VER5` (Linux 4.1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers_user: u64,
    stack_user: u32,
    clock: i32,
    registers_interrupt: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

/// `PERF_TYPE_HARDWARE` with `PERF_COUNT_HW_CPU_CYCLES`, `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_CPU_CLOCK`: both are number 0.
const KINDS: [(u32, ProfileClock); 2] = [(0, ProfileClock::Cycles), (1, ProfileClock::CpuClock)];
/// IP, TID, TIME, CALLCHAIN, CPU, PERIOD: what `records` reads.
const SAMPLE_TYPE: u64 = 0x1 | 0x2 | 0x4 | 0x20 | 0x80 | 0x100;
/// `comm`, `freq`, `use_clockid`.
const FLAGS: u64 = 1 << 9 | 1 << 10 | 1 << 25;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Bytes of the ring: three seconds of 500 samples, and with its first page what any user may lock for a core
/// (`kernel.perf_event_mlock_kb`).
const RING: usize = 512 << 10;
/// Which word of the first page is `data_head`, and which is `data_tail`.
const HEAD: usize = 128;
const TAIL: usize = 129;

/// Samples of one core, from its opening on.
pub(super) struct Ring {
    /// The event ends with it.
    _event: OwnedFd,
    /// The page that the kernel shares, and the ring behind it.
    page: NonNull<AtomicU64>,
    page_bytes: usize,
    /// What the samples are taken by.
    pub clock: ProfileClock,
}

impl Ring {
    /// Has a core sampled: by its cycles, by a timer where it has no counter of them.
    ///
    /// # Errors
    /// EACCES or EPERM without `CAP_PERFMON`, ENODEV or EINVAL for a core that is not online, ENOSYS without perf events.
    pub fn open(core: CoreId, hz: u32) -> io::Result<Self> {
        let mut failed = io::Error::from(io::ErrorKind::Unsupported);
        for (kind, clock) in KINDS {
            match event(kind, core, hz) {
                Ok(event) => return Self::map(event, clock),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn map(event: OwnedFd, clock: ProfileClock) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the kernel chooses the place, and nothing else maps this descriptor; `Drop` unmaps the same bytes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), page_bytes + RING, access, shared, event.as_raw_fd(), 0) };
        match NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED) {
            Some(page) => Ok(Self { _event: event, page, page_bytes, clock }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Takes what is in the ring, record after record, and makes its room free.
    pub fn take(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        let head = usize::try_from(self.counter(HEAD).load(Ordering::Acquire)).unwrap_or(0);
        let tail = usize::try_from(self.counter(TAIL).load(Ordering::Relaxed)).unwrap_or(0);
        let length = head.wrapping_sub(tail).min(RING);
        let begin = tail % RING;
        let first = length.min(RING - begin);
        for (from, length) in [(begin, first), (0, length - first)] {
            // SAFETY: the bytes lie within the ring, which is mapped behind the first page as long as `self` is, and the kernel writes
            // nothing between tail and head until the tail is moved below.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(self.page.cast::<u8>().as_ptr().add(self.page_bytes + from), length)
            });
        }
        self.counter(TAIL).store(head as u64, Ordering::Release);
    }

    /// One of the two counters that the kernel shares.
    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both lie in the first page, aligned to eight bytes, mapped as long as `self` is, and are used as atomics alone.
        unsafe { &*self.page.as_ptr().add(at) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the bytes that `map` mapped; nothing borrows them, since `self` is owned here.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_bytes + RING) };
    }
}

fn event(kind: u32, core: CoreId, hz: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind,
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        frequency: hz.into(),
        sample_type: SAMPLE_TYPE,
        flags: FLAGS,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (every_process, no_group) = (-1, -1);
    let core = libc::c_int::try_from(core).unwrap_or(-1);
    // SAFETY: the kernel reads `size` bytes of a live structure and makes a descriptor, which nobody else owns.
    unsafe {
        let made = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            core,
            no_group,
            CLOSE_ON_EXEC,
        );
        match libc::c_int::try_from(made) {
            Ok(descriptor @ 0..) => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
