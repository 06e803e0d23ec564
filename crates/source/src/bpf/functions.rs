//! Which function of the kernel an address is in (`/proc/kallsyms`, which needs `CAP_SYSLOG`). The kernel takes a tenth of a
//! second to write that file, so the functions that usually drop packets are looked up once, when the programs are loaded,
//! and any other when it is met; both by the thread that nobody waits for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

/// Functions that usually drop packets, on Linux 5.5 to 6.18.
const USUAL: [&str; 60] = [
    "__allowed_ingress",
    "__br_forward",
    "__dev_queue_xmit",
    "__dev_xmit_skb",
    "__ip_local_out",
    "__neigh_event_send",
    "__netif_receive_skb_core",
    "__udp4_lib_rcv",
    "__udp6_lib_rcv",
    "__udp_enqueue_schedule_skb",
    "__udp_queue_rcv_skb",
    "arp_error_report",
    "br_forward",
    "br_handle_frame",
    "br_handle_frame_finish",
    "br_handle_vlan",
    "dst_discard",
    "dst_discard_out",
    "enqueue_to_backlog",
    "inet6_rtm_getroute",
    "inet_rtm_getroute",
    "inet_sock_destruct",
    "ip6_forward",
    "ip6_input",
    "ip6_rcv_core",
    "ip_defrag",
    "ip_error",
    "ip_finish_output2",
    "ip_forward",
    "ip_frag_reasm",
    "ip_local_deliver",
    "ip_output",
    "ip_rcv",
    "ip_rcv_core",
    "ip_rcv_finish",
    "ip_rcv_finish_core",
    "kfree_skb",
    "kfree_skb_list",
    "kfree_skb_list_reason",
    "kfree_skb_reason",
    "neigh_destroy",
    "neigh_invalidate",
    "nf_hook_slow",
    "nft_do_chain",
    "qdisc_tree_reduce_backlog",
    "sk_stream_kill_queues",
    "skb_queue_purge",
    "skb_queue_purge_reason",
    "skb_release_data",
    "sock_queue_rcv_skb_reason",
    "tcp_data_queue",
    "tcp_v4_rcv",
    "tcp_v6_rcv",
    "udp_destruct_common",
    "udp_destruct_sock",
    "udp_queue_rcv_one_skb",
    "udp_read_skb",
    "udp_recvmsg",
    "udpv6_queue_rcv_one_skb",
    "udpv6_recvmsg",
];

/// The usual functions of the running kernel: begin → end and name.
#[derive(Debug, Clone, Default)]
pub struct UsualFunctions {
    ranges: BTreeMap<u64, (u64, Arc<str>)>,
}

impl UsualFunctions {
    pub(super) fn read(proc: &Path) -> Self {
        let Ok(file) = File::open(proc.join("kallsyms")) else { return Self::default() };
        let (mut begins, mut usual) = (Vec::new(), Vec::new());
        each(BufReader::with_capacity(1 << 16, file), |at, name, _| {
            begins.push(at);
            if let Ok(which) = USUAL.binary_search(&name) {
                usual.push((at, USUAL[which]));
            }
        });
        begins.sort_unstable();
        let range = |(at, name): (u64, &'static str)| {
            let end = begins.get(begins.partition_point(|&other| other <= at)).copied().unwrap_or(u64::MAX);
            (at, (end, Arc::from(name)))
        };
        Self { ranges: usual.into_iter().map(range).collect() }
    }

    /// Where the pieces of the function are that frees a packet and says who asked it to: begin and end of each.
    pub(super) fn freeing(&self) -> impl Iterator<Item = [u64; 2]> {
        let is_freeing = |name: &str| matches!(name, "kfree_skb" | "kfree_skb_reason");
        self.ranges.iter().filter(move |(_, (_, name))| is_freeing(name)).map(|(&begin, &(end, _))| [begin, end])
    }

    /// The function of this address, if it is one of them.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<Arc<str>> {
        let (_, (end, name)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then(|| Arc::clone(name))
    }
}

/// The functions of these addresses; none where the kernel does not say.
pub(super) fn find(proc: &Path, addresses: Vec<u64>) -> Vec<(u64, Option<String>)> {
    let file = File::open(proc.join("kallsyms"));
    let mut nearest: Vec<(u64, Option<(u64, String)>)> = addresses.into_iter().map(|at| (at, None)).collect();
    if let Ok(file) = file {
        search(BufReader::with_capacity(1 << 16, file), &mut nearest);
    }
    nearest.into_iter().map(|(at, found)| (at, found.map(|(_, name)| name))).collect()
}

/// Takes for each address the last function that begins at or before it.
fn search(lines: impl BufRead, nearest: &mut [(u64, Option<(u64, String)>)]) {
    each(lines, |begins, name, _| {
        for (at, found) in nearest.iter_mut() {
            if begins <= *at && found.as_ref().is_none_or(|(before, _)| *before < begins) {
                *found = Some((begins, name.to_owned()));
            }
        }
    });
}

/// Calls `with` for each function, with the module that it is of: `ffffffff81a0b2c0 T nf_hook_slow [module]`.
pub(crate) fn each(mut lines: impl BufRead, mut with: impl FnMut(u64, &str, Option<&str>)) {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if let Some((begins, name, module)) = symbol(&line) {
            with(begins, name, module);
        }
        line.clear();
    }
}

/// Where a function begins, its name, and its module; none for data, and where the kernel keeps addresses to itself.
fn symbol(line: &[u8]) -> Option<(u64, &str, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let begins = u64::from_str_radix(words.next()?, 16).ok().filter(|&at| at != 0)?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    // The compiler's copies of a function are the function.
    let name = words.next()?.split('.').next()?;
    let module = words.next().map(|module| module.trim_matches(['[', ']']));
    is_code.then_some((begins, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let text = "0000000000001000 T first\n0000000000003000 t third.isra.0\n0000000000002000 T second [module]\n\
                    0000000000002100 d data\nrubbish\n\n";
        let mut nearest = [0x1000, 0x10ff, 0x2200, 0x9000, 0xfff].map(|at| (at, None));
        search(text.as_bytes(), &mut nearest);
        let names = nearest.map(|(_, found)| found.map(|(_, name)| name));
        let expected = [Some("first"), Some("first"), Some("second"), Some("third"), None];
        assert_eq!(names.each_ref().map(Option::as_deref), expected, "the order of the lines does not matter");
        let mut hidden = [(0x1000, None)];
        search(&b"0000000000000000 T first\n"[..], &mut hidden);
        assert_eq!(hidden[0].1, None, "a kernel that hides its addresses names nothing");
    }

    #[test]
    fn the_usual_functions_end_where_the_next_one_begins() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let text = "1000 T before\n2000 T nf_hook_slow\n2080 t after\n3000 T tcp_v4_rcv\n";
        std::fs::write(tree.path().join("kallsyms"), text).expect("writable");
        let usual = UsualFunctions::read(tree.path());
        let name = |at| usual.name(at);
        assert_eq!(name(0x207f).as_deref(), Some("nf_hook_slow"), "up to its last byte");
        assert_eq!((name(0x2080), name(0x1000)), (None, None), "others are looked up when they are met");
        assert!(USUAL.is_sorted(), "the list is searched by halves");
    }
}
