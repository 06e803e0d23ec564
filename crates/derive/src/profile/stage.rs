//! The stages that a packet passes on a core, and which functions belong to which. The table holds beginnings of names, in the order of
//! the alphabet; the longest that fits decides. A function of many callers (a lock, an allocation, `memcpy`) has no row: it
//! belongs to whoever called it.

mod table;

use vnettop_sample::ProfiledFunction;

/// What a core does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum CoreStage {
    /// Code of the test's own programs.
    Application,
    /// Payload between program and kernel.
    Copy,
    /// Calls from program to kernel and back, and what each costs whatever it carries: descriptors, polling, a socket's lock.
    SystemCall,
    /// TCP, UDP, IP: sockets, segments, routes, neighbours, the buffers of packets.
    Protocol,
    /// Packets cut in software, or put together.
    Segmentation,
    /// Encryption and checksums.
    Checksum,
    /// Queues of links, and filters there.
    Qdisc,
    /// Bridges and Open vSwitch.
    Bridge,
    /// Rules and connection tracking.
    Nft,
    /// Packets in packets: vxlan, geneve, gre, wireguard, xfrm.
    Tunnel,
    /// To and from a program that is a link: tun, tap, vhost.
    Tun,
    /// The links themselves: veth, virtio, cards.
    Link,
    /// Softirqs and interrupts, and packets between links and protocols.
    Softirq,
    /// Threads that are woken, and change.
    Scheduler,
    /// BPF programs: XDP, filters, and vnettop's own.
    Bpf,
    /// Nothing.
    Idle,
    /// Another program.
    Program,
    /// In functions of none of these.
    Unknown,
}

impl CoreStage {
    /// For people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Copy => "copy",
            Self::SystemCall => "system calls",
            Self::Protocol => "TCP, UDP, IP",
            Self::Segmentation => "segmentation",
            Self::Checksum => "checksums, crypto",
            Self::Qdisc => "qdisc",
            Self::Bridge => "bridge",
            Self::Nft => "nft, conntrack",
            Self::Tunnel => "tunnels",
            Self::Tun => "tun",
            Self::Link => "links",
            Self::Softirq => "softirq handling",
            Self::Scheduler => "scheduler",
            Self::Bpf => "BPF programs",
            Self::Idle => "idle",
            Self::Program => "other programs",
            Self::Unknown => "not known",
        }
    }

    /// It is work on the packets of a path, which a packet can be said to cost.
    #[must_use]
    pub fn is_of_packets(self) -> bool {
        !matches!(self, Self::Idle | Self::Program | Self::Unknown)
    }
}

/// Modules of the kernel all of whose functions are of one stage.
const MODULES: &[(&str, CoreStage)] = &[
    ("act_mirred", CoreStage::Qdisc),
    ("aesni_intel", CoreStage::Checksum),
    ("bpf", CoreStage::Bpf),
    ("br_netfilter", CoreStage::Nft),
    ("bridge", CoreStage::Bridge),
    ("geneve", CoreStage::Tunnel),
    ("ip_gre", CoreStage::Tunnel),
    ("ip_tables", CoreStage::Nft),
    ("ip_tunnel", CoreStage::Tunnel),
    ("iptable_filter", CoreStage::Nft),
    ("nf_conntrack", CoreStage::Nft),
    ("nf_nat", CoreStage::Nft),
    ("nf_tables", CoreStage::Nft),
    ("openvswitch", CoreStage::Bridge),
    ("sch_cake", CoreStage::Qdisc),
    ("sch_fq", CoreStage::Qdisc),
    ("sch_fq_codel", CoreStage::Qdisc),
    ("sch_htb", CoreStage::Qdisc),
    ("sch_netem", CoreStage::Qdisc),
    ("sch_tbf", CoreStage::Qdisc),
    ("tap", CoreStage::Tun),
    ("tun", CoreStage::Tun),
    ("veth", CoreStage::Link),
    ("vhost", CoreStage::Tun),
    ("vhost_net", CoreStage::Tun),
    ("virtio_net", CoreStage::Link),
    ("vxlan", CoreStage::Tunnel),
    ("wireguard", CoreStage::Tunnel),
    ("x_tables", CoreStage::Nft),
];

/// The stage of a function of the kernel; none for one that belongs to its caller.
#[must_use]
pub fn of_function(function: &ProfiledFunction) -> Option<CoreStage> {
    let by_name = function.name.as_deref().and_then(of_name);
    let by_module = || {
        let module = function.module.as_deref()?;
        MODULES.binary_search_by_key(&module, |(name, _)| name).ok().map(|at| MODULES[at].1)
    };
    // A module's name says more than that of a function, which may be that of any other.
    by_module().or(by_name)
}

/// By the longest beginning that is in the table.
fn of_name(name: &str) -> Option<CoreStage> {
    let ends = (1..=name.len()).rev().filter(|&end| name.is_char_boundary(end));
    let found = ends.filter_map(|end| table::FUNCTIONS.binary_search_by_key(&&name[..end], |(begin, _)| begin).ok());
    found.map(|at| table::FUNCTIONS[at].1).next()
}

/// It is where an interrupt or a softirq begins: what is within is on nobody's behalf.
#[must_use]
pub fn is_interrupt(function: &ProfiledFunction) -> bool {
    const ENTRIES: [&str; 11] = [
        "__do_softirq",
        "__softirqentry_text_start",
        "asm_common_interrupt",
        "asm_sysvec_",
        "common_interrupt",
        "do_softirq",
        "el0_interrupt",
        "el1_interrupt",
        "el1h_64_irq",
        "handle_softirqs",
        "sysvec_",
    ];
    let is_one = |name: &str| ENTRIES.iter().any(|entry| name.starts_with(entry));
    function.kernel && function.name.as_deref().is_some_and(is_one)
}

/// It is where the kernel's own threads begin.
#[must_use]
pub fn is_kernel_thread(function: &ProfiledFunction) -> bool {
    function.kernel
        && matches!(function.name.as_deref(), Some("kthread" | "ret_from_fork" | "ret_from_fork_asm" | "vhost_task_fn"))
}

#[cfg(test)]
mod tests {
    use super::table::FUNCTIONS;
    use super::*;

    fn stage(name: &str, module: Option<&str>) -> Option<CoreStage> {
        let (name, module) = (Some(name.to_owned()), module.map(str::to_owned));
        of_function(&ProfiledFunction { name, module, kernel: true })
    }

    #[test]
    fn the_longest_beginning_decides() {
        assert!(FUNCTIONS.is_sorted_by(|one, other| one.0 < other.0), "the tables are searched by halves");
        assert!(MODULES.is_sorted_by(|one, other| one.0 < other.0));
        let expected = [
            ("ip_forward", CoreStage::Protocol),
            ("ip_tunnel_xmit", CoreStage::Tunnel),
            ("udp_tunnel_xmit_skb", CoreStage::Tunnel),
            ("tcp_gso_segment", CoreStage::Segmentation),
            ("skb_checksum_help", CoreStage::Checksum),
            ("skb_copy_datagram_iter", CoreStage::Copy),
            ("skb_release_data", CoreStage::Protocol),
            ("sock_write_iter", CoreStage::SystemCall),
            ("sock_def_readable", CoreStage::Scheduler),
            ("nft_do_chain", CoreStage::Nft),
            ("nf_ip_checksum", CoreStage::Checksum),
            ("br_handle_frame", CoreStage::Bridge),
            ("br_nf_pre_routing", CoreStage::Nft),
            ("__dev_queue_xmit", CoreStage::Link),
            ("pv_native_safe_halt", CoreStage::Idle),
        ];
        for (name, expected) in expected {
            assert_eq!(stage(name, None), Some(expected), "{name}");
        }
        assert_eq!(stage("memcpy", None), None, "it belongs to its caller");
        // Also how an interrupt ends, or a system call.
        assert_eq!(
            ["irqentry_exit_to_user_mode", "exit_to_user_mode_prepare"].map(|name| stage(name, None)),
            [None; 2]
        );
        assert_eq!(stage("fdb_find_rcu", Some("bridge")), Some(CoreStage::Bridge), "by its module");
        assert_eq!(stage("read", Some("veth")), Some(CoreStage::Link));
    }
}
