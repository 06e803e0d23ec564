//! For tests: a network namespace of their own, and `ip` in it. Without root there is none; such a test says so by name.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::Command;

/// Removes the namespace however the test ends.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

/// Runs `ip` with these words in the calling thread's namespace; whether it succeeded.
pub(super) fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split_whitespace()).status().expect("ip runs").success()
}

/// Runs something in a new namespace of that name; not without root, nor where the environment wants none.
pub(super) fn inside(name: &str, work: impl FnOnce() + Send + 'static) {
    let wanted = std::env::var_os("VNETTOP_FAST").is_none();
    if !wanted || !rustix::process::geteuid().is_root() {
        let test = std::thread::current();
        // Not eprintln: a passing test's output is swallowed, and this must be seen.
        let line = format!("NOT RUN: {}: it needs root for a namespace of its own\n", test.name().unwrap_or(name));
        return std::io::stderr().write_all(line.as_bytes()).expect("standard error is there");
    }
    let named = Named(format!("{name}-{}", std::process::id()));
    assert!(ip(&format!("netns add {}", named.0)), "a namespace is made");
    let file = File::open(format!("/run/netns/{}", named.0)).expect("it is there");
    let enter = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("it may be entered");
        work();
    };
    std::thread::spawn(enter).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
