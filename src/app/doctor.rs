//! `vnettop doctor`: looks, judges, writes.

use crate::derive::doctor::judge;
use crate::report::doctor;
use crate::source::doctor::{DoctorScope, probe};

/// Looks at this machine once: what there is to say, in lines or as one object, and whether vnettop works here.
#[must_use]
pub fn examine(scope: &DoctorScope, json: bool) -> (String, bool) {
    let facts = probe(scope);
    let diagnosis = judge(&facts);
    let text = if json { doctor::json(&facts, &diagnosis) } else { doctor::text(&facts, &diagnosis) };
    (text, diagnosis.works)
}
