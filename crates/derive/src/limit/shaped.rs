//! A qdisc that holds packets back because its rate is reached.

use super::lost::LOST_SEGMENTS_PER_S;
use super::scene::{HoldingQdisc, Scene};
use super::{Limit, LimitKind};
use crate::figure::{Unit, rate, speed};
use crate::losses::LossPlace;

/// How often a qdisc held a packet back for each that it let pass, and share of the looks at which some waited.
const HELD: f64 = 0.05;
const HELD_WAITS: f64 = 0.5;

/// The slowest of those on the path.
pub(super) fn held(scene: &Scene) -> Option<Limit> {
    let holds = |held: &&HoldingQdisc| held.times >= HELD && held.waits >= HELD_WAITS;
    let held = scene.held.iter().filter(holds).min_by(|one, other| one.bits_per_s.total_cmp(&other.bits_per_s))?;
    let lost =
        scene.losses_per_s.first().filter(|lost| lost.place == LossPlace::Qdisc && lost.packets >= LOST_SEGMENTS_PER_S);
    let dropped = lost.map_or_else(String::new, |lost| format!(", {} packets/s dropped", rate(lost.packets)));
    // One unit for both.
    let at = held.set_bits_per_s.map_or_else(
        || speed(held.bits_per_s),
        |set| {
            // Far below it the figure would be 0 in its unit.
            let held_at = if held.bits_per_s < 0.1 * set {
                speed(held.bits_per_s)
            } else {
                Unit::of(set).figure(held.bits_per_s)
            };
            format!("{held_at} of its {}", speed(set))
        },
    );
    let text = format!("shaping: the qdisc {} holds packets back at {at}{dropped}", held.name);
    let numbers = vec![("bits_per_s", held.bits_per_s), ("held", held.times), ("waits", held.waits)];
    Some(Limit::new(LimitKind::Qdisc, text, numbers).named(&held.name))
}
