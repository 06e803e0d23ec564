//! The cores that matter, in words: those that a test's threads are on, those that take its packets and the fullest, each with its
//! number, how busy it is and with what; and how busy the others are at most.

use super::Tone;
use super::bars::busy_tone;
use super::canvas::Canvas;
use super::core_details::{self, Phrase};
use super::format::Percent;
use crate::derive::Metrics;
use crate::sample::CoreId;

/// Cores that are named at most.
const MOST: usize = 12;
/// A core without a thread of the test is named from this share on.
const FULL: f64 = 0.1;
/// From this share on softirqs are worth a word.
const SOFTIRQ: f64 = 0.05;
/// Less is as good as nothing.
const IDLE: f64 = 0.02;

/// A core that is named.
struct BusyCore<'a> {
    core: CoreId,
    busy: f64,
    softirq: f64,
    /// What of a test is there, and how many of each.
    roles: Vec<(&'a str, usize)>,
}

impl BusyCore<'_> {
    /// `core 6 97 % client, softirq`
    fn phrase(&self) -> Phrase {
        let roles = self.roles.iter().map(|(role, count)| match count {
            1 => (*role).to_owned(),
            more => format!("{role} +{}", more - 1),
        });
        let softirq = (self.softirq >= SOFTIRQ).then(|| "softirq".to_owned());
        let words = roles.chain(softirq).collect::<Vec<_>>().join(", ");
        let gap = if words.is_empty() { "" } else { " " };
        let tone = if self.busy < IDLE { Tone::Normal } else { busy_tone(self.busy) };
        (tone, format!("core {} {} %{gap}{words}", self.core, Percent(Some(self.busy))))
    }
}

/// Draws as many as fit into so many rows from `y` on; returns the rows used.
pub(super) fn prepare(canvas: &mut Canvas, metrics: &Metrics, (y, rows): (u16, u16)) -> u16 {
    let all = all(metrics);
    let named = all.iter().filter(|one| !one.roles.is_empty() || one.busy >= FULL).count().min(MOST);
    let width = canvas.area.width;
    let with_others = |named| phrases(&all, named);
    // Where none of the others matters, there need not be a word of them.
    let alone = (named > 0 && all.get(named).is_none_or(|next| next.busy < FULL)).then_some(named);
    let alone = alone.into_iter().map(|named| all[..named].iter().map(BusyCore::phrase).collect());
    let mut forms = std::iter::once(named).map(with_others).chain(alone).chain((0..named).rev().map(with_others));
    let fits = |phrases: &Vec<Phrase>| core_details::rows(phrases, width) <= rows;
    let Some(phrases) = forms.find(fits) else { return 0 };
    core_details::flow(canvas, y, rows, &phrases);
    core_details::rows(&phrases, width)
}

/// Phrases of so many cores, and one of all others.
fn phrases(all: &[BusyCore<'_>], named: usize) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = all[..named].iter().map(BusyCore::phrase).collect();
    let others = &all[named..];
    let most = others.iter().map(|one| one.busy).fold(0.0, f64::max);
    let count = match (others.len(), named) {
        (0, _) => return phrases,
        (1, 0) => "1 core".to_owned(),
        (count, 0) => format!("{count} cores"),
        (1, _) => "1 other".to_owned(),
        (count, _) => format!("{count} others"),
    };
    let busy = if most < IDLE { "idle".to_owned() } else { format!("up to {} %", Percent(Some(most))) };
    phrases.push((Tone::Muted, format!("{count} {busy}")));
    phrases
}

/// Every core of which it is known how busy it is: those with threads of a test first, then the fullest.
fn all(metrics: &Metrics) -> Vec<BusyCore<'_>> {
    let roles = roles(metrics);
    let named = |core: CoreId| {
        let mut here: Vec<(&str, usize)> = Vec::new();
        for &(_, role) in roles.iter().filter(|(at, _)| *at == core) {
            match here.iter_mut().find(|(known, _)| *known == role) {
                Some((_, count)) => *count += 1,
                None => here.push((role, 1)),
            }
        }
        here
    };
    let online = metrics.machine.cores.iter().filter(|core| core.place.online);
    let known = online.filter_map(|core| Some((core.place.core, core.shares()?)));
    let each =
        known.map(|(core, shares)| BusyCore { core, busy: shares.busy(), softirq: shares.softirq, roles: named(core) });
    let mut all: Vec<BusyCore<'_>> = each.collect();
    all.sort_by(|one, other| one.roles.is_empty().cmp(&other.roles.is_empty()).then(other.busy.total_cmp(&one.busy)));
    all
}

/// Where busy threads are, of the programs that are watched and of those that carry packets between them, and what they are.
fn roles(metrics: &Metrics) -> Vec<(CoreId, &'static str)> {
    let ends = metrics.threads.iter().map(|thread| (thread, thread.sample.role()));
    let between = metrics.subject.workers.iter().map(|worker| (&worker.thread, worker.noun()));
    let busy = ends.chain(between).filter(|(thread, _)| thread.cpu.is_none_or(|cpu| cpu >= 0.01));
    busy.map(|(thread, role)| (thread.sample.core, role)).collect()
}
