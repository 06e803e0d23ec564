//! How a report is written, and which end of a file's name asks for it.

use std::path::Path;

/// What a report or a comparison is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum WrittenAs {
    /// Tables for a terminal, without plots.
    Text,
    /// Text for a page, an issue or a wiki; plots are described.
    Markdown,
    /// For a program: one object on one line.
    Json,
    /// One page for a browser that needs nothing else.
    Html,
}

impl WrittenAs {
    /// What the end of a file's name tells; none where it tells nothing.
    #[must_use]
    pub fn by_name(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "json" => Some(Self::Json),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}
