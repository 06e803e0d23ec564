//! `vnettop doctor`: looks, judges, writes.

use crate::derive::doctor::judge;
use crate::report::doctor;
use crate::source::doctor::{DoctorScope, probe};

/// What there is to say.
#[derive(Debug)]
pub struct Examination {
    /// Lines, or one object.
    pub text: String,
    /// Nothing is missing that vnettop cannot do without.
    pub works: bool,
}

/// Looks at this machine once.
#[must_use]
pub fn examine(scope: &DoctorScope, json: bool) -> Examination {
    let facts = probe(scope);
    let diagnosis = judge(&facts);
    let text = if json { doctor::json(&facts, &diagnosis) } else { doctor::text(&facts, &diagnosis) };
    Examination { text, works: diagnosis.works }
}
