//! The system calls of perf events, their mapped rings, and ignored signals. It decides nothing and keeps nothing.
#![allow(unsafe_code, reason = "perf_event_open, its ioctls, a shared mapping and SIG_IGN have no safe wrapper")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

const TYPE_TRACEPOINT: u32 = 2;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const DISABLED: u64 = 1;
const USE_CLOCKID: u64 = 1 << 25;
const FLAG_CLOEXEC: libc::c_ulong = 8;
/// Some machines number their ioctls otherwise.
const OTHERWISE: bool =
    cfg!(any(target_arch = "mips", target_arch = "mips64", target_arch = "powerpc", target_arch = "powerpc64"));
const IOC_ENABLE: u64 = if OTHERWISE { 0x2000_2400 } else { 0x2400 };
const IOC_SET_FILTER: u64 = if OTHERWISE { 0x8008_2406 } else { 0x4008_2406 };
/// Offsets in the first page of a ring (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// `struct perf_event_attr` in its first published size and the two fields after it that are needed.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    registers: u64,
    aux_watermark: u32,
    most_stack: u16,
    reserved: u16,
}

/// Signals that end groups and sessions do not end this process.
pub(super) fn ignore_ends() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        // SAFETY: no handler is set, only the constant that ignores the signal.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// A tracepoint event of every thread on one core, not enabled yet; each hit a sample with its time (`CLOCK_MONOTONIC`) and raw record.
pub(super) fn tracepoint(id: u64, core: i32) -> io::Result<OwnedFd> {
    let attr = Attr {
        kind: TYPE_TRACEPOINT,
        size: u32::try_from(size_of::<Attr>()).unwrap_or(0),
        config: id,
        sample_period: 1,
        sample_type: SAMPLE_TIME | SAMPLE_RAW,
        flags: DISABLED | USE_CLOCKID,
        // Nobody sleeps on it.
        wakeup_events: u32::MAX,
        clock: libc::CLOCK_MONOTONIC,
        ..Attr::default()
    };
    let everyone: libc::pid_t = -1;
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel reads `size` bytes of a live struct of that size; the other arguments are plain numbers.
    let got =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, everyone, core, no_group, FLAG_CLOEXEC) };
    let descriptor =
        i32::try_from(got).ok().filter(|&descriptor| descriptor >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Lets only matching records pass (`PERF_EVENT_IOC_SET_FILTER`).
pub(super) fn set_filter(event: BorrowedFd<'_>, filter: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads a string that ends with NUL and lives during the call.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_FILTER as _, filter.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an event going (`PERF_EVENT_IOC_ENABLE`).
pub(super) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no argument, so no memory is touched.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE as _, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The ring of an event: a page of positions, then the data, a power of two of pages.
#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut u8,
    page: usize,
    data: usize,
}

// SAFETY: the mapping belongs to this value alone, is readable from any thread, and is unmapped once, when dropped.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `data` bytes of ring.
    pub(super) fn new(event: impl AsFd, data: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let data = data.max(page).next_power_of_two();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = event.as_fd().as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is touched.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), page + data, protection, libc::MAP_SHARED, descriptor, 0) };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self { start: start.cast(), page, data })
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self`, the offset is inside it and aligned to eight bytes.
        unsafe { AtomicU64::from_ptr(self.start.add(offset).cast()) }
    }

    /// Whether the kernel wrote something that is not taken yet.
    pub(super) fn has_data(&self) -> bool {
        self.position(DATA_HEAD).load(Ordering::Acquire) != self.position(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Copies what the kernel wrote since the last time behind `into`, and gives the room back.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) {
        let (head, tail) =
            (self.position(DATA_HEAD).load(Ordering::Acquire), self.position(DATA_TAIL).load(Ordering::Relaxed));
        let fresh = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.data);
        let from = usize::try_from(tail % self.data as u64).unwrap_or(0);
        let first = fresh.min(self.data - from);
        for (offset, length) in [(from, first), (0, fresh - first)] {
            // SAFETY: the data are mapped, offset + length is at most their size, and between tail and head the kernel
            // writes nothing until the tail is moved below.
            into.extend_from_slice(unsafe { std::slice::from_raw_parts(self.start.add(self.page + offset), length) });
        }
        self.position(DATA_TAIL).store(head, Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the same range that was mapped, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.cast(), self.page + self.data) };
    }
}
