//! The columns of the two tables, by what they hold: which are shown, and in which order, is a choice. How they look is `view`'s.

/// A column of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum LinkColumn {
    Name,
    Netns,
    Kind,
    Owner,
    State,
    Claims,
    Rx,
    Tx,
    Times,
    Pps,
    Mean,
    Wire,
    WireShare,
    Drops,
    Errors,
    Strip,
    Peer,
    Mtu,
    Queues,
}

impl LinkColumn {
    /// Every column with the word that it is chosen by, in the order they usually stand.
    pub const ALL: [(Self, &'static str); 19] = [
        (Self::Name, "name"),
        (Self::Netns, "netns"),
        (Self::Kind, "kind"),
        (Self::Owner, "owner"),
        (Self::State, "state"),
        (Self::Claims, "speed"),
        (Self::Rx, "rx"),
        (Self::Tx, "tx"),
        (Self::Times, "times"),
        (Self::Pps, "pps"),
        (Self::Mean, "mean"),
        (Self::Wire, "wire"),
        (Self::WireShare, "wire_share"),
        (Self::Drops, "drops"),
        (Self::Errors, "errors"),
        (Self::Strip, "strip"),
        (Self::Peer, "peer"),
        (Self::Mtu, "mtu"),
        (Self::Queues, "queues"),
    ];
}

/// A column of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum ThreadColumn {
    Pid,
    Tid,
    Name,
    Role,
    Netns,
    Peer,
    Core,
    Allowed,
    Cpu,
    Moves,
    MovesRate,
    Class,
    Wait,
    Voluntary,
    Involuntary,
    Strip,
}

impl ThreadColumn {
    /// Every column with the word that it is chosen by, in the order they usually stand.
    pub const ALL: [(Self, &'static str); 16] = [
        (Self::Pid, "pid"),
        (Self::Tid, "tid"),
        (Self::Name, "name"),
        (Self::Role, "role"),
        (Self::Netns, "netns"),
        (Self::Peer, "peer"),
        (Self::Core, "core"),
        (Self::Allowed, "allowed"),
        (Self::Cpu, "cpu"),
        (Self::Moves, "migrations"),
        (Self::MovesRate, "migrations_per_s"),
        (Self::Class, "class"),
        (Self::Wait, "wait"),
        (Self::Voluntary, "voluntary"),
        (Self::Involuntary, "involuntary"),
        (Self::Strip, "strip"),
    ];
}
