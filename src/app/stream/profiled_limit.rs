//! `--profile limit` where nobody presses a key: the core that LIMIT names is the one that the sampler profiles.

use crate::derive::Metrics;
use crate::sample::{OnRequest, ProfileOf};
use crate::source::feed::{Feed, FeedCommand};

/// What is asked for, with the core that LIMIT named last.
#[derive(Debug, Clone)]
pub struct ProfiledLimit {
    asked: OnRequest,
}

impl ProfiledLimit {
    /// None where LIMIT's core is not asked for.
    #[must_use]
    pub fn of(asked: OnRequest) -> Option<Self> {
        (asked.profile == Some(ProfileOf::Limit)).then_some(Self { asked })
    }

    /// Has the core profiled that LIMIT names now, and goes on with the one before while it names none.
    pub fn follow(&mut self, metrics: &Metrics, feed: &Feed) {
        let named = metrics.profiled_limit();
        if named.is_some() && named != self.asked.profile {
            self.asked.profile = named;
            feed.command(FeedCommand::Want(self.asked));
        }
    }
}
