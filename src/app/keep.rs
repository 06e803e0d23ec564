//! The files that a key writes: in vnettop's own directory, whoever's directory it was started in; never over a file that
//! is there, never through a link, and for nobody else to read, because they hold other users' command lines.

use super::App;
use crate::config::{self, Preferences};
use crate::report::card::card;
use crate::report::{Format, timestamp};
use crate::ui::Theme;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where a file of this name is kept; makes the directory.
///
/// # Errors
/// A sentence: there is no such directory, and none can be made.
pub(super) fn place(directory: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    let directory = directory.ok_or(
        "nothing was written: neither XDG_STATE_HOME nor HOME is set; set XDG_STATE_HOME to a directory that you can \
         write",
    )?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| format!("nothing was written: cannot create {}: {error}", directory.display()))?;
    Ok(directory.join(name))
}

/// Writes a new file; one that could not be written whole is none.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

/// What a key writes. The answer is a sentence; the error is one too: nothing was written, and why.
impl App {
    pub(super) fn toggle_recording(&mut self) -> Result<String, String> {
        if std::mem::take(&mut self.state.is_recorded) {
            let path = self.stream.end_recording().map_err(|error| error.to_string())?.unwrap_or_default();
            return Ok(format!("recording stopped: {}", path.display()));
        }
        let path = self.new_file("vnettop", "jsonl.zst")?;
        self.stream.begin_recording(&path).map_err(|error| error.to_string())?;
        self.state.is_recorded = true;
        Ok(format!("recording to {}", path.display()))
    }

    /// The report is the frame as it is, wide enough for every column, in a file of its own.
    pub(super) fn write_report(&mut self) -> Result<String, String> {
        let path = self.new_file("vnettop-report", "txt")?;
        let written = write(&path, &self.frame(200, 60, Theme::plain(true)));
        written.map_err(|error| format!("cannot write report {}: {error}", path.display()))?;
        Ok(format!("report written to {}", path.display()))
    }

    /// The card that is shown, three times: to be read, to be pasted, to be computed with.
    pub(super) fn write_card(&mut self) -> Result<String, String> {
        let path = self.new_file("vnettop-card", "txt")?;
        for (ending, format) in [("txt", Format::Text), ("md", Format::Markdown), ("json", Format::Json)] {
            let Some(text) = self.state.metrics().and_then(|metrics| card(metrics, metrics.test, format)) else {
                let [propose, card] = ["propose", "card"].map(|name| self.state.keys().key(name));
                return Ok(format!("there is no card yet: {propose} pins, then {card} compares before and after"));
            };
            let path = path.with_extension(ending);
            write(&path, &text).map_err(|error| format!("cannot write card {}: {error}", path.display()))?;
        }
        Ok(format!("card written to {}, .md and .json", path.display()))
    }

    /// What the screen is like now, into the file of settings.
    pub(super) fn save_settings(&mut self) -> Result<String, String> {
        let Some(saved) = &mut self.options.saved else {
            return Ok("nothing was saved: neither XDG_CONFIG_HOME nor HOME says where; --config FILE does".to_owned());
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
    fn new_file(&self, name: &str, ending: &str) -> Result<PathBuf, String> {
        let time = timestamp(self.state.metrics().map_or(0, |metrics| metrics.wall_ms));
        // UTC: `20260102-030405`.
        let stamp: String = time.get(..19).unwrap_or_default().replace(['-', ':'], "").replace('T', "-");
        place(self.options.kept_in.as_deref(), &format!("{name}-{stamp}.{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_new_and_ones_own() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join("state/vnettop");
        let path = place(Some(&directory), "a.txt").expect("it is made");
        write(&path, "x").expect("writable");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&path)), (0o700, 0o600), "nobody else reads them");
        assert_eq!(write(&path, "y").expect_err("it is there").kind(), io::ErrorKind::AlreadyExists);
        let (link, target) = (directory.join("b.txt"), root.path().join("target"));
        symlink(&target, &link).expect("a link in the way");
        assert!(write(&link, "y").is_err() && !target.exists(), "a link is not followed");
        assert!(place(None, "a.txt").expect_err("nowhere").contains("XDG_STATE_HOME"));
    }
}
