//! What the lists can be sorted by: the columns whose heads can be clicked.

/// The column that links are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum LinkSort {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum CoreSort {
    Number,
    Softirq,
    Busy,
}

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum ThreadSort {
    Cpu,
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
    /// Every order with the word that it is chosen by.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Name, "name"),
        (Self::Rx, "rx"),
        (Self::Tx, "tx"),
        (Self::Pps, "pps"),
        (Self::Drops, "drops"),
        (Self::Errors, "errors"),
        (Self::Times, "times"),
        (Self::Mean, "mean"),
    ];

    /// The word in the title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Pps => "pps",
            Self::Drops => "drops",
            Self::Errors => "errors",
            Self::Times => "times its speed",
            Self::Mean => "packet size",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Name => Self::Rx,
            Self::Rx => Self::Tx,
            Self::Tx => Self::Pps,
            Self::Pps => Self::Drops,
            Self::Drops => Self::Errors,
            Self::Errors => Self::Times,
            Self::Times => Self::Mean,
            Self::Mean => Self::Name,
        }
    }

    /// The smallest comes first, unless the order is reversed.
    pub(crate) fn ascends(self) -> bool {
        self == Self::Name
    }
}

impl CoreSort {
    /// Every order with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Number, "number"), (Self::Softirq, "softirq"), (Self::Busy, "busy")];

    /// The word in the title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Softirq => "softirq",
            Self::Busy => "busy",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Number => Self::Softirq,
            Self::Softirq => Self::Busy,
            Self::Busy => Self::Number,
        }
    }
}

impl ThreadSort {
    /// Every order with the word that it is chosen by.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Cpu, "cpu"),
        (Self::Moves, "migrations"),
        (Self::Tid, "tid"),
        (Self::Core, "core"),
        (Self::Wait, "wait"),
    ];

    /// The word in the title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Moves => "migrations",
            Self::Tid => "tid",
            Self::Core => "core",
            Self::Wait => "wait",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Cpu => Self::Moves,
            Self::Moves => Self::Tid,
            Self::Tid => Self::Core,
            Self::Core => Self::Wait,
            Self::Wait => Self::Cpu,
        }
    }

    /// The smallest comes first, unless the order is reversed.
    pub(crate) fn ascends(self) -> bool {
        matches!(self, Self::Tid | Self::Core)
    }
}
