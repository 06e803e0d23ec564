//! One thread on one seat while all the others keep theirs: what speaks for it, in the order of importance, and the words
//! for what decided between two seats. Placements are mended by it thread by thread, and runners-up are told by it.

use super::Want;
use super::place::Placement;
use super::seat::Seat;
use crate::sample::CoreId;

/// The less the better, first field first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question with two answers")]
pub(super) struct Merit {
    /// Threads that have this very core, and its physical core.
    pub(super) sharers: (u32, u32),
    /// Others keep it busy.
    pub(super) taken: bool,
    pub(super) off_memory: bool,
    /// The other end of the stream is on another cache.
    pub(super) parted: bool,
    /// Threads of the proposal, and pinned ones, on other caches.
    pub(super) outside: u32,
    /// What it lacks, roughly: only where it lacks much more does it go before the node of the network card.
    pub(super) heavy: u32,
    pub(super) from_card: u32,
    /// What it lacks, in tenths.
    pub(super) lack: u32,
    /// The thread would leave the core it is bound to.
    pub(super) unsettled: bool,
    /// The thread would leave the node it is on, where its memory is.
    pub(super) uprooted: bool,
    /// The other end of the stream is in another cluster.
    pub(super) apart: bool,
    /// Threads of other streams in the cluster.
    pub(super) crowd: u32,
    /// Others keep another core of the cluster busy.
    pub(super) noisy: bool,
    pub(super) rather_not: u32,
    pub(super) core: CoreId,
}

/// How many threads each core, physical core, cluster and cache has.
pub(super) struct Company<'a> {
    seats: &'a [Seat],
    wants: &'a [Want<'a>],
    core: Vec<u32>,
    physical: Vec<u32>,
    cluster: Vec<u32>,
    cache: Vec<u32>,
    total: u32,
}

impl<'a> Company<'a> {
    pub(super) fn of(chosen: &[usize], seats: &'a [Seat], wants: &'a [Want<'a>]) -> Self {
        let none = || vec![0; seats.len()];
        let (core, physical, cluster, cache) = (none(), none(), none(), none());
        let mut company = Self { seats, wants, core, physical, cluster, cache, total: 0 };
        for &at in chosen {
            company.count(at, 1);
        }
        company
    }

    fn count(&mut self, at: usize, by: i32) {
        let seat = &self.seats[at];
        for number in [
            &mut self.core[at],
            &mut self.physical[seat.physical],
            &mut self.cluster[seat.cluster],
            &mut self.cache[seat.cache],
            &mut self.total,
        ] {
            *number = number.saturating_add_signed(by);
        }
    }

    /// The seats that the thread may have, each with its merit; the thread itself is thought away first.
    pub(super) fn merits(&mut self, nth: usize, chosen: &[usize]) -> Vec<(Merit, usize)> {
        let (seats, want) = (self.seats, &self.wants[nth]);
        self.count(chosen[nth], -1);
        let partner = partner(nth, self.wants).map(|other| &seats[chosen[other]]);
        let home = home(want, seats);
        let may = |at: &usize| want.allowed.cores.contains(seats[*at].core);
        let found = (0..seats.len()).filter(may).map(|at| (self.merit(want, at, partner, home), at)).collect();
        self.count(chosen[nth], 1);
        found
    }

    fn merit(&self, want: &Want<'_>, at: usize, partner: Option<&Seat>, home: Option<u32>) -> Merit {
        let seat = &self.seats[at];
        let lack = seat.lack_for(want);
        let apart = partner.is_some_and(|partner| partner.cluster != seat.cluster);
        let ends = u32::from(partner.is_some() && !apart);
        Merit {
            sharers: (self.core[at], self.physical[seat.physical] + seat.held),
            taken: seat.taken,
            off_memory: seat.is_off_memory(want),
            parted: partner.is_some_and(|partner| partner.cache != seat.cache),
            outside: self.total - self.cache[seat.cache] + seat.strangers,
            heavy: lack / 3,
            from_card: seat.from_card,
            lack,
            unsettled: want.bound_to.is_some_and(|core| core != seat.core),
            uprooted: home.is_none() || home != seat.place.node,
            apart,
            crowd: self.cluster[seat.cluster].saturating_sub(ends),
            noisy: seat.noisy,
            rather_not: seat.rather_not,
            core: seat.core,
        }
    }
}

/// The node the thread is on now; none where that is no seat, or not known.
fn home(want: &Want<'_>, seats: &[Seat]) -> Option<u32> {
    let here = seats.binary_search_by_key(&want.thread.sample.core, |seat| seat.core).ok();
    here.and_then(|at| seats[at].place.node)
}

/// The seat is on another node than the one that the thread is on now.
pub(super) fn is_uprooted(seat: &Seat, want: &Want<'_>, seats: &[Seat]) -> bool {
    let home = home(want, seats);
    home.is_none() || home != seat.place.node
}

/// The other end of a thread's stream: it stands right before or after it.
pub(super) fn partner(nth: usize, wants: &[Want<'_>]) -> Option<usize> {
    let neighbours = [nth.checked_sub(1), Some(nth + 1)];
    neighbours.into_iter().flatten().find(|&other| wants.get(other).is_some_and(|want| want.is_partner_of(&wants[nth])))
}

/// Moves single threads to better seats as long as there are any, but not for ever.
pub(super) fn mend(placement: &mut Placement, seats: &[Seat], wants: &[Want<'_>]) {
    for _ in 0..2 {
        let mut moved = false;
        let mut company = Company::of(&placement.seats, seats, wants);
        for nth in 0..wants.len() {
            let merits = company.merits(nth, &placement.seats);
            let Some(&(_, best)) = merits.iter().min() else { continue };
            if best != placement.seats[nth] {
                company.count(placement.seats[nth], -1);
                company.count(best, 1);
                placement.seats[nth] = best;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let company = Company::of(&placement.seats, seats, wants);
    placement.shares = placement.seats.iter().any(|&at| {
        let seat = &seats[at];
        company.physical[seat.physical] + seat.held > 1
    });
    placement.taken = placement.seats.iter().any(|&at| seats[at].taken);
}
