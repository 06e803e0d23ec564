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
    section: &'static str,
    /// With its section.
    path: String,
    name: &'static str,
    doc: &'static str,
    value: Value,
}

fn entries(preferences: &Preferences) -> Vec<PrintedSetting> {
    let settings = SETTINGS.iter().map(|setting| {
        let (section, name) = setting.path.split_once('.').unwrap_or(("", setting.path));
        PrintedSetting {
            section,
            path: setting.path.to_owned(),
            name,
            doc: setting.doc,
            value: setting.value(preferences),
        }
    });
    let keys = preferences.keys.all().map(|(name, keys)| {
        let doc = KEYS.iter().find(|row| row.name == name).map_or("", |row| row.help);
        PrintedSetting { section: "keys", path: format!("keys.{name}"), name, doc, value: written(keys) }
    });
    settings.chain(keys).collect()
}

fn written(keys: &[Key]) -> Value {
    match keys {
        [key] => key.word().into(),
        _ => keys.iter().map(|key| key.word()).collect::<Array>().into(),
    }
}

fn sections(entries: &[PrintedSetting], mut line: impl FnMut(&mut String, &PrintedSetting)) -> String {
    let mut text = String::new();
    let mut section = "";
    for entry in entries {
        if entry.section != section {
            section = entry.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        line(&mut text, entry);
    }
    text
}

impl Configuration {
    /// Plain TOML.
    #[must_use]
    pub fn plain(&self) -> String {
        sections(&entries(&self.preferences), |text, entry| {
            let _ = writeln!(text, "{} = {}", entry.name, entry.value);
        })
    }

    /// The same with what each setting is for and where its value comes from.
    #[must_use]
    pub fn explained(&self) -> String {
        let mut text =
            "# What vnettop goes by. Files are read in this order, options of the command line come last:\n".to_owned();
        for (path, is_there) in &self.files {
            let found = if *is_there { "" } else { " (none to read)" };
            let _ = writeln!(text, "#   {}{found}", clean(path.display().to_string().as_bytes()));
        }
        text + "\n"
            + &sections(&entries(&self.preferences), |text, entry| {
                let from = self.from.get(&entry.path).map_or("default", String::as_str);
                let _ =
                    writeln!(text, "# {}\n{} = {}  # {}", entry.doc, entry.name, entry.value, clean(from.as_bytes()));
            })
    }
}

/// Every setting with its default, switched off by a `#`: what is taken away from a line's beginning is what one chooses.
#[must_use]
pub fn example() -> String {
    let text = "# Settings of vnettop with their defaults, for ~/.config/vnettop/config.toml\n\
         # (for everybody: /etc/vnettop/config.toml). Take the # away where a value\n\
         # is to be another one. docs/configuration.md\n\n";
    text.to_owned()
        + &sections(&entries(&Preferences::default()), |text, entry| {
            let _ = writeln!(text, "# {}\n#{} = {}", entry.doc, entry.name, entry.value);
        })
}
