//! Every setting once: its name, what it is for, what it may be, and where it is kept. `[keys]` has a row for each name of KEYS.

use self::SettingKind::{Choice, Choices, Flag, Number, Profile, Seconds, Text, Texts};
use super::Preferences;
use super::did_you_mean::{hint, short};
use crate::sample::{MOST_CORES, ProfileOf, Word};
use std::time::Duration;
use strum::VariantArray;
use toml_edit::{Array, Value};

/// One setting.
pub(super) struct Setting {
    /// Its name with the section: `links.sort`.
    pub path: &'static str,
    /// What it is for, one line.
    pub doc: &'static str,
    kind: SettingKind,
}

/// What a setting may be.
#[derive(Debug, Clone, PartialEq)]
pub enum AllowedValue {
    /// True or false.
    Flag,
    /// From the one to the other.
    Number([f64; 2]),
    /// A text.
    Text,
    /// A list of texts, or one.
    Texts,
    /// One of these.
    Word(Vec<&'static str>),
    /// At least one of these, each once.
    Words(Vec<&'static str>),
    /// A core: `limit`, a number, or empty.
    Core,
    /// A key or a list of keys.
    Keys,
}

type Access<T> = fn(&mut Preferences) -> &mut T;
type TextCheck = fn(&str) -> Result<(), &'static str>;

/// What it may be.
enum SettingKind {
    Flag(Access<bool>),
    Seconds(Access<Duration>),
    /// Between these.
    Number(Access<f64>, [f64; 2]),
    Text(Access<String>, TextCheck),
    Texts(Access<Vec<String>>, TextCheck),
    Choice(Access<dyn OneWord>),
    Choices(Access<dyn SomeWords>),
    Profile(Access<Option<ProfileOf>>),
}

/// One of the words of an enum.
trait OneWord {
    fn words(&self) -> Vec<&'static str>;
    fn value(&self) -> Value;
    fn set(&mut self, value: &Value) -> Result<(), String>;
}

impl<T: VariantArray + Copy + Word> OneWord for T {
    fn words(&self) -> Vec<&'static str> {
        T::VARIANTS.iter().map(|one| one.word()).collect()
    }

    fn value(&self) -> Value {
        self.word().into()
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        let text = value.as_str().ok_or_else(|| format!("must be one of {}", all_words::<T>()))?;
        *self = known(text)?;
        Ok(())
    }
}

/// Some of the words of an enum, each once.
trait SomeWords {
    fn words(&self) -> Vec<&'static str>;
    fn value(&self) -> Value;
    fn set(&mut self, value: &Value) -> Result<(), String>;
}

impl<T: VariantArray + Copy + PartialEq + Word> SomeWords for Vec<T> {
    fn words(&self) -> Vec<&'static str> {
        T::VARIANTS.iter().map(|one| one.word()).collect()
    }

    fn value(&self) -> Value {
        self.iter().map(|one| one.word()).collect::<Array>().into()
    }

    fn set(&mut self, value: &Value) -> Result<(), String> {
        let given = texts(value).ok_or_else(|| format!("must be a list of some of {}", all_words::<T>()))?;
        let mut chosen = Vec::new();
        for text in given {
            let one = known(text)?;
            if chosen.contains(&one) {
                return Err(format!("has '{text}' twice"));
            }
            chosen.push(one);
        }
        if chosen.is_empty() {
            return Err(format!("needs at least one of {}", all_words::<T>()));
        }
        *self = chosen;
        Ok(())
    }
}

const fn setting(path: &'static str, kind: SettingKind, doc: &'static str) -> Setting {
    Setting { path, doc, kind }
}

/// In the order people read them; those without a section first.
pub(super) const SETTINGS: &[Setting] = &[
    setting(
        "interval",
        Seconds(|p| &mut p.interval),
        "Seconds from sample to sample on the screen, 0.01 to 3600; --json and run have -d",
    ),
    setting("units", Choice(|p| &mut p.units), "Rates of the links: bits, bytes or packets"),
    setting(
        "theme",
        Text(|p| &mut p.theme, theme),
        "Colours: auto, dark, light, terminal, mono, or NAME of themes/NAME.toml",
    ),
    setting("ascii", Flag(|p| &mut p.ascii), "Only ASCII characters; always so without UTF-8 in the locale"),
    setting("mouse", Flag(|p| &mut p.mouse), "Use the mouse; false: the terminal keeps it for selecting text"),
    setting("watch", Texts(|p| &mut p.watch, watched), "Threads to watch: names of commands or pids; run has --watch"),
    setting(
        "netns",
        Texts(|p| &mut p.netns, plain),
        "Network namespaces to show: all, self, names, inodes or pids; empty: all in the machine's own, else self",
    ),
    setting(
        "ovs_sockets",
        Texts(|p| &mut p.ovs_sockets, plain),
        "Further database sockets or run directories of Open vSwitch",
    ),
    setting("docker_socket", Text(|p| &mut p.docker_socket, any), "Docker's socket; empty: the usual one"),
    setting("readonly", Flag(|p| &mut p.readonly), "Change nothing on this machine: no pins, no undo key"),
    setting("realtime", Flag(|p| &mut p.realtime), "Sample at real-time priority where that is allowed"),
    setting("restore_on_exit", Flag(|p| &mut p.restore_on_exit), "Restore every replaced mask on exit"),
    setting(
        "drops",
        Flag(|p| &mut p.on_request.drops),
        "Count every packet that the kernel drops, all the time (root or BPF rights)",
    ),
    setting(
        "exact_softirqs",
        Flag(|p| &mut p.on_request.softirqs),
        "Softirq time measured from entry to exit (root or BPF rights; 0.3 us a softirq)",
    ),
    setting("hop_cores", Flag(|p| &mut p.on_request.hops), "Packets of each hop counted by core (root or BPF rights)"),
    setting(
        "latency",
        Flag(|p| &mut p.on_request.latency),
        "Where packets and threads wait, measured all the time (root or BPF rights)",
    ),
    setting(
        "profile",
        Profile(|p| &mut p.on_request.profile),
        "A core to profile all the time: \"limit\" (that of LIMIT) or a number; empty: none",
    ),
    setting(
        "recorder.minutes",
        Number(|p| &mut p.recorder.minutes, [0.0, 60.0]),
        "Minutes always kept in memory, for B, vnettop save and --on; 0: nothing",
    ),
    setting(
        "recorder.mib",
        Number(|p| &mut p.recorder.mib, [2.0, 1024.0]),
        "MiB of memory that they may take; where these hold less, less is kept",
    ),
    setting(
        "recorder.socket",
        Flag(|p| &mut p.recorder.socket),
        "Answer vnettop save of the same user at a socket in the runtime directory",
    ),
    setting(
        "layout.test",
        Choice(|p| &mut p.choices.arrangement),
        "How a test is shown: bands (verdict, graph, path) or panes",
    ),
    setting(
        "layout.graph",
        Choice(|p| &mut p.choices.graph),
        "What the graph is drawn with: blocks, or braille (twice as fine, fainter)",
    ),
    setting(
        "layout.panes",
        Choices(|p| &mut p.choices.parts),
        "Panes on the screen, at least one of links, cores, threads",
    ),
    setting(
        "links.columns",
        Choices(|p| &mut p.choices.links.columns),
        "Columns in order; if your list is too wide, its last columns are left out",
    ),
    setting(
        "links.sort",
        Choice(|p| &mut p.choices.links.sort),
        "Order: name, rx, tx, pps, drops, errors, times or mean",
    ),
    setting("links.reversed", Flag(|p| &mut p.choices.links.reversed), "Reverse that order"),
    setting(
        "links.shape",
        Choice(|p| &mut p.choices.links.shape),
        "Ports below their bridge (tree), or one list (flat)",
    ),
    setting(
        "links.idle",
        Choice(|p| &mut p.choices.links.idle),
        "What is idle for 5 s: shown, hidden, or auto: hidden from 8 links on",
    ),
    setting("cores.sort", Choice(|p| &mut p.choices.cores.sort), "Order: number, softirq or busy"),
    setting("cores.reversed", Flag(|p| &mut p.choices.cores.reversed), "Reverse that order"),
    setting("threads.columns", Choices(|p| &mut p.choices.threads.columns), "Columns in their order, as for links"),
    setting("threads.sort", Choice(|p| &mut p.choices.threads.sort), "Order: cpu, migrations, tid, core or wait"),
    setting("threads.reversed", Flag(|p| &mut p.choices.threads.reversed), "Reverse that order"),
];

/// What an interval may be, seconds.
const SECONDS: [f64; 2] = [0.01, 3600.0];

/// The words in brackets.
pub(super) const SECTIONS: [&str; 6] = ["recorder", "layout", "links", "cores", "threads", "keys"];

fn any(text: &str) -> Result<(), &'static str> {
    if text.chars().any(char::is_control) { Err("it holds a control character") } else { Ok(()) }
}

fn plain(text: &str) -> Result<(), &'static str> {
    if text.is_empty() { Err("must not be empty") } else { any(text) }
}

fn watched(text: &str) -> Result<(), &'static str> {
    if text == "0" { Err("give names of commands or pids") } else { plain(text) }
}

fn theme(text: &str) -> Result<(), &'static str> {
    if is_theme_name(text) { Ok(()) } else { Err("a name of a theme has letters, digits, - and _ only") }
}

impl Setting {
    /// What it is, as TOML.
    pub fn value(&self, preferences: &Preferences) -> Value {
        let texts = |texts: &[String]| texts.iter().collect::<Array>().into();
        // Only looked at: one way to a field is enough.
        let mut read = preferences.clone();
        match &self.kind {
            Flag(of) => (*of(&mut read)).into(),
            Seconds(of) => of(&mut read).as_secs_f64().into(),
            Number(of, _) => (*of(&mut read)).into(),
            Text(of, _) => of(&mut read).as_str().into(),
            Texts(of, _) => texts(of(&mut read)),
            Choice(of) => of(&mut read).value(),
            Choices(of) => of(&mut read).value(),
            Profile(of) => profiled(*of(&mut read)).into(),
        }
    }

    /// Makes it this. The error ends a sentence that begins with its name.
    pub fn set(&self, preferences: &mut Preferences, value: &Value) -> Result<(), String> {
        match &self.kind {
            Flag(of) => *of(preferences) = value.as_bool().ok_or("must be true or false")?,
            Seconds(of) => {
                let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                let seconds = number.ok_or("must be a number of seconds, such as 0.5")?;
                let [least, most] = SECONDS;
                if !(least..=most).contains(&seconds) {
                    return Err("must be between 0.01 and 3600 seconds".to_owned());
                }
                *of(preferences) = Duration::from_secs_f64(seconds);
            }
            Number(of, [least, most]) => {
                let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                let is_within = |number: &f64| (*least..=*most).contains(number);
                *of(preferences) =
                    number.filter(is_within).ok_or_else(|| format!("must be a number between {least} and {most}"))?;
            }
            Text(of, check) => {
                let text = value.as_str().ok_or("must be a string in quotes")?;
                check(text).map_err(|why| format!("is invalid: {why}"))?;
                text.clone_into(of(preferences));
            }
            Texts(of, check) => {
                let given = texts(value).ok_or("must be a list of strings, such as [\"a\", \"b\"]")?;
                given.iter().try_for_each(|text| check(text)).map_err(|why| format!("is invalid: {why}"))?;
                *of(preferences) = given.into_iter().map(str::to_owned).collect();
            }
            Choice(of) => of(preferences).set(value)?,
            Choices(of) => of(preferences).set(value)?,
            Profile(of) => *of(preferences) = profile(value)?,
        }
        Ok(())
    }
}

impl Setting {
    /// What it may be.
    pub fn allowed(&self, preferences: &Preferences) -> AllowedValue {
        let mut read = preferences.clone();
        match &self.kind {
            Flag(_) => AllowedValue::Flag,
            Seconds(_) => AllowedValue::Number(SECONDS),
            Number(_, bounds) => AllowedValue::Number(*bounds),
            Text(..) => AllowedValue::Text,
            Texts(..) => AllowedValue::Texts,
            Choice(of) => AllowedValue::Word(of(&mut read).words()),
            Choices(of) => AllowedValue::Words(of(&mut read).words()),
            Profile(_) => AllowedValue::Core,
        }
    }
}

/// The core to profile, as it is written.
fn profiled(of: Option<ProfileOf>) -> String {
    match of {
        None => String::new(),
        Some(ProfileOf::Limit) => "limit".to_owned(),
        Some(ProfileOf::Core(core)) => core.to_string(),
    }
}

/// The core to profile; a number may stand without quotes.
fn profile(value: &Value) -> Result<Option<ProfileOf>, &'static str> {
    let wrong = "must be \"limit\", a core, or empty";
    let number = value.as_integer().map(|number| number.to_string());
    match number.as_deref().or(value.as_str()).ok_or(wrong)? {
        "" => Ok(None),
        "limit" => Ok(Some(ProfileOf::Limit)),
        core => match core.parse() {
            Ok(core) if core < MOST_CORES => Ok(Some(ProfileOf::Core(core))),
            _ => Err(wrong),
        },
    }
}

/// Whether a theme may have this name, and so its file.
pub(super) fn is_theme_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 32 && name.chars().all(is_plain)
}

/// A list of texts, or one.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(one) => Some(vec![one.value()]),
        Value::Array(list) => list.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// The words of an enum in quotes.
fn all_words<T: VariantArray + Copy + Word>() -> String {
    T::VARIANTS.iter().map(|one| format!("\"{}\"", one.word())).collect::<Vec<_>>().join(", ")
}

fn known<T: VariantArray + Copy + Word>(text: &str) -> Result<T, String> {
    let one = T::VARIANTS.iter().find(|one| one.word() == text).copied();
    one.ok_or_else(|| {
        let known = T::VARIANTS.iter().map(|one| one.word());
        let hint = hint(text, known, || format!("it is one of {}", all_words::<T>()));
        format!("cannot be '{}': {hint}", short(text))
    })
}
