//! What the screen may look like: the colour themes there are, those of files among them, and the one to begin with.

use crate::config::{BUILT_IN, Preferences, ThemeFiles, hint, short};
use crate::state::ThemeList;
use crate::ui::{Colors, Palette, is_light, reported_dark};
use std::ffi::OsString;
use std::path::PathBuf;

/// The themes by name, and which is in use at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    themes: Vec<(String, Colors)>,
    at: usize,
    /// What is to be said of the theme in use, or of files that cannot be used.
    pub notice: Option<String>,
    /// The terminal is to be asked for its background: nobody has chosen, it has told nothing, and it is of those that answer.
    pub asks: bool,
    /// It is of a kind that tells where its cursor is.
    pub answers: bool,
}

impl Look {
    /// No colour, where nobody looks.
    #[must_use]
    pub fn plain() -> Self {
        Self { themes: vec![("mono".to_owned(), Colors::None)], at: 0, notice: None, asks: false, answers: false }
    }

    /// The colours of each theme.
    pub fn colors(&self) -> impl Iterator<Item = Colors> {
        self.themes.iter().map(|(_, colors)| *colors)
    }

    /// Whether there is any colour at the start.
    #[must_use]
    pub fn has_color(&self) -> bool {
        self.themes.get(self.at).is_some_and(|(_, colors)| *colors != Colors::None)
    }

    /// The names, for the state.
    #[must_use]
    pub fn list(&self) -> ThemeList {
        let names = self.themes.iter().map(|(name, _)| name.clone()).collect();
        ThemeList { names, at: self.at, changed: false }
    }
}

/// Which themes there are, and the one that was chosen: by the settings, else by `NO_COLOR`, else what suits the terminal.
///
/// # Errors
/// The sentence of a theme that is not there, or cannot be used.
pub fn of(
    preferences: &Preferences,
    folders: &[PathBuf],
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Look, String> {
    let set = |name: &str| env(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
    let (term, colorterm, colorfgbg) = (set("TERM"), set("COLORTERM"), set("COLORFGBG"));
    let files = ThemeFiles::read(folders);
    let has_all = colorterm.as_deref().is_some_and(|value| value == "truecolor" || value == "24bit");
    let shown = |palette: Palette| Colors::Palette(if has_all { palette } else { palette.numbered() });
    let many = Colors::are_many(term.as_deref(), colorterm.as_deref());
    let usual = |is_dark: bool| match Colors::usual(is_dark, many) {
        Colors::Palette(palette) => shown(palette),
        own => own,
    };
    let fixed =
        [("dark", usual(true)), ("light", usual(false)), ("terminal", Colors::Terminal), ("mono", Colors::None)];
    let mut themes: Vec<(String, Colors)> = fixed.map(|(name, colors)| (name.to_owned(), colors)).into();
    themes.extend(files.themes.iter().map(|theme| (theme.name.clone(), shown(theme.palette))));
    let is_auto = preferences.theme == "auto";
    let reported = reported_dark(colorfgbg.as_deref());
    let wanted = match (is_auto, set("NO_COLOR"), reported) {
        (false, ..) => preferences.theme.as_str(),
        (true, Some(_), _) => "mono",
        (true, None, Some(is_dark)) => name_of(is_dark),
        (true, None, None) => "terminal",
    };
    let answers = many || term.as_deref().is_some_and(answers);
    let asks = is_auto && wanted == "terminal" && answers;
    let at = themes.iter().position(|(name, _)| name == wanted);
    let broken = || files.problems.iter().find(|(name, _)| name == wanted).map(|(_, why)| why.clone());
    let Some(at) = at else {
        let names = || BUILT_IN.into_iter().chain(files.themes.iter().map(|theme| theme.name.as_str()));
        let all = || format!("use one of {}", names().collect::<Vec<_>>().join(", "));
        let unknown = || format!("unknown theme '{}': {}", short(wanted), hint(wanted, names(), all));
        return Err(broken().unwrap_or_else(unknown));
    };
    let weak = files.themes.iter().find(|theme| theme.name == wanted).and_then(|theme| theme.weak.clone());
    let notice = weak.or_else(|| files.problems.first().map(|(_, why)| why.clone()));
    Ok(Look { themes, at, notice, asks, answers })
}

/// The theme that suits a background.
#[must_use]
pub fn name_for(background: [u8; 3]) -> &'static str {
    name_of(!is_light(background))
}

fn name_of(is_dark: bool) -> &'static str {
    if is_dark { "dark" } else { "light" }
}

/// A terminal of sixteen colours that knows the question for its background, or does not show it.
fn answers(term: &str) -> bool {
    ["xterm", "rxvt", "screen", "tmux"].iter().any(|family| term.starts_with(family))
}

/// Without UTF-8 in the locale every character of the screen is ASCII.
#[must_use]
pub fn ascii(preferences: &Preferences, env: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name: &&str| env(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    let utf8 = locale.is_some_and(|locale| locale.to_string_lossy().to_lowercase().replace('-', "").contains("utf8"));
    preferences.ascii || !utf8
}
