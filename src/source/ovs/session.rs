//! One database followed: connected when it is there, understood while it speaks, kept for a moment when it goes, looked
//! for again about once a second. It never waits, and says in one sentence what is wrong.

use super::budget::{BYTES_PER_S, Budget};
use super::connection::{Over, OvsConnection};
use super::daemon::Daemon;
use super::place::{PresentSocket, SocketPlace};
use super::protocol::{self, Heard};
use super::readiness::Readiness;
use super::silence::Silence;
use super::tables::{Changes, Tables};
use crate::sample::Problem;
use crate::source::Roots;
use crate::text::clean;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    budget: Budget,
    look_at_ns: u64,
    rest_ns: u64,
    lost_at_ns: u64,
}

/// The connection, while there is one.
#[derive(Debug)]
struct Here {
    connection: OvsConnection,
    socket: PresentSocket,
    silence: Silence,
    /// It owes an answer for too long, which is the problem told.
    silent: bool,
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

    pub fn is_connected(&self) -> bool {
        self.here.is_some()
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

    /// It is time to [look](Self::look).
    pub fn looks(&self, now_ns: u64) -> bool {
        now_ns >= self.look_at_ns
    }

    /// Once a second: looks for the database, or whether it and its ovs-vswitchd still live. `taken` are the sockets that
    /// others are connected to.
    pub fn look(&mut self, roots: &Roots, taken: &[(u64, u64)], readiness: &mut Readiness, now_ns: u64) {
        self.look_at_ns = now_ns + SECOND_NS;
        if self.here.is_some() {
            self.attend(roots, now_ns);
        } else {
            self.connect(roots, taken, readiness, now_ns);
        }
    }

    fn connect(&mut self, roots: &Roots, taken: &[(u64, u64)], readiness: &mut Readiness, now_ns: u64) {
        let connected = self.place.socket().and_then(|socket| match socket {
            Some(socket) if taken.contains(&socket.file) => Ok(None),
            Some(socket) => Ok(Some((OvsConnection::open(&socket.path)?, socket))),
            None if self.place.asked => Err(io::ErrorKind::NotFound.into()),
            None => Ok(None),
        });
        match connected {
            Ok(Some((mut connection, socket))) => {
                readiness.add(&connection);
                let said = connection.say(&protocol::requests());
                self.here = Some(Here { connection, socket, silence: Silence::begin(now_ns), silent: false });
                self.attend(roots, now_ns);
                self.end(said, now_ns);
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
        self.changes.facts |= self.daemon.look(roots, directory, here.connection.peer());
        let question = if here.silence.asks(now_ns) { protocol::probe() } else { Vec::new() };
        let (said, silent_s) = (here.connection.say(&question), here.silence.seconds(now_ns));
        // One that stands still is left in its place, where it may go on; one that another has taken the place of is not.
        let is_replaced =
            silent_s.is_some() && self.place.socket().is_ok_and(|now| now.is_some_and(|now| now != here.socket));
        self.tell_silence(silent_s);
        self.end(if is_replaced { Err(Over::Closed) } else { said }, now_ns);
    }

    /// What is shown is as old as what was heard last.
    fn tell_silence(&mut self, silent_s: Option<u64>) {
        let (Some(seconds), Some(here)) = (silent_s, &mut self.here) else { return };
        let name = &self.name;
        let sentence = if self.known {
            format!("the database at {name} has not answered for {seconds} s: its data is stale; check ovsdb-server")
        } else {
            format!("the database at {name} has not answered for {seconds} s: no ports known; check ovsdb-server")
        };
        self.changes.counters |= !std::mem::replace(&mut here.silent, true);
        self.report(Some(sentence));
    }

    /// It speaks again. What moved meanwhile is not known: its counters begin anew.
    fn end_silence(&mut self, now_ns: u64) {
        (self.begun, self.counted_at_ns, self.changes.counters) = (true, now_ns, true);
        self.report(None);
    }

    /// Takes in what the database has said.
    pub fn receive(&mut self, buffer: &mut Vec<u8>, now_ns: u64) {
        let Some(mut here) = self.here.take() else { return };
        let mut answers = Vec::new();
        let mut budget = std::mem::take(&mut self.budget);
        budget.fill(now_ns);
        let heard = here.connection.receive(buffer, &mut budget, |message| {
            match protocol::understand(message)? {
                Heard::Asked(answer) => answers.extend_from_slice(&answer),
                heard => self.take(&heard, now_ns),
            }
            self.tables.bounded()
        });
        self.budget = budget;
        // Nor is it silent while nobody listens.
        if heard == Ok(true) || !self.budget.is_left() {
            here.silence.end(now_ns);
            if std::mem::take(&mut here.silent) {
                self.end_silence(now_ns);
            }
        }
        let said = if answers.is_empty() { Ok(()) } else { here.connection.say(&answers) };
        self.here = Some(here);
        self.tell_cost();
        self.end(heard.and(said), now_ns);
    }

    /// What it says is left in its socket until the budget allows more.
    pub fn is_put_off(&self) -> bool {
        self.here.is_some() && !self.budget.is_left()
    }

    /// CPU time that its news have cost elsewhere.
    pub fn pay(&mut self, ns: u64) {
        self.budget.spend(0, ns);
    }

    fn tell_cost(&mut self) {
        let exceeded = self.budget.was_exceeded();
        if !exceeded && self.problem.is_none() {
            return;
        }
        let sentence = format!(
            "the database at {} sends faster than vnettop reads ({} MiB, 2 % of a core per second): data is late",
            self.name,
            BYTES_PER_S >> 20
        );
        if exceeded {
            self.report(Some(sentence));
        } else if self.problem.as_ref().is_some_and(|problem| problem.text == sentence) {
            self.report(None);
        }
    }

    fn take(&mut self, heard: &Heard, now_ns: u64) {
        match heard {
            Heard::Facts(facts) => {
                self.tables = Tables::default();
                self.tables.learn(facts);
                (self.known, self.changes.facts, self.rest_ns) = (true, true, SECOND_NS);
                self.report(None);
            }
            Heard::Learnt(updates) => {
                self.tables.learn(updates);
                self.changes.facts = true;
            }
            Heard::Statistics(all) => {
                self.tables.statistics.clear();
                self.tables.count(all);
                (self.begun, self.changes.facts, self.counted_at_ns) = (true, true, now_ns);
            }
            Heard::Counted(updates) => {
                let news = self.tables.count(updates);
                self.changes.facts |= news.facts;
                if news.counters {
                    (self.counted_at_ns, self.changes.counters) = (now_ns, true);
                }
            }
            Heard::Asked(_) | Heard::Nothing => {}
        }
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

    /// Ends the connection when it is over.
    fn end(&mut self, result: Result<(), Over>, now_ns: u64) {
        let Err(over) = result else { return };
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
