//! A real terminal for the screen: tmux.

use std::process::Command;
use std::time::{Duration, Instant};

/// A tmux server of its own with one window; gone with the value.
pub struct Tmux {
    socket: String,
}

impl Tmux {
    /// Starts it with a command in its window.
    pub fn start(name: &str, width: u16, height: u16, command: &str) -> Self {
        let tmux = Self { socket: format!("vnettop-{name}-{}", std::process::id()) };
        let (width, height) = (width.to_string(), height.to_string());
        let arguments = ["-u", "-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, command];
        let out = Command::new("tmux")
            .args(["-L", &tmux.socket])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("tmux runs");
        assert!(out.status.success(), "tmux starts: {}", String::from_utf8_lossy(&out.stderr));
        tmux
    }

    /// Any tmux command; what it prints.
    pub fn tmux(&self, arguments: &[&str]) -> String {
        let out = Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().expect("tmux runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// What the window shows.
    pub fn frame(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Presses keys, in tmux's words.
    pub fn press(&self, keys: &str) {
        self.tmux(&["send-keys", keys]);
    }

    /// Waits until the window shows this text; fails with the sentence and the frame after so many seconds.
    pub fn await_shown(&self, why: &str, seconds: u64, what: &str) {
        let end = Instant::now() + Duration::from_secs(seconds);
        while !self.shows(what) {
            assert!(Instant::now() < end, "{why} within {seconds} s ({what:?}):\n{}", self.frame());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the window shows this text.
    pub fn shows(&self, what: &str) -> bool {
        self.frame().contains(what)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
