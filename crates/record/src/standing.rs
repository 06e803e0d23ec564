//! What has happened before a place of a recording and still holds there.

use std::collections::BTreeMap;
use vnettop_sample::{Event, Item, SteeredFile, ThreadId};

/// Events before a place that still hold there; facts are left out, since each sample carries them.
#[derive(Debug, Clone, Default)]
pub(super) struct StandingEvents {
    /// What is known of a run: that it was asked for, its start, its newest phase.
    run: [Option<Event>; 3],
    pins: BTreeMap<ThreadId, Event>,
    steers: BTreeMap<SteeredFile, Event>,
    /// Why the recording was saved: of each part of it.
    saved: Option<Event>,
}

impl StandingEvents {
    /// Takes one in.
    pub fn pass(&mut self, event: Event) {
        match &event {
            Event::Pinned { thread, .. } => drop(self.pins.insert(*thread, event)),
            Event::Restored { thread, .. } => drop(self.pins.remove(thread)),
            Event::Steered { file, .. } => drop(self.steers.insert(*file, event)),
            Event::Unsteered { file, .. } => drop(self.steers.remove(file)),
            Event::Saved { .. } => self.saved = Some(event),
            Event::RunAsked(_) => self.run = [Some(event), None, None],
            Event::RunStarted { .. } => self.run[1] = Some(event),
            Event::Stretch { .. } => self.run[2] = Some(event),
            Event::RunEnded { .. } => self.run = [None, None, None],
            _ => {}
        }
    }

    /// As they come before the first sample.
    pub fn events(self) -> impl Iterator<Item = Item> {
        let run = self.run.into_iter().flatten();
        run.chain(self.pins.into_values()).chain(self.steers.into_values()).chain(self.saved).map(Item::Event)
    }
}
