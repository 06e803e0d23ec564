//! What a screen is like now, written into a file of settings: only what has changed, and everything else in it stays as it stands,
//! comments too. The file is replaced at once or not at all.

use super::read::Wrong;
use super::schema::{SETTINGS, Setting};
use super::{ConfigError, Preferences, file, read};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// Where to, and what is in force without being saved.
#[derive(Debug, Clone)]
pub struct SaveSource {
    /// The file.
    pub path: PathBuf,
    /// What the files said at the start, without the command line.
    pub before: Preferences,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// What is in the file, or what would be.
    #[error("nothing was saved: {0}")]
    Text(#[from] ConfigError),
    /// What has the name of a section.
    #[error("nothing was saved: {0} is not a section of the file")]
    NotASection(String),
    /// The file.
    #[error("nothing was saved: {}: {}", .0.display(), .1)]
    Unwritten(PathBuf, #[source] io::Error),
}

/// Saves what differs; how many settings that was.
///
/// # Errors
/// Nothing was saved.
pub fn save(to: &mut SaveSource, now: &Preferences) -> Result<usize, SaveError> {
    if let Some(link) = strange_link(&to.path) {
        return Err(SaveError::Unwritten(link, another_users()));
    }
    let path = target(&to.path);
    let text = file::read(&path, true)?.unwrap_or_default();
    let wrong = |wrong: Wrong| wrong.reported(&text, &path.display().to_string());
    read::apply(&mut Preferences::default(), &text).map_err(wrong)?;
    let mut document = read::parse(&text).map_err(wrong)?.into_mut();
    let differs = |setting: &&Setting| {
        let (now, before) = (setting.value(now).to_string(), setting.value(&to.before).to_string());
        now != before
    };
    let changed: Vec<&Setting> = SETTINGS.iter().filter(differs).collect();
    if changed.is_empty() {
        return Ok(0);
    }
    for setting in &changed {
        put(&mut document, setting.path, setting.value(now))?;
    }
    let text = document.to_string();
    read::apply(&mut Preferences::default(), &text).map_err(|wrong| wrong.reported(&text, "what would be saved"))?;
    replace(&path, &text).map_err(|error| SaveError::Unwritten(path, error))?;
    to.before = now.clone();
    Ok(changed.len())
}

/// The file that a link leads to: links are how people keep their settings together.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A link in the path that another user made: root would write wherever it leads.
fn strange_link(path: &Path) -> Option<PathBuf> {
    let is_strange = |place: &&Path| {
        fs::symlink_metadata(place).is_ok_and(|found| {
            found.file_type().is_symlink() && ![0, rustix::process::geteuid().as_raw()].contains(&found.uid())
        })
    };
    path.ancestors().find(is_strange).map(Path::to_owned)
}

fn another_users() -> io::Error {
    let text = "it belongs to another user: give a file of your own by --config";
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Puts a value in the place of the old one, with its comments, or below the others of its section.
fn put(document: &mut DocumentMut, path: &str, mut value: Value) -> Result<(), SaveError> {
    let (section, name) = path.split_once('.').map_or((None, path), |(section, name)| (Some(section), name));
    let table: &mut dyn TableLike = match section {
        None => document.as_table_mut(),
        Some(section) => {
            let item = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
            item.as_table_like_mut().ok_or_else(|| SaveError::NotASection(section.to_owned()))?
        }
    };
    if let Some(old) = table.get(name).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    match table.get_mut(name) {
        Some(item) => *item = Item::Value(value),
        None => drop(table.insert(name, Item::Value(value))),
    }
    Ok(())
}

/// A new file beside it, whole and on the disk, takes its name. Nobody else may read or write more of it than before.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| old.uid() != rustix::process::geteuid().as_raw()) {
        return Err(another_users());
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    // A file of this name, left by a killed vnettop or set as a trap, is removed and never written to.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| old.map_or(Ok(()), |old| file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o755))))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}
