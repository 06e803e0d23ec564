//! `sched_getaffinity` and `sched_setaffinity` for machines of any size. The wrappers of libc and rustix stop at 1024
//! cores, so the calls are made by number with a mask as wide as this kernel wants. Nothing else belongs here.
#![allow(unsafe_code, reason = "no safe wrapper passes a mask of any width")]

use crate::sample::CoreSet;
use std::io;

/// Words of the first try: 128 bytes, 1024 cores.
const FIRST_WORDS: usize = 16;
/// Words of the last try: 8 KiB, more cores than any kernel can have.
const LAST_WORDS: usize = 1024;

/// The mask of one thread: the cores it may run on that are online.
pub(super) fn mask_of(tid: u32) -> io::Result<CoreSet> {
    let tid = task(tid)?;
    let mut words = vec![0u64; FIRST_WORDS];
    loop {
        // SAFETY: the buffer is writable and as long as said; the kernel writes no more than that and keeps no pointer.
        let written = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, tid, std::mem::size_of_val(words.as_slice()), words.as_mut_ptr())
        };
        match usize::try_from(written) {
            Ok(bytes) => return Ok(CoreSet::from_words(&words[..bytes.div_ceil(8).min(words.len())])),
            Err(_) => grow(&mut words, io::Error::last_os_error())?,
        }
    }
}

/// EINVAL means that the kernel's masks are wider than the buffer.
fn grow(words: &mut Vec<u64>, error: io::Error) -> io::Result<()> {
    if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= LAST_WORDS {
        return Err(error);
    }
    words.resize(words.len() * 2, 0);
    Ok(())
}

/// Sets the mask of one thread. The kernel takes a mask of any length: what is missing counts as zero.
pub(super) fn set_mask(tid: u32, cores: &CoreSet) -> io::Result<()> {
    let tid = task(tid)?;
    let words = cores.words();
    // SAFETY: the buffer is readable and as long as said; the kernel only reads it and keeps no pointer.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, std::mem::size_of_val(words), words.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A tid for the kernel. 0 would mean the caller itself, so it is nobody here, like every number that no thread has.
fn task(tid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(tid).ok().filter(|&tid| tid > 0).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_this_thread_can_be_read_and_set_to_itself() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mask = mask_of(tid).expect("a thread may read its own mask");
        assert!(!mask.is_empty(), "a thread that runs has a core");
        set_mask(tid, &mask).expect("a thread may keep its own mask");
        assert_eq!(mask_of(tid).expect("still readable"), mask, "nothing changed");
    }

    #[test]
    fn no_number_stands_for_the_caller_itself() {
        for tid in [0, u32::MAX] {
            let error = mask_of(tid).expect_err("no such thread");
            assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{tid} is nobody");
        }
    }
}
