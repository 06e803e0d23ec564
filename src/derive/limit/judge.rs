//! Which of everything that is seen holds the test back. It goes from what is certain to what is left over:
//!
//! 1. A ceiling that somebody set and that is reached: what was asked for, a pacing rate, a link's real speed. No chance brings
//!    a rate to just that figure, and nothing else would make the test faster.
//! 2. A CPU quota that is used up: while a thread is stopped no core looks full, and all windows look as they like.
//! 3. Lost datagrams: UDP does not slow down, so what is lost is what is missing, however busy the sender is. Where a full core
//!    is why they are lost, that core.
//! 4. A core that is full. It makes windows full and buffers empty at both of its sides, so it goes before them.
//! 5. A qdisc that holds packets back: what waits there fills windows and buffers too.
//! 6. The receiver's window and the sender's buffer, whichever TCP waited for longer.
//! 7. Nothing that arrives at all; lost segments, which is why a congestion window is small; then that window. Datagrams that
//!    are missing, no counter tells where.
//! 8. A sender that has no more to send. TCP says so too where its program is too slow for want of a core, so it comes late.
//! 9. Nothing.

use super::cores;
use super::scene::{Core, HoldingQdisc, Scene, Thread};
use super::{Limit, LimitKind};
use crate::derive::finding::figure::{bytes, percent, rate, speed};
use crate::derive::finding::loss::place_alone;
use crate::derive::losses::{Loss, LossPlace};
use crate::sample::{Proto, Word};

/// As close as this to a ceiling is at it.
const ASKED: f64 = 0.97;
/// A paced rate has the packets' headers in it, a link's speed what stands between them.
const PACED: f64 = 0.88;
const CLAIMED: f64 = 0.95;
/// Share of its periods in which a quota was used up.
const THROTTLED: f64 = 0.3;
/// Lost datagrams, share of those sent; or a second, where that is not known.
const LOST: f64 = 0.01;
const LOST_PER_S: f64 = 10.0;
/// Datagrams that do not arrive where no place is known, share of those sent: both are counted at slightly different instants.
const MISSING: f64 = 0.05;
/// Fewer lost segments a second are none, where it is not known how fast such losses let TCP be.
const LOST_SEGMENTS_PER_S: f64 = 1.0;
/// From this share on of what TCP can do with such losses they are what keeps it from more.
const REACHED: f64 = 0.3;
/// How often a qdisc held a packet back for each that it let pass, and share of the looks at which some waited.
const HELD: f64 = 0.05;
const HELD_WAITS: f64 = 0.5;
/// Share of the time that TCP waited for a window or a buffer. While what fills the window is on its way out, and while a paced
/// sender waits for its turn, that does not count: a window that is always full is seen for 0.4 to 1 of the time.
const WAITED: f64 = 0.25;
/// And for the buffer where TCP had no more to send: only a full buffer makes a program wait that would send more.
const WAITED_IDLE: f64 = 0.05;
/// Share of the time in which TCP has something to send, where a window of its own may hold it back.
const BUSY: f64 = 0.5;
/// Share of the looks at which TCP had no more to send, and of the time in which it had nothing to do.
const NO_MORE: f64 = 0.5;
const HAS_NOTHING: f64 = 0.3;
/// Share of the congestion window that is under way where it is full.
const UNDER_WAY: f64 = 0.75;

/// What holds the test back.
pub(super) fn judge(scene: &Scene) -> Limit {
    let order = [
        asked,
        paced,
        claimed,
        quota,
        lost_datagrams,
        cores::full,
        held,
        window,
        stalled,
        lost_segments,
        missing,
        congestion,
        application,
    ];
    order.into_iter().find_map(|look| look(scene)).unwrap_or_else(|| nothing(scene))
}

/// What the client was asked for is what arrives.
fn asked(scene: &Scene) -> Option<Limit> {
    let (asked, rate) = (scene.asked_bits_per_s?, scene.rate_bits_per_s?);
    let is_lost = (scene.proto == Some(Proto::Udp) && worst(scene).is_some()) || missing(scene).is_some();
    (rate >= ASKED * asked && !is_lost).then(|| {
        let who = scene.sender.as_deref().unwrap_or("the client");
        let text = format!("application: {who} sends the {} it was asked for", speed(asked));
        let limit = Limit::new(LimitKind::Application, text, vec![("asked_bits_per_s", asked), ("bits_per_s", rate)]);
        Limit { name: scene.sender.clone(), ..limit }
    })
}

fn paced(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let (allowed, rate) = (tcp.allowed_bits_per_s?, scene.rate_bits_per_s?);
    (rate >= PACED * allowed).then(|| {
        let text = format!("pacing: {} of the {} that SO_MAX_PACING_RATE allows", speed(rate), speed(allowed));
        Limit::new(LimitKind::Pacing, text, vec![("allowed_bits_per_s", allowed), ("bits_per_s", rate)])
    })
}

fn claimed(scene: &Scene) -> Option<Limit> {
    let claim = scene.claim.as_ref().filter(|claim| claim.bits_per_s >= CLAIMED * claim.speed_bits_per_s)?;
    let text = format!(
        "link speed: {} carries {} of its {}",
        claim.name,
        speed(claim.bits_per_s),
        speed(claim.speed_bits_per_s)
    );
    let numbers = vec![("claim_bits_per_s", claim.speed_bits_per_s), ("bits_per_s", claim.bits_per_s)];
    Some(Limit::new(LimitKind::Claim, text, numbers).named(&claim.name))
}

fn quota(scene: &Scene) -> Option<Limit> {
    let quota = scene.quota.filter(|quota| quota.throttled >= THROTTLED)?;
    let text = format!(
        "CPU quota: the cgroup may use {} % of a core; throttled in {} % of periods",
        percent(quota.cores),
        percent(quota.throttled)
    );
    Some(Limit::new(LimitKind::Quota, text, vec![("quota_cores", quota.cores), ("throttled", quota.throttled)]))
}

/// Where most is lost, if it is worth a word.
fn worst(scene: &Scene) -> Option<&Loss> {
    let counts = |lost: &&Loss| lost.share.map_or(lost.packets >= LOST_PER_S, |share| share >= LOST);
    scene.losses_per_s.first().filter(counts)
}

fn lost_datagrams(scene: &Scene) -> Option<Limit> {
    let lost = worst(scene).filter(|_| scene.proto == Some(Proto::Udp))?;
    let core = match lost.place {
        LossPlace::ReceiveBuffer => cores::receiver(scene).and_then(Thread::home),
        LossPlace::Backlog => lost.core,
        _ => None,
    };
    Some(match core.and_then(|core| cores::of(scene, core)) {
        Some(full) => Limit { text: format!("{}; {}", full.text, how_many(lost)), ..full },
        None => limit_of(lost),
    })
}

/// Datagrams that no place on this machine tells of.
fn missing(scene: &Scene) -> Option<Limit> {
    let missing = scene.missing.filter(|&missing| missing >= MISSING && scene.losses_per_s.is_empty())?;
    let text = format!("losses: {} % of datagrams do not arrive, and no counter here shows where", percent(missing));
    Some(Limit::new(LimitKind::Loss, text, vec![("share", missing)]).named("unknown"))
}

/// What a Reno sender reaches with such losses, bits/s: 1.22 segments in a round trip over the root of the lost share (Mathis 1997).
/// Over a short way some lost segments a second cost nothing.
fn reaches(scene: &Scene, lost: &Loss) -> Option<f64> {
    let tcp = scene.tcp?;
    let (share, rtt_us) = (lost.share.filter(|share| *share > 0.0)?, tcp.rtt_us?);
    Some(1.22 * tcp.mss_bytes? * 8e6 / (rtt_us * share.sqrt()))
}

/// What was sent is not acknowledged, though the receiver's window is open: a link has gone, or the other end.
fn stalled(scene: &Scene) -> Option<Limit> {
    let (rate, busy) = (scene.rate_bits_per_s?, scene.tcp?.busy?);
    (rate < 1.0 && busy.all >= BUSY).then(|| {
        let text = "losses: nothing arrives, though data is in flight: a link is down, or the other end is gone";
        let numbers = vec![("bits_per_s", rate), ("busy", busy.all)];
        Limit::new(LimitKind::Loss, text.to_owned(), numbers).named("unknown")
    })
}

fn lost_segments(scene: &Scene) -> Option<Limit> {
    let lost = scene.losses_per_s.first()?;
    let counts = match (reaches(scene, lost), scene.rate_bits_per_s) {
        (Some(most), Some(rate)) => rate >= REACHED * most,
        _ => lost.packets >= LOST_SEGMENTS_PER_S,
    };
    let busy = scene.tcp.and_then(|tcp| tcp.busy).is_none_or(|busy| busy.all >= BUSY);
    (counts && busy && scene.proto != Some(Proto::Udp)).then(|| limit_of(lost))
}

fn how_many(lost: &Loss) -> String {
    match lost.share.filter(|share| *share >= 0.0005) {
        Some(share) => format!("{} % of packets lost", percent(share)),
        None => format!("{} packets/s lost", rate(lost.packets)),
    }
}

fn limit_of(lost: &Loss) -> Limit {
    let kind = if lost.place == LossPlace::Qdisc { LimitKind::Qdisc } else { LimitKind::Loss };
    let text = format!("losses: {} {}", how_many(lost), place_alone(lost));
    let mut numbers = vec![("packets_per_s", lost.packets)];
    numbers.extend(lost.share.map(|share| ("share", share)));
    let name = lost.name.as_deref().filter(|_| kind == LimitKind::Qdisc).unwrap_or(lost.place.word());
    Limit { core: lost.core, ..Limit::new(kind, text, numbers).named(name) }
}

fn held(scene: &Scene) -> Option<Limit> {
    let holds = |held: &&HoldingQdisc| held.times >= HELD && held.waits >= HELD_WAITS;
    let held = scene.held.iter().filter(holds).min_by(|one, other| one.bits_per_s.total_cmp(&other.bits_per_s))?;
    let lost =
        scene.losses_per_s.first().filter(|lost| lost.place == LossPlace::Qdisc && lost.packets >= LOST_SEGMENTS_PER_S);
    let dropped = lost.map_or_else(String::new, |lost| format!(", {} packets/s dropped", rate(lost.packets)));
    let text = format!("shaping: the qdisc {} holds packets back at {}{dropped}", held.name, speed(held.bits_per_s));
    let numbers = vec![("bits_per_s", held.bits_per_s), ("held", held.times), ("waits", held.waits)];
    Some(Limit::new(LimitKind::Qdisc, text, numbers).named(&held.name))
}

fn window(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let busy = tcp.busy?;
    let numbers = vec![("rwnd_limited", busy.rwnd), ("sndbuf_limited", busy.sndbuf), ("busy", busy.all)];
    let is_idle = tcp.app_limited.is_some_and(|no_more| no_more >= NO_MORE);
    if busy.rwnd.max(busy.sndbuf) < WAITED && !(is_idle && busy.sndbuf >= WAITED_IDLE) {
        return None;
    }
    Some(if busy.rwnd >= busy.sndbuf {
        let text = format!("receive window: full {} % of the time, so the sender waits", percent(busy.rwnd));
        Limit::new(LimitKind::ReceiveWindow, text, numbers)
    } else {
        let text = format!("send buffer: {} % of the time full, and all of it in flight", percent(busy.sndbuf));
        Limit::new(LimitKind::SendBuffer, text, numbers)
    })
}

/// All that it allows is under way. What BBR allows is a rate that it has found out.
fn congestion(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    if tcp.app_limited? >= NO_MORE {
        return None;
    }
    let name = tcp.congestion.as_ref().map_or("unknown", |name| name.word());
    if let (true, Some(paced), Some(bits)) = (name.starts_with("bbr"), tcp.paced_bits_per_s, scene.rate_bits_per_s)
        && bits >= PACED * paced
    {
        let text = format!("pacing: {name} sends at {}, its estimate of the path's bandwidth", speed(paced));
        let numbers = vec![("pacing_bits_per_s", paced), ("bits_per_s", bits)];
        return Some(Limit::new(LimitKind::Pacing, text, numbers).named(name));
    }
    let (cwnd, rtt) = (tcp.cwnd_bytes?, tcp.rtt_us?);
    (tcp.under_way? >= UNDER_WAY && tcp.busy.is_none_or(|busy| busy.all >= BUSY)).then(|| {
        let again = match tcp.retransmits_per_s {
            again if again >= LOST_SEGMENTS_PER_S => format!("; {} segments/s retransmitted", rate(again)),
            _ => String::new(),
        };
        let trip = if rtt < 1e3 { format!("{rtt:.0} µs") } else { format!("{:.1} ms", rtt / 1e3) };
        let text = format!("congestion window ({name}): {} in each {trip} round trip{again}", bytes(cwnd));
        let numbers = vec![("cwnd_bytes", cwnd), ("rtt_us", rtt), ("retransmits_per_s", tcp.retransmits_per_s)];
        Limit::new(LimitKind::CongestionWindow, text, numbers).named(name)
    })
}

/// The sending program is here, could run, and gives no more.
fn application(scene: &Scene) -> Option<Limit> {
    let who = scene.sender.as_deref()?;
    let limit = |what: &str, number| {
        let text = format!("application: {who} {what}");
        Some(Limit::new(LimitKind::Application, text, vec![number]).named(who))
    };
    let Some(tcp) = scene.tcp else {
        let bits = scene.rate_bits_per_s.filter(|_| scene.proto == Some(Proto::Udp))?;
        return limit(&format!("sends no more than {}", speed(bits)), ("bits_per_s", bits));
    };
    if let Some(nothing) = tcp.busy.map(|busy| 1.0 - busy.all).filter(|&nothing| nothing >= HAS_NOTHING) {
        let what = format!("gives TCP nothing to send {} % of the time", percent(nothing));
        return limit(&what, ("nothing_to_send", nothing));
    }
    let no_more = tcp.app_limited.filter(|&no_more| no_more >= NO_MORE)?;
    limit("gives TCP less to send than the path could carry", ("app_limited", no_more))
}

/// With the core that comes nearest, so that it can be seen how far away that is.
fn nothing(scene: &Scene) -> Limit {
    let is_its = |core: &&Core| scene.threads.iter().any(|thread| thread.home() == Some(core.number));
    let cores = scene.cores.iter().filter(is_its);
    let fullest = cores.min_by(|one, other| one.idle.total_cmp(&other.idle)).map(|core| (core.number, 1.0 - core.idle));
    let beside = fullest.map_or_else(String::new, |(core, busy)| format!(" (core {core} is {} % busy)", percent(busy)));
    let has_both = scene.sender.is_some() && scene.threads.iter().any(|thread| thread.receives);
    let elsewhere = if has_both { "" } else { ": look at the other end" };
    let numbers = fullest.map(|(core, busy)| vec![("core", f64::from(core)), ("busy", busy)]);
    let text = format!("nothing is saturated here{beside}{elsewhere}");
    Limit::new(LimitKind::Nothing, text, numbers.unwrap_or_default())
}
