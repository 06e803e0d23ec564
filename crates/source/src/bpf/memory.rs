//! Gives back what reading the kernel's types took: 50 MB for a moment, of which the allocator would keep 2 MB.
#![allow(unsafe_code, reason = "mallopt and malloc_trim have no safe wrapper")]

/// Does a piece of work that takes much memory for a moment, and returns that to the kernel where the C library can (glibc).
/// It has a thread of its own: what a thread has freed last is kept until it ends.
pub(super) fn for_a_moment<T: Send>(work: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    let result = std::thread::scope(|scope| {
        let result = scope.spawn(work).join();
        // The next thread gets the arena of the one that has ended.
        let _ = scope.spawn(shrink_arena).join();
        result
    });
    trim();
    result
}

/// Gives back the free end of this thread's arena: that is done only where a larger block is freed and the rest is larger
/// than a threshold, which has risen with the largest block so far.
#[cfg(target_env = "gnu")]
fn shrink_arena() {
    const LOW: libc::c_int = 64 * 1024;
    const USUAL: libc::c_int = 4 * 1024 * 1024;
    // SAFETY: it only changes when free memory is given back, and may be called at any time from any thread.
    let threshold = |bytes| unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, bytes) };
    threshold(LOW);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(128 * 1024)));
    threshold(USUAL);
}

/// Gives back whole free pages between what is in use, in all arenas.
#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: it only returns memory that nothing points to, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
fn shrink_arena() {}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
