//! The columns of the two tables, by what they hold: which are shown, and in which order, is a choice, made by their words; they are declared in
//! the order in which they usually stand. How they look is `view`'s.

/// A column of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum LinkColumn {
    Name,
    Netns,
    Kind,
    Owner,
    State,
    #[strum(to_string = "speed")]
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

/// A column of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    #[strum(to_string = "migrations")]
    Moves,
    #[strum(to_string = "migrations_per_s")]
    MovesRate,
    Class,
    Wait,
    Voluntary,
    Involuntary,
    Strip,
}
