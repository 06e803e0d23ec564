//! One database followed: connected when it is there, understood while it speaks, kept for a moment when it goes, looked
//! for again about once a second. It never waits, and says in one sentence what is wrong.

use super::daemon::Daemon;
use super::inactivity::Inactivity;
use super::protocol::{self, News, Subject};
use super::socket_place::{PresentSocket, SocketPlace};
use super::spent_ns;
use super::tables::{Changes, Tables};
use crate::slow::json_rpc::{BYTES_PER_S, Conversation, Over, ReadBudget, RpcMessage};
use crate::{Roots, now_ns};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop_sample::Problem;
use vnettop_sample::text::clean;

const SECOND_NS: u64 = 1_000_000_000;
/// A database that is restarted is back before that: until then what it said stands.
const GRACE_NS: u64 = 3 * SECOND_NS;
/// How long what does no good is left alone at most.
const LONGEST_REST_NS: u64 = 64 * SECOND_NS;

/// One database.
#[derive(Debug, Default)]
pub(super) struct Session {
    place: SocketPlace,
    /// Its socket, cleaned: its name everywhere else.
    pub name: String,
    here: Option<Here>,
    pub tables: Tables,
    pub daemon: Daemon,
    /// Its facts have been told, and are not too old.
    pub known: bool,
    /// The links of its namespace are wanted.
    pub wanted: bool,
    /// The statistics have just been told by a connection: how old they are is not known.
    pub begun: bool,
    /// When ovs-vswitchd wrote the statistics, monotonic ns.
    pub counted_at_ns: u64,
    pub problem: Option<Problem>,
    /// What is different since it was last asked.
    pub changes: Changes,
    /// What it may cost, across its connections.
    budget: Arc<ReadBudget>,
    look_at_ns: u64,
    rest_ns: u64,
    lost_at_ns: u64,
}

/// The connection, while there is one.
#[derive(Debug)]
struct Here {
    conversation: Conversation,
    socket: PresentSocket,
    inactivity: Inactivity,
    /// It owes an answer for too long, which is the problem told.
    silent: bool,
    /// It costs more than it may, which is the problem told.
    is_late: bool,
}

impl Session {
    pub fn new(place: SocketPlace) -> Self {
        Self {
            name: clean(place.path.as_os_str().as_bytes()),
            place,
            wanted: true,
            rest_ns: SECOND_NS,
            ..Self::default()
        }
    }

    /// The file of its socket while it is connected.
    pub fn file(&self) -> Option<(u64, u64)> {
        self.here.as_ref().map(|here| here.socket.file)
    }

    /// The control socket of its ovs-vswitchd, which is in the same directory, and that one's process.
    pub fn control(&self) -> Option<(PathBuf, u32)> {
        let (here, pid) = (self.here.as_ref()?, self.daemon.pid?);
        Some((here.socket.path.with_file_name(format!("ovs-vswitchd.{pid}.ctl")), pid))
    }

    /// Its statistics are those of ovs-vswitchd now.
    pub fn counts(&self) -> bool {
        self.known && self.here.as_ref().is_some_and(|here| !here.silent)
    }

    /// Once a second: looks for the database, or whether it and its ovs-vswitchd still live. `taken` are the sockets that
    /// others are connected to.
    pub fn look(&mut self, roots: &Roots, taken: &[(u64, u64)], now_ns: u64) {
        if now_ns < self.look_at_ns {
            return;
        }
        self.look_at_ns = now_ns + SECOND_NS;
        if self.here.is_some() {
            self.attend(roots, now_ns);
        } else {
            self.connect(roots, taken, now_ns);
        }
    }

    fn connect(&mut self, roots: &Roots, taken: &[(u64, u64)], now_ns: u64) {
        let connected = self.place.socket().and_then(|socket| match socket {
            Some(socket) if taken.contains(&socket.file) => Ok(None),
            Some(socket) => Ok(Some((Conversation::open(&socket.path, &self.budget)?, socket))),
            None if self.place.asked => Err(io::ErrorKind::NotFound.into()),
            None => Ok(None),
        });
        match connected {
            Ok(Some((conversation, socket))) => {
                conversation.say(&protocol::requests());
                let inactivity = Inactivity::begin(now_ns);
                self.here = Some(Here { conversation, socket, inactivity, silent: false, is_late: false });
                self.attend(roots, now_ns);
            }
            Ok(None) => self.report(None),
            Err(error) => {
                let name = &self.name;
                self.report(Some(match error.kind() {
                    io::ErrorKind::NotFound => {
                        format!("there is no {name}: start ovsdb-server, or name its socket with --ovs-socket")
                    }
                    io::ErrorKind::PermissionDenied => {
                        format!("no right to connect to {name}, so Open vSwitch's ports are unknown; run as root")
                    }
                    io::ErrorKind::ConnectionRefused => {
                        format!("nothing listens on {name}: Open vSwitch's ports are not known; start ovsdb-server")
                    }
                    io::ErrorKind::WouldBlock => {
                        format!("nothing accepts connections at {name}: Open vSwitch's ports are not known")
                    }
                    _ => format!("cannot connect to {name}: {error}; name another socket with --ovs-socket"),
                }));
            }
        }
    }

    /// Looks after an open connection.
    fn attend(&mut self, roots: &Roots, now_ns: u64) {
        let Some(here) = &mut self.here else { return };
        let directory = here.socket.path.parent().unwrap_or(Path::new("/"));
        self.changes.facts |= self.daemon.look(roots, directory, here.conversation.peer());
        if here.inactivity.asks(now_ns) {
            here.conversation.say(&protocol::probe());
        }
        let Some(seconds) = here.inactivity.seconds(now_ns) else { return };
        self.changes.counters |= !std::mem::replace(&mut here.silent, true);
        // One that stands still is left in its place, where it may go on; one that another has taken the place of is not.
        if self.place.socket().is_ok_and(|now| now.is_some_and(|now| now != here.socket)) {
            return self.end(Over::Closed, now_ns);
        }
        // What is shown is as old as what was heard last.
        let name = &self.name;
        self.report(Some(if self.known {
            format!("the database at {name} has not answered for {seconds} s: its data is stale; check ovsdb-server")
        } else {
            format!("the database at {name} has not answered for {seconds} s: no ports known; check ovsdb-server")
        }));
    }

    /// Takes in what the database has said.
    pub fn receive(&mut self, now_ns: u64) {
        let Some(mut here) = self.here.take() else { return };
        let taken = here.conversation.arrived().try_for_each(|message| self.take(message?));
        if here.inactivity.end(here.conversation.received_at_ns()) && std::mem::take(&mut here.silent) {
            // What moved meanwhile is not known: its counters begin anew.
            (self.begun, self.counted_at_ns, self.changes.counters) = (true, now_ns, true);
            self.report(None);
        }
        self.tell_cost(&mut here.is_late, now_ns);
        self.here = Some(here);
        if let Err(over) = taken {
            self.end(over, now_ns);
        }
    }

    /// CPU time that its news have cost here.
    pub fn pay(&mut self, ns: u64) {
        self.budget.spend(now_ns(), 0, ns);
    }

    fn tell_cost(&mut self, was_late: &mut bool, now_ns: u64) {
        let is_late = self.budget.was_exceeded(now_ns);
        if std::mem::replace(was_late, is_late) | is_late {
            let sentence = format!(
                "the database at {} sends faster than vnettop reads ({} MiB, 2 % of a core per second): data is late",
                self.name,
                BYTES_PER_S >> 20
            );
            self.report(is_late.then_some(sentence));
        }
    }

    fn take(&mut self, message: RpcMessage) -> Result<(), Over> {
        let before_ns = spent_ns();
        match protocol::understand(message.value).map_err(Over::Wrong)? {
            Some(News { of: Subject::Facts, is_all, rows }) => {
                if is_all {
                    self.tables = Tables::default();
                    (self.known, self.rest_ns) = (true, SECOND_NS);
                    self.report(None);
                }
                self.tables.learn(&rows);
                self.changes.facts = true;
            }
            Some(News { of: Subject::Statistics, is_all, rows }) => {
                if is_all {
                    self.tables.statistics.clear();
                    (self.begun, self.changes.facts, self.counted_at_ns) = (true, true, message.at_ns);
                }
                let news = self.tables.count(&rows);
                self.changes.facts |= news.facts;
                if news.counters {
                    (self.counted_at_ns, self.changes.counters) = (message.at_ns, true);
                }
            }
            None => {}
        }
        self.pay(spent_ns().saturating_sub(before_ns));
        self.tables.bounded().map_err(Over::Wrong)
    }

    /// At every tick. What was said by a database that stays away is forgotten. And where nothing moved, ovs-vswitchd had
    /// nothing to write: what it would have written is the same again.
    pub fn age(&mut self, now_ns: u64) {
        if self.known && self.here.is_none() && now_ns.saturating_sub(self.lost_at_ns) > GRACE_NS {
            (self.known, self.changes.facts) = (false, true);
        }
        let pace_ns = self.tables.statistics_ns();
        if self.counts() && now_ns.saturating_sub(self.counted_at_ns) > 2 * pace_ns {
            self.counted_at_ns += pace_ns;
            self.changes.counters = true;
        }
    }

    /// The connection is over.
    fn end(&mut self, over: Over, now_ns: u64) {
        self.here = None;
        (self.lost_at_ns, self.changes.counters) = (now_ns, true);
        let name = &self.name;
        let sentence = match over {
            Over::Closed => {
                self.look_at_ns = now_ns + SECOND_NS;
                format!("the database at {name} has closed the connection: vnettop tries again every second")
            }
            Over::Wrong(what) => {
                self.rest_ns = (2 * self.rest_ns).min(LONGEST_REST_NS);
                self.look_at_ns = now_ns + self.rest_ns;
                let seconds = self.rest_ns / SECOND_NS;
                format!("{name} does not answer as an Open vSwitch database, because {what}: next try in {seconds} s")
            }
        };
        self.report(Some(sentence));
    }

    fn report(&mut self, sentence: Option<String>) {
        self.problem = sentence.map(super::problem);
    }
}
