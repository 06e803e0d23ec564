//! Stacks as Linux 6.18 had them, from the innermost function on.

use super::*;
use std::collections::BTreeMap;
use vnettop_sample::{ProfiledFunction, ProfiledStack};

/// The process of the test.
const OWN: u32 = 7;

/// A stretch of a second with these stacks, each of one sample: a process, and its functions; those with `@` before them are of
/// the program.
fn stretch(stacks: &[(u32, &str)]) -> CoreProfile {
    let mut profile = CoreProfile { core: 1, from_ns: 0, to_ns: 1_000_000_000, hz: 499, ..CoreProfile::default() };
    for (pid, names) in stacks {
        let functions = names.split_whitespace().map(|name| {
            let plain = name.trim_start_matches('@');
            let function = ProfiledFunction {
                name: Some(plain.to_owned()),
                module: (name != plain).then(|| "libc.so.6".to_owned()),
                kernel: name == plain,
            };
            profile.functions.push(function);
            u32::try_from(profile.functions.len() - 1).expect("few")
        });
        let functions = functions.collect();
        let program = Some(format!("program{pid}"));
        profile.stacks.push(ProfiledStack { program, pid: *pid, functions, samples: 1, weight: 2_004_008 });
    }
    profile
}

fn stages(stacks: &[(u32, &str)], idle: Option<f64>) -> Vec<StageShare> {
    let own = BTreeSet::from([OWN]);
    let mut fold = Fold::new(&own);
    fold.add(&stretch(stacks));
    fold.stages(idle)
}

/// The stage of one stack.
fn stage(pid: u32, names: &str) -> (CoreStage, Option<String>) {
    let found = stages(&[(pid, names)], None);
    assert_eq!(found.len(), 1, "{names}");
    (found[0].stage, found[0].program.clone())
}

const FORWARDS: &str = "nft_do_chain_ipv4 nf_hook_slow ip_forward __netif_receive_skb_one_core process_backlog __napi_poll \
                        net_rx_action handle_softirqs do_softirq __local_bh_enable_ip __dev_queue_xmit ip_finish_output2 \
                        ip_output ip_send_skb udp_send_skb udp_sendmsg sock_write_iter vfs_write ksys_write do_syscall_64 \
                        entry_SYSCALL_64_after_hwframe @__GI___libc_write";

#[test]
fn the_innermost_function_that_belongs_to_a_stage_decides() {
    let expected = [
        (format!("nft_do_chain {FORWARDS}"), CoreStage::Nft),
        (FORWARDS.split_once("ip_forward").expect("it forwards").1.to_owned(), CoreStage::Softirq),
        ("_copy_from_iter ip_generic_getfrag __ip_append_data udp_sendmsg sock_write_iter".to_owned(), CoreStage::Copy),
        (
            "_raw_spin_unlock_irqrestore tcp_write_xmit __tcp_push_pending_frames tcp_sendmsg_locked".to_owned(),
            CoreStage::Protocol,
        ),
        ("entry_SYSCALL_64_after_hwframe @write".to_owned(), CoreStage::SystemCall),
        ("@iperf_tcp_send @start_thread".to_owned(), CoreStage::Application),
        (
            "csum_partial skb_checksum __skb_checksum_complete tcp_rcv_established tcp_v4_do_rcv".to_owned(),
            CoreStage::Checksum,
        ),
        (
            "__dev_queue_xmit ip_finish_output2 ip_output iptunnel_xmit udp_tunnel_xmit_skb vxlan_xmit_one".to_owned(),
            CoreStage::Link,
        ),
        ("memcpy vxlan_xmit_one vxlan_xmit dev_hard_start_xmit".to_owned(), CoreStage::Tunnel),
        ("finish_task_switch __schedule schedule do_nanosleep".to_owned(), CoreStage::Scheduler),
        ("strange_function".to_owned(), CoreStage::Unknown),
        (String::new(), CoreStage::Application),
    ];
    for (names, expected) in expected {
        assert_eq!(stage(OWN, &names), (expected, None), "{names}");
    }
}

#[test]
fn of_others_there_is_a_name_and_a_share_and_no_more() {
    let other = (CoreStage::Program, Some("program9".to_owned()));
    assert_eq!(stage(9, "@spin @main"), other);
    assert_eq!(
        stage(9, "tcp_sendmsg_locked tcp_sendmsg sock_write_iter do_syscall_64 @write"),
        other,
        "its own traffic too"
    );
    let found = stages(&[(9, "@spin @main")], None);
    assert!(found[0].functions.is_empty(), "what it is made of is not told");
    // A softirq that runs while it does is nobody's.
    let interrupted = "nft_do_chain nf_hook_slow ip_forward net_rx_action handle_softirqs __irq_exit_rcu \
                       sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt @spin";
    assert_eq!(stage(9, interrupted), (CoreStage::Nft, None));
    // Threads of the kernel carry packets on behalf of paths.
    let thread = "chacha_block wg_packet_encrypt_worker process_one_work worker_thread kthread ret_from_fork_asm";
    assert_eq!(stage(50, thread), (CoreStage::Checksum, None));
    let reclaims = "shrink_folio_list kswapd kthread ret_from_fork_asm";
    assert_eq!(stage(50, reclaims), (CoreStage::Program, Some("program50".to_owned())));
}

#[test]
fn the_idle_task_idles_and_receives() {
    assert_eq!(stage(0, "pv_native_safe_halt default_idle do_idle cpu_startup_entry"), (CoreStage::Idle, None));
    let receives = "veth_poll __napi_poll net_rx_action handle_softirqs sysvec_call_function_single do_idle";
    assert_eq!(stage(0, receives), (CoreStage::Link, None));
}

#[test]
fn shares_are_of_the_core_and_add_up_to_one() {
    let stacks = [(OWN, "nft_do_chain"), (OWN, "nft_do_chain"), (9, "@spin"), (0, "do_idle"), (OWN, "strange")];
    for (idle, busy) in [(None, 1.0), (Some(0.5), 0.5)] {
        let found = stages(&stacks, idle);
        let sum: f64 = found.iter().map(|one| one.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert_eq!(found[0].stage, CoreStage::Nft, "the largest first");
        assert!((found[0].share - 0.4 * busy).abs() < 1e-9, "{found:?}");
        let last: Vec<CoreStage> = found.iter().rev().take(2).map(|one| one.stage).collect();
        assert!(last.contains(&CoreStage::Idle) && last.contains(&CoreStage::Unknown), "{last:?}");
    }
}

#[test]
fn many_small_programs_are_one() {
    let all: Vec<(u32, &str)> = (100..150).map(|pid| (pid, "@spin")).collect();
    let found = stages(&all, None);
    assert_eq!(found.len(), 9, "eight by name and the rest");
    let rest = found.iter().find(|one| one.program.is_none()).expect("the rest");
    assert!((rest.share - 42.0 / 50.0).abs() < 1e-9);
}

#[test]
fn a_sentence_names_the_largest_and_stacks_are_text() {
    let own = BTreeSet::from([OWN]);
    let mut track = ProfileTrack::default();
    let profile =
        stretch(&[(OWN, "nft_do_chain nf_hook_slow"), (OWN, "nft_do_chain nf_hook_slow"), (9, "@spin @main")]);
    assert_eq!(
        folded(&profile),
        ["program7;nf_hook_slow_[k];nft_do_chain_[k] 1"; 2]
            .into_iter()
            .chain(["program9;main_[libc.so.6];spin_[libc.so.6] 1"])
            .collect::<Vec<_>>()
    );
    track.event(&Event::Profiled(Box::new(profile)));
    let sample = Sample { at_ns: 1_100_000_000, ..Sample::default() };
    let activity = track.observe(&sample, &own, |_| None).expect("it was looked at");
    assert_eq!(activity.text(), "core 1: 67 % nft, conntrack; 33 % program9");
    assert_eq!(activity.stages[0].functions, [("nft_do_chain".to_owned(), 2.0 / 3.0)]);
    assert_eq!((activity.packets_per_s, activity.samples), (None, 3), "no path is known");
    let late = Sample { at_ns: 9_000_000_000, ..Sample::default() };
    assert_eq!(track.observe(&late, &own, |_| None), None, "nobody looks any more");
}

#[test]
fn stacks_are_added_up_by_stage_and_only_what_is_told_has_functions() {
    let own = BTreeSet::from([OWN]);
    let interrupted = "nft_do_chain net_rx_action handle_softirqs asm_sysvec_apic_timer_interrupt @spin";
    let all = [
        (OWN, "_copy_from_iter tcp_sendmsg_locked @write"),
        (OWN, "_copy_from_iter tcp_sendmsg_locked @write"),
        (9, "@secret @main"),
        (9, interrupted),
        (0, "pv_native_safe_halt do_idle"),
    ];
    let mut stacks = CoreStacks::new(100);
    (0..2).for_each(|_| stacks.add(&stretch(&all), &own));
    assert_eq!(
        stacks.lines(3),
        [
            "core 3;copy;program7;write_[libc.so.6];tcp_sendmsg_locked_[k];_copy_from_iter_[k] 4",
            "core 3;nft, conntrack;asm_sysvec_apic_timer_interrupt_[k];handle_softirqs_[k];net_rx_action_[k];nft_do_chain_[k] 2",
            "core 3;idle;do_idle_[k];pv_native_safe_halt_[k] 2",
            "core 3;other programs;program9 2",
        ]
    );
    let tree = stacks.tree();
    let shares: BTreeMap<CoreStage, u64> = tree.iter().map(|(stage, node)| (*stage, node.sum.samples)).collect();
    assert_eq!(shares[&CoreStage::Copy], 4);
    assert_eq!(tree[&CoreStage::Program].called.len(), 1, "its name");
    // However many there are, so many are kept, and no sample is forgotten.
    let names: Vec<String> = (0..500).map(|nth| format!("strange{nth} @main")).collect();
    let many: Vec<(u32, &str)> = names.iter().map(|names| (OWN, &**names)).collect();
    stacks.add(&stretch(&many), &own);
    assert!(stacks.lines(3).len() <= 100, "{}", stacks.lines(3).len());
    let all: u64 = stacks.tree().values().map(|node| node.sum.samples).sum();
    assert_eq!(all, 510);
}
