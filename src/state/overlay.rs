//! What lies over the panes: at most one thing. It decides where the keys go, and what the kernel is to count.

use super::{Mode, State};
use crate::action::{KeyContext, Pane, RowId};
use crate::derive::placement::Proposal;
use crate::derive::{FindingId, Metrics};
use crate::sample::{CoreId, OnRequest, ProfileOf, ProposalPart, ThreadId};
use std::collections::BTreeSet;

/// A half of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpPage {
    /// Keys and mouse.
    Keys,
    /// Marks, columns and words.
    Words,
}

impl HelpPage {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Keys => Self::Words,
            Self::Words => Self::Keys,
        }
    }
}

/// What lies over the panes.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Overlay {
    /// Nothing.
    #[default]
    None,
    /// The help.
    Help {
        /// The half of the help shown.
        page: HelpPage,
        /// First line shown.
        scroll: usize,
    },
    /// Every finding, with its numbers.
    Findings {
        /// First line shown.
        scroll: usize,
    },
    /// The path of each flow.
    Paths {
        /// First line shown.
        scroll: usize,
    },
    /// Every drop of the machine.
    Drops {
        /// First line shown.
        scroll: usize,
    },
    /// Where packets and threads wait.
    Latency {
        /// First line shown.
        scroll: usize,
    },
    /// What one core does.
    Profile {
        /// The core.
        core: CoreId,
        /// Functions are listed below their stages.
        functions: bool,
        /// First line shown.
        scroll: usize,
    },
    /// Before and after a pin.
    Card {
        /// First line shown.
        scroll: usize,
    },
    /// Every figure of a row; it stays with what stood there.
    Details {
        /// The row.
        row: RowId,
        /// First line shown.
        scroll: usize,
    },
    /// A filter being typed; the text is the list's own, so that it works while it is typed.
    Filter {
        /// Links or threads.
        pane: Pane,
    },
    /// A proposed placement, or why there is none. The placement shown is the one applied, whatever happens meanwhile.
    Proposal {
        /// The placement.
        result: Result<Proposal, String>,
        /// First line shown, where no thread is chosen.
        scroll: usize,
        /// The line that is chosen, by its place among those that can be taken off.
        chosen: Option<usize>,
        /// Lines that are off.
        off: BTreeSet<ProposalPart>,
    },
    /// Cores being typed for one thread.
    ChooseCores {
        /// The thread.
        thread: ThreadId,
        /// Its name and role.
        label: String,
        /// What was typed.
        text: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
}

impl State {
    /// Shows a proposed placement, or the sentence why there is none.
    pub fn open_proposal(&mut self, result: Result<Proposal, String>) {
        let off = result.as_ref().map(Proposal::off_at_first).unwrap_or_default();
        self.overlay = Overlay::Proposal { result, scroll: 0, chosen: None, off };
    }

    /// A placement of threads that have all ended is none: says so in its place.
    pub(super) fn withdraw_proposal(&mut self, metrics: &Metrics) {
        let Overlay::Proposal { result, .. } = &mut self.overlay else { return };
        let runs = |thread: &ThreadId| metrics.machine.threads.iter().any(|one| one.sample.id == *thread);
        let is_of_nobody = |of: &Proposal| !of.steps.is_empty() && !of.steps.iter().any(|step| runs(&step.thread));
        if result.as_ref().is_ok_and(is_of_nobody) {
            *result = Err("the threads of this placement have ended: start the test again, then ask again".to_owned());
        }
    }

    /// What listens to the keys now.
    #[must_use]
    pub fn context(&self) -> KeyContext {
        match &self.overlay {
            Overlay::None => self.panes(),
            Overlay::Findings { .. } => KeyContext::Findings,
            Overlay::Paths { .. } => KeyContext::Paths,
            Overlay::Drops { .. } => KeyContext::Drops,
            Overlay::Latency { .. } => KeyContext::Latency,
            Overlay::Profile { .. } => KeyContext::Profile,
            Overlay::Card { .. } => KeyContext::Card,
            Overlay::Details { .. } => KeyContext::Details,
            Overlay::Help { .. } | Overlay::Proposal { result: Err(_), .. } => KeyContext::Help,
            Overlay::Proposal { result: Ok(_), .. } => KeyContext::Proposal,
            Overlay::Filter { .. } | Overlay::ChooseCores { .. } => KeyContext::Text,
        }
    }

    /// The context for keys that mean nothing to an overlay which is only read; `None` when the overlay asks for an answer.
    #[must_use]
    pub fn place_below(&self) -> Option<KeyContext> {
        let is_read = matches!(
            self.context(),
            KeyContext::Findings
                | KeyContext::Paths
                | KeyContext::Drops
                | KeyContext::Latency
                | KeyContext::Profile
                | KeyContext::Card
                | KeyContext::Details
        ) || matches!(self.overlay, Overlay::Proposal { result: Err(_), .. });
        is_read.then_some(self.panes())
    }

    fn panes(&self) -> KeyContext {
        if self.settings.mode == Mode::Replay { KeyContext::Replay } else { KeyContext::Main }
    }

    /// What the kernel is to count for what is looked at.
    #[must_use]
    pub fn on_request(&self) -> OnRequest {
        let asked = self.settings.on_request;
        OnRequest {
            drops: asked.drops || matches!(self.overlay, Overlay::Drops { .. }),
            hops: asked.hops
                || matches!(self.overlay, Overlay::Paths { .. })
                || self.steers.awaits(self.newest().map(|metrics| metrics.machine.at_ns)),
            softirqs: asked.softirqs,
            latency: asked.latency || matches!(self.overlay, Overlay::Latency { .. }),
            latency_glance: self.newest().is_some_and(has_unknown_cause),
            profile: self.profiled(),
        }
    }
}

impl State {
    /// The core that is profiled now: the one that is looked at, else what was asked for.
    fn profiled(&self) -> Option<ProfileOf> {
        match (&self.overlay, self.settings.on_request.profile) {
            (&Overlay::Profile { core, .. }, _) => Some(ProfileOf::Core(core)),
            (_, Some(ProfileOf::Limit)) => self.newest().and_then(Metrics::profiled_limit),
            (_, asked) => asked,
        }
    }

    /// The core to look at: the selected one of the focused cores, else the one that LIMIT names, else the fullest.
    pub(crate) fn core_to_profile(&self) -> Option<CoreId> {
        let metrics = self.newest()?;
        let selected = self.cores.selection.id().filter(|_| self.focus == Pane::Cores);
        let of_limit = metrics.conclusions.limit.as_ref().and_then(|limit| limit.core);
        selected.or(of_limit).or_else(|| metrics.machine.fullest_core())
    }
}

/// A test runs whose rate swings, and nothing says why.
fn has_unknown_cause(metrics: &Metrics) -> bool {
    metrics.test.is_some() && metrics.conclusions.findings.iter().any(|one| one.id == FindingId::JitterUnexplained)
}
