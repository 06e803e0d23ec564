//! What was not looked at is not denied.

use super::*;
use crate::MachineMetrics;
use crate::flow::Connection;
use std::sync::Arc;
use vnettop_sample::{Drops, KernelCounts, Tracer};

const S: u64 = 1_000_000_000;

fn metrics(state: TracerStage, since_s: Option<u64>) -> TestMetrics {
    let drops = since_s.map(|_| Drops::default());
    let kernel = Some(Arc::new(KernelCounts { drops, ..KernelCounts::default() }));
    let tracer = Some(Tracer { state, since_ns: since_s.map(|since_s| since_s * S) });
    let machine = MachineMetrics { at_ns: 100 * S, tracer, kernel, ..MachineMetrics::default() };
    TestMetrics { machine: Arc::new(machine), ..TestMetrics::default() }
}

#[test]
fn before_the_kernel_is_asked_nothing_is_denied() {
    let looked = |state, since_s| drops(&metrics(state, since_s), [], 5.0);
    assert_eq!(looked(TracerStage::BeingAttached, None), DropsSeen::BeingAttached);
    assert_eq!(looked(TracerStage::Refused, None), DropsSeen::Not);
    assert_eq!(looked(TracerStage::Attached, Some(98)), DropsSeen::For(2), "the figure covers more than that");
    assert_eq!(looked(TracerStage::Attached, Some(95)), DropsSeen::Throughout);
    let of_unknown_path = drops(&metrics(TracerStage::Attached, Some(1)), [&Connection::default()], 5.0);
    assert!(matches!(of_unknown_path, DropsSeen::Beyond(_)), "what it crosses is not known: {of_unknown_path:?}");
}

#[test]
fn what_was_looked_at_is_said_with_its_time() {
    let said = |state, since_s| looked_at(&metrics(state, since_s), 5.0);
    assert!(said(TracerStage::BeingAttached, None).ends_with("what counts drops is being attached"));
    assert_eq!(said(TracerStage::Attached, Some(98)), "the counters of 0 namespaces and 2 s of this kernel's drops");
    assert_eq!(said(TracerStage::Refused, None), "the counters of 0 namespaces");
}
