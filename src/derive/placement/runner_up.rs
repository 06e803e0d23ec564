//! For each thread of a proposal the core that would have been next, and what decided against it, in words.

use super::merit::{Company, Merit, partner};
use super::place::Placement;
use super::reason::{label, percent};
use super::seat::{Room, Seat};
use super::{RunnerUp, Want};
use crate::derive::moves::MoveClass;
use crate::sample::{CoreId, CorePlace, CoreSet};

/// For every thread the cores that are as good as its own, and the best of those that are not.
pub(super) fn all(
    room: &Room<'_>,
    seats: &[Seat],
    wants: &[Want<'_>],
    placement: &Placement,
) -> Vec<(CoreSet, Option<RunnerUp>)> {
    let mut company = Company::of(&placement.seats, seats, wants);
    let words = Words { room, seats, wants, placement };
    let mut one = |nth: usize| {
        let chosen = placement.seats[nth];
        let merits = company.merits(nth, &placement.seats);
        let own = merits.iter().find(|&&(_, at)| at == chosen).map(|&(merit, _)| merit)?;
        let others = || merits.iter().filter(|&&(_, at)| at != chosen);
        let is_as_good = |merit: &Merit| Merit { core: own.core, ..*merit } == own;
        let as_good = others().filter(|(merit, _)| is_as_good(merit)).map(|(merit, _)| merit.core).collect();
        let next = others().filter(|(merit, _)| !is_as_good(merit)).min();
        Some((as_good, next.map(|(merit, at)| words.of(nth, &own, merit, *at))))
    };
    (0..wants.len()).map(|nth| one(nth).unwrap_or_default()).collect()
}

struct Words<'a> {
    room: &'a Room<'a>,
    seats: &'a [Seat],
    wants: &'a [Want<'a>],
    placement: &'a Placement,
}

impl Words<'_> {
    fn of(&self, nth: usize, own: &Merit, next: &Merit, at: usize) -> RunnerUp {
        let seat = &self.seats[at];
        let near = nearness(MoveClass::of(self.room.topology, own.core, seat.core));
        let why = self.why(nth, own, next, seat);
        let why = match near {
            "" => why,
            _ => format!("{near}, but {why}"),
        };
        RunnerUp { core: seat.core, why }
    }

    /// What decided: the first thing in which the two differ.
    fn why(&self, nth: usize, own: &Merit, next: &Merit, seat: &Seat) -> String {
        let partner = partner(nth, self.wants).map(|other| self.seats[self.placement.seats[other]].core);
        let other_end = || partner.map_or_else(String::new, |core| format!(" on core {core}"));
        if own.sharers != next.sharers {
            self.shared(nth, seat)
        } else if own.taken != next.taken {
            format!("{} % busy with other work", self.others(seat))
        } else if own.off_memory != next.off_memory {
            "not on a node that its memory may be on".to_owned()
        } else if own.parted != next.parted {
            format!("another cache than its other end{}", other_end())
        } else if own.outside != next.outside {
            "another cache than the other threads".to_owned()
        } else if own.heavy != next.heavy || own.from_card == next.from_card && own.lack != next.lack {
            self.lacking(own, seat)
        } else if own.from_card != next.from_card {
            self.beside_card(next.from_card)
        } else if own.unsettled != next.unsettled {
            "it is bound to this one already".to_owned()
        } else if own.uprooted != next.uprooted {
            format!("not the node it runs on now{}", on_node(self.wants[nth].thread.sample.core, self.seats))
        } else if own.apart != next.apart {
            format!("another cluster than its other end{}", other_end())
        } else if own.crowd != next.crowd {
            "another stream is in that cluster".to_owned()
        } else if own.noisy == next.noisy {
            match seat.core {
                0 => "it does the machine's odd jobs".to_owned(),
                _ => "beside core 0, which does the machine's odd jobs".to_owned(),
            }
        } else {
            "others keep a core of its cluster busy".to_owned()
        }
    }

    /// Somebody has the core, or its physical core.
    fn shared(&self, nth: usize, seat: &Seat) -> String {
        let given = self.placement.seats.iter().zip(self.wants).enumerate();
        let others = given.filter(|(other, (at, _))| *other != nth && self.seats[**at].physical == seat.physical);
        match others.map(|(_, (&at, want))| (&self.seats[at], want)).next() {
            Some((other, want)) if other.core == seat.core => {
                format!("{} {} gets it", label(want.thread), want.thread.sample.id.tid)
            }
            Some((other, want)) => format!(
                "the SMT sibling of core {}, which {} {} gets",
                other.core,
                label(want.thread),
                want.thread.sample.id.tid
            ),
            None => "a pinned thread has it".to_owned(),
        }
    }

    /// What a core lacks: power, or time that others take.
    fn lacking(&self, own: &Merit, seat: &Seat) -> String {
        let load = self.room.recent.core(seat.core);
        let (others, interrupts) = load.map_or((0, 0), |load| (percent(load.others), percent(load.others_interrupts)));
        let strength = |core: CoreId| self.room.topology.place(core).and_then(|place| place.capacity);
        match (strength(own.core), strength(seat.core)) {
            (Some(own), Some(less)) if less < own => format!("capacity {less} of {own}"),
            _ if interrupts >= 5 => format!("{interrupts} % softirq and interrupts of others"),
            _ if others > 0 => format!("{others} % busy with other work"),
            _ => format!("{} % busy with other work on its SMT sibling", self.others(seat)),
        }
    }

    fn others(&self, seat: &Seat) -> u32 {
        let sibling = |other: &&CorePlace| super::seat::physical(other) == super::seat::physical(&seat.place);
        let siblings = self.room.topology.cores.iter().filter(sibling);
        siblings
            .filter_map(|place| self.room.recent.core(place.core))
            .map(|load| percent(load.others))
            .max()
            .unwrap_or(0)
    }

    fn beside_card(&self, distance: u32) -> String {
        let Some(card) = self.room.card else { return String::new() };
        match distance {
            2 => format!("not on node {}, where {} is", card.node, card.name),
            _ => format!("farther from core {}, which {} interrupts", card.interrupted, card.name),
        }
    }
}

fn on_node(core: CoreId, seats: &[Seat]) -> String {
    let node = seats.iter().find(|seat| seat.core == core).and_then(|seat| seat.place.node);
    node.map_or_else(String::new, |node| format!(" (node {node})"))
}

/// Where it is, seen from the core that was chosen.
fn nearness(class: Option<MoveClass>) -> &'static str {
    match class {
        None => "",
        Some(MoveClass::Smt) => "its SMT sibling",
        Some(MoveClass::Cluster) => "same cluster",
        Some(MoveClass::Llc) => "same cache",
        Some(MoveClass::Node) => "same socket",
        Some(MoveClass::Socket) => "another socket",
    }
}
