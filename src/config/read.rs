//! The text of a file → settings, or what is wrong and in which line.

use super::did_you_mean::{hint, short};
use super::schema::{SECTIONS, SETTINGS, Setting, texts};
use super::{ConfigError, Override, Preferences};
use crate::action::{KeyMap, parse_key};
use crate::state::Part;
use crate::text::clean;
use std::ops::Range;
use toml_edit::{Document, Item, Key, TableLike, Value};

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Wrong {
    at: Option<Range<usize>>,
    what: String,
}

impl Wrong {
    pub(super) fn new(at: Option<Range<usize>>, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    /// The error as one of this file; nothing in it steers a terminal, whatever the file holds.
    pub(super) fn reported(&self, text: &str, file: &str) -> ConfigError {
        let [file, what] = [file, &self.what].map(|words| clean(words.as_bytes()));
        let Some(at) = &self.at else { return ConfigError::Refused(file, what) };
        let before = text.as_bytes().get(..at.start).unwrap_or_default();
        ConfigError::Line(file, before.split(|&byte| byte == b'\n').count(), what)
    }
}

/// The document, or what is no TOML in it.
pub(super) fn parse(text: &str) -> Result<Document<&str>, Wrong> {
    Document::parse(text).map_err(|error| {
        let what: Vec<&str> = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Wrong::new(error.span(), format!("this is not valid TOML: {}", what.join(", ")))
    })
}

/// Applies a file; the names of what it sets, with their sections.
pub(super) fn apply(preferences: &mut Preferences, text: &str) -> Result<Vec<String>, Wrong> {
    let document = parse(text)?;
    let mut named = Vec::new();
    for (key, item) in entries(document.as_table()) {
        let section = key.get();
        if !SECTIONS.contains(&section) {
            named.push(set(preferences, "", key, item)?);
            continue;
        }
        let table = item.as_table_like().ok_or_else(|| {
            Wrong::new(key.span(), format!("{section} is a section: write [{section}] and its settings below"))
        })?;
        for (key, item) in entries(table) {
            named.push(set(preferences, section, key, item)?);
        }
    }
    if let Some(why) = lacking(preferences) {
        return Err(Wrong::new(document.get("layout").and_then(Item::span), why));
    }
    match preferences.keys.conflict() {
        Some(conflict) => Err(Wrong::new(document.get("keys").and_then(Item::span), format!("keys: {conflict}"))),
        None => Ok(named),
    }
}

/// Keys with their items; a table that holds none of its own is not there.
pub(super) fn entries(table: &dyn TableLike) -> impl Iterator<Item = (&Key, &Item)> {
    table.iter().filter_map(|(name, _)| table.get_key_value(name))
}

fn find(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// Sets what a file says of one setting; its name with its section.
fn set(preferences: &mut Preferences, section: &str, key: &Key, item: &Item) -> Result<String, Wrong> {
    let name = key.get();
    let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
    if section != "keys" && find(&path).is_none() {
        return Err(unknown(section, key));
    }
    let wrong = |why: String| Wrong::new(key.span(), why);
    let value = item.as_value().ok_or_else(|| wrong(format!("{} is a value, not a section", short(name))))?;
    put(preferences, &path, value).map_err(wrong)?;
    Ok(path)
}

/// Gives a setting, or the action of a name in `[keys]`, this value.
fn put(preferences: &mut Preferences, path: &str, value: &Value) -> Result<(), String> {
    match (path.strip_prefix("keys."), find(path)) {
        (Some(name), _) => keys(&mut preferences.keys, name, value),
        (None, Some(setting)) => setting.set(preferences, value).map_err(|why| format!("{path} {why}")),
        (None, None) => {
            let hint =
                hint(path, SETTINGS.iter().map(|setting| setting.path), || "vnettop config lists them".to_owned());
            Err(format!("{} is not known: {hint}", short(path)))
        }
    }
}

/// The keys of one action.
fn keys(map: &mut KeyMap, name: &str, value: &Value) -> Result<(), String> {
    let Some((known, _)) = map.all().find(|(known, _)| *known == name) else {
        let hint = hint(name, map.all().map(|(known, _)| known), || "vnettop config lists the names".to_owned());
        return Err(format!("keys.{} is not known: {hint}", short(name)));
    };
    let given =
        texts(value).ok_or_else(|| format!("keys.{known} is a key or a list of keys, such as [\"q\", \"F10\"]"))?;
    let keys = given.into_iter().map(parse_key).collect::<Result<Vec<_>, _>>();
    let keys = keys.map_err(|why| format!("keys.{known}: {why}"))?;
    map.choose(known, keys).map_err(|why| format!("keys.{known}: {why}"))
}

fn unknown(section: &str, key: &Key) -> Wrong {
    let name = key.get();
    let within = |path: &'static str| match path.split_once('.') {
        Some((its, leaf)) => (its == section).then_some(leaf),
        None => section.is_empty().then_some(path),
    };
    let sections = SECTIONS.iter().copied().filter(|_| section.is_empty());
    let here = || SETTINGS.iter().filter_map(|setting| within(setting.path)).chain(sections.clone());
    // Perhaps it stands in the wrong place.
    let elsewhere = SETTINGS.iter().map(|setting| setting.path).find(|path| path.rsplit('.').next() == Some(name));
    let whole = if section.is_empty() { short(name) } else { format!("{section}.{}", short(name)) };
    let hint = hint(name, here(), || match elsewhere.map(|path| (path, path.split_once('.'))) {
        Some((_, Some((its, leaf)))) => format!("{leaf} belongs below [{its}]"),
        Some((path, None)) => format!("{path} belongs above the first section"),
        None => format!("use one of {}", here().collect::<Vec<_>>().join(", ")),
    });
    Wrong::new(key.span(), format!("{whole} is not known: {hint}"))
}

/// What a screen needs at least.
fn lacking(preferences: &Preferences) -> Option<String> {
    let shows_any = preferences.choices.parts.iter().any(|part| *part != Part::Test);
    (!shows_any).then(|| "layout.panes needs links, cores or threads".to_owned())
}

/// One option over everything before.
pub(super) fn override_by(preferences: &mut Preferences, option: &Override) -> Result<(), ConfigError> {
    let reported = |why: String| ConfigError::Refused(option.option.to_owned(), clean(why.as_bytes()));
    put(preferences, &option.key, &option.value).map_err(reported)?;
    preferences.keys.conflict().or(lacking(preferences)).map_or(Ok(()), |why| Err(reported(why)))
}
