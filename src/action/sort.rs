//! What the lists can be sorted by: the columns whose heads can be clicked. Each is chosen by its word, in the order in which a key goes
//! through them.

use crate::sample::Word;
use strum::{IntoStaticStr, VariantArray};

/// The column that links are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum LinkSort {
    #[default]
    Name,
    Rx,
    Tx,
    Pps,
    Drops,
    Errors,
    Times,
    Mean,
}

/// What cores are sorted by, where they are a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum CoreSort {
    #[default]
    Number,
    Softirq,
    Busy,
}

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum ThreadSort {
    #[default]
    Cpu,
    #[strum(to_string = "migrations")]
    Moves,
    Tid,
    Core,
    Wait,
}

/// A column that a list is to be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the lists")]
pub enum SortColumn {
    Links(LinkSort),
    Threads(ThreadSort),
}

impl LinkSort {
    /// The words in the title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Times => "times its speed",
            Self::Mean => "packet size",
            other => other.word(),
        }
    }

    /// The smallest comes first, unless the order is reversed.
    pub(crate) fn ascends(self) -> bool {
        self == Self::Name
    }
}

impl ThreadSort {
    /// The smallest comes first, unless the order is reversed.
    pub(crate) fn ascends(self) -> bool {
        matches!(self, Self::Tid | Self::Core)
    }
}
