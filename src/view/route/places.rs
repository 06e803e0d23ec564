//! The places of a path and what is known of each, in as many words as there may be room for.

use super::super::Tone;
use super::super::canvas::{cells, fitted};
use super::super::format::{Count, Percent, Rate, Times, UNKNOWN};
use super::super::path::SameWay;
use crate::derive::paths::{CarrierMetrics, HopMetrics};
use crate::derive::{CoreMetrics, LinkMetrics, LossPlace, Metrics, ThreadMetrics};
use crate::sample::HopWay;
use crate::state::{Mode, State};

/// What is known of a place, below its name.
pub(super) const FACTS: usize = 2;
/// From this share on it is worth a word that others use a thread's core.
const OTHERS: f64 = 0.2;
/// What a thread's time and its core's may differ by, for the clock's ticks.
const NOTHING: f64 = 0.02;
/// Cells of a name that is cut.
const BRIEF_NAME: usize = 8;
const BRIEFEST_NAME: usize = 6;

/// Text of a tone.
pub(super) type PlaceFact = (Tone, String);

/// In how many words a place is described: all, without what matters least, with a name that is cut as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    Whole,
    Brief,
    Briefest,
}

impl Wording {
    pub const ALL: [Self; 3] = [Self::Whole, Self::Brief, Self::Briefest];
}

/// An end, a link or a program on the path.
pub(super) struct PathPlace {
    name: PlaceFact,
    /// Its name where there is one row for all: of a thread at an end its role.
    role: Option<&'static str>,
    /// Below the name where there are rows for all of it, whole and brief.
    facts: [[PlaceFact; FACTS]; 2],
    /// Where there is one row: the rate, and what is lost of it; whole and brief.
    only: [PlaceFact; 2],
    /// Behind the name, where there is no row for it.
    beside: PlaceFact,
}

fn nothing() -> PlaceFact {
    (Tone::Muted, String::new())
}

impl PathPlace {
    /// Its name alone.
    fn named(tone: Tone, name: String) -> Self {
        let facts = [(); 2].map(|()| [(); FACTS].map(|()| nothing()));
        Self { name: (tone, name), role: None, facts, only: [nothing(), nothing()], beside: nothing() }
    }

    pub fn name(&self, wording: Wording) -> PlaceFact {
        let (tone, name) = &self.name;
        (*tone, if wording == Wording::Briefest { cut(name, BRIEF_NAME) } else { name.clone() })
    }

    /// What stands below its name in so many rows, the name's among them.
    pub fn facts(&self, rows: u16, wording: Wording) -> &[PlaceFact] {
        let is_brief = usize::from(wording != Wording::Whole);
        match rows {
            0 | 1 => &[],
            2 => &self.only[is_brief..=is_brief],
            _ => &self.facts[is_brief],
        }
    }

    /// Cells that it needs in so many rows.
    pub fn width(&self, rows: u16, wording: Wording) -> usize {
        let facts = self.facts(rows, wording).iter();
        let name = cells(&self.name(wording).1);
        facts.map(|(_, text)| cells(text)).fold(name, usize::max)
    }

    /// In one row, from the longest form to the shortest: the name and its figure; at last the ends have none.
    pub fn in_a_row(&self, brevity: usize) -> [PlaceFact; 2] {
        let (tone, name) = &self.name;
        let name = self.role.unwrap_or(name);
        let name = match brevity {
            0 => name.to_owned(),
            1 | 2 => cut(name, BRIEF_NAME),
            _ => cut(name, BRIEFEST_NAME),
        };
        let has_figure = brevity < 2 || self.role.is_none();
        let figure = if has_figure { self.beside.clone() } else { nothing() };
        let gap = if figure.1.is_empty() { "" } else { " " };
        [(*tone, format!("{name}{gap}")), figure]
    }
}

/// What stands in place of a part of the path that is not known: a sentence that begins so, and in few cells this.
const GAP: &str = "… ";
const BRIEF_GAP: &str = "… rest not known";

/// How many forms a place has in one row.
pub(super) const FORMS_IN_A_ROW: usize = 4;

fn cut(name: &str, most: usize) -> String {
    match name {
        // Why the rest is not known is a sentence, of which the first letters say nothing; hop by hop it stands whole.
        _ if name.starts_with(GAP) => if cells(name) <= cells(BRIEF_GAP) { name } else { BRIEF_GAP }.to_owned(),
        _ if cells(name) <= most => name.to_owned(),
        _ => fitted(name, most),
    }
}

/// The sender, what lies between, the receiver.
pub(super) fn places(state: &State, metrics: &Metrics, group: &SameWay<'_>) -> Vec<PathPlace> {
    let connection = group.connection;
    let mut all = vec![end(metrics, connection.from.pid, &connection.from.address.to_string())];
    match &group.path {
        Some(path) => {
            for (at, hop) in path.hops.iter().enumerate() {
                let carriers = path.carriers.iter().filter(|carrier| carrier.carrier.at == at);
                all.extend(carriers.map(carrier));
                all.push(link(state, hop));
            }
            all.extend(path.carriers.iter().filter(|carrier| carrier.carrier.at >= path.hops.len()).map(carrier));
            all.extend(path.gap.map(|gap| unknown(&format!("{GAP}{gap}"))));
        }
        None if state.settings().mode == Mode::Replay => all.push(unknown("… path not recorded")),
        None => all.push(unknown("… path not known yet")),
    }
    all.push(end(metrics, connection.to.pid, &connection.to.address.to_string()));
    all
}

fn unknown(text: &str) -> PathPlace {
    PathPlace::named(Tone::Muted, text.to_owned())
}

/// `client 39082`, `45 % of core 6`, `softirq 52 %`: a thread with its part of its core, and what else that core does; only an
/// address where none is watched.
fn end(metrics: &Metrics, pid: Option<u32>, address: &str) -> PathPlace {
    let own = metrics.subject.threads.iter().filter(|thread| Some(thread.sample.id.pid) == pid);
    match own.max_by(|one, other| one.cpu.unwrap_or(0.0).total_cmp(&other.cpu.unwrap_or(0.0))) {
        Some(thread) => {
            // The number tells it from others of its role.
            let role = thread.sample.role();
            let is_alone = metrics.subject.threads.iter().filter(|other| other.sample.role() == role).count() == 1;
            let name = if is_alone { role.to_owned() } else { format!("{role} tid {}", thread.sample.id.tid) };
            PathPlace { role: Some(role), ..threaded(metrics, name, thread) }
        }
        None => unknown(address),
    }
}

fn threaded(metrics: &Metrics, name: String, thread: &ThreadMetrics) -> PathPlace {
    let core = thread.sample.core;
    let shares = metrics.machine.cores.iter().find(|one| one.place.core == core).and_then(CoreMetrics::shares);
    let softirq = shares.map(|shares| shares.softirq);
    // On many kernels a thread's CPU time has the softirqs in it that ran meanwhile.
    let there = metrics.subject.threads.iter().filter(|one| one.sample.core == core);
    let of_all: f64 = there.filter_map(|one| one.cpu).sum();
    let has_softirq = shares.is_some_and(|shares| {
        shares.softirq >= NOTHING && of_all > (shares.busy() - shares.softirq).max(0.0) + NOTHING
    });
    // Of one that migrates nobody knows how much it did on which of its cores.
    let migrates = thread.moves_lately_per_s.or(thread.moves_per_s).filter(|_| thread.moved);
    let own = thread.cpu;
    let others = metrics.subject.recent.core(core).map(|recent| recent.others).filter(|others| *others >= OTHERS);
    let beside = match (others, migrates) {
        (Some(_), _) => (Tone::Warning, format!("all others {}", percent(others))),
        (None, Some(_)) => (Tone::Warning, format!("migrates {:>4}/s", Count(migrates).to_string())),
        (None, None) if has_softirq => (Tone::Muted, format!("{} in softirq", percent(softirq))),
        (None, None) => (Tone::Muted, format!("softirq {}", percent(softirq))),
    };
    // As wide as it gets on this machine.
    let digits = metrics.machine.cores.last().map_or(1, |last| last.place.core.to_string().len());
    let brief = (Tone::Normal, format!("{} core {core:<digits$}", percent(own)));
    let whole = match migrates {
        Some(_) => format!("{}, core {core:<digits$}  ", percent(own)),
        None => format!("{} of core {core:<digits$}", percent(own)),
    };
    let whole = (Tone::Normal, whole);
    PathPlace {
        facts: [[whole.clone(), beside.clone()], [brief.clone(), beside]],
        only: [whole, brief],
        beside: (Tone::Normal, format!("{} %", Percent(own))),
        ..PathPlace::named(Tone::FocusedTitle, name)
    }
}

/// As wide as it gets, so that nothing beside it jumps.
fn percent(share: Option<f64>) -> String {
    format!("{:>3} %", Percent(share).to_string())
}

/// `docker0`, `35.2G 3.5×`, `0 lost/s on 4`
fn link(state: &State, hop: &HopMetrics<'_>) -> PathPlace {
    let name = hop.link.map_or_else(|| format!("link {}", hop.hop.link.ifindex.0), |link| link.facts.name.clone());
    let is_counted = hop.hop.way != HopWay::Passed;
    let lost = hop.all_drops_per_s();
    let loses = lost.is_some_and(|lost| lost > 0.0);
    // What nothing is counted at takes no room from what is.
    if !is_counted && lost.is_none() {
        let rate = (Tone::Normal, UNKNOWN.to_owned());
        let facts = [(); 2].map(|()| [rate.clone(), nothing()]);
        return PathPlace { facts, only: [rate.clone(), rate], ..PathPlace::named(Tone::Title, name) };
    }
    let rate = if is_counted { Rate(hop.bits_per_s, state.settings().units).to_string() } else { UNKNOWN.to_owned() };
    let times = hop.link.and_then(LinkMetrics::times_label).filter(|_| is_counted);
    let times = times.map_or_else(String::new, |times| Times(times).to_string());
    // The kernel tells the link that the packet came by; where it is lost is the socket behind the last one.
    let is_socket = !hop.losses.is_empty() && hop.losses.iter().all(|loss| loss.place == LossPlace::ReceiveBuffer);
    let place = if is_socket && loses { " in socket" } else { "" };
    let tone = if loses { Tone::Bad } else { Tone::Muted };
    let lost = Count(lost).to_string();
    let whole = if is_counted { format!("{rate:<5} {times:>5}") } else { rate.clone() };
    let (whole, brief) = ((Tone::Normal, whole), (Tone::Normal, format!("{rate:<5}")));
    // Where one of both has room, what is lost; where neither is, nothing is said of it.
    let (only, beside) = if loses {
        let by = if is_socket { " in socket" } else { "" };
        let both = (Tone::Bad, format!("{rate} {lost} lost/s{by}"));
        ([both.clone(), (Tone::Bad, format!("{lost} lost/s"))], both)
    } else {
        ([whole.clone(), brief.clone()], (Tone::Normal, rate))
    };
    PathPlace {
        facts: [[whole, (tone, format!("{lost:>4} lost/s{place}"))], [brief, (tone, format!("{lost:>4} lost"))]],
        only,
        beside,
        ..PathPlace::named(Tone::Title, name)
    }
}

/// `ovs-vswitchd`, ` 98 % of core 3`: a program, with its busiest thread.
fn carrier(one: &CarrierMetrics<'_>) -> PathPlace {
    let name = one.carrier.name.clone();
    let Some(worker) = one.workers.first() else { return PathPlace::named(Tone::FocusedTitle, name) };
    let (thread, noun) = (&worker.thread, worker.noun());
    let core = thread.sample.core;
    let whole = (Tone::Normal, format!("{} of core {core:<3}", percent(thread.cpu)));
    let brief = (Tone::Normal, format!("{} core {core}", percent(thread.cpu)));
    let who = (Tone::Muted, format!("{noun} {}", thread.sample.id.tid));
    PathPlace {
        facts: [[whole.clone(), who.clone()], [brief.clone(), who]],
        only: [whole, brief],
        beside: (Tone::Normal, format!("{} %", Percent(thread.cpu))),
        ..PathPlace::named(Tone::FocusedTitle, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that carries 13.2 Gbit/s, and loses packets or not.
    fn link(name: &str, lost: &str) -> PathPlace {
        let both = format!("13.2G {lost} lost/s");
        let [whole, brief] = if lost == "0" {
            ["13.2G  1.3×".to_owned(), "13.2G".to_owned()]
        } else {
            [both, format!("{lost} lost/s")]
        };
        let fact = |text: String| (Tone::Normal, text);
        PathPlace {
            only: [fact(whole.clone()), fact(brief)],
            beside: fact(if lost == "0" { "13.2G".to_owned() } else { whole }),
            ..PathPlace::named(Tone::Title, name.to_owned())
        }
    }

    #[test]
    fn with_less_room_a_place_keeps_what_matters_most() {
        let link = link("vethe61f5c0", "0");
        let forms = Wording::ALL
            .map(|wording| (link.name(wording).1, link.facts(2, wording)[0].1.clone(), link.width(2, wording)));
        let wanted = [("vethe61f5c0", "13.2G  1.3×", 11), ("vethe61f5c0", "13.2G", 11), ("vethe61…", "13.2G", 8)];
        assert_eq!(forms, wanted.map(|(name, fact, width)| (name.to_owned(), fact.to_owned(), width)));
        let row = |place: &PathPlace, form| place.in_a_row(form).map(|(_, text)| text).concat();
        let forms = [0, 1, 2, 3].map(|form| row(&link, form));
        assert_eq!(forms, ["vethe61f5c0 13.2G", "vethe61… 13.2G", "vethe61… 13.2G", "vethe… 13.2G"]);
    }

    #[test]
    fn of_a_sentence_no_first_letters_stand_alone() {
        let gap = unknown("… the receiver is in a namespace that is not shown");
        let brief = [gap.name(Wording::Briefest).1, gap.in_a_row(3)[0].1.trim_end().to_owned()];
        assert_eq!((brief, gap.width(2, Wording::Briefest)), ([BRIEF_GAP, BRIEF_GAP].map(str::to_owned), 16));
    }

    #[test]
    fn what_is_lost_is_never_left_out() {
        let link = link("b0", "6.6k");
        assert_eq!(link.facts(2, Wording::Whole)[0].1, "13.2G 6.6k lost/s");
        assert_eq!(link.facts(2, Wording::Briefest)[0].1, "6.6k lost/s", "before the rate, which its neighbours have");
        assert!((0..FORMS_IN_A_ROW).all(|form| link.in_a_row(form)[1].1.contains("6.6k lost/s")));
    }

    #[test]
    fn an_end_in_a_row_is_its_role_and_at_last_that_alone() {
        let name = "client tid 4711".to_owned();
        let end = PathPlace {
            role: Some("client"),
            beside: (Tone::Normal, "45 %".to_owned()),
            ..PathPlace::named(Tone::FocusedTitle, name)
        };
        let forms = [0, 1, 2, 3].map(|form| end.in_a_row(form).map(|(_, text)| text).concat());
        assert_eq!(forms, ["client 45 %", "client 45 %", "client", "client"]);
    }
}
