//! Who a link belongs to, as JSON.

use crate::sample::{Owner, OwnerKind};
use serde::Serialize;

/// Null where it is not known.
#[derive(Serialize)]
pub(super) struct BelongsTo<'a> {
    #[serde(rename = "type")]
    kind: OwnerKind,
    name: &'a str,
    id: Option<&'a str>,
    by: &'a str,
    guess: bool,
}

impl<'a> BelongsTo<'a> {
    pub(super) fn of(owner: &'a Owner) -> Self {
        let Owner { kind, name, id, by, guess } = owner;
        Self { kind: *kind, name, id: id.as_deref(), by, guess: *guess }
    }
}
