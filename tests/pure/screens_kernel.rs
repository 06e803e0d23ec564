//! What the kernel itself counts, on the screen: the list of drops, softirq time from entry to exit, cores of a hop.

use crate::world::change::machine;
use crate::world::stage::Stage;
use crate::world::{NETNS, scenes};
use std::sync::Arc;
use vnettop::sample::{DropCount, DropFlow, Drops, Ifindex, KernelCounts, OnRequest, Proto};
use vnettop::state::{Mode, Settings};

/// Freezes the frame under the case's name and size.
fn freeze(case: &str, stage: &Stage, width: u16, height: u16) {
    insta::with_settings!({snapshot_suffix => format!("{width}x{height}"), omit_expression => true}, {
        insta::assert_snapshot!(case, stage.frame(width, height));
    });
}

/// Reason, function, a watched flow's or not, packets.
const ROWS: [(&str, &str, bool, u64); 6] = [
    ("NETFILTER_DROP", "nf_hook_slow", true, 1_238),
    ("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", true, 128),
    ("QDISC_DROP", "__dev_queue_xmit", false, 40_960),
    ("UNHANDLED_PROTO", "__netif_receive_skb_core", false, 77),
    ("BRIDGE_INGRESS_STP_STATE", "br_handle_frame_finish", false, 3),
    ("NOT_SPECIFIED", "\u{2026}", false, 1),
];

/// The counts of a second, so many times over.
fn counts(times: u64, everywhere: bool) -> Arc<KernelCounts> {
    let flow = DropFlow {
        proto: Proto::Udp,
        from: "10.0.0.2:40000".parse().expect("an address"),
        to: "10.0.0.1:5201".parse().expect("an address"),
    };
    let row = |(site, &(reason, function, own, packets)): (u32, &(&str, &str, bool, u64))| DropCount {
        site,
        flow: own.then_some(flow),
        netns: Some(NETNS).filter(|_| site != 5),
        ifindex: Some(Ifindex(site + 1)).filter(|_| site != 5),
        reason: Some(Arc::from(reason)),
        function: Some(Arc::from(function)),
        untracked: false,
        packets: packets * times,
    };
    let rows = |own: bool| {
        let mut rows: Vec<DropCount> = (0..).zip(&ROWS).filter(|(_, row)| row.2 == own).map(row).collect();
        rows.sort_by(|one, other| one.key().cmp(&other.key()));
        rows
    };
    let drops = Drops { flows: rows(true), others: rows(false), everywhere, ..Drops::default() };
    Arc::new(KernelCounts { drops: Some(drops), ..KernelCounts::default() })
}

#[test]
fn every_drop_of_the_machine_by_reason_and_function() {
    let mut stage = Stage::after(3, scenes::bridge());
    let mut metrics = stage.derive();
    machine(&mut metrics, |machine| {
        (machine.kernel, machine.kernel_before) = (Some(counts(3, true)), Some(counts(2, true)));
    });
    stage.state.receive(metrics);
    stage.press("d");
    for (width, height) in [(60, 15), (80, 24), (120, 40)] {
        freeze("drops", &stage, width, height);
    }
    assert!(stage.state.on_request().drops, "while the list is open the whole machine is asked for");
    stage.press("<esc>");
    assert!(!stage.state.on_request().drops, "and no longer");
}

#[test]
fn without_the_kernels_programs_the_list_says_why_it_is_empty() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("d");
    assert!(stage.text(80, 24).contains("the BPF programs are being attached"), "{}", stage.text(80, 24));
    let mut stage = Stage::new(scenes::bridge(), Settings { mode: Mode::Replay, ..Settings::default() });
    stage.tick();
    stage.press("d");
    assert!(stage.text(80, 24).contains("this recording has none"), "{}", stage.text(80, 24));
}

#[test]
fn softirq_time_says_which_of_the_two_it_is() {
    let mut stage = Stage::after(3, scenes::bridge());
    assert!(stage.text(120, 40).contains("softirq sampled"), "sampled at clock ticks unless asked otherwise");
    stage.press("x");
    assert_eq!(stage.state.on_request(), OnRequest { softirqs: true, ..OnRequest::default() }, "the key asks for it");
    let mut metrics = stage.derive();
    machine(&mut metrics, |machine| {
        for core in &mut machine.cores {
            let load = core.load.as_mut().expect("online");
            load.softirqs_exact = Some([0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0]);
        }
    });
    stage.state.receive(metrics);
    let text = stage.text(120, 40);
    assert!(text.contains("softirq measured"), "the title says so:\n{text}");
    assert!(text.contains("75%") || text.contains("75 %"), "and the share is the measured one:\n{text}");
}
