//! The lines of a journal on settings of links, replayed. No line can make vnettop write anything but a mask, a number or the
//! name of a qdisc into a setting of the very link that it names.

use crate::effect::put_back_steer::ActiveSteer;
use crate::effect::steer::is_sound;
use crate::sample::{LinkKey, SteerSetting, SteeredFile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A text is about to be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::effect) struct SteerIntent {
    #[serde(flatten)]
    pub(in crate::effect) file: SteeredFile,
    /// Name of the link, for people.
    pub(in crate::effect) name: String,
    /// What tells its namespace from a later one of the same inode (`SO_NETNS_COOKIE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::effect) cookie: Option<u64>,
    /// The text before vnettop touched the file first, or what someone else has written since.
    pub(in crate::effect) old: String,
    pub(in crate::effect) asked: String,
    /// Wall clock, milliseconds since 1970; for people.
    pub(in crate::effect) wall_ms: u64,
    /// `CLOCK_MONOTONIC`, ns: which of two vnettops steered a file first.
    pub(in crate::effect) at_ns: u64,
}

/// What became of an intention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SteerEnd<'a> {
    /// It was written; the text read back.
    Given(&'a str),
    /// It was not written.
    Failed,
    /// The old text is in force again, or the link is gone.
    Over,
}

/// The steers of one journal.
#[derive(Debug, Default)]
pub(in crate::effect) struct PastSteers {
    /// Every setting that it steered at any time, and what its link was called.
    named: BTreeMap<(LinkKey, SteerSetting), String>,
    /// What was in force at its end, oldest first, each with the time it was steered first (`CLOCK_MONOTONIC`, ns).
    pub(in crate::effect) held: Vec<(u64, ActiveSteer)>,
}

impl PastSteers {
    /// The settings that are its own while it runs, and what their links are called.
    pub(in crate::effect) fn claims(&self, compares: bool) -> BTreeMap<(LinkKey, SteerSetting), String> {
        if compares {
            return self.named.clone();
        }
        let claim = |held: &ActiveSteer| ((held.file.link, held.file.setting), held.name.clone());
        self.held.iter().map(|(_, held)| claim(held)).collect()
    }

    /// Takes an intention into account; false when it makes no sense.
    pub(super) fn intend(&mut self, line: SteerIntent) -> bool {
        let SteerIntent { file, name, cookie, old, asked, at_ns, .. } = line;
        if !is_sound(file.setting, &old) || !is_sound(file.setting, &asked) {
            return false;
        }
        let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        self.named.insert((file.link, file.setting), name.clone());
        match self.at(file) {
            // `old` is the same text as before, unless someone else had written another one in between.
            Some(at) if self.held[at].1.cookie == cookie => {
                let held = &mut self.held[at].1;
                (held.name, held.asked, held.old) = (name, Some(asked), old);
                return true;
            }
            // That was in a namespace that is gone.
            Some(at) => drop(self.held.remove(at)),
            None => {}
        }
        self.held.push((at_ns, ActiveSteer { file, name, cookie, old, given: None, asked: Some(asked) }));
        true
    }

    /// Takes what became of it into account; false when there was no such intention.
    pub(super) fn end(&mut self, file: SteeredFile, end: SteerEnd<'_>) -> bool {
        let Some(at) = self.at(file) else { return false };
        let held = &mut self.held[at].1;
        match end {
            SteerEnd::Given(got) if !is_sound(file.setting, got) => return false,
            SteerEnd::Given(got) => (held.given, held.asked) = (Some(got.to_owned()), None),
            SteerEnd::Failed if held.given.is_some() => held.asked = None,
            SteerEnd::Failed | SteerEnd::Over => drop(self.held.remove(at)),
        }
        true
    }

    fn at(&self, file: SteeredFile) -> Option<usize> {
        self.held.iter().position(|(_, held)| held.file == file)
    }
}
