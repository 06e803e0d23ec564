//! On which cores the packets of a flow are handled at each hop: counted there while somebody looks, and else as far as the
//! settings tell.
//!
//! A virtual link hands a packet on within the softirq of the core that sent it (`veth_xmit` → this core's backlog), so
//! every hop runs where the sender's thread does, until something says otherwise: RPS, a NAPI that has a thread of its
//! own, or a device whose interrupts go to other cores. Acknowledgements that arrive may make the receiver's core send a part
//! (measured: 86 to 2). What is not known is unknown from there on, with the reason.

use crate::TestMetrics;
use crate::flow::Connection;
use vnettop_sample::{CoreSet, FlowPath, Hop, HopBy, HopWay, Interrupts, Kind, LinkFacts, LinkKey, Steering, row_of};

/// From this share of a core on a thread works.
const WORKS: f64 = 0.02;
/// From this share of a hop's packets on a core handles them.
const LEAST_SHARE: f64 = 0.02;

/// The cores of one hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Softirq {
    /// Each packet is handled on one of these.
    pub cores: CoreSet,
    /// What says so.
    pub by: SoftirqBy,
}

/// What puts a hop's packets onto its cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SoftirqBy {
    /// Counted there (`netif_receive_skb`, `net_dev_start_xmit`).
    Measured,
    /// The cores that the sender's threads ran on, of those that handled packets.
    Sender,
    /// `rps_cpus` of the link or of one before it.
    Rps,
    /// The thread of a NAPI.
    NapiThread,
    /// The device that it comes in by, of this hop or one before it.
    Interrupt,
}

/// Why the cores of a hop are not known; the link by its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each is a sentence")]
pub enum UnknownCores {
    #[error("the flow's source is not visible")]
    SourceHidden,
    #[error("the sender is not a watched process")]
    SenderUnwatched,
    #[error("no thread of the sender works on a core that handles packets")]
    SenderAtRest,
    #[error("the link is not listed: it is gone, or its namespace is not selected (--netns)")]
    LinkNotListed,
    #[error("a proxy's threads forward it")]
    Proxy,
    #[error("only Open vSwitch knows where it is handled")]
    OpenVswitch,
    #[error("the program that holds {0} handles it")]
    Program(String),
    #[error("link kind {0}: cores unknown, --hop-cores counts them")]
    Kind(String),
    #[error("the link's RPS and NAPI settings cannot be read")]
    SettingsUnread,
    #[error("the core that {link} interrupts is not known{}", why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Interrupt { link: String, why: Option<String> },
    #[error("{0} has threaded NAPI, which may not take these packets")]
    NapiMayNotTakeIt(String),
    #[error("its NAPI has threads, and this kernel does not say which")]
    NapiThreads,
    #[error("RFS may hand what comes to {0} to the core of the thread that reads it")]
    Rfs(String),
    #[error("RPS of {0} may not apply: the link below it takes the packets")]
    RpsBelow(String),
}

/// The cores of a process's threads that work; also of one that serves others too, whose threads are nobody's own.
pub(crate) fn cores_of(metrics: &TestMetrics, pid: u32) -> CoreSet {
    let works = |share: Option<f64>| share.is_some_and(|share| share >= WORKS);
    let all = metrics.machine.threads.iter();
    let threads = all.filter(|thread| thread.sample.id.pid == pid && works(thread.cpu));
    threads.map(|thread| thread.sample.core).collect()
}

/// One a hop, in their order.
pub(super) fn all(
    metrics: &TestMetrics,
    connection: &Connection,
    path: &FlowPath,
) -> Vec<Result<Softirq, UnknownCores>> {
    let settings = by_settings(metrics, connection, path);
    path.hops.iter().zip(settings).map(|(hop, implied)| measured(metrics, path, hop).map_or(implied, Ok)).collect()
}

/// One a hop, as far as the settings tell, whatever was counted.
pub(crate) fn by_settings(
    metrics: &TestMetrics,
    connection: &Connection,
    path: &FlowPath,
) -> Vec<Result<Softirq, UnknownCores>> {
    let mut at = sender(metrics, connection, path);
    let mut hops = Vec::with_capacity(path.hops.len());
    let mut before = None;
    for hop in &path.hops {
        at = next(metrics, before, hop, at);
        hops.push(at.clone());
        before = Some(hop);
    }
    hops
}

/// The cores that handled the flow's packets at the hop, or all packets there where it is not told apart, as counted last; none where that was not asked for, or none came.
fn measured(metrics: &TestMetrics, path: &FlowPath, hop: &Hop) -> Option<Softirq> {
    if let Some(own) = super::flow_at(metrics, path, hop) {
        return Some(Softirq { cores: own.cores(), by: SoftirqBy::Measured });
    }
    let counted =
        metrics.machine.kernel.as_ref()?.hops.iter().find(|one| one.link == hop.link && one.way == hop.way)?;
    let all: u64 = counted.cores.iter().map(|(_, packets)| packets).sum();
    // A neighbour's question now and then is no core of the flow's.
    let handles = |&&(_, packets): &&(u32, u64)| packets as f64 >= LEAST_SHARE * all as f64;
    let cores: CoreSet = counted.cores.iter().filter(handles).map(|(core, _)| *core).collect();
    (!cores.is_empty()).then_some(Softirq { cores, by: SoftirqBy::Measured })
}

/// Where the packets begin.
fn sender(metrics: &TestMetrics, connection: &Connection, path: &FlowPath) -> Result<Softirq, UnknownCores> {
    if path.netns == 0 {
        return Err(UnknownCores::SourceHidden);
    }
    let pid = connection.from.pid.ok_or(UnknownCores::SenderUnwatched)?;
    let rate = |core: u32| metrics.machine.core(core)?.load?.softnet_processed_per_s;
    let handles = |&core: &u32| rate(core).is_some_and(|rate| rate > 0.0);
    let cores: CoreSet = cores_of(metrics, pid).iter().filter(handles).collect();
    if cores.is_empty() {
        return Err(UnknownCores::SenderAtRest);
    }
    Ok(Softirq { cores, by: SoftirqBy::Sender })
}

fn next(
    metrics: &TestMetrics,
    before: Option<&Hop>,
    hop: &Hop,
    at: Result<Softirq, UnknownCores>,
) -> Result<Softirq, UnknownCores> {
    let link = &*metrics.machine.link(hop.link).ok_or(UnknownCores::LinkNotListed)?.facts;
    let at = if hop.by == HopBy::Proxy { Err(UnknownCores::Proxy) } else { at };
    match hop.way {
        _ if hop.by == HopBy::Local => {}
        HopWay::Received => {}
        HopWay::Sent | HopWay::Passed => return at.and_then(|at| handed_on(link).map(|()| at)),
    }
    let Some(settings) = steering(metrics, hop.link) else {
        return Err(UnknownCores::SettingsUnread);
    };
    let at = if takes_by_thread(metrics, before, link, settings)? {
        Ok(threads(settings)?)
    } else {
        received(link, settings, at)
    };
    spread(metrics, link, settings, at)
}

/// The settings of a link.
pub(crate) fn steering(metrics: &TestMetrics, link: LinkKey) -> Option<&Steering> {
    row_of(&metrics.machine.facts.steering, &link, |settings| settings.link)
}

/// The packets arrive on another core than they were sent on only where a device interrupts or a program writes them.
fn received(link: &LinkFacts, settings: &Steering, at: Result<Softirq, UnknownCores>) -> Result<Softirq, UnknownCores> {
    match (&link.kind, &settings.interrupts) {
        (Kind::Physical | Kind::Virtio, Some(Interrupts::Cores(cores))) => {
            Ok(Softirq { cores: cores.clone(), by: SoftirqBy::Interrupt })
        }
        (Kind::Physical | Kind::Virtio, unknown) => {
            let why = unknown.as_ref().and_then(|unknown| match unknown {
                Interrupts::Unknown(why) => Some(why.clone()),
                Interrupts::Cores(_) => None,
            });
            Err(UnknownCores::Interrupt { link: link.name.clone(), why })
        }
        _ => at.and_then(|at| handed_on(link).map(|()| at)),
    }
}

/// Whether a kind of link hands packets on within the softirq, or the call, that gave it them.
fn handed_on(link: &LinkFacts) -> Result<(), UnknownCores> {
    const OTHERS: [&str; 6] = ["geneve", "gre", "gretap", "ip6gre", "ipip", "sit"];
    match &link.kind {
        _ if link.ifindex.kernel().is_none() => Err(UnknownCores::OpenVswitch),
        Kind::Tun | Kind::Tap => Err(UnknownCores::Program(link.name.clone())),
        Kind::Other(kind) if OTHERS.contains(&kind.as_str()) => Ok(()),
        kind @ (Kind::Team | Kind::Macsec | Kind::Ipvtap | Kind::Wireguard | Kind::Ifb | Kind::Other(_)) => {
            Err(UnknownCores::Kind(kind.word().to_owned()))
        }
        _ => Ok(()),
    }
}

/// Whether threads of its NAPI take what comes. Those of a veth do where its own NAPI does: it has one with GRO or XDP, and
/// leaves packets to it that the sending end could not put together, because its TSO is off (`veth_xmit`).
fn takes_by_thread(
    metrics: &TestMetrics,
    before: Option<&Hop>,
    link: &LinkFacts,
    settings: &Steering,
) -> Result<bool, UnknownCores> {
    if !settings.threaded && settings.napi.is_empty() {
        return Ok(false);
    }
    let offloads = before.and_then(|before| super::offloads(metrics, before.link));
    match (&link.kind, offloads) {
        (Kind::Physical | Kind::Virtio, _) => Ok(true),
        (Kind::Veth, Some(sends)) => Ok(!sends.tso && !settings.napi.is_empty()),
        _ => Err(UnknownCores::NapiMayNotTakeIt(link.name.clone())),
    }
}

fn threads(settings: &Steering) -> Result<Softirq, UnknownCores> {
    let cores: CoreSet = settings.napi.iter().map(|thread| thread.core).collect();
    if cores.is_empty() {
        return Err(UnknownCores::NapiThreads);
    }
    Ok(Softirq { cores, by: SoftirqBy::NapiThread })
}

/// RPS hands each flow to one core of the mask of its receive queue, which may be any. Between the ends of a pair XPS of
/// the sender's core does not tell it: a socket stays with the queue that it sent by first, wherever its thread moves
/// (measured with UDP), and what is sent by queue 2 comes in by queue 1 or 2, as the kernel's age has it (`veth_xmit`).
fn spread(
    metrics: &TestMetrics,
    link: &LinkFacts,
    settings: &Steering,
    at: Result<Softirq, UnknownCores>,
) -> Result<Softirq, UnknownCores> {
    let online = metrics.machine.facts.topology.online();
    let masks: Vec<CoreSet> = settings.rps.iter().map(|queue| queue.intersection(&online)).collect();
    let spreads = masks.iter().any(|mask| !mask.is_empty());
    if settings.rfs {
        return Err(UnknownCores::Rfs(link.name.clone()));
    }
    if !spreads {
        return at;
    }
    if matches!(link.kind, Kind::Vlan | Kind::Macvlan | Kind::Macvtap | Kind::Ipvlan) {
        return Err(UnknownCores::RpsBelow(link.name.clone()));
    }
    let mut cores: CoreSet = masks.iter().flat_map(CoreSet::iter).collect();
    if masks.iter().any(CoreSet::is_empty) {
        at?.cores.iter().for_each(|core| cores.insert(core));
    }
    Ok(Softirq { cores, by: SoftirqBy::Rps })
}
