//! The files that a key writes: in vnettop's own directory, whoever's directory it was started in; never over a file that
//! is there, never through a link, and for nobody else to read, because they hold other users' command lines.

use super::App;
use super::black_box::SaveNews;
use super::kept_file::{KeepError, place, stamp};
use super::player::Player;
use crate::config::{self, Preferences, SaveError};
use crate::record::StoredIn;
use crate::report::card::card;
use crate::report::recording::{ReportOptions, ReportedRecording, length, report};
use crate::report::{Format, WrittenAs};
use crate::text;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a new file, and says in an error what it was to be; one that could not be written whole is none.
fn write(what: &'static str, path: &Path, text: &str) -> Result<(), KeepError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let whole = |mut file: File| file.write_all(text.as_bytes()).inspect_err(|_| drop(fs::remove_file(path)));
    opened.and_then(whole).map_err(|error| KeepError::File(what, path.to_owned(), error))
}

/// What a key writes. The answer is a sentence.
impl App {
    pub(super) fn toggle_recording(&mut self) -> Result<String, KeepError> {
        if std::mem::take(&mut self.state.is_recorded) {
            let path = self.stream.end_recording()?.unwrap_or_default();
            return Ok(format!("recording stopped: {}", path.display()));
        }
        let path = self.new_file("vnettop", "jsonl.zst")?;
        self.stream.begin_recording(&path)?;
        self.state.is_recorded = true;
        Ok(format!("recording to {}", path.display()))
    }

    /// What somebody has asked for takes the place of the sentence that it is being saved.
    pub(super) fn tell_saved(&mut self, news: Option<SaveNews>) {
        let Some(news) = news else { return };
        if news.kind.is_none() {
            self.state.notice(news.is_warning, news.text);
        } else {
            self.state.add_notice(news.is_warning, &news.text);
        }
    }

    /// The last minutes that are kept in memory, as a recording.
    pub(super) fn save_last(&mut self) -> Result<String, KeepError> {
        let is_replay = self.is_replay();
        match &mut self.stream.black_box {
            Some(black_box) => black_box.save(),
            None if is_replay => Ok("this is a recording: vnettop cut saves a part of it".to_owned()),
            None => Ok("nothing was saved: recorder.minutes is 0".to_owned()),
        }
    }

    /// The page that `vnettop report` makes of a recording, of what the screen has seen so far.
    pub(super) fn write_report(&mut self) -> Result<String, KeepError> {
        let path = self.new_file("vnettop-report", "html")?;
        let Some(summary) = self.seen.summary() else {
            return Ok("there is nothing to report yet: a report needs two samples".to_owned());
        };
        let length = length(summary.seconds());
        let (name, recorded_by) = self.name_of_what_is_seen(&summary.facts.host.name);
        let seen = ReportedRecording { name, summary: Some(summary), recorded_by, ..ReportedRecording::default() };
        write("report", &path, &report(&[seen], WrittenAs::Html, ReportOptions::default()))?;
        Ok(format!("report of {length} written to {}", path.display()))
    }

    /// What a report of what is seen is called, and the version of vnettop that has measured it.
    fn name_of_what_is_seen(&self, host: &str) -> (String, Option<String>) {
        let version = || Some(env!("CARGO_PKG_VERSION").to_owned());
        match self.player.as_ref().map(Player::stored) {
            Some(StoredIn::File(path)) => {
                let file = path.file_name().unwrap_or(path.as_os_str());
                (format!("{}, as far as it was played", text::clean(file.as_bytes())), None)
            }
            Some(StoredIn::Program) => ("the built-in recording, as far as it was played".to_owned(), None),
            None if self.is_replay() => ("a recording, as far as it was played".to_owned(), None),
            None => (format!("{host}, live"), version()),
        }
    }

    /// The card that is shown, three times: to be read, to be pasted, to be computed with.
    pub(super) fn write_card(&mut self) -> Result<String, KeepError> {
        let path = self.new_file("vnettop-card", "txt")?;
        for (ending, format) in [("txt", Format::Text), ("md", Format::Markdown), ("json", Format::Json)] {
            let Some(text) =
                self.state.metrics().and_then(|metrics| card(&metrics.subject, &metrics.threads, metrics.test, format))
            else {
                let [propose, card] = ["propose", "card"].map(|name| self.state.keys().key(name));
                return Ok(format!("there is no card yet: {propose} pins, then {card} compares before and after"));
            };
            let path = path.with_extension(ending);
            write("card", &path, &text)?;
        }
        Ok(format!("card written to {}, .md and .json", path.display()))
    }

    /// What the screen is like now, into the file of settings.
    pub(super) fn save_settings(&mut self) -> Result<String, SaveError> {
        let Some(saved) = &mut self.options.saved else {
            return Ok("nothing was saved: XDG_CONFIG_HOME and HOME are not set; use --config FILE".to_owned());
        };
        let settings = self.state.settings();
        let now = Preferences {
            interval: settings.interval,
            units: settings.units,
            theme: self.state.themes.chosen().unwrap_or(&self.options.theme).to_owned(),
            choices: self.state.choices(),
            ..saved.before.clone()
        };
        let path = saved.path.display().to_string();
        Ok(match config::save(saved, &now)? {
            0 => format!("nothing to save: every setting is as in {path} or the default"),
            1 => format!("1 setting saved to {path}"),
            count => format!("{count} settings saved to {path}"),
        })
    }

    /// The file that a key writes now.
    pub(super) fn new_file(&self, name: &str, ending: &str) -> Result<PathBuf, KeepError> {
        let stamp = stamp(self.state.metrics().map_or(0, |metrics| metrics.machine.wall_ms));
        place(self.options.kept_in.as_deref(), &format!("{name}-{stamp}.{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_new_and_ones_own() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join("state/vnettop");
        let path = place(Some(&directory), "a.txt").expect("it is made");
        write("note", &path, "x").expect("writable");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&path)), (0o700, 0o600), "nobody else reads them");
        let Err(KeepError::File("note", _, error)) = write("note", &path, "y") else { panic!("it is there") };
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let (link, target) = (directory.join("b.txt"), root.path().join("target"));
        symlink(&target, &link).expect("a link in the way");
        assert!(write("note", &link, "y").is_err() && !target.exists(), "a link is not followed");
        assert!(matches!(place(None, "a.txt"), Err(KeepError::NoDirectory)));
        assert!(matches!(place(Some(&path), "a.txt"), Err(KeepError::Directory(file, _)) if file == path));
    }
}
