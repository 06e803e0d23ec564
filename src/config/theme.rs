//! Colour themes of one's own: `themes/NAME.toml` in the folders of the configuration.

use super::ConfigError;
use super::did_you_mean::{hint, short};
use super::file;
use super::read::{self, Wrong};
use super::schema::is_theme_name;
use crate::ui::{Color, NAMED, Palette};
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::Value;

/// Themes that need no file.
pub const BUILT_IN: [&str; 5] = ["auto", "dark", "light", "terminal", "mono"];

/// A folder with more is somebody's collection, not a choice.
const MOST_THEMES: usize = 32;

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct ThemeFile {
    /// The name of the file without its ending.
    pub name: String,
    /// Its colours.
    pub palette: Palette,
    /// What of it is hard to read, as a sentence.
    pub weak: Option<String>,
}

/// Every theme by name, and a sentence for each that cannot be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThemeFiles {
    /// Themes that can be used, by name.
    pub themes: Vec<ThemeFile>,
    /// Themes that cannot be used: name, and why.
    pub problems: Vec<(String, String)>,
}

impl ThemeFiles {
    /// Reads the themes of these folders; of one name that of the later folder.
    #[must_use]
    pub fn read(folders: &[PathBuf]) -> Self {
        let mut found: Vec<(String, PathBuf)> =
            folders.iter().flat_map(|folder| files(&folder.join("themes"))).collect();
        found.reverse();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.dedup_by(|(one, _), (other, _)| one == other);
        let mut all = Self::default();
        for (name, path) in found.into_iter().take(MOST_THEMES) {
            match of_file(&name, &path) {
                Ok(theme) => all.themes.push(theme),
                Err(error) => all.problems.push((name, error.to_string())),
            }
        }
        all
    }
}

fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let named = paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        (is_theme_name(&name) && !BUILT_IN.contains(&name.as_str())).then_some((name, path))
    });
    named.take(MOST_THEMES * 8).collect()
}

fn of_file(name: &str, path: &Path) -> Result<ThemeFile, ConfigError> {
    let text = file::read(path, true)?.ok_or_else(|| ConfigError::Gone(path.to_owned()))?;
    of_text(name, &text).map_err(|wrong| wrong.reported(&text, &path.display().to_string()))
}

pub(super) fn of_text(name: &str, text: &str) -> Result<ThemeFile, Wrong> {
    let document = read::parse(text)?;
    let is_dark = match document.get("base").map(|item| (item.as_str(), item.span())) {
        None | Some((Some("dark"), _)) => true,
        Some((Some("light"), _)) => false,
        Some((_, span)) => return Err(Wrong::new(span, "base is \"dark\" or \"light\"")),
    };
    let usual = Palette::usual(is_dark);
    let mut palette = usual;
    for (key, item) in read::entries(document.as_table()) {
        let wrong = |why: String| Wrong::new(key.span(), format!("{} {why}", short(key.get())));
        let value = item.as_value().ok_or_else(|| wrong("must be a colour, not a section".to_owned()))?;
        if let Some((_, color)) = NAMED.iter().find(|(known, _)| *known == key.get()) {
            *color(&mut palette) = of_value(value).map_err(wrong)?;
            continue;
        }
        match key.get() {
            "base" => {}
            "nodes" => palette.nodes = six(value).map_err(wrong)?,
            "nodes_weak" => palette.nodes_dim = six(value).map_err(wrong)?,
            _ => {
                let known = || NAMED.iter().map(|(name, _)| *name).chain(["base", "nodes", "nodes_weak"]);
                let all = || format!("use one of {}", known().collect::<Vec<_>>().join(", "));
                let hint = hint(key.get(), known(), all);
                return Err(wrong(format!("is not known: {hint}")));
            }
        }
    }
    if palette.bad != usual.bad {
        palette.lost = palette.bad;
    }
    // Shades of a colour of one's own are nobody's choice.
    if palette.accent != usual.accent {
        palette.curve = [palette.accent; 8];
        palette.curve_dim = palette.nodes_dim[0];
    }
    Ok(ThemeFile { name: name.to_owned(), palette, weak: weak(name, &palette, is_dark) })
}

/// A colour of one's own is used however weak it is; this says so.
fn weak(name: &str, palette: &Palette, is_dark: bool) -> Option<String> {
    let all = palette.weak(is_dark);
    let (color, is, least) = all.first()?;
    let more = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
    let background = if is_dark { "dark" } else { "light" };
    Some(format!(
        "theme {name}: {color} has a contrast of {is:.1} : 1 on {background} backgrounds, {least} : 1 is readable{more}"
    ))
}

fn six(value: &Value) -> Result<[Color; 6], String> {
    let list = value.as_array().ok_or("must be a list of six colours")?;
    let colors = list.iter().map(of_value).collect::<Result<Vec<_>, _>>()?;
    colors.try_into().map_err(|_| "must be a list of six colours".to_owned())
}

/// `"#87d787"`, or a number of the 256.
fn of_value(value: &Value) -> Result<Color, String> {
    let wrong = || "must be a colour such as \"#87d787\", or a number from 0 to 255".to_owned();
    if let Some(number) = value.as_integer() {
        return u8::try_from(number).map(Color::Indexed).map_err(|_| wrong());
    }
    let digits = value
        .as_str()
        .and_then(|text| text.strip_prefix('#'))
        .filter(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let part = |at: usize| u8::from_str_radix(digits?.get(at..at + 2)?, 16).ok();
    match (part(0), part(2), part(4)) {
        (Some(red), Some(green), Some(blue)) => Ok(Color::Rgb(red, green, blue)),
        _ => Err(wrong()),
    }
}

/// What a fuzzer gives the reader of themes.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz(text: &str) {
    let _ = of_text("t", text).map_err(|wrong| wrong.reported(text, "t.toml").to_string());
}
