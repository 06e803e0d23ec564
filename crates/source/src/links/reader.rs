//! The order of things in a tick. Counters are dumped first and notifications taken in afterwards: the kernel sends those
//! while it holds the lock (RTNL) that the dump takes, so by then the table knows every link the dump saw, a deleted
//! link's row finds no link and is dropped, and a link created since has facts but no counters yet.

use super::LinkReading;
use super::claimed_speed::{self, EthtoolSpeed};
use super::counters;
use super::facts::{self, Described, LinkChange, MessageNamespace};
use super::idle_links::IdleLinks;
use super::nsid;
use super::table::Table;
use crate::netlink::client::{DumpEnd, NetlinkClient, with_buffer};
use crate::netlink::message::{Request, messages};
use crate::netlink::socket::{KernelSocket, Transport};
use crate::{SourceError, now_ns};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use vnettop_sample::{Ifindex, LinkCounters, LinkFacts, Problem, ProblemSource};

/// Dumps of the links in a row while they keep changing under it. What several interrupted dumps saw is put together,
/// and what was deleted since is told by notifications.
const MOST_DUMPS: usize = 4;
/// New dumps after overruns in one drain; if even these do not catch up, the next tick goes on.
const MOST_OVERRUNS: usize = 3;
/// Most links that are asked for one by one; for more of them a dump is better.
const MOST_ASKED: usize = 64;
/// A bridge follows the carrier of its ports at once, the kernel announces a carrier up to a second later (linkwatch):
/// for so long after any change the claims are asked for every tick.
pub(super) const CLAIMS_SETTLE_NS: u64 = 1_200_000_000;
/// Before Linux 5.6 nobody announces a speed that was set: the drivers are asked again so often, of so many links at once at most.
const DRIVERS_AGAIN_NS: u64 = 2_000_000_000;
const MOST_DRIVERS: usize = 256;
/// Links asked for in one call: the answers, about a kilobyte of its memory each, must fit the socket's buffer.
const MOST_TOGETHER: usize = 48;
/// Longest call whose rows have a known time, ns: a longer one was kept waiting for RTNL.
const MOST_PROMPT_NS: u64 = 1_000_000;
/// Room for links that appear between two ticks.
const SPARE_ROWS: usize = 16;

/// Reads the links of one network namespace, tick by tick, over the kernel's sockets or whatever stands for them.
#[derive(Debug)]
pub struct LinkReader<W = KernelSocket> {
    dumps: NetlinkClient<W>,
    news: W,
    /// `None` before Linux 5.6: the drivers are asked one by one.
    claims: Option<EthtoolSpeed<W>>,
    /// When drivers were last asked again, ns, and the last link that was.
    drivers_asked: (u64, Ifindex),
    table: Table,
    /// `None` when every link is read on every tick.
    idle: Option<IdleLinks>,
    counters_request: Request,
    links_request: Request,
    place: MessageNamespace,
    /// Notifications were lost: only a new dump tells what there is.
    links_stale: bool,
    claims_stale: bool,
    /// How long after a change claims are asked for on every tick, ns; and until when that is, `CLOCK_MONOTONIC`.
    claims_settle_ns: u64,
    claims_settled_ns: u64,
    overruns: u64,
    /// Why claims are not known.
    problem: Option<Problem>,
}

impl<W: Transport> LinkReader<W> {
    /// First dump of links and claims. `news` must already be subscribed, or a change in between would be lost.
    pub(super) fn over(
        dumps: NetlinkClient<W>,
        news: W,
        claims: io::Result<EthtoolSpeed<W>>,
        place: MessageNamespace,
        settle_ns: u64,
    ) -> Result<Self, SourceError> {
        let unclaimed = claims.as_ref().err().filter(|_| place.drivers.is_none());
        let problem = unclaimed.map(no_claims);
        let mut reader = Self {
            dumps,
            news,
            claims: claims.ok(),
            drivers_asked: (0, Ifindex(0)),
            table: Table::default(),
            idle: None,
            counters_request: counters::request(None),
            links_request: facts::request(None),
            place,
            links_stale: false,
            claims_stale: true,
            claims_settle_ns: settle_ns,
            claims_settled_ns: now_ns() + settle_ns,
            overruns: 0,
            problem,
        };
        reader.dump_links()?;
        reader.catch_up()?;
        Ok(reader)
    }

    /// Where there are very many links, reads those that stand still less often than those that move. Their rows keep
    /// the time at which they were read.
    #[must_use]
    pub fn idle_ones_less_often(mut self) -> Self {
        self.idle = Some(IdleLinks::default());
        self
    }

    /// Inode of the network namespace the links belong to.
    #[must_use]
    pub fn netns(&self) -> u64 {
        self.place.netns
    }

    /// The links as they were last read.
    pub fn links(&mut self) -> Arc<Vec<Arc<LinkFacts>>> {
        Arc::clone(self.table.publish())
    }

    /// Asks which of the known namespaces, the likeliest first and each by a descriptor, has which number here
    /// (`RTM_GETNSID`), until every number that a link names is known.
    pub fn find_namespaces(&mut self, own: u64, known: &[u64], descriptor: impl Fn(u64) -> Option<i32>) {
        self.table.forget_namespaces(|netns| known.contains(&netns));
        let mut unknown = self.table.unknown_namespaces();
        if unknown.is_empty() {
            return;
        }
        for &netns in known.iter().filter(|&&netns| netns != own) {
            if self.table.has_namespace(netns) {
                continue;
            }
            let Some(mut request) = descriptor(netns).map(nsid::request) else { continue };
            let Ok(Some(number)) = self.dumps.get(&mut request, nsid::number) else { continue };
            self.table.name_namespace(number, netns);
            unknown.remove(&number);
            if unknown.is_empty() {
                break;
            }
        }
        self.table.resolve();
    }

    /// Becomes readable when a link changed: for `poll`, so that a storm can be [drained](Self::drain) between ticks.
    #[must_use]
    pub fn notifications(&self) -> BorrowedFd<'_>
    where
        W: AsFd,
    {
        self.news.as_fd()
    }

    /// How often the kernel had to drop notifications, each answered by a new dump of all links.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// What cannot be read and why; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.problem.as_slice()
    }

    /// One tick: counters first, then what became of the links meanwhile, then both together.
    ///
    /// # Errors
    /// The kernel refused or broke off a dump. The next call starts afresh.
    pub fn read(&mut self) -> Result<LinkReading, SourceError> {
        self.table.begin();
        if let Some(at_ns) = self.ask_moving() {
            let mut counters = self.idle.as_ref().map_or_else(Vec::new, |idle| idle.rows().to_vec());
            self.catch_up()?;
            self.table.keep_known(&mut counters);
            return Ok(LinkReading { at_ns, links: self.table.publish().clone(), counters });
        }
        let reading = self.read_all()?;
        if let Some(idle) = &mut self.idle {
            idle.replace(&reading.links, &reading.counters, reading.at_ns);
        }
        Ok(reading)
    }

    /// Every link's counters.
    fn read_all(&mut self) -> Result<LinkReading, SourceError> {
        let mut counters = Vec::with_capacity(self.table.len() + SPARE_ROWS);
        let received = self.dump_counters(&mut counters)?;
        self.catch_up()?;
        self.table.keep_known(&mut counters);
        if received.interrupted && self.table.lacks_a_row(&counters) {
            // Every row of an interrupted dump is right, but one may have been skipped. What a second dump skips too is
            // left unknown for this tick.
            self.dump_counters(&mut counters)?;
            self.catch_up()?;
            self.table.keep_known(&mut counters);
        }
        Ok(LinkReading { at_ns: received.at_ns, links: self.table.publish().clone(), counters })
    }

    /// Takes in what happened to links and to set speeds, without sampling.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn drain(&mut self) -> Result<(), SourceError> {
        for _ in 0..=MOST_OVERRUNS {
            if self.links_stale {
                self.discard_news();
                self.dump_links()?;
            }
            if self.hear_news()? {
                break;
            }
            self.links_stale = true;
            self.overruns += 1;
        }
        self.ask_outdated()?;
        if let Some(claims) = &self.claims {
            let table = &mut self.table;
            self.claims_stale |= claims.announced(|(link, mbps)| table.claim_announced(link, mbps));
        }
        Ok(())
    }

    /// Takes in the notifications, then asks for claims once if they may be outdated, then publishes the new list of links.
    fn catch_up(&mut self) -> Result<(), SourceError> {
        self.drain()?;
        let now_ns = now_ns();
        let settles = now_ns < self.claims_settled_ns;
        if std::mem::take(&mut self.claims_stale) {
            self.claims_settled_ns = now_ns + self.claims_settle_ns;
            self.dump_claims();
        } else if settles && self.claims.is_some() {
            self.dump_claims();
        } else if self.claims.is_none() && (settles || now_ns.saturating_sub(self.drivers_asked.0) >= DRIVERS_AGAIN_NS)
        {
            self.ask_drivers_again(now_ns);
        }
        self.table.publish();
        Ok(())
    }

    /// Asks only for the links that move, where that is enough, and says when the last of them were read.
    fn ask_moving(&mut self) -> Option<u64> {
        let netns = self.place.netns;
        let idle = self.idle.as_mut()?;
        let mut at_ns = now_ns();
        let moving = idle.moving(self.table.publish(), at_ns)?;
        for together in moving.chunks(MOST_TOGETHER) {
            let mut requests: Vec<Request> = together.iter().map(|&link| counters::request(Some(link))).collect();
            let answered = self.dumps.get_each(&mut requests, |message, written_at_ns| {
                at_ns = written_at_ns;
                if let Some(row) = counters::row(message, netns, written_at_ns) {
                    idle.take(row);
                }
            });
            answered.ok().filter(|&took_ns| took_ns <= MOST_PROMPT_NS)?;
        }
        Some(at_ns)
    }

    fn dump_counters(&mut self, rows: &mut Vec<LinkCounters>) -> Result<DumpEnd, SourceError> {
        let netns = self.place.netns;
        self.dumps.dump(&mut self.counters_request, "dump link counters", |message, at_ns| {
            rows.extend(counters::row(message, netns, at_ns));
        })
    }

    fn dump_links(&mut self) -> Result<(), SourceError> {
        let mut found: BTreeMap<Ifindex, Described> = BTreeMap::new();
        let place = &self.place;
        for _ in 0..MOST_DUMPS {
            let received = self.dumps.dump(&mut self.links_request, "dump the links", |message, _| {
                if let Some(LinkChange::Is(described)) = facts::change(message, place) {
                    found.insert(described.facts.ifindex, *described);
                }
            })?;
            if !received.interrupted {
                break;
            }
        }
        self.table.replace(found);
        self.links_stale = false;
        self.claims_stale = true;
        Ok(())
    }

    /// Asks again for links that changed unannounced, one by one while they are few.
    fn ask_outdated(&mut self) -> Result<(), SourceError> {
        let outdated = self.table.outdated();
        if outdated.len() > MOST_ASKED {
            return self.dump_links();
        }
        for ifindex in outdated {
            let mut request = facts::request(Some(ifindex));
            let answer = self.dumps.get(&mut request, |message| facts::change(message, &self.place));
            // An error means that the link is gone meanwhile, which a notification reports.
            if let Ok(Some(change)) = answer {
                self.table.apply(change);
            }
        }
        Ok(())
    }

    /// Applies pending notifications; false if some were lost.
    fn hear_news(&mut self) -> Result<bool, SourceError> {
        with_buffer(|buffer| {
            loop {
                let length = match self.news.receive(buffer) {
                    Ok(length) if length <= buffer.len() => length,
                    Ok(_) => return Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(false),
                    Err(error) => return Err(SourceError::Netlink { operation: "receive link notifications", error }),
                };
                for change in messages(&buffer[..length]).filter_map(|message| facts::change(&message, &self.place)) {
                    self.table.apply(change);
                    self.claims_stale = true;
                }
            }
        })
    }

    /// After an overrun the queue begins with messages from before the gap. Applied after the dump they would bring back
    /// links whose deletion fell into the gap.
    fn discard_news(&self) {
        let mut cut = [0; 1];
        while match self.news.receive(&mut cut) {
            Ok(_) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOBUFS),
        } {}
    }

    fn dump_claims(&mut self) {
        let Some(claims) = &mut self.claims else {
            return self.ask_drivers(&self.table.behind(Ifindex(0), usize::MAX));
        };
        let mut reported = BTreeMap::new();
        let dumped = claims.dump(|(link, mbps)| {
            reported.insert(link, mbps);
        });
        if dumped.is_err() {
            // One driver's error (a sleeping device answers ENODEV) ends the dump for all behind it: ask those one by one.
            for ifindex in self.table.behind(Ifindex(0), usize::MAX) {
                if !reported.contains_key(&ifindex)
                    && let Ok(mbps) = claims.ask(ifindex)
                {
                    reported.insert(ifindex, mbps);
                }
            }
        }
        self.problem = dumped
            .err()
            .filter(|_| reported.is_empty())
            .map(|error| Problem { source: ProblemSource::Speed, text: error.to_string() });
        self.table.claim_all(&reported);
    }

    /// The claims of these links from their drivers; one that says nothing claims nothing.
    fn ask_drivers(&mut self, links: &[Ifindex]) {
        let Some(drivers) = &self.place.drivers else { return };
        for &ifindex in links {
            self.table.claim(ifindex, drivers.speed(ifindex).ok().and_then(claimed_speed::known));
        }
    }

    /// Asks the drivers of the next [`MOST_DRIVERS`] links for their claims, in turn.
    fn ask_drivers_again(&mut self, now_ns: u64) {
        let next = self.table.behind(self.drivers_asked.1, MOST_DRIVERS);
        self.ask_drivers(&next);
        let last = next.last().filter(|_| next.len() == MOST_DRIVERS);
        self.drivers_asked = (now_ns, last.copied().unwrap_or(Ifindex(0)));
    }
}

/// Why no link's claim is known.
fn no_claims(error: &io::Error) -> Problem {
    let text = format!("cannot reach the kernel's ethtool family ({error}): nominal speeds are unknown");
    Problem { source: ProblemSource::Speed, text }
}
