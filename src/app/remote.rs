//! What changes a host: here it is done at once, there an agent is asked for it and answers later.

use super::App;
use crate::derive::plural;
use crate::effect::{Outcome, OutcomeLine, PinController};
use crate::sample::{AgentCommand, AgentReply, Event, HostState};
use crate::source::feed::HostNews;

/// Threads that are pinned at once are fewer.
const MOST_EVENTS: usize = 4096;

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
    /// Files of links' settings that it has changed and not restored, by its last answer.
    steers: usize,
    /// Threads of agents that are gone, which stay pinned.
    left: usize,
    /// The connection was lost after something had been shown, and is not back yet.
    was_lost: bool,
    /// The agent was asked to restore the threads of `left`, and has not answered yet.
    restores_left: bool,
    /// What it has done since its last answer.
    events: Vec<Event>,
}

impl RemoteAgent {
    /// The agent on a host, as ssh knows it.
    #[must_use]
    pub fn on(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Remembers what it has done to threads, until it answers.
    pub(super) fn happened(&mut self, event: &Event) {
        let is_pin = matches!(
            event,
            Event::Pinned { .. } | Event::Restored { .. } | Event::Steered { .. } | Event::Unsteered { .. }
        );
        if is_pin && self.events.len() < MOST_EVENTS {
            self.events.push(event.clone());
        }
    }

    /// What undoes everything that this vnettop has pinned there.
    pub(super) fn restoring(&mut self) -> AgentCommand {
        self.restores_left = self.left > 0;
        if self.restores_left { AgentCommand::RestoreLeft } else { AgentCommand::Restore }
    }

    /// What is to be said at the end: how many threads stay pinned there, and what restores them. `seen` are those that the newest
    /// sample shows as pinned; where the agent `restores`, no setting of a link stays.
    pub(super) fn staying(&mut self, seen: usize, restores: bool) -> Outcome {
        // Threads that have exited are pinned no more; what agents before have pinned is not seen as that.
        self.pins = self.pins.min(seen);
        if restores {
            self.steers = 0;
        }
        let lines = self.pinned_words().map(|text| OutcomeLine { warning: false, text });
        Outcome { lines: lines.into_iter().collect(), ..Outcome::default() }
    }

    fn pinned_words(&self) -> Option<String> {
        let name = &self.name;
        match self.pins + self.left {
            0 if self.steers > 0 => Some(format!(
                "{} of links stay changed on {name}: ssh {name} vnettop undo restores them",
                plural(self.steers, "setting")
            )),
            pins if self.steers > 0 => Some(format!(
                "{} and {} stay changed on {name}: ssh {name} vnettop undo restores them",
                plural(pins, "mask"),
                plural(self.steers, "setting")
            )),
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
                        agent.left += std::mem::take(&mut agent.pins) + std::mem::take(&mut agent.steers);
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
                        self.state.add_notice(false, &format!("{} is live again", agent.name));
                    }
                    HostState::Live(_) | HostState::Connecting => {}
                }
                self.state.connection = Some(state);
            }
            HostNews::Reply(AgentReply { lines, pins, steers, taken }) => {
                (agent.pins, agent.steers) = (pins, steers);
                if std::mem::take(&mut agent.restores_left) {
                    agent.left = 0;
                }
                let events = std::mem::take(&mut agent.events);
                self.state.outcome(&Outcome { lines, events, taken });
            }
        }
        true
    }
}
