//! One file of a link's setting gets back the text it had before vnettop: only if the link is still the same and still has what
//! vnettop gave it. A text that someone else wrote since is never overwritten.

use super::Outcome;
use super::link_settings::LinkSettings;
use super::steer::{self, OpenedLinks, is_denied, is_gone, what};
use crate::clock::now_ns;
use crate::sample::{Event, SteeredFile, qdisc_kind, shell_word};
use crate::source::steering::LinkFolderError;
use std::io;

/// A steer in force: what is needed to take it back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ActiveSteer {
    pub(super) file: SteeredFile,
    /// What the link was called.
    pub(super) name: String,
    /// What tells its namespace from a later one of the same inode.
    pub(super) cookie: Option<u64>,
    /// The text before vnettop touched the file first, or what someone else has written since.
    pub(super) old: String,
    /// The text read back last; none when vnettop was killed before it could note it.
    pub(super) given: Option<String>,
    /// A text that was about to be written; it may or may not have been.
    pub(super) asked: Option<String>,
}

/// A file of one namespace, unmistakable within a boot.
pub(super) type SteerId = (SteeredFile, Option<u64>);

impl ActiveSteer {
    pub(super) fn id(&self) -> SteerId {
        (self.file, self.cookie)
    }

    /// Whether the text is one that vnettop gave the file, as far as can be told.
    pub(super) fn gave(&self, text: &str) -> bool {
        let setting = self.file.setting;
        self.given.as_ref().is_some_and(|given| steer::same(setting, given, text))
            || self.asked.as_ref().is_some_and(|asked| steer::is_made_of(setting, text, asked))
    }
}

/// What came of putting one file back.
#[derive(Debug)]
pub(super) enum UnsteerResult {
    /// The file has this now.
    Restored(String),
    /// It has its old text already, written like this.
    Already(String),
    /// Nothing is left to undo, because this is gone.
    Gone(&'static str),
    /// It has this text, which is neither the old one nor vnettop's.
    Changed(String),
    /// The kernel said no.
    Refused(io::Error),
}

impl UnsteerResult {
    /// There is nothing left to try on this file.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::Changed(_) | Self::Refused(_))
    }

    /// Whether the old text is in force.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Restored(text) | Self::Already(text) => Some(text),
            _ => None,
        }
    }
}

/// What came of one steer, and how its link is called and reached now.
pub(super) struct UnsteerVerdict {
    held: ActiveSteer,
    name: String,
    entered_by: Option<String>,
    pub(super) result: UnsteerResult,
}

/// Puts back `held.old`, where the file has a text of one of these `steers`, which are all its own.
pub(super) fn put_back(links: &mut OpenedLinks<'_>, held: &ActiveSteer, steers: &[&ActiveSteer]) -> UnsteerVerdict {
    let verdict = |name: &str, entered_by, result| {
        let name = name.to_owned();
        UnsteerVerdict { held: held.clone(), name, entered_by, result }
    };
    match links.get(held.file.link) {
        Ok(link) if link.cookie().zip(held.cookie).is_some_and(|(now, then)| now != then) => {
            verdict(&held.name, None, UnsteerResult::Gone("its network namespace"))
        }
        Ok(link) => {
            let result = write_back(link, held, steers);
            verdict(link.name(), link.entered_by(), result)
        }
        Err(LinkFolderError::NoNamespace) => verdict(&held.name, None, UnsteerResult::Gone("its network namespace")),
        Err(LinkFolderError::NoLink) => verdict(&held.name, None, UnsteerResult::Gone("the link")),
        Err(LinkFolderError::Unentered(error)) => verdict(&held.name, None, UnsteerResult::Refused(error)),
    }
}

/// The same on a link that is known to be the one.
pub(super) fn write_back(link: &mut dyn LinkSettings, held: &ActiveSteer, steers: &[&ActiveSteer]) -> UnsteerResult {
    let file = held.file;
    let refused = |error: io::Error| {
        if is_gone(&error) { UnsteerResult::Gone("the queue") } else { UnsteerResult::Refused(error) }
    };
    match link.read(file) {
        // What was asked of a switch stays a wish that comes true later, also where it is not in force.
        Ok(now) if file.setting.is_feature() && steer::same(file.setting, &now, &held.old) => {
            return link.write(file, &held.old).map_or_else(refused, |()| UnsteerResult::Already(now));
        }
        Ok(now) if steer::same(file.setting, &now, &held.old) => return UnsteerResult::Already(now),
        Ok(now) if !steers.iter().any(|steer| steer.gave(&now)) => return UnsteerResult::Changed(now),
        Ok(_) => {}
        Err(error) => return refused(error),
    }
    if let Err(error) = link.write(file, &held.old) {
        return refused(error);
    }
    link.read(file).map_or_else(refused, UnsteerResult::Restored)
}

/// Adds what came of it to the outcome: one sentence for all queues of a setting that fared alike, and an event for each file
/// whose old text is in force again.
pub(super) fn report(outcome: &mut Outcome, verdicts: &[UnsteerVerdict]) {
    let mut groups: Vec<Vec<&UnsteerVerdict>> = Vec::new();
    for verdict in verdicts {
        let fares_alike = |group: &&mut Vec<&UnsteerVerdict>| alike(group[0], verdict);
        match groups.iter_mut().find(fares_alike) {
            Some(group) => group.push(verdict),
            None => groups.push(vec![verdict]),
        }
        let file = verdict.held.file;
        let event = |got: &str| Event::Unsteered { file, got: got.to_owned(), at_ns: now_ns() };
        outcome.events.extend(verdict.result.text().map(event));
    }
    for mut group in groups {
        group.sort_by_key(|verdict| verdict.held.file);
        let of = |verdict: &UnsteerVerdict| (verdict.held.file.link, verdict.held.file.setting);
        let all = verdicts.iter().filter(|verdict| of(verdict) == of(group[0])).count();
        let (warning, text) = sentence(&group, all);
        if warning { outcome.warn(text) } else { outcome.say(text) }
    }
}

fn alike(one: &UnsteerVerdict, other: &UnsteerVerdict) -> bool {
    let of = |verdict: &UnsteerVerdict| (verdict.held.file.link, verdict.held.file.setting, verdict.held.cookie);
    let same_result = match (&one.result, &other.result) {
        (UnsteerResult::Gone(one), UnsteerResult::Gone(other)) => one == other,
        (UnsteerResult::Refused(one), UnsteerResult::Refused(other)) => one.to_string() == other.to_string(),
        // Each has its own line that mends it.
        (UnsteerResult::Changed(_), UnsteerResult::Changed(_)) => false,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    };
    of(one) == of(other) && same_result
}

/// What is to be said of files that fared alike, some of `all` of their setting, and whether it is a warning.
fn sentence(group: &[&UnsteerVerdict], all: usize) -> (bool, String) {
    let first = group[0];
    let (held, setting) = (&first.held, first.held.file.setting);
    let queues: Vec<u32> = group.iter().map(|verdict| verdict.held.file.queue).collect();
    let name =
        if first.name == held.name { held.name.clone() } else { format!("{} ({} before)", first.name, held.name) };
    let what = match queues[..] {
        [one] if all > 1 => format!("{} ({})", what(setting, &name, &[]), steer::queue_of(setting, one)),
        _ => what(setting, &name, &queues),
    };
    let texts = steer::texts(setting, group.iter().filter_map(|one| Some((one.held.file.queue, one.result.text()?))));
    match &first.result {
        UnsteerResult::Restored(_) => {
            let is_exact = |one: &&&UnsteerVerdict| {
                one.result.text().is_some_and(|got| steer::is_back(setting, got, &one.held.old))
            };
            match group.iter().find(|one| !is_exact(one)) {
                None => (false, format!("{what} is back to {texts}")),
                Some(one) => (true, format!("{what} is {texts} now: the kernel does not give {} back", one.held.old)),
            }
        }
        UnsteerResult::Already(_) => (false, format!("{what} is {texts} already, as before vnettop")),
        UnsteerResult::Gone(gone) => (false, format!("{what}: {gone} is gone, nothing to undo")),
        UnsteerResult::Changed(now) => (
            true,
            format!(
                "{what} is {}, set by another program since, and is not changed; {} restores the value from before \
                 vnettop",
                qdisc_kind(now),
                shell_line(first)
            ),
        ),
        UnsteerResult::Refused(error) if is_denied(error) => {
            (true, format!("{what} keeps its value ({error}): vnettop undo needs root and CAP_NET_ADMIN"))
        }
        UnsteerResult::Refused(error) => {
            (true, format!("{what} keeps its value: its old one, {}, cannot be restored ({error})", held.old))
        }
    }
}

/// What a person types to put the old text back.
fn shell_line(verdict: &UnsteerVerdict) -> String {
    let line = verdict.held.file.shell_line(&verdict.name, &verdict.held.old);
    match &verdict.entered_by {
        Some(entered_by) if verdict.held.file.is_of_namespace() => format!("{entered_by} {}", shell_word(&line)),
        _ => line,
    }
}
