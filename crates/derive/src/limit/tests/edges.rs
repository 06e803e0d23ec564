//! When another limit is shown.

use crate::limit::{Limit, LimitKind, LimitTrack};

#[test]
fn what_stands_on_an_edge_does_not_flicker() {
    let limit = |kind| Limit::new(kind, String::new(), Vec::new());
    let mut track = LimitTrack::default();
    let mut reported = |kind, is_whole| {
        track.settle_on(limit(kind), is_whole);
        track.shown.as_ref().map(|shown| shown.kind)
    };
    assert_eq!(reported(LimitKind::Nothing, false), Some(LimitKind::Nothing), "the first");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Nothing), "once");
    assert_eq!(reported(LimitKind::Nothing, false), Some(LimitKind::Nothing), "and over");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Nothing), "once again");
    assert_eq!(reported(LimitKind::Loss, false), Some(LimitKind::Loss), "twice in a row");
    assert_eq!(reported(LimitKind::Quota, true), Some(LimitKind::Quota), "a whole second of its own");
}
