//! What changes a host: here it is done at once, there an agent is asked for it and answers later.

use super::App;
use crate::effect::{Outcome, OutcomeLine, PinController};
use crate::sample::{AgentReply, Event, HostState};
use crate::source::feed::HostNews;

/// What changes the host that an app shows.
pub enum Controls {
    /// This machine.
    Here(PinController),
    /// Another one, over ssh.
    There(RemoteAgent),
}

impl From<PinController> for Controls {
    fn from(controller: PinController) -> Self {
        Self::Here(controller)
    }
}

impl From<RemoteAgent> for Controls {
    fn from(agent: RemoteAgent) -> Self {
        Self::There(agent)
    }
}

/// What is known of the agent on another host.
#[derive(Debug, Default)]
pub struct RemoteAgent {
    name: String,
    /// Threads that it has pinned and not restored, by its last answer.
    pins: usize,
    /// The connection was lost after something had been shown, and is not back yet.
    was_lost: bool,
    /// What it has done since its last answer.
    pub(super) events: Vec<Event>,
}

impl RemoteAgent {
    /// The agent on a host, as ssh knows it.
    #[must_use]
    pub fn on(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// What is to be said at the end: how many threads stay pinned there, and what restores them.
    pub(super) fn staying(&self) -> Outcome {
        let lines = self.pinned_words().map(|text| OutcomeLine { warning: false, text });
        Outcome { lines: lines.into_iter().collect(), ..Outcome::default() }
    }

    fn pinned_words(&self) -> Option<String> {
        let name = &self.name;
        match self.pins {
            0 => None,
            1 => Some(format!("1 thread stays pinned on {name}: ssh {name} vnettop undo restores it")),
            more => Some(format!("{more} threads stay pinned on {name}: ssh {name} vnettop undo restores them")),
        }
    }
}

impl App {
    /// Takes one piece of news from another host; false where there is none.
    pub(super) fn hear_news(&mut self) -> bool {
        let (Some(news), Controls::There(agent)) = (self.feed.news(), &mut self.controls) else { return false };
        match news {
            HostNews::State(state) => {
                let was_gone = match (&self.state.connection, &state) {
                    (Some(HostState::Silent), HostState::Live(_)) => true,
                    (_, HostState::Live(_)) => std::mem::take(&mut agent.was_lost),
                    _ => false,
                };
                agent.was_lost |= matches!(state, HostState::Lost { .. }) && self.state.metrics().is_some();
                match &state {
                    HostState::Lost { why, again_s } => {
                        let pinned = agent.pinned_words().map_or_else(String::new, |words| format!("; {words}"));
                        // The agent that would restore them is gone, and its journal is that host's.
                        agent.pins = 0;
                        self.state.notice(true, format!("{why}; next try in {again_s} s{pinned}"));
                    }
                    HostState::Silent => {
                        self.state.notice(true, format!("{} is silent: these values are old", agent.name));
                    }
                    HostState::Live(version) if version != env!("CARGO_PKG_VERSION") => {
                        let own = env!("CARGO_PKG_VERSION");
                        let text = format!(
                            "{} runs vnettop {version}, this is {own}: what {version} lacks stays unknown",
                            agent.name
                        );
                        self.state.notice(false, text);
                    }
                    HostState::Live(_) if was_gone => {
                        self.state.notice(false, format!("{} is live again", agent.name));
                    }
                    HostState::Live(_) | HostState::Connecting => {}
                }
                self.state.connection = Some(state);
            }
            HostNews::Reply(AgentReply { lines, pins, taken }) => {
                agent.pins = pins;
                let events = std::mem::take(&mut agent.events);
                self.state.outcome(&Outcome { lines, events, taken });
            }
        }
        true
    }
}
