//! Sentences that need both ends: where packets are lost, whose threads migrate, what holds each end back.

use super::{EndToEnd, HostEnd, HostLoss, HostMetrics};
use crate::figure::rate;
use crate::finding::loss::place_alone;
use crate::placement::BUSY;
use crate::{Evidence, Limit, LimitKind, ThreadMetrics};

/// Less than one packet a second is nothing that a test would notice.
const LEAST_LOST_PER_S: f64 = 1.0;
/// From here on threads migrate, times/s; below the other they do not.
const MIGRATE: f64 = 1.0;
const STAY: f64 = 0.2;

/// All findings, most important first; two namespaces of `one_kernel` judge the same test, so its limit is told once.
pub(super) fn all(hosts: &[HostMetrics<'_>], whole: &EndToEnd<'_>, one_kernel: bool) -> Vec<String> {
    let mut all = losses(hosts, &whole.losses);
    let tells_losses = !all.is_empty();
    all.extend(migrations(hosts, whole));
    let is_reported = |limit: &Limit| limit.kind == LimitKind::Loss && tells_losses;
    all.extend(if one_kernel {
        limit_of_both(hosts, whole, is_reported).into_iter().collect()
    } else {
        limits(hosts, whole, is_reported)
    });
    all
}

/// The worst place of each host, all reasons together.
fn losses(hosts: &[HostMetrics<'_>], losses: &[HostLoss<'_>]) -> Vec<String> {
    let mut places: Vec<(HostLoss<'_>, f64)> = Vec::new();
    let of = |one: &HostLoss<'_>| (one.host, one.loss.place, one.loss.netns, one.loss.link, one.loss.is_of_vpn());
    for one in losses {
        let per_s = one.packets_per_s.unwrap_or(0.0);
        match places.iter_mut().find(|(known, _)| of(known) == of(one)) {
            Some((_, sum)) => *sum += per_s,
            None => places.push((*one, per_s)),
        }
    }
    places.retain(|(_, per_s)| *per_s >= LEAST_LOST_PER_S);
    places.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let is_worst = |at: usize| places[..at].iter().all(|(before, _)| before.host != places[at].0.host);
    let worst = (0..places.len()).filter(|&at| is_worst(at)).map(|at| &places[at]);
    let sentence = |(one, per_s): &(HostLoss<'_>, f64)| {
        format!("{} loses {} packets/s {}", hosts[one.host].name, rate(*per_s), place_alone(one.loss))
    };
    worst.map(sentence).collect()
}

/// The threads of one end.
struct EndMoves<'a> {
    word: &'static str,
    host: &'a str,
    /// Busy threads, and how often they migrate a second.
    busy: usize,
    per_s: f64,
    is_sampled: bool,
    /// Number of threads, if each is known not to migrate.
    still: Option<usize>,
}

impl<'a> EndMoves<'a> {
    fn of(word: &'static str, hosts: &[HostMetrics<'a>], end: &HostEnd<'_>) -> Self {
        let busy = || end.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu > BUSY));
        let sampled = |thread: &ThreadMetrics| thread.evidence == Evidence::Sampled;
        let counted: Option<f64> =
            end.threads.iter().map(|thread| thread.moves_per_s.filter(|_| !sampled(thread))).sum();
        Self {
            word,
            host: hosts[end.host].name,
            busy: busy().count(),
            per_s: busy().filter_map(|thread| thread.moves_per_s).sum(),
            is_sampled: busy().any(|thread| sampled(thread)),
            still: counted.filter(|&per_s| per_s < STAY).map(|_| end.threads.len()).filter(|&threads| threads > 0),
        }
    }

    fn how_often(&self) -> String {
        format!("{}{} times/s", if self.is_sampled { "at least " } else { "" }, rate(self.per_s))
    }

    fn migrates(&self) -> String {
        let (threads, verb) = if self.busy == 1 { ("thread", "migrates") } else { ("threads", "migrate") };
        format!("the {}'s {threads} on {} {verb} {}", self.word, self.host, self.how_often())
    }
}

/// Whose threads migrate, and whether the other end's do.
fn migrations(hosts: &[HostMetrics<'_>], whole: &EndToEnd<'_>) -> Option<String> {
    let sender = EndMoves::of("sender", hosts, &whole.sender);
    let receiver = EndMoves::of("receiver", hosts, &whole.receiver);
    let migrates = |end: &EndMoves<'_>| end.per_s >= MIGRATE;
    let only = |one: &EndMoves<'_>, other: &EndMoves<'_>| {
        let verb = if other.still? == 1 { "does" } else { "do" };
        Some(format!("{}; the {}'s on {} {verb} not", one.migrates(), other.word, other.host))
    };
    match (migrates(&sender), migrates(&receiver)) {
        (true, true) => {
            let (word, host) = (receiver.word, receiver.host);
            Some(format!("{}, the {word}'s on {host} {}", sender.migrates(), receiver.how_often()))
        }
        (true, false) => only(&sender, &receiver),
        (false, true) => only(&receiver, &sender),
        (false, false) => None,
    }
}

/// What holds each end back; an end that nothing holds back is left out.
fn limits(hosts: &[HostMetrics<'_>], whole: &EndToEnd<'_>, is_reported: impl Fn(&Limit) -> bool) -> Vec<String> {
    let of = |end: &HostEnd<'_>| Some((hosts[end.host].name, end.test.conclusions.limit.clone()?));
    let known = [&whole.sender, &whole.receiver].into_iter().filter_map(of);
    let real = known.filter(|(_, limit)| limit.kind != LimitKind::Nothing && !is_reported(limit));
    real.map(|(name, limit)| format!("on {name}: {}", limit.text)).collect()
}

/// What holds the test back, where the ends are two namespaces of one kernel and judge the same test; names the end where that
/// is certain.
fn limit_of_both(
    hosts: &[HostMetrics<'_>],
    whole: &EndToEnd<'_>,
    is_reported: impl Fn(&Limit) -> bool,
) -> Option<String> {
    let [sender, receiver] = [&whole.sender, &whole.receiver];
    let limit = sender.test.conclusions.limit.as_ref().or(receiver.test.conclusions.limit.as_ref());
    let limit = limit.filter(|limit| limit.kind != LimitKind::Nothing && !is_reported(limit))?;
    let end = match limit.kind {
        LimitKind::ReceiveWindow => Some(receiver),
        LimitKind::SendBuffer | LimitKind::CongestionWindow | LimitKind::Pacing | LimitKind::Application => {
            Some(sender)
        }
        _ => [sender, receiver].into_iter().find(|end| limit.pid.is_some() && end.pid == limit.pid),
    };
    Some(match end {
        Some(end) => format!("on {}: {}", hosts[end.host].name, limit.text),
        None => limit.text.clone(),
    })
}
