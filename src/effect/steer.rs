//! One file of a link's setting gets one text: looked at, written, read back, and every way it can go otherwise in its own
//! sentence. It neither journals nor remembers.

use super::link_settings::LinkSettings;
use super::{Pinner, cores_of};
use crate::sample::{
    CoreSet, LinkKey, QDISC_KINDS, SteerRequest, SteerSetting, SteerValue, SteeredFile, qdisc_kind, shell_word,
};
use crate::source::steering::LinkFolderError;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

/// Longer than any text that a setting has: a mask of 8,192 cores has 2,304 characters.
const LONGEST: usize = 4096;
/// Digits of the greatest number that a setting takes.
const MOST_DIGITS: usize = 10;

/// The links that one call has opened: a namespace is looked for once, not once a queue.
pub(super) struct OpenedLinks<'a> {
    pinner: &'a mut dyn Pinner,
    links: BTreeMap<LinkKey, Box<dyn LinkSettings>>,
}

impl<'a> OpenedLinks<'a> {
    pub(super) fn new(pinner: &'a mut dyn Pinner) -> Self {
        Self { pinner, links: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, link: LinkKey) -> Result<&mut dyn LinkSettings, LinkFolderError> {
        match self.links.entry(link) {
            Entry::Occupied(known) => Ok(known.into_mut().as_mut()),
            Entry::Vacant(place) => Ok(place.insert(self.pinner.link(link)?).as_mut()),
        }
    }
}

/// Whether a text is one that the setting can have: a mask, or a number, and of bounded length. Nothing else is ever written.
pub(super) fn is_sound(setting: SteerSetting, text: &str) -> bool {
    if setting == SteerSetting::Qdisc {
        let is_sum = |(_, sum): (&str, &str)| sum.len() == 8 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        return QDISC_KINDS.contains(&qdisc_kind(text)) && text.split_once('/').is_none_or(is_sum);
    }
    if setting.takes_cores() {
        let is_of_a_mask = |byte: u8| byte.is_ascii_hexdigit() || byte == b',';
        text.len() <= LONGEST && text.bytes().all(is_of_a_mask) && CoreSet::from_mask(text).is_some()
    } else {
        text.len() <= MOST_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok()
    }
}

/// Whether two texts mean the same: the width of a mask is the kernel's own.
pub(super) fn same(setting: SteerSetting, one: &str, other: &str) -> bool {
    if setting.takes_cores() {
        let (one, other) = (CoreSet::from_mask(one), CoreSet::from_mask(other));
        return one.is_some() && one == other;
    }
    one == other || one.parse::<u32>().ok().zip(other.parse().ok()).is_some_and(|(one, other): (u32, u32)| one == other)
}

/// Whether what was put back is in force: a link that is down shows no qdisc, and gets the one that it was born with once it is up.
pub(super) fn is_back(setting: SteerSetting, got: &str, old: &str) -> bool {
    same(setting, got, old) || setting == SteerSetting::Qdisc && got == "noop" && old == QDISC_KINDS[0]
}

/// Whether the kernel may have made `got` of what was asked: it gives a qdisc parameters, rounds a number of flows up, and leaves isolated cores out.
pub(super) fn is_made_of(setting: SteerSetting, got: &str, asked: &str) -> bool {
    if setting == SteerSetting::Qdisc {
        return qdisc_kind(got) == qdisc_kind(asked);
    }
    if setting.takes_cores() {
        let (got, asked) = (CoreSet::from_mask(got), CoreSet::from_mask(asked));
        return got.zip(asked).is_some_and(|(got, asked)| got == asked || !got.is_empty() && got.is_subset(&asked));
    }
    same(setting, got, asked) || setting == SteerSetting::RpsFlowCnt && rounded(asked).as_deref() == Some(got)
}

fn rounded(asked: &str) -> Option<String> {
    asked.parse::<u32>().ok()?.checked_next_power_of_two().map(|power| power.to_string())
}

/// How a setting is called in a sentence: `rps_cpus of veth2 (4 queues)`.
pub(super) fn what(setting: SteerSetting, name: &str, queues: &[u32]) -> String {
    let what = setting.of(name);
    match queues {
        [] | [0] => what,
        [one] => format!("{what} ({})", queue_of(setting, *one)),
        more if setting == SteerSetting::Interrupt => format!("{what} ({} of them)", more.len()),
        more => format!("{what} ({} queues)", more.len()),
    }
}

/// The queue as sysfs names it.
pub(super) fn queue_of(setting: SteerSetting, queue: u32) -> String {
    let direction = match setting {
        SteerSetting::Interrupt => "irq",
        SteerSetting::XpsCpus => "tx",
        _ => "rx",
    };
    format!("{direction}-{queue}")
}

/// Texts of queues: one where all have the same, otherwise each with its queues.
pub(super) fn texts<'a>(setting: SteerSetting, of_queues: impl IntoIterator<Item = (u32, &'a str)>) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (queue, text) in of_queues {
        let queue = queue_of(setting, queue);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, queues)) => queues.push(queue),
            None => groups.push((text, vec![queue])),
        }
    }
    match groups.as_slice() {
        [(text, _)] => (*text).to_owned(),
        _ => {
            groups.iter().map(|(text, queues)| format!("{text} in {}", queues.join(" "))).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Why a setting does not count as steered, and what to do. `what` is the setting with its link.
#[derive(Debug, thiserror::Error)]
pub(super) enum SteerError {
    #[error("{what} was not changed: {error}")]
    NotFound { what: String, error: LinkFolderError },
    #[error("{what} was not changed ({error}): run vnettop as root with CAP_NET_ADMIN")]
    Denied { what: String, error: io::Error },
    #[error("{what} was not changed: it is gone, or this kernel has no such setting")]
    Gone { what: String },
    #[error("{name} has one transmit queue: xps_cpus does not exist there")]
    OneQueue { name: String },
    #[error(
        "threaded of {name} was not changed: its NAPI has no threads; turn GRO on first (ethtool -K {} gro on)",
        shell_word(name)
    )]
    NoThreads { name: String },
    #[error("{what} was not changed: this kernel does not have all of {}", cores_of(asked))]
    TooWide { what: String, asked: CoreSet },
    #[error(
        "{what} was not changed to {asked}: the kernel does not take it; are all of its cores isolated or offline?"
    )]
    NotTaken { what: String, asked: String },
    #[error("{what} was not changed to {asked}: {error}")]
    Refused { what: String, asked: String, error: io::Error },
    #[error("qdisc of {name} was not changed: {kind} could not be restored with its parameters")]
    Unrestorable { name: String, kind: String },
    #[error("{what} was not changed: its device names no interrupt for receiving")]
    NoInterrupt { what: String },
    #[error("{what} was not changed: its present value is not understood")]
    NotUnderstood { what: String },
    #[error("{what} was not changed: {asked} is no value for it")]
    WrongValue { what: String, asked: String },
    /// The kernel took it as a wish: it must be taken back like any other.
    #[error("{what} was not changed to {asked}: a feature it needs is off, or XDP forbids it")]
    NotInForce { what: String, asked: String },
    /// The kernel took the text but does not show it: it must be put back like any other.
    #[error("{what} was changed to {asked}, but cannot be read back ({error}): look at it by hand")]
    NotReadBack { what: String, asked: String, error: io::Error },
}

/// The kernel's ways of saying that a right is missing.
pub(super) fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EROFS))
        || error.kind() == io::ErrorKind::PermissionDenied
}

/// The kernel's ways of saying that there is no such file or link.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// Whether a setting can have such a value: cores, the name of a kind, a switch or a number.
fn is_of_its_kind(setting: SteerSetting, value: &SteerValue) -> bool {
    match value {
        SteerValue::Cores(_) => setting.takes_cores(),
        SteerValue::Kind(_) => setting == SteerSetting::Qdisc,
        SteerValue::Number(number) => {
            !setting.takes_cores() && setting != SteerSetting::Qdisc && (!setting.is_switch() || *number <= 1)
        }
    }
}

/// What a request found: the link's present name, and for each queue the text that it has.
pub(super) struct SettingNow {
    pub(super) name: String,
    pub(super) cookie: Option<u64>,
    pub(super) files: Vec<(SteeredFile, String)>,
}

/// What each queue has now, if the link is still there.
pub(super) fn look(links: &mut OpenedLinks<'_>, request: &SteerRequest) -> Result<SettingNow, SteerError> {
    let (setting, asked) = (request.setting, request.value.to_text());
    let what = |name: &str| what(setting, name, &[]);
    if !is_of_its_kind(setting, &request.value) || !is_sound(setting, &asked) {
        return Err(SteerError::WrongValue { what: what(&request.name), asked });
    }
    let link = links.get(request.link).map_err(|error| match error {
        LinkFolderError::Unentered(error) if is_denied(&error) => {
            SteerError::Denied { what: what(&request.name), error }
        }
        error => SteerError::NotFound { what: what(&request.name), error },
    })?;
    let name = link.name().to_owned();
    let refused = |error: io::Error, queues: usize| match () {
        () if is_gone(&error) && setting == SteerSetting::XpsCpus && queues == 1 => {
            SteerError::OneQueue { name: name.clone() }
        }
        () if is_gone(&error) => SteerError::Gone { what: what(&name) },
        () if is_denied(&error) => SteerError::Denied { what: what(&name), error },
        () => SteerError::Refused { what: what(&name), asked: asked.clone(), error },
    };
    let queues = link.queues(setting).map_err(|error| refused(error, 0))?;
    if queues.is_empty() {
        let what = what(&name);
        let is_of_device = setting == SteerSetting::Interrupt;
        return Err(if is_of_device { SteerError::NoInterrupt { what } } else { SteerError::Gone { what } });
    }
    let mut files = Vec::new();
    for &queue in &queues {
        let file = SteeredFile { link: request.link, setting, queue };
        let text = link.read(file).map_err(|error| refused(error, queues.len()))?;
        if setting == SteerSetting::Qdisc && !is_sound(setting, &text) {
            return Err(SteerError::Unrestorable { name, kind: qdisc_kind(&text).to_owned() });
        }
        if !is_sound(setting, &text) {
            return Err(SteerError::NotUnderstood { what: what(&name) });
        }
        files.push((file, text));
    }
    Ok(SettingNow { cookie: link.cookie(), name, files })
}

/// Writes the text and reads back what the kernel made of it.
pub(super) fn set(link: &mut dyn LinkSettings, file: SteeredFile, asked: &str) -> Result<String, SteerError> {
    let name = link.name().to_owned();
    let what = what(file.setting, &name, &[file.queue]);
    let asked = asked.to_owned();
    if let Err(error) = link.write(file, &asked) {
        return Err(match error.raw_os_error() {
            _ if is_denied(&error) => SteerError::Denied { what, error },
            _ if is_gone(&error) => SteerError::Gone { what },
            Some(libc::EOPNOTSUPP | libc::EIO | libc::EINVAL) if file.setting == SteerSetting::Threaded => {
                SteerError::NoThreads { name }
            }
            Some(libc::EOVERFLOW) => {
                SteerError::TooWide { what, asked: CoreSet::from_mask(&asked).unwrap_or_default() }
            }
            Some(libc::EINVAL) if file.setting.takes_cores() => SteerError::NotTaken { what, asked },
            _ => SteerError::Refused { what, asked, error },
        });
    }
    match link.read(file) {
        Ok(got) if file.setting.is_feature() && got != asked => Err(SteerError::NotInForce { what, asked }),
        Ok(got) => Ok(got),
        Err(error) if is_gone(&error) => Err(SteerError::Gone { what }),
        Err(error) => Err(SteerError::NotReadBack { what, asked, error }),
    }
}

/// The sentence on a text that is not what was asked for.
pub(super) fn shortfall(setting: SteerSetting, what: &str, asked: &str, got: &str) -> String {
    let mask = |text| CoreSet::from_mask(text).unwrap_or_default();
    if setting.takes_cores() && is_made_of(setting, got, asked) {
        let (asked, got) = (cores_of(&mask(asked)), cores_of(&mask(got)));
        return format!("{what}: asked for {asked}, the kernel gave {got}: the others are isolated or offline");
    }
    format!("{what}: asked for {asked}, but it has {got}: another program set it at the same moment; steer again")
}
