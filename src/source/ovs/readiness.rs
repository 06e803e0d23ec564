//! One descriptor that tells when any connection has something to read. It exists while there is reason to.

use super::connection::OvsConnection;
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How often a database is heard between two ticks: one that never stops speaking has to wait for the tick.
const MOST_BETWEEN_TICKS: u32 = 64;

/// An epoll descriptor from the first connection on. A closed connection leaves it by itself.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    epoll: Option<OwnedFd>,
    heard: u32,
}

impl Readiness {
    /// What to wait for; none where there is nothing to wait for before the next tick.
    pub fn wait_for(&self) -> Option<BorrowedFd<'_>> {
        self.epoll.as_ref().filter(|_| self.heard < MOST_BETWEEN_TICKS).map(AsFd::as_fd)
    }

    /// Waits for this one too. Where that cannot be, it is heard at every tick.
    pub fn add(&mut self, connection: &OvsConnection) {
        if self.epoll.is_none() {
            self.epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
        }
        if let Some(epoll) = &self.epoll {
            let _ = epoll::add(epoll, connection, epoll::EventData::new_u64(0), epoll::EventFlags::IN);
        }
    }

    /// The connections were heard once more.
    pub fn received(&mut self) {
        self.heard += 1;
    }

    /// A tick: from here on they may speak again.
    pub fn tick(&mut self) {
        self.heard = 0;
    }
}
