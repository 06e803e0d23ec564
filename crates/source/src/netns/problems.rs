//! What cannot be seen of the network namespaces, and why.

use super::{Choice, Spaces};
use crate::proc_file;
use vnettop_sample::{Problem, ProblemSource};

impl Spaces {
    /// Says once what may not be seen.
    pub(super) fn report(&mut self) {
        if let Choice::Named(names) = &self.choice {
            let is_there = |name: &String| self.known.keys().any(|&netns| self.is_called(netns, name));
            let reported = names.iter().filter(|name| !is_there(name)).map(|name| {
                problem(format!(
                    "no network namespace {name} (name, inode or pid of a process in it) was found; to list them: ip netns, lsns -t net"
                ))
            });
            self.problems = reported.collect();
        } else {
            let denied = self.residents.denied.then(|| {
                let text = "cannot enter network namespaces of other users' processes: their links are missing; run \
                            vnettop as root, or with CAP_SYS_PTRACE and CAP_SYS_ADMIN";
                problem(text.to_owned())
            });
            self.problems = denied.into_iter().collect();
        }
        if self.crowded {
            self.problems.push(problem(format!(
                "only {} network namespaces are shown: limit of {} open files; raise it (ulimit -n), or choose namespaces (--netns)",
                self.known.len(),
                proc_file::descriptor_limit()
            )));
        }
    }
}

fn problem(text: String) -> Problem {
    Problem { source: ProblemSource::Namespaces, text }
}
