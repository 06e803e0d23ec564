//! Affinity masks that something else than vnettop changed: told, not fought.

use super::figure::count;
use super::{Diagnostic, LintInput};
use crate::sample::Side;

/// The newest change, an undone pin before any other.
pub(super) fn changed(scene: &LintInput<'_>) -> Option<Diagnostic> {
    let changes = scene.inquiry.mask_changes();
    let change = changes.iter().max_by_key(|change| (change.was_pin, change.at_ns))?;
    let what = if change.was_pin { "undid the pin of" } else { "changed the affinity of" };
    let others = match changes.len() - 1 {
        0 => String::new(),
        1 => "; 1 more mask changed".to_owned(),
        more => format!("; {more} more masks changed"),
    };
    // Seen with every version: a server resets its mask after a test whose client asked for `-A n,m`.
    let who = if change.name == "iperf3" && change.side == Some(Side::Server) {
        " (an iperf3 server does it after a client's -A n,m)"
    } else {
        ""
    };
    let text = format!(
        "another process {what} thread {}: cores {} → {}{who}{others}",
        change.thread.tid, change.from, change.to,
    );
    let pins = changes.iter().filter(|change| change.was_pin).count();
    Some(Diagnostic::new(text, [("masks", count(changes.len())), ("pins_undone", count(pins))]))
}
