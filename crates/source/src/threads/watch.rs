//! What the user asked to watch, and whether a command name or a number answers to it.

use std::collections::BTreeSet;

/// Longest command name the kernel keeps of a user's thread (`TASK_COMM_LEN` − 1).
const LONGEST_NAME: usize = 15;

/// One thing to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Every thread of processes with this command name, and threads of others that bear it themselves.
    Name(String),
    /// Every thread of this process; or this one thread, when the number is a thread's.
    Pid(u32),
    /// Processes with this command name, among `of` and their children alone.
    Own {
        /// The command name.
        name: String,
        /// The processes.
        of: Vec<u32>,
    },
}

impl From<&str> for Watch {
    /// A number is a pid, anything else a command name.
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Pid)
    }
}

/// All that is watched, in the form in which it is asked for.
#[derive(Debug, Default)]
pub(super) struct Watched {
    by_user: Vec<Watch>,
    /// The process that vnettop started itself. That it has ended is no news.
    command: Option<u32>,
    /// Further processes, watched by number: descendants of the command, and processes at the other ends of connections.
    also: BTreeSet<u32>,
}

impl Watched {
    pub(super) fn new(watches: Vec<Watch>) -> Self {
        Self { by_user: watches, ..Self::default() }
    }

    /// Whether a process or a thread of this number, command name and parent is asked for.
    pub(super) fn answers(&self, id: u32, comm: &[u8], parent: u32) -> bool {
        let is_asked_for = |watch: &Watch| match watch {
            Watch::Name(name) => is_called(comm, name),
            Watch::Pid(pid) => *pid == id,
            Watch::Own { name, of } => is_called(comm, name) && (of.contains(&id) || of.contains(&parent)),
        };
        self.command == Some(id) || self.also.contains(&id) || self.by_user.iter().any(is_asked_for)
    }

    /// Asks for the process that vnettop has just started.
    pub(super) fn command(&mut self, pid: u32) {
        self.command = Some(pid);
    }

    /// Asks for these processes instead of the further ones before; gives the processes for which that is a change.
    pub(super) fn set_extra_pids(&mut self, pids: BTreeSet<u32>) -> Vec<u32> {
        let changed = self.also.symmetric_difference(&pids).copied().collect();
        self.also = pids;
        changed
    }

    /// The numbers that the user asked for.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.by_user.iter().filter_map(|watch| if let Watch::Pid(pid) = watch { Some(*pid) } else { None })
    }
}

/// The kernel cuts a user's command name after 15 bytes; names of kernel threads may be longer.
fn is_called(comm: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && (comm == name || comm == &name[..name.len().min(LONGEST_NAME)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_pid_and_a_name_is_cut_as_the_kernel_cuts_it() {
        assert_eq!(Watch::from("4711"), Watch::Pid(4711), "a number is a pid");
        assert_eq!(Watch::from("iperf3"), Watch::Name("iperf3".to_owned()), "a word is a name");
        let watched = Watched::new(vec!["iperf3".into(), "a-very-long-command".into(), "7".into(), "".into()]);
        assert!(watched.answers(1, b"iperf3", 0) && !watched.answers(1, b"iperf", 0), "a name is the whole name");
        assert!(watched.answers(1, b"a-very-long-com", 0), "a long name is known by its first 15 bytes");
        assert!(watched.answers(7, b"sh", 0) && !watched.answers(8, b"sh", 0), "a pid is that pid");
        assert!(!watched.answers(1, b"", 0), "an empty name is nobody's");
        let own = Watched::new(vec![Watch::Own { name: "iperf3".to_owned(), of: vec![40, 41] }]);
        assert!(own.answers(40, b"iperf3", 1) && own.answers(50, b"iperf3", 41), "one of these, or a child of theirs");
        assert!(!own.answers(50, b"iperf3", 1) && !own.answers(50, b"sh", 41), "no stranger, and no other program");
    }
}
