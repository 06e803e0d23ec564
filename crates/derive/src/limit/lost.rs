//! Packets lost on the path, and when they are what holds a test back: datagrams always, segments when so many are lost that
//! TCP waits for its timers or keeps its window small.

use super::cores;
use super::scene::{Scene, Thread, Unbegun, WorkerPlace};
use super::{Limit, LimitKind};
use crate::figure::{bytes, percent, rate};
use crate::finding::loss::place_alone;
use crate::losses::{Loss, LossPlace};
use vnettop_sample::{Proto, Word};

/// Lost datagrams, share of those sent; or a second, where that is not known.
const LOST: f64 = 0.01;
const LOST_PER_S: f64 = 10.0;
/// Datagrams that do not arrive where no place is known, share of those sent: both are counted at slightly different instants.
const MISSING: f64 = 0.05;
/// From this lost share of the segments on, losses hold TCP back whatever else does: several segments of one window are lost, so
/// timeouts (200 ms and more) decide and no formula does.
const HEAVY: f64 = 0.003;
/// Share of segments sent again from which losses hold TCP back; above [`HEAVY`], as some are sent again although nothing is
/// lost.
const HEAVY_AGAIN: f64 = 0.005;
/// From here on it is a loss whatever else is full.
const MUCH_AGAIN: f64 = 0.02;
/// Fewer lost segments a second are none, where it is not known how fast such losses let TCP be.
pub(super) const LOST_SEGMENTS_PER_S: f64 = 1.0;
/// From this share on of what TCP can do with such losses they are what keeps it from more.
const REACHED: f64 = 0.3;
/// Share of the time in which TCP has something to send, where what is lost may hold it back.
const BUSY: f64 = 0.5;
/// From this share on all are missing.
const ALL: f64 = 0.99;
/// Less than this is no rate at all, bits/s.
pub(super) const NO_RATE: f64 = 1.0;

/// A neighbour that does not answer: nothing can be sent to it. While something arrives it was only just asked.
pub(super) fn neighbour(scene: &Scene) -> Option<Limit> {
    let is_given_up = scene.losses_per_s.first().is_some_and(|lost| lost.place == LossPlace::Neighbour);
    let is_lost = is_given_up || scene.missing.is_some_and(|missing| missing >= ALL);
    let sends_nothing = scene.rate_bits_per_s.is_none_or(|bits| bits < NO_RATE);
    let (link, ip) = scene.silent.as_ref().filter(|_| sends_nothing || is_lost)?;
    let how = if ip.is_ipv4() { "ARP" } else { "ND" };
    let text = format!("losses: neighbour {ip} does not answer {how} on {link}, so nothing is sent");
    Some(Limit::new(LimitKind::Loss, text, Vec::new()).named(LossPlace::Neighbour.word()))
}

/// Where most is lost, if it is worth a word.
pub(super) fn worst(scene: &Scene) -> Option<&Loss> {
    let counts = |lost: &&Loss| lost.share.map_or(lost.packets >= LOST_PER_S, |share| share >= LOST);
    scene.losses_per_s.first().filter(counts)
}

/// Datagrams that are lost: UDP does not slow down, so what is lost is what is missing.
pub(super) fn datagrams(scene: &Scene) -> Option<Limit> {
    worst(scene).filter(|_| scene.proto == Some(Proto::Udp)).map(|lost| reported(scene, lost))
}

/// Datagrams that no place on this machine tells of, or only of a few.
pub(super) fn missing(scene: &Scene) -> Option<Limit> {
    let missing = scene.missing.filter(|&missing| missing >= MISSING && worst(scene).is_none())?;
    let (share, looked_at) = (percent(missing), &scene.looked_at);
    let text = if scene.losses_per_s.is_empty() {
        format!("losses: {share} % of datagrams do not arrive; where is not known from {looked_at}")
    } else {
        format!("losses: {share} % of datagrams do not arrive; where most are lost is not known")
    };
    Some(Limit::new(LimitKind::Loss, text, vec![("share", missing)]).named("unknown"))
}

/// So many segments are lost that TCP waits for its timers.
pub(super) fn heavy(scene: &Scene) -> Option<Limit> {
    if scene.proto == Some(Proto::Udp) {
        return None;
    }
    if let Some(lost) = scene.losses_per_s.first().filter(|lost| lost.share.is_some_and(|share| share >= HEAVY)) {
        return Some(reported(scene, lost));
    }
    again(scene, MUCH_AGAIN)
}

/// The same of fewer, where no core is full: packets that overtake each other are sent again too, and nothing is lost.
pub(super) fn sent_again(scene: &Scene) -> Option<Limit> {
    again(scene, HEAVY_AGAIN).filter(|_| scene.proto != Some(Proto::Udp))
}

fn again(scene: &Scene, least: f64) -> Option<Limit> {
    let again = scene.sent_again.filter(|&again| again >= least)?;
    let text = format!("losses: {} % of segments are sent again; where they are lost is not known", percent(again));
    Some(Limit::new(LimitKind::Loss, text, vec![("share", again)]).named("unknown"))
}

/// What is lost there; where a full core is why, that core.
fn reported(scene: &Scene, lost: &Loss) -> Limit {
    let core = match lost.place {
        LossPlace::ReceiveBuffer => cores::receiver(scene).and_then(Thread::home),
        LossPlace::Backlog => lost.core,
        _ => None,
    };
    let taken = || cores::taken_from_receiver(scene).filter(|_| lost.place == LossPlace::ReceiveBuffer);
    match core.and_then(|core| cores::of(scene, core)).or_else(taken) {
        Some(full) => {
            let much = format!("; {}", how_many(lost));
            Limit { text: format!("{}{much}", full.text), lost: much, loses: Some(lost.place), ..full }
        }
        None if is_open(scene, lost) => {
            let limit = limit_of(lost);
            Limit { text: format!("{}; how busy the threads behind it are is not known yet", limit.text), ..limit }
        }
        None => limit_of(lost),
    }
}

/// Whether a worker is to blame for what is lost before it shows in the next tick.
pub(super) fn is_awaited(scene: &Scene) -> bool {
    worst(scene).is_some_and(|lost| is_open(scene, lost))
}

/// Packets are lost there, and how busy the worker is that takes them is not known yet.
fn is_open(scene: &Scene, lost: &Loss) -> bool {
    scene.unmeasured.iter().any(|place| is_at(place, lost)) && !scene.workers.iter().any(|one| is_at(&one.place, lost))
}

/// Packets are lost where this worker takes them, or in it.
pub(super) fn is_at(worker: &WorkerPlace, lost: &Loss) -> bool {
    let is_of_end = lost.place == LossPlace::ReceiveBuffer && !lost.is_of_vpn();
    // A switch's or a VPN's socket is called after its process, with the number.
    let is_named = lost.name.as_deref().is_some_and(|name| {
        let rest = name.strip_prefix(worker.carrier.as_str());
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix(' ').is_some_and(|pid| pid == worker.pid.to_string())
        })
    });
    !is_of_end && (is_named || lost.link.is_some() && lost.link == worker.before)
}

/// What a Reno sender reaches with such losses, bits/s: 1.22 segments in a round trip over the root of the lost share (Mathis
/// 1997). Over a short round trip some lost segments a second cost nothing.
fn reaches(scene: &Scene, lost: &Loss) -> Option<f64> {
    let tcp = scene.tcp?;
    let (share, rtt_us) = (lost.share.filter(|share| *share > 0.0)?, tcp.rtt_us?);
    Some(1.22 * tcp.mss_bytes? * 8e6 / (rtt_us * share.sqrt()))
}

/// It is not connected, or nobody has sent anything yet.
pub(super) fn unbegun(scene: &Scene) -> Option<Limit> {
    let (at, name) = last_lost(scene);
    let numbers = vec![("bits_per_s", 0.0)];
    Some(match scene.unbegun? {
        Unbegun::Answer(to) => {
            let text = format!("losses: {to} does not answer the request to connect{at}");
            Limit::new(LimitKind::Loss, text, numbers).named(name)
        }
        Unbegun::Word(to) => {
            let text = format!("application: connected with {to}, and neither end sends payload{at}");
            Limit::new(LimitKind::Application, text, numbers)
        }
    })
}

/// Where packets of the test were lost last, in words; nothing where none was seen.
fn last_lost(scene: &Scene) -> (String, &'static str) {
    match &scene.last_lost {
        Some(lost) => (format!("; last loss {}", place_alone(lost)), lost.place.word()),
        None => (String::new(), "unknown"),
    }
}

/// What was sent is not acknowledged, though the receiver's window is open: a link has gone, or the other end.
pub(super) fn stalled(scene: &Scene) -> Option<Limit> {
    let (rate, busy) = (scene.rate_bits_per_s?, scene.tcp?.busy?);
    (rate < NO_RATE && busy.all >= BUSY).then(|| {
        let (at, name) = last_lost(scene);
        let text = format!("losses: nothing arrives, though data is in flight{at}");
        Limit::new(LimitKind::Loss, text, vec![("bits_per_s", rate), ("busy", busy.all)]).named(name)
    })
}

/// Datagrams that wait at their sender, and none leaves.
pub(super) fn waiting(scene: &Scene) -> Option<Limit> {
    let waiting = scene.waiting_bytes.filter(|&waiting| waiting > 0.0)?;
    (scene.proto == Some(Proto::Udp) && scene.rate_bits_per_s.is_some_and(|bits| bits < NO_RATE)).then(|| {
        let text = format!("send buffer: nothing gets out, {} wait in the sender's socket", bytes(waiting));
        Limit::new(LimitKind::SendBuffer, text, vec![("waiting_bytes", waiting)])
    })
}

/// Few segments are lost, over a round trip so long that they keep the congestion window small.
pub(super) fn segments(scene: &Scene) -> Option<Limit> {
    let lost = scene.losses_per_s.first()?;
    let counts = match (reaches(scene, lost), scene.rate_bits_per_s) {
        (Some(most), Some(rate)) => rate >= REACHED * most,
        _ => lost.packets >= LOST_SEGMENTS_PER_S,
    };
    let busy = scene.tcp.and_then(|tcp| tcp.busy).is_none_or(|busy| busy.all >= BUSY);
    (counts && busy && scene.proto != Some(Proto::Udp)).then(|| limit_of(lost))
}

pub(super) fn how_many(lost: &Loss) -> String {
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
