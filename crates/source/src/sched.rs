//! The scheduler's system calls: affinity masks of any width, and the calling thread's priority. It decides nothing: who
//! of others may be moved, and where to, is for `effect` alone; where vnettop itself sits, for `source`.
#![allow(unsafe_code, reason = "masks wider than 1024 cores and SCHED_RESET_ON_FORK have no safe wrapper")]

mod cpuset;
mod full_affinity;

pub use cpuset::cpuset;
pub use full_affinity::kept_affinity;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use vnettop_sample::CoreSet;

/// 1024 cores, what most kernels' masks are not wider than.
const FIRST_WORDS: usize = 16;
/// 65536 cores, more than any kernel can have.
const MOST_WORDS: usize = 1024;

/// The cores a thread may run on now, of those that are online (`sched_getaffinity`). `words` is the mask's buffer: used again from call to call, it
/// grows to the width of this machine's masks.
///
/// # Errors
/// ESRCH when the thread is gone; EINVAL when its mask is wider than any kernel's.
pub fn get_affinity(tid: u32, words: &mut Vec<u64>) -> io::Result<CoreSet> {
    if words.len() < FIRST_WORDS {
        words.resize(FIRST_WORDS, 0);
    }
    loop {
        // SAFETY: the pointer and the size in bytes are those of a live, exclusively borrowed, aligned buffer; the
        // kernel writes at most that many bytes, and any bits are a valid u64.
        let got = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(words.as_slice()), words.as_mut_ptr())
        };
        match usize::try_from(got) {
            Ok(bytes) => return Ok(CoreSet::from_words(&words[..bytes.div_ceil(size_of::<u64>()).min(words.len())])),
            Err(_) => grow(words, io::Error::last_os_error())?,
        }
    }
}

/// EINVAL on reading means that the kernel's masks are wider than the buffer.
fn grow(words: &mut Vec<u64>, error: io::Error) -> io::Result<()> {
    if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= MOST_WORDS {
        return Err(error);
    }
    let wider = words.len() * 2;
    words.resize(wider, 0);
    Ok(())
}

/// Sets the cores a thread may run on (`sched_setaffinity`). The kernel shrinks a mask that is partly outside the
/// allowed set without a word: read it back.
///
/// # Errors
/// EINVAL when no core of the set is allowed, EPERM for another user's thread, ESRCH when the thread is gone.
pub fn set_affinity(tid: u32, cores: &CoreSet) -> io::Result<()> {
    set_words(tid, &mask(cores))
}

/// The words of a mask as wide as the kernel wants them.
fn mask(cores: &CoreSet) -> Vec<u64> {
    let mut words = cores.words().to_vec();
    words.resize(words.len().max(FIRST_WORDS), 0);
    words
}

fn set_words(tid: u32, words: &[u64]) -> io::Result<()> {
    // SAFETY: the pointer and the size in bytes are those of a live, aligned buffer that the kernel only reads.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(words), words.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The cores that this process was started with: the mask of its main thread when this is first called, which whoever
/// narrows the mask of vnettop does before, offline cores included. Empty where it cannot be read.
pub fn started_with() -> &'static CoreSet {
    static CORES: OnceLock<CoreSet> = OnceLock::new();
    CORES.get_or_init(|| {
        let now = || get_affinity(std::process::id(), &mut Vec::new());
        kept_affinity("self").or_else(|_| now()).unwrap_or_default()
    })
}

/// The limit of descriptors that this process was started with.
static STARTED_WITH_DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process have as many descriptors as its hard limit allows: a machine full of network namespaces takes five for
/// each.
pub fn raise_descriptor_limit() {
    let started_with = *STARTED_WITH_DESCRIPTORS.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit { current: started_with.maximum, ..started_with };
    let _as_many_as_before = setrlimit(Resource::Nofile, raised);
}

/// Makes a command start with the cores and the limit of descriptors that vnettop was started with, wherever vnettop itself sits by then. A mask that
/// is no longer allowed is left as it is inherited.
pub fn unseated(command: &mut Command) -> &mut Command {
    let words = mask(started_with());
    let descriptors = STARTED_WITH_DESCRIPTORS.get().copied();
    // SAFETY: between fork and exec the closure makes two system calls with memory of its own: it allocates nothing,
    // takes no lock and touches no descriptor.
    unsafe {
        command.pre_exec(move || {
            let _no_longer_allowed = set_words(0, &words);
            let _lowering_is_always_allowed = descriptors.map(|limit| setrlimit(Resource::Nofile, limit));
            Ok(())
        })
    }
}

/// Gives the calling thread round-robin real-time priority (1 to 99); threads it starts are ordinary ones.
///
/// # Errors
/// EPERM without `CAP_SYS_NICE` (or an `RLIMIT_RTPRIO`).
pub fn set_realtime(priority: u8) -> io::Result<()> {
    set_scheduler(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, priority)
}

/// Runs something whose new threads share the calling thread's real-time priority, if it has one: it waits for them, and on a
/// full machine would wait for long. Without `CAP_SYS_NICE` they are ordinary ones.
pub fn with_heirs<T>(work: impl FnOnce() -> T) -> T {
    let priority = realtime_priority();
    let passed_on = priority.filter(|&priority| set_scheduler(libc::SCHED_RR, priority).is_ok());
    let done = work();
    if let Some(priority) = passed_on {
        let _it_was_so_before = set_realtime(priority);
    }
    done
}

/// The real-time priority of the calling thread; none for an ordinary one.
fn realtime_priority() -> Option<u8> {
    let (calling_thread, mut priority) = (0, 0 as libc::c_int);
    // SAFETY: the kernel writes one int, `struct sched_param` of Linux, through a pointer to a live one.
    let read = unsafe { libc::syscall(libc::SYS_sched_getparam, calling_thread, &raw mut priority) };
    u8::try_from(priority).ok().filter(|&priority| read == 0 && priority > 0)
}

/// Makes the calling thread an ordinary one again.
///
/// # Errors
/// None that a thread which was ordinary before can meet.
pub fn set_normal() -> io::Result<()> {
    set_scheduler(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
}

/// The flag is on in both directions: an unprivileged thread may not take it off.
fn set_scheduler(policy: libc::c_int, priority: u8) -> io::Result<()> {
    let calling_thread = 0;
    let priority = libc::c_int::from(priority);
    // SAFETY: the kernel reads one int, `struct sched_param` of Linux, through a pointer to a live one.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, calling_thread, policy, &raw const priority) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_tid() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }

    #[test]
    fn a_mask_reads_back_as_it_was_set_and_is_put_back() {
        let mut words = Vec::new();
        let before = get_affinity(own_tid(), &mut words).expect("the own mask is readable");
        let one = CoreSet::single(before.first().expect("a thread may run somewhere"));
        set_affinity(own_tid(), &one).expect("an allowed core is accepted");
        assert_eq!(get_affinity(own_tid(), &mut words).expect("readable"), one, "the kernel has the mask that was set");
        set_affinity(own_tid(), &before).expect("the old mask is accepted");
        assert_eq!(get_affinity(own_tid(), &mut words).expect("readable"), before, "the old mask is back");
    }

    #[test]
    fn only_threads_that_are_waited_for_share_the_priority() {
        if set_realtime(1).is_err() {
            eprintln!("NOT RUN: only_threads_that_are_waited_for_share_the_priority: CAP_SYS_NICE is needed");
            return;
        }
        let started = || std::thread::spawn(realtime_priority).join().expect("it runs");
        let (heir, other) = (with_heirs(started), started());
        let own = realtime_priority();
        set_normal().expect("it was one before");
        assert_eq!(
            (heir, other, own),
            (Some(1), None, Some(1)),
            "whom the sampler waits for, anyone else, the sampler"
        );
        assert_eq!(with_heirs(started), None, "an ordinary thread has nothing to share");
    }

    #[test]
    fn a_buffer_too_small_grows_and_a_dirty_one_leaves_no_trace() {
        let mut dirty = vec![u64::MAX; 64];
        let mut fresh = Vec::new();
        let (a, b) = (get_affinity(own_tid(), &mut dirty), get_affinity(own_tid(), &mut fresh));
        assert_eq!(a.expect("readable"), b.expect("readable"), "bits beyond the kernel's mask are not cores");
    }

    #[test]
    fn a_child_starts_with_the_cores_that_its_parent_was_started_with() {
        let all = started_with().clone();
        // In a thread of its own, whose narrowed mask is gone with it.
        let child = std::thread::spawn(|| {
            let one = CoreSet::single(started_with().first().expect("a process may run somewhere"));
            set_affinity(own_tid(), &one).expect("an allowed core is accepted");
            let mut command = Command::new("grep");
            command.args(["Cpus_allowed_list", "/proc/self/status"]);
            let inherited = command.output().expect("grep runs").stdout;
            let unseated = unseated(&mut command).output().expect("grep runs").stdout;
            (one, inherited, unseated)
        });
        let (one, inherited, unseated) = child.join().expect("it ends");
        let list = |out: Vec<u8>| {
            let text = String::from_utf8(out).expect("text");
            text.split_whitespace().nth(1).and_then(|list| list.parse::<CoreSet>().ok())
        };
        assert_eq!(list(inherited), Some(one), "an ordinary child inherits the narrowed mask");
        assert_eq!(list(unseated), Some(all), "an unseated one has the mask from before");
    }

    #[test]
    fn impossible_masks_and_threads_are_told_by_their_errno() {
        let nowhere = set_affinity(own_tid(), &CoreSet::single(60_000)).expect_err("no such core");
        assert_eq!(nowhere.raw_os_error(), Some(libc::EINVAL), "no allowed core is EINVAL");
        let nobody = get_affinity(u32::MAX >> 1, &mut Vec::new()).expect_err("no such thread");
        assert_eq!(nobody.raw_os_error(), Some(libc::ESRCH), "no thread is ESRCH");
    }

    #[test]
    fn priority_changes_the_calling_thread_only_and_not_its_children() {
        let policy = || std::fs::read_to_string(format!("/proc/self/task/{}/stat", own_tid())).expect("own stat");
        let policy = move || policy().rsplit(')').next().and_then(|rest| rest.split(' ').nth(39).map(str::to_owned));
        std::thread::spawn(move || {
            set_normal().expect("an ordinary thread may become one");
            if let Err(error) = set_realtime(1) {
                assert_eq!(error.raw_os_error(), Some(libc::EPERM), "the only reason is a missing right");
                return;
            }
            assert_eq!(policy().as_deref(), Some("2"), "the thread is SCHED_RR");
            let child = std::thread::spawn(policy).join().expect("the child ends");
            assert_eq!(child.as_deref(), Some("0"), "a thread it starts is ordinary");
            set_normal().expect("back to ordinary");
            assert_eq!(policy().as_deref(), Some("0"), "the thread is ordinary again");
        })
        .join()
        .expect("the thread ends");
    }
}
