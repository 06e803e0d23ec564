//! The table of settings for whoever describes it: what each may be, in a file.

use super::schema::{AllowedValue, SETTINGS};
use super::{Preferences, Value};
use crate::action::KEYS;

/// A line of a file.
#[derive(Debug, Clone)]
pub struct SettingRow {
    /// Its name with its section: `links.sort`.
    pub path: String,
    /// What it is for, one line.
    pub doc: &'static str,
    /// What it may be.
    pub allowed: AllowedValue,
    /// What it is where nobody says anything; none of keys.
    pub default: Option<Value>,
}

/// Every setting in the order of the example, then the keys; `schemas/config.schema.json` is made of them.
#[must_use]
pub fn settings() -> Vec<SettingRow> {
    let defaults = Preferences::default();
    let settings = SETTINGS.iter().map(|setting| SettingRow {
        path: setting.path.to_owned(),
        doc: setting.doc,
        allowed: setting.allowed(&defaults),
        default: Some(setting.value(&defaults)),
    });
    let keys = defaults.keys.all().map(|(name, _)| SettingRow {
        path: format!("keys.{name}"),
        doc: KEYS.iter().find(|row| row.name == name).map_or("", |row| row.help),
        allowed: AllowedValue::Keys,
        default: None,
    });
    settings.chain(keys).collect()
}
