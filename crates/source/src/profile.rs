//! What one core does, by its stacks: sampled by perf while somebody looks (`perf_event`), named and handed over once a second by
//! a thread of its own, which reads files of programs that could keep a reader waiting. Nothing runs while nobody looks.

mod kernel_symbols;
mod perf_event;
mod records;
mod stretch;
mod user_symbols;

use super::Roots;
use crate::clock::{SECOND_NS, clock_ns, now_ns};
use perf_event::Ring;
use rustix::io::Errno;
use rustix::time::ClockId;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;
use stretch::Stretch;
use vnettop_sample::{CoreId, CoreProfile, Event, Problem, ProblemSource, ProfileOf, ProfiledFunction};

/// Samples a second. No round number, so that nothing that happens at a steady pace always falls between two.
const HZ: u32 = 499;
/// From reading to reading of the ring, which holds three seconds.
const READ_EVERY: Duration = Duration::from_millis(100);
/// From profile to profile, ns.
const STRETCH_NS: u64 = SECOND_NS;
/// Profiles that wait to be taken; those that come after are dropped.
const MOST_WAITING: usize = 8;
/// Profiles in whose time rules are counted after one that went through some: those that are looked at together.
const RULES_FOR: u8 = 5;

const UNNAMED: &str = "functions have no names: that takes CAP_SYSLOG; kernel.kptr_restrict must be below 2";

/// What a profile's thread says.
type ProfileReply = io::Result<Box<CoreProfile>>;

/// A core that is looked at. Its thread ends when this is dropped.
struct Looking {
    core: CoreId,
    _until: Sender<()>,
    said: Receiver<ProfileReply>,
}

/// The profile of a run.
pub struct ProfileReader {
    roots: Roots,
    wanted: Option<CoreId>,
    looking: Option<Looking>,
    /// For so many profiles the core goes on counting as one that goes through rules of the firewall.
    rules_for: u8,
    problems: Vec<Problem>,
}

impl ProfileReader {
    /// Looks at nothing yet.
    #[must_use]
    pub fn new(roots: &Roots, wanted: Option<ProfileOf>) -> Self {
        let mut reader = Self { roots: roots.clone(), wanted: None, looking: None, rules_for: 0, problems: Vec::new() };
        reader.want(wanted);
        reader
    }

    /// Says which core is looked at from now on.
    pub fn want(&mut self, wanted: Option<ProfileOf>) {
        let core = match wanted {
            Some(ProfileOf::Core(core)) => Some(core),
            // Which that is, whoever asks finds out.
            Some(ProfileOf::Limit) | None => None,
        };
        if self.wanted == core {
            return;
        }
        (self.wanted, self.looking, self.rules_for) = (core, None, 0);
        self.problems.clear();
        if let Some(core) = core {
            self.look(core);
        }
    }

    fn look(&mut self, core: CoreId) {
        let (until, orders) = channel();
        let (say, said) = sync_channel(MOST_WAITING);
        let proc = self.roots.proc.clone();
        let work = move || {
            if let Err(error) = profile(&proc, core, &orders, &say) {
                let _nobody_listens = say.send(Err(error));
            }
        };
        match Builder::new().name("profile".to_owned()).spawn(work) {
            Ok(_ends_with_its_orders) => self.looking = Some(Looking { core, _until: until, said }),
            Err(error) => self.refuse(core, &error),
        }
    }

    fn refuse(&mut self, core: CoreId, error: &io::Error) {
        let text = refusal(&self.roots, core, error);
        self.problems = vec![Problem { source: ProblemSource::Kernel, text }];
    }

    /// What the core has done since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let Some(looking) = &self.looking else { return Vec::new() };
        let (core, mut events, mut refused) = (looking.core, Vec::new(), None);
        while let Ok(said) = looking.said.try_recv() {
            match said {
                Ok(profile) => {
                    let has_rules = profile.functions.iter().any(goes_through_rules);
                    self.rules_for = if has_rules { RULES_FOR } else { self.rules_for.saturating_sub(1) };
                    events.push(Event::Profiled(profile));
                }
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused {
            (self.looking, self.rules_for) = (None, 0);
            self.refuse(core, &error);
        }
        events
    }

    /// The core goes through rules of nftables or iptables, as of the last five seconds.
    #[must_use]
    pub fn goes_through_rules(&self) -> bool {
        self.rules_for > 0
    }

    /// Why nothing is known of the core that is asked for; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Samples until nobody wants it, and says what there was once a second.
fn profile(proc: &Path, core: CoreId, orders: &Receiver<()>, say: &SyncSender<ProfileReply>) -> io::Result<()> {
    let mut ring = Ring::open(core, HZ)?;
    // The names are read while the first samples are taken.
    let mut stretch = Stretch::new(proc);
    let (mut from_ns, mut bytes) = (now_ns(), Vec::new());
    let mut cpu_ns = clock_ns(ClockId::ThreadCPUTime);
    // Those that came while the names were read are of no stretch.
    ring.take(&mut bytes);
    while orders.recv_timeout(READ_EVERY) == Err(RecvTimeoutError::Timeout) {
        ring.take(&mut bytes);
        records::each(&bytes, |record| stretch.take(record));
        let to_ns = now_ns();
        if to_ns - from_ns < STRETCH_NS {
            continue;
        }
        let unnamed = (!stretch.names_kernel()).then(|| UNNAMED.to_owned());
        let taken = stretch.close();
        let now_cpu_ns = clock_ns(ClockId::ThreadCPUTime);
        let reader_ns = now_cpu_ns - std::mem::replace(&mut cpu_ns, now_cpu_ns);
        let profile = CoreProfile { core, from_ns, to_ns, clock: ring.clock, hz: HZ, reader_ns, unnamed, ..taken };
        from_ns = to_ns;
        let _nobody_takes_them = say.try_send(Ok(Box::new(profile)));
    }
    Ok(())
}

fn goes_through_rules(function: &ProfiledFunction) -> bool {
    const BEGIN: [&str; 4] = ["nft_do_chain", "ipt_do_table", "ip6t_do_table", "ebt_do_table"];
    let name = function.name.as_deref().filter(|_| function.kernel);
    name.is_some_and(|name| BEGIN.iter().any(|begin| name.starts_with(begin)))
}

/// What is missing, and the command that gives it.
fn refusal(roots: &Roots, core: CoreId, error: &io::Error) -> String {
    let without = format!("core {core} cannot be profiled");
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            let right = if crate::kernel::refusal::knows_cap_bpf(roots) { "CAP_PERFMON" } else { "CAP_SYS_ADMIN" };
            format!(
                "{without}: run vnettop as root or with {right} and CAP_SYSLOG; or set sysctl kernel.perf_event_paranoid=0"
            )
        }
        Some(Errno::NODEV | Errno::INVAL) => format!("{without}: it is not online here"),
        Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOENT) => {
            format!("{without}: this kernel has no perf events (CONFIG_PERF_EVENTS)")
        }
        _ => format!("{without}: {error}"),
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    user_symbols::fuzz(bytes);
    let mut count = 0;
    records::each(bytes, |_| count += 1);
    assert!(count <= bytes.len() / 8, "a record has a head");
    let known = kernel_symbols::KernelSymbols::of(bytes);
    let _ = (known.find(0), known.find(u64::MAX), known.is_known());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_gives_the_right() {
        let said = |number| refusal(&Roots::default(), 3, &io::Error::from_raw_os_error(number));
        assert!(said(libc::EACCES).contains("core 3 cannot be profiled: run vnettop as root or with CAP_PERFMON"));
        assert!(said(libc::EACCES).ends_with("kernel.perf_event_paranoid=0"));
        assert_eq!(said(libc::ENODEV), "core 3 cannot be profiled: it is not online here");
    }
}
