//! Which of everything that is seen holds the test back. It goes from what is certain to what is left over:
//!
//! 1. Nothing can be sent or has begun: a neighbour that does not answer, a request to connect without an answer, a connection
//!    on which neither end sends payload.
//! 2. A ceiling that somebody set and that is reached: what was asked for, a pacing rate, a link's real speed. No chance brings
//!    a rate to just that figure, and nothing else would make the test faster.
//! 3. A CPU quota that is used up: while a thread is stopped no core looks full, and all windows look as they like.
//!
//!    Then a worker: a thread between the ends that could run all the time. What it cannot carry is lost, fills windows and
//!    buffers, and leaves the ends idle.
//! 4. Lost datagrams: UDP does not slow down, so what is lost is what is missing, however busy the sender is. Where a full core
//!    is why they are lost, that core.
//! 5. A qdisc that holds packets back: it is full because its rate is reached, and what waits there fills windows and buffers.
//!    Then datagrams that are missing while no counter shows where: those that wait in a qdisc are not missing.
//! 6. A receiver's window so small that it is full again after every few segments: both ends wait for each other, however
//!    full their cores are meanwhile. So many lost segments that TCP waits for its timers.
//! 7. Messages that wait for answers, where no thread could always run.
//! 8. A core that is full, and that a thread of the test waits for. It makes windows full and buffers empty at both of its
//!    sides, so it goes before them.
//! 9. The receiver's window and the sender's buffer, whichever TCP waited for longer. Datagrams that wait at their sender while
//!    none leaves.
//! 10. Nothing that arrives at all; lost segments, which is why a congestion window is small; then that window.
//! 11. A sender that has no more to send. TCP says so too where its program is too slow for want of a core, so it comes late.
//! 12. A full core for which a thread waits now and then. Nothing.

use super::lost::{self, LOST_SEGMENTS_PER_S, NO_RATE};
use super::scene::Scene;
use super::{Limit, LimitKind, cores, shaped, workers};
use crate::figure::{bytes, percent, rate, speed};
use crate::flow::BusyShares;
use crate::held_back::ASKED_BITS_PER_S;
use crate::losses::LossPlace;
use vnettop_sample::Proto;

/// As close as this to a ceiling is at it.
const ASKED: f64 = 0.97;
/// A paced rate has the packets' headers in it, a link's speed what stands between them.
const PACED: f64 = 0.88;
const CLAIMED: f64 = 0.95;
/// Share of its periods in which a quota was used up.
const THROTTLED: f64 = 0.3;
/// Share of the time that TCP waited for a window or a buffer. Time does not count while data that fill the window are still
/// leaving, or while a paced sender waits for its turn: a window that is always full is seen full for 0.4 to 1 of the time.
const WAITED: f64 = 0.25;
/// Share of the time with a full send buffer that counts where TCP had no more to send: only a full buffer makes a program wait
/// that would send more.
const WAITED_IDLE: f64 = 0.05;
/// A receiver's window of so few bytes in flight is small: two of the largest segments that are handed on as one.
const SMALL_BYTES: f64 = 65_536.0;
/// A receive buffer of so many bytes nobody made small: the kernel's own is half of that to begin with (`tcp_rmem`).
const USUAL_BYTES: f64 = 262_144.0;
/// Share of the time in which TCP has something to send, from which on it is that window which it waits for.
const SMALL_WAITED: f64 = 0.5;
/// Messages and answers: segments one way for each of the other at most, and a second at least.
const ANSWERED: f64 = 2.0;
const ANSWERS_PER_S: f64 = 20.0;
/// Share of the time in which TCP has something to send, where a window of its own may hold it back.
const BUSY: f64 = 0.5;
/// Share of the looks at which TCP had no more to send, and of the time in which it had nothing to do.
const NO_MORE: f64 = 0.5;
const HAS_NOTHING: f64 = 0.3;
/// Share of the congestion window that is in flight when it is full.
const UNDER_WAY: f64 = 0.75;

/// What holds the test back.
pub(super) fn judge(scene: &Scene) -> Limit {
    let order = [
        lost::neighbour,
        lost::unbegun,
        asked,
        paced,
        claimed,
        quota,
        workers::starved,
        lost::datagrams,
        shaped::held,
        lost::missing,
        small_window,
        lost::heavy,
        answers,
        cores::full,
        lost::sent_again,
        window,
        lost::waiting,
        lost::stalled,
        lost::segments,
        congestion,
        application,
        cores::waited_for,
    ];
    order.into_iter().find_map(|look| look(scene)).unwrap_or_else(|| nothing(scene))
}

/// What the client was asked for is what arrives.
fn asked(scene: &Scene) -> Option<Limit> {
    let (asked, rate) = (scene.asked_bits_per_s?, scene.rate_bits_per_s?);
    let is_lost = (scene.proto == Some(Proto::Udp) && lost::worst(scene).is_some()) || lost::missing(scene).is_some();
    (rate >= ASKED * asked && !is_lost).then(|| {
        let who = scene.sender.as_deref().unwrap_or("the client");
        // For UDP, the sent rate does not show what arrives.
        let is_unheard = scene.proto == Some(Proto::Udp) && scene.missing.is_none() && scene.losses_per_s.is_empty();
        let beside = if is_unheard { "; whether it arrives is not known" } else { "" };
        let text = format!("application: {who} sends the {} it was asked for{beside}", speed(asked));
        let limit = Limit::new(LimitKind::Application, text, vec![(ASKED_BITS_PER_S, asked), ("bits_per_s", rate)]);
        let limit = limit.because(format!("{who} sends the {} it was asked for{beside}", speed(asked)));
        Limit { name: scene.sender.clone(), ..limit }
    })
}

fn paced(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let (allowed, rate) = (tcp.allowed_bits_per_s?, scene.rate_bits_per_s?);
    (rate >= PACED * allowed).then(|| {
        let text = format!("pacing: {} of the {} that SO_MAX_PACING_RATE allows", speed(rate), speed(allowed));
        let limit = Limit::new(LimitKind::Pacing, text, vec![("allowed_bits_per_s", allowed), ("bits_per_s", rate)]);
        limit.because(format!("it is paced to {} by its program (SO_MAX_PACING_RATE)", speed(allowed)))
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
    let because = format!("{} carries all of its {}", claim.name, speed(claim.speed_bits_per_s));
    Some(Limit::new(LimitKind::Claim, text, numbers).named(&claim.name).because(because))
}

fn quota(scene: &Scene) -> Option<Limit> {
    let quota = scene.quota.filter(|quota| quota.throttled >= THROTTLED)?;
    let text = format!(
        "CPU quota: the cgroup may use {} % of a core; throttled in {} % of periods",
        percent(quota.cores),
        percent(quota.throttled)
    );
    let numbers = vec![("quota_cores", quota.cores), ("throttled", quota.throttled)];
    let (cores, throttled) = (percent(quota.cores), percent(quota.throttled));
    let because = format!("its CPU quota of {cores} % of a core is used up in {throttled} % of the periods");
    // What a thread that is stopped does not read overflows its socket.
    let loses = scene.losses_per_s.first().map(|lost| lost.place).filter(|place| *place == LossPlace::ReceiveBuffer);
    Some(Limit { loses, ..Limit::new(LimitKind::Quota, text, numbers).because(because) })
}

/// The receiver's buffer is so small that both ends wait for each other. A receiver too slow for a buffer of usual size has
/// more than that in flight or waiting to be read, or works all the time; a buffer above the usual size was not made small.
fn small_window(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let (busy, in_flight) = (tcp.busy?, tcp.under_way? * tcp.cwnd_bytes?);
    let waits = |least: f64| busy.rwnd >= WAITED.max(least) && busy.rwnd > busy.sndbuf;
    let is_small = || in_flight.max(scene.unread_bytes.unwrap_or(0.0)) <= SMALL_BYTES && !cores::is_slow(scene);
    let buffer = scene.receive_buffer_bytes;
    // A buffer that somebody made small costs the same where both ends are on one core, but the time in which they run counts
    // for no wait then: 8 KiB were full for 28 to 50 % of the time, and 256 KiB carried 16 times as much.
    let has_small = buffer.is_some_and(|most| most <= SMALL_BYTES);
    let may_be_small = || buffer.is_none_or(|most| most <= USUAL_BYTES) && is_small();
    let is_it = (has_small && waits(0.0)) || (waits(SMALL_WAITED * busy.all) && may_be_small());
    is_it.then(|| receive_window(busy))
}

fn receive_window(busy: BusyShares) -> Limit {
    let text = format!("receive window: full {} % of the time, so the sender waits", percent(busy.rwnd));
    Limit::new(LimitKind::ReceiveWindow, text, waited(busy))
}

fn waited(busy: BusyShares) -> Vec<(&'static str, f64)> {
    vec![("rwnd_limited", busy.rwnd), ("sndbuf_limited", busy.sndbuf), ("busy", busy.all)]
}

/// As many segments with data come back as go: the next message waits for the answer to the last one.
fn answers(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let ([out, back], rtt_us) = (tcp.segments_per_s?, tcp.rtt_us?);
    let (least, most) = (out.min(back), out.max(back));
    let is_it = least >= ANSWERS_PER_S && most <= ANSWERED * least && tcp.app_limited? >= NO_MORE;
    (is_it && !cores::starves(scene)).then(|| {
        let nothing = if cores::fullest(scene).is_some() { "" } else { "nothing is saturated: " };
        let trip = trip(rtt_us);
        let text = format!("{nothing}each message waits for an answer; the round trip takes {trip}");
        let numbers = vec![("rtt_us", rtt_us), ("segments_per_s", out), ("answers_per_s", back)];
        Limit::new(LimitKind::Nothing, text, numbers)
    })
}

fn trip(rtt_us: f64) -> String {
    if rtt_us < 1e3 { format!("{rtt_us:.0} µs") } else { format!("{:.1} ms", rtt_us / 1e3) }
}

fn window(scene: &Scene) -> Option<Limit> {
    let tcp = scene.tcp?;
    let busy = tcp.busy?;
    let is_idle = tcp.app_limited.is_some_and(|no_more| no_more >= NO_MORE);
    if busy.rwnd.max(busy.sndbuf) < WAITED && !(is_idle && busy.sndbuf >= WAITED_IDLE) {
        return None;
    }
    Some(if busy.rwnd >= busy.sndbuf {
        receive_window(busy)
    } else {
        let text = format!("send buffer: {} % of the time full, and all of it in flight", percent(busy.sndbuf));
        Limit::new(LimitKind::SendBuffer, text, waited(busy))
    })
}

/// All that the congestion window allows is in flight; for BBR, the rate has reached its own estimate.
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
        let trip = trip(rtt);
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
        let bits = scene.rate_bits_per_s.filter(|&bits| scene.proto == Some(Proto::Udp) && bits >= NO_RATE)?;
        return limit(&format!("sends no more than {}", speed(bits)), ("bits_per_s", bits));
    };
    if let Some(nothing) = tcp.busy.map(|busy| 1.0 - busy.all).filter(|&nothing| nothing >= HAS_NOTHING) {
        let what = format!("gives TCP nothing to send {} % of the time", percent(nothing));
        return limit(&what, ("nothing_to_send", nothing));
    }
    let no_more = tcp.app_limited.filter(|&no_more| no_more >= NO_MORE)?;
    limit("gives TCP less to send than the path could carry", ("app_limited", no_more))
}

/// No limit, with the busiest core of the test, so that its distance from full can be seen; a full core there has idle threads
/// of the test. Nobody is sent to the other end while a core on this one is full.
fn nothing(scene: &Scene) -> Limit {
    let has_both = scene.sender.is_some() && scene.threads.iter().any(|thread| thread.receives);
    let more = if has_both { "" } else { ": look at the other end" };
    let waits = scene.waits.as_ref().map_or_else(String::new, |waits| format!("; {waits}"));
    let fullest = cores::nearest(scene);
    if let (None, Some((core, busy))) = (cores::fullest(scene), cores::full_between(scene)) {
        let text = format!("no thread waits, but core {core} on the path is {} % busy{waits}", percent(busy));
        return Limit::new(LimitKind::Nothing, text, vec![("core", f64::from(core)), ("busy", busy)]);
    }
    let text = match fullest {
        Some((core, busy, wait)) if cores::fullest(scene).is_some() => format!(
            "nothing makes it wait: core {core} is {} % busy, its threads wait {} %",
            percent(busy),
            percent(wait)
        ),
        Some((core, busy, _)) => {
            format!("nothing is saturated here (core {core} is {} % busy){more}{waits}", percent(busy))
        }
        None => format!("nothing is saturated here{more}{waits}"),
    };
    let numbers = fullest.map(|(core, busy, wait)| vec![("core", f64::from(core)), ("busy", busy), ("wait", wait)]);
    Limit::new(LimitKind::Nothing, text, numbers.unwrap_or_default())
}
