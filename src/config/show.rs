//! The settings as text: with where each comes from (`vnettop config`), plain (`--dump-config`), and as the example that packages install. All are
//! TOML that reads as what they were made from.

use super::schema::SETTINGS;
use super::{Configuration, Preferences};
use crate::action::{KEYS, Key};
use crate::text::clean;
use std::fmt::Write as _;
use toml_edit::{Array, Value};

/// One line of a file.
struct PrintedSetting {
    /// Its name with its section.
    path: String,
    doc: &'static str,
    value: Value,
}

fn entries(preferences: &Preferences) -> Vec<PrintedSetting> {
    let settings = SETTINGS.iter().map(|setting| PrintedSetting {
        path: setting.path.to_owned(),
        doc: setting.doc,
        value: setting.value(preferences),
    });
    let keys = preferences.keys.all().map(|(name, keys)| {
        let doc = KEYS.iter().find(|row| row.name == name).map_or("", |row| row.help);
        PrintedSetting { path: format!("keys.{name}"), doc, value: written(keys) }
    });
    settings.chain(keys).collect()
}

fn written(keys: &[Key]) -> Value {
    match keys {
        [key] => key.word().into(),
        _ => keys.iter().map(|key| key.word()).collect::<Array>().into(),
    }
}

/// A line each, made of its name without the section, below the heads of the sections.
fn sections(preferences: &Preferences, line: impl Fn(&str, &PrintedSetting) -> String) -> String {
    let mut text = String::new();
    let mut section = "";
    let entries = entries(preferences);
    for entry in &entries {
        let (its, name) = entry.path.split_once('.').unwrap_or(("", &entry.path));
        if its != section {
            section = its;
            let _ = write!(text, "\n[{section}]\n");
        }
        text += &line(name, entry);
    }
    text
}

impl Configuration {
    /// Plain TOML.
    #[must_use]
    pub fn plain(&self) -> String {
        sections(&self.preferences, |name, entry| format!("{name} = {}\n", entry.value))
    }

    /// TOML with what each setting is for and where its value comes from.
    #[must_use]
    pub fn explained(&self) -> String {
        let mut text =
            "# The settings in force. Files are read in this order, options of the command line come last:\n"
                .to_owned();
        for (path, is_there) in &self.files {
            let found = if *is_there { "" } else { " (none to read)" };
            let _ = writeln!(text, "#   {}{found}", clean(path.display().to_string().as_bytes()));
        }
        text + "\n"
            + &sections(&self.preferences, |name, PrintedSetting { path, doc, value }| {
                let from = self.from.get(path).map_or("default", String::as_str);
                format!("# {doc}\n{name} = {value}  # {}\n", clean(from.as_bytes()))
            })
    }
}

/// Every setting with its default, switched off by a `#`: what is taken away from a line's beginning is what one chooses.
#[must_use]
pub fn example() -> String {
    let text = "# Settings of vnettop with their defaults, for ~/.config/vnettop/config.toml\n\
         # (for everybody: /etc/vnettop/config.toml). To change a value, remove the #\n\
         # before it. docs/configuration.md\n\n";
    text.to_owned()
        + &sections(&Preferences::default(), |name, entry| format!("# {}\n#{name} = {}\n", entry.doc, entry.value))
}
