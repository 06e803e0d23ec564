//! What lasts from one start to the next: `/etc/vnettop/config.toml`, then the user's own, then `--config FILE`, then the options of
//! the command line, each over the one before. Every setting stands once in `schema`, which everything else is made from: reading,
//! `vnettop config`, the example of the packages. It reads and writes files of its own and nothing else.

mod did_you_mean;
mod file;
mod listed;
mod read;
mod save;
mod schema;
mod show;
mod theme;

use crate::action::KeyMap;
use crate::sample::OnRequest;
use crate::state::{Choices, Units};
use crate::trust::Doubt;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use did_you_mean::{hint, nearest, short};
pub use listed::{SettingRow, settings};
pub use save::{SaveError, SaveSource, save};
pub use schema::AllowedValue;
pub use show::example;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use theme::fuzz as fuzz_theme;
pub use theme::{BUILT_IN, ThemeFile, ThemeFiles};
pub use toml_edit::Value;

/// Why a file or an option does not give settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was asked for is not there.
    #[error("there is no configuration file {}", .0.display())]
    Missing(PathBuf),
    /// The file of a theme that was listed is not there any more.
    #[error("{} is gone", .0.display())]
    Gone(PathBuf),
    /// It cannot be opened.
    #[error("{} cannot be opened: {}; --no-config starts without it", .0.display(), .1)]
    Unopened(PathBuf, #[source] io::Error),
    /// It is open, and cannot be "read", or "looked at".
    #[error("{} cannot be {}: {}", .0.display(), .1, .2)]
    Unread(PathBuf, &'static str, #[source] io::Error),
    /// It is a fifo, a directory, a device.
    #[error("{} is not a regular file: give a file, or start with --no-config", .0.display())]
    NotAFile(PathBuf),
    /// Others may have written it.
    #[error("{} {}: chown it to yourself and chmod go-w it, or start with --no-config", .0.display(), .1)]
    Doubted(PathBuf, #[source] Doubt),
    /// A file this large was not written by hand.
    #[error("{} is larger than 256 KiB, so it is not a vnettop configuration", .0.display())]
    TooLarge(PathBuf),
    /// The line that is not UTF-8.
    #[error("{} is not UTF-8 in line {}: save it as UTF-8", .0.display(), .1)]
    NotUtf8(PathBuf, usize),
    /// A line of a file, and what is wrong with it.
    #[error("{0}, line {1}: {2}")]
    Line(String, usize, String),
    /// An option, or a file where no line is to blame, and what is wrong with it.
    #[error("{0}: {1}")]
    Refused(String, String),
}

/// The settings in force.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "schema says what each is")]
#[allow(clippy::struct_excessive_bools, reason = "one for each switch, free of each other")]
pub struct Preferences {
    pub interval: Duration,
    pub units: Units,
    pub theme: String,
    pub ascii: bool,
    pub mouse: bool,
    pub watch: Vec<String>,
    pub netns: Vec<String>,
    pub ovs_sockets: Vec<String>,
    /// Empty where it is the usual one.
    pub docker_socket: String,
    pub readonly: bool,
    pub realtime: bool,
    pub restore_on_exit: bool,
    pub on_request: OnRequest,
    pub recorder: RecorderSettings,
    pub choices: Choices,
    pub keys: KeyMap,
}

/// What the flight recorder keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "schema says what each is")]
pub struct RecorderSettings {
    pub minutes: f64,
    pub mib: f64,
    pub socket: bool,
}

impl Default for RecorderSettings {
    fn default() -> Self {
        Self { minutes: 3.0, mib: 4.0, socket: true }
    }
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(500),
            units: Units::Bits,
            theme: "auto".to_owned(),
            ascii: false,
            mouse: true,
            watch: vec!["iperf3".to_owned(), "iperf".to_owned()],
            netns: Vec::new(),
            ovs_sockets: Vec::new(),
            docker_socket: String::new(),
            readonly: false,
            realtime: true,
            restore_on_exit: false,
            on_request: OnRequest::default(),
            recorder: RecorderSettings::default(),
            choices: Choices::default(),
            keys: KeyMap::default(),
        }
    }
}

/// One setting by an option of the command line.
#[derive(Debug, Clone)]
pub struct Override {
    /// As in the file, with its section: `links.sort`.
    pub key: String,
    /// What it is to be, as in the file.
    pub value: Value,
    /// The option, for people.
    pub option: &'static str,
}

/// A value as it is typed: TOML, or a text when it is not TOML.
#[must_use]
pub fn typed(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| text.into())
}

/// The files that are read, the later ones over the earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFiles {
    /// Folders that hold `config.toml` and `themes/`.
    pub folders: Vec<PathBuf>,
    /// The file that was asked for.
    pub given: Option<PathBuf>,
}

impl ConfigFiles {
    /// `/etc/vnettop` and `$XDG_CONFIG_HOME/vnettop` (else `~/.config/vnettop`), and the file of `--config`. Takes the environment as a
    /// function, so that it reads none itself.
    #[must_use]
    pub fn usual(env: impl Fn(&str) -> Option<OsString>, given: Option<&Path>) -> Self {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let user = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
        let folders = std::iter::once(PathBuf::from("/etc")).chain(user).map(|folder| folder.join("vnettop"));
        Self { folders: folders.collect(), given: given.map(Path::to_owned) }
    }

    /// None of the usual ones.
    #[must_use]
    pub fn only(given: Option<&Path>) -> Self {
        Self { folders: Vec::new(), given: given.map(Path::to_owned) }
    }

    /// Every file, with whether it must be there.
    fn files(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        let usual = self.folders.iter().map(|folder| (folder.join("config.toml"), false));
        usual.chain(self.given.clone().map(|given| (given, true)))
    }

    /// Where settings are saved: into the file that was asked for, else into the user's own; none where there is no such place.
    #[must_use]
    pub fn saved_to(&self) -> Option<PathBuf> {
        let own = self.folders.get(1).map(|folder| folder.join("config.toml"));
        self.given.clone().or(own)
    }
}

/// The settings in force, and where each comes from.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// The settings.
    pub preferences: Preferences,
    /// By name with section, what it was given by; those that are not named have their default.
    from: BTreeMap<String, String>,
    /// Every file with whether it was there.
    files: Vec<(PathBuf, bool)>,
}

impl Configuration {
    /// Reads the files.
    ///
    /// # Errors
    /// Which file and line is wrong, and what to do.
    pub fn load(places: &ConfigFiles) -> Result<Self, ConfigError> {
        let mut configuration = Self::default();
        for (path, required) in places.files() {
            let text = file::read(&path, required)?;
            configuration.files.push((path.clone(), text.is_some()));
            match text {
                Some(text) => configuration.apply(&text, &path.display().to_string())?,
                None if required => return Err(ConfigError::Missing(path)),
                None => {}
            }
        }
        Ok(configuration)
    }

    /// Applies options of the command line.
    ///
    /// # Errors
    /// Which option is wrong, and what to do.
    pub fn override_by(&mut self, options: &[Override]) -> Result<(), ConfigError> {
        for option in options {
            read::override_by(&mut self.preferences, option)?;
            self.from.insert(option.key.clone(), format!("option {}", option.option));
        }
        Ok(())
    }

    /// Applies the text of a file.
    ///
    /// # Errors
    /// Which line is wrong, and what to do.
    pub fn apply(&mut self, text: &str, file: &str) -> Result<(), ConfigError> {
        let mut preferences = self.preferences.clone();
        let named = read::apply(&mut preferences, text).map_err(|wrong| wrong.reported(text, file))?;
        self.preferences = preferences;
        self.from.extend(named.into_iter().map(|name| (name, file.to_owned())));
        Ok(())
    }

    /// Whether nobody has chosen this setting.
    #[must_use]
    pub fn is_default(&self, key: &str) -> bool {
        !self.from.contains_key(key)
    }
}

#[cfg(test)]
mod tests;
