//! The reader against a database that the test plays itself, over a true socket.

use super::{OvsReader, SocketPlace};
use crate::Roots;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vnettop_sample::{Ifindex, Kind, LinkFacts, LinkKey, OvsSwitch};

const SECOND_NS: u64 = 1_000_000_000;
const IDS: [&str; 4] = [
    "00000000-0000-0000-0000-000000000001",
    "00000000-0000-0000-0000-000000000002",
    "00000000-0000-0000-0000-000000000003",
    "00000000-0000-0000-0000-000000000004",
];

/// A machine with one database, a process tree of its own, and a clock that only the test moves.
struct Stage {
    directory: tempfile::TempDir,
    listener: UnixListener,
    reader: OvsReader,
    kernel: Arc<Vec<Arc<LinkFacts>>>,
    now_ns: u64,
    /// Its namespace is looked at.
    wanted: bool,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("db.sock");
        let listener = UnixListener::bind(&socket).expect("it binds");
        let reader = reader(directory.path(), &socket);
        let kernel = Arc::new(vec![kernel_link(3, "br0"), kernel_link(7, "v0")]);
        Self { directory, listener, reader, kernel, now_ns: 10 * SECOND_NS, wanted: true }
    }

    fn read(&mut self, later_ns: u64) -> Arc<Vec<OvsSwitch>> {
        self.now_ns += later_ns;
        let kernel = Arc::clone(&self.kernel);
        let wanted = self.wanted;
        self.reader.read(&kernel, |_| wanted, self.now_ns)
    }

    /// The reader connects, and gets these as facts and statistics.
    fn serve(&mut self, interfaces: &Value, statistics: &Value) -> UnixStream {
        self.read(2 * SECOND_NS);
        let (mut stream, _) = self.listener.accept().expect("the reader connects");
        let mut asked = vec![0; 4096];
        let length = stream.read(&mut asked).expect("it asks");
        let mut requests = serde_json::Deserializer::from_slice(&asked[..length]).into_iter::<Value>();
        let names =
            [requests.next(), requests.next()].map(|request| request.expect("two").expect("JSON")["id"].clone());
        let facts = json!({"id": names[0], "error": null, "result": facts(interfaces)});
        let counts = json!({"id": names[1], "error": null, "result": {"Interface": statistics}});
        say(&mut stream, &format!("{facts}{counts}"));
        self.read(0);
        stream
    }

    /// Reads until something is so.
    fn until(&mut self, what: &str, is: impl Fn(&OvsReader) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is(&self.reader) {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(1));
            self.read(0);
        }
    }

    /// The first of what cannot be seen.
    fn reported(&self) -> String {
        reported(&self.reader)
    }
}

fn reported(reader: &OvsReader) -> String {
    reader.problems().next().map(|problem| problem.text.clone()).unwrap_or_default()
}

/// In one piece: a socket holds few small ones. The question that follows is answered when all of it has been read.
fn say(stream: &mut UnixStream, text: &str) {
    stream.write_all(text.as_bytes()).expect("it is taken");
    stream.write_all(br#"{"id":"read","method":"echo","params":[]}"#).expect("it is taken");
    let mut answers = serde_json::Deserializer::from_reader(&*stream).into_iter::<Value>();
    assert!(answers.any(|answer| answer.expect("JSON")["id"] == "read"), "it is answered");
}

fn reader(proc: &Path, socket: &Path) -> OvsReader {
    let roots = Roots { proc: proc.to_owned(), sys: PathBuf::from("/nonexistent") };
    OvsReader::new(&roots, &[SocketPlace { path: socket.to_owned(), asked: true }])
}

fn kernel_link(index: u32, name: &str) -> Arc<LinkFacts> {
    Arc::new(LinkFacts::new(LinkKey { netns: 0, ifindex: Ifindex(index) }, name, Kind::Tap))
}

/// One bridge, whose ports are named like their interfaces.
fn facts(interfaces: &Value) -> Value {
    let rows = interfaces.as_object().expect("interfaces by uuid");
    let uuids: Vec<Value> = rows.keys().map(|id| json!(["uuid", id])).collect();
    let port =
        |id: &String, row: &Value| json!({"new": {"name": row["new"]["name"], "interfaces": ["uuid", id], "tag": 5}});
    let ports: serde_json::Map<String, Value> = rows.iter().map(|(id, row)| (id.clone(), port(id, row))).collect();
    let bridge = json!({"name": "br0", "datapath_type": "netdev", "fail_mode": "secure", "ports": ["set", uuids]});
    let root = json!({"ovs_version": "3.1.0", "other_config": ["map", []]});
    json!({"Open_vSwitch": {IDS[0]: {"new": root}}, "Bridge": {IDS[0]: {"new": bridge}}, "Port": ports, "Interface": interfaces})
}

fn interface(name: &str, kind: &str, ifindex: u32, options: &Value) -> Value {
    json!({"new": {"name": name, "type": kind, "ifindex": ifindex, "ofport": 1, "options": ["map", options],
        "error": ["set", []], "link_state": "up", "admin_state": "up", "mtu": ["set", []]}})
}

fn counted(bytes: u64) -> Value {
    json!({"new": {"statistics": ["map", [["rx_bytes", bytes], ["tx_bytes", 0], ["rx_packets", 1], ["tx_packets", 0]]]}})
}

fn patches() -> Value {
    json!({
        IDS[0]: interface("br0", "internal", 3, &json!([])),
        IDS[1]: interface("pa", "patch", 0, &json!([["peer", "pb"]])),
        IDS[2]: interface("pb", "patch", 0, &json!([["peer", "pa"]])),
        IDS[3]: interface("v0", "", 7, &json!([])),
    })
}

#[test]
fn ports_are_joined_with_the_kernels_links_and_those_it_does_not_know_become_links() {
    let mut stage = Stage::new();
    let _stream = stage.serve(&patches(), &json!({IDS[1]: counted(100), IDS[2]: counted(7)}));
    let switches = stage.read(0);
    let bridge = &switches[0].bridges[0];
    assert_eq!((bridge.name.as_str(), bridge.datapath.as_ref()), ("br0", "netdev"));
    assert_eq!(bridge.fail_mode.as_deref(), Some("secure"));
    let links: Vec<_> = bridge.ports.iter().map(|port| port.link.map(|key| key.ifindex.kernel())).collect();
    assert_eq!(
        links,
        [Some(Some(3)), Some(None), Some(None), Some(Some(7))],
        "br0 and v0 are the kernel's, pa and pb not"
    );
    let [pa, pb] = &stage.reader.links[..] else { panic!("two links that only Open vSwitch knows") };
    assert_eq!((pa.name.as_str(), pa.kind.word()), ("pa", "patch"));
    assert_eq!(pa.peer.map(|peer| peer.ifindex), Some(pb.ifindex), "the two ends know each other");
    let rows: Vec<_> = stage.reader.counters.iter().map(|row| (row.ifindex, row.rx_bytes)).collect();
    assert_eq!(rows, [(pa.ifindex, 100), (pb.ifindex, 7)]);
    let among = stage.reader.among(Arc::clone(&stage.kernel));
    assert!(among.is_sorted_by_key(|link| link.key()) && among.len() == 4, "one list of all");
    assert!(Arc::ptr_eq(&among, &stage.reader.among(Arc::clone(&stage.kernel))), "the same while nothing changes");
}

#[test]
fn counters_carry_the_time_at_which_they_were_written() {
    let mut stage = Stage::new();
    let mut stream = stage.serve(&patches(), &json!({IDS[1]: counted(100), IDS[2]: counted(7)}));
    stage.read(0);
    let before = stage.reader.counters.clone();
    stage.read(SECOND_NS / 2);
    assert_eq!(stage.reader.counters, before, "nothing was written meanwhile");
    let update =
        json!({"method": "update", "id": null, "params": ["statistics", {"Interface": {IDS[1]: counted(900)}}]});
    say(&mut stream, &update.to_string());
    stage.read(0);
    let after = stage.reader.counters.clone();
    assert_eq!((after[0].rx_bytes, after[1].rx_bytes), (900, 7));
    assert!(after.iter().all(|row| row.at_ns > before[0].at_ns), "all were written, though one only is different");
    assert_eq!(after[0].at_ns, after[1].at_ns);
}

#[test]
fn a_database_that_goes_is_kept_for_a_moment_and_found_again() {
    let mut stage = Stage::new();
    let stream = stage.serve(&patches(), &json!({IDS[1]: counted(100)}));
    let first = stage.reader.links[0].ifindex;
    drop(stream);
    // The clock of what is heard is the true one: from here on the test's own is beside it.
    stage.now_ns = crate::now_ns();
    stage.until("it is said", |reader| reported(reader).contains("has closed the connection"));
    assert_eq!(stage.read(0).len(), 1, "a restart is no flicker");
    assert!(stage.reader.counters.is_empty(), "what nobody tells is not known");
    let _stream = stage.serve(&patches(), &json!({IDS[1]: counted(200)}));
    assert_eq!(stage.reader.links[0].ifindex, first, "the same row is the same link");
    assert!(stage.reader.problems().next().is_none(), "all is well again");
    stage.read(0);
    assert_eq!(stage.reader.counters[0].rx_bytes, 200);
}

#[test]
fn a_database_that_stays_away_is_forgotten() {
    let mut stage = Stage::new();
    drop(stage.serve(&patches(), &json!({})));
    std::fs::remove_file(stage.directory.path().join("db.sock")).expect("removable");
    stage.now_ns = crate::now_ns();
    stage.until("it is said", |reader| reported(reader).contains("has closed the connection"));
    assert!(stage.read(5 * SECOND_NS).is_empty() && stage.reader.links.is_empty(), "no switch, no links");
    assert!(
        stage.reader.problems().next().expect("a sentence").text.contains("there is no "),
        "the one asked for is missed"
    );
}

#[test]
fn whatever_answers_there_is_survived_in_one_sentence() {
    let deep = vec![b'['; 1000];
    let refusal = br#"{"id":"facts","result":null,"error":{"error":"unknown database"}}"#;
    let strange: [&[u8]; 4] = [b"SSH-2.0-OpenSSH\r\n", &deep, refusal, b"{\"a\":}"];
    for bytes in strange {
        let mut stage = Stage::new();
        stage.read(0);
        let (mut stream, _) = stage.listener.accept().expect("the reader connects");
        stream.write_all(bytes).expect("it is taken");
        stage.until("it is told", |reader| reader.problems().next().is_some());
        let text = stage.reported();
        assert!(text.contains("does not answer as an Open vSwitch database, because it"), "one sentence: {text}");
        assert!(!text.contains('\n') && text.len() < 300, "one sentence: {text}");
    }
}

#[test]
fn links_of_a_namespace_that_is_not_looked_at_are_left_out() {
    let mut stage = Stage::new();
    let _stream = stage.serve(&patches(), &json!({}));
    assert!(!stage.reader.links.is_empty(), "patch ports are links");
    stage.wanted = false;
    let switches = stage.read(0);
    assert!(stage.reader.links.is_empty(), "they are where their switch is, and that is not looked at");
    let ports: Vec<_> = switches[0].bridges.iter().flat_map(|bridge| &bridge.ports).collect();
    assert!(!ports.is_empty() && ports.iter().all(|port| port.link.is_none()), "its ports are told, without a link");
    stage.wanted = true;
    stage.read(0);
    assert!(!stage.reader.links.is_empty(), "looked at again, they are there again");
}

#[test]
fn a_database_that_never_stops_speaking_costs_little_and_is_told() {
    let mut stage = Stage::new();
    let mut stream = stage.serve(&patches(), &json!({}));
    let update = json!({"method": "update", "id": null, "params": ["facts", {}]}).to_string().repeat(1000);
    stream.set_nonblocking(false).expect("it may wait");
    let flood = std::thread::spawn(move || {
        let mut sent = 0_usize;
        while stream.write_all(update.as_bytes()).is_ok() {
            sent += update.len();
        }
        sent
    });
    stage.now_ns = crate::now_ns();
    stage.until("it is told", |reader| reported(reader).contains("sends faster than vnettop reads"));
    // What was read before it was too much.
    std::thread::sleep(Duration::from_millis(200));
    stage.read(0);
    let before_ns = super::spent_ns();
    (0..10_000).for_each(|_| drop(stage.read(0)));
    let spent_ms = (super::spent_ns() - before_ns) / 1_000_000;
    assert!(spent_ms < 200, "10,000 ticks read hardly anything: {spent_ms} ms");
    assert_eq!(stage.read(0)[0].bridges.len(), 1, "what it said first still stands");
    drop(stage);
    let sent = flood.join().expect("it ends");
    assert!(sent < 40 << 20, "what was not read could not be sent: {sent} bytes");
}

#[test]
fn a_row_that_holds_all_others_again_and_again_is_taken_once() {
    let mut stage = Stage::new();
    let again: Vec<Value> = (0..5000).map(|_| json!(["uuid", IDS[1]])).collect();
    let mut facts = facts(&json!({IDS[1]: interface("pa", "patch", 0, &json!([]))}));
    facts["Bridge"][IDS[0]]["new"]["ports"] = json!(["set", again]);
    facts["Port"][IDS[1]]["new"]["interfaces"] = json!(["set", again]);
    stage.read(0);
    let (mut stream, _) = stage.listener.accept().expect("the reader connects");
    let answer = json!({"id": "facts", "error": null, "result": facts}).to_string();
    let sender = std::thread::spawn(move || drop(stream.write_all(answer.as_bytes())));
    stage.until("it is read", |reader| !reader.links.is_empty());
    assert_eq!(stage.reader.links.len(), 1, "one interface, one link");
    sender.join().expect("it ends");
}

#[test]
fn a_tunnel_of_the_kernels_datapath_stands_on_the_device_it_shares() {
    let mut stage = Stage::new();
    stage.kernel = Arc::new(vec![kernel_link(3, "br0"), kernel_link(9, "vxlan_sys_4789")]);
    let tunnel = |name: &str, ip: &str| interface(name, "vxlan", 9, &json!([["remote_ip", ip]]));
    let rows = json!({IDS[1]: tunnel("vx0", "198.18.0.2"), IDS[2]: tunnel("vx1", "198.18.0.3")});
    let _stream = stage.serve(&rows, &json!({}));
    let lower: Vec<_> = stage.reader.links.iter().map(|link| link.lower.map(|lower| lower.ifindex.0)).collect();
    assert_eq!(lower, [Some(9), Some(9)], "two links of their own, above the same device");
}

#[test]
fn a_port_that_does_not_exist_is_no_link() {
    let mut stage = Stage::new();
    let mut broken = interface("gone0", "", 0, &json!([]));
    (broken["new"]["ofport"], broken["new"]["error"]) = (json!(-1), json!("could not open network device gone0"));
    let _stream = stage.serve(&json!({IDS[1]: broken}), &json!({}));
    let switches = stage.read(0);
    let port = &switches[0].bridges[0].ports[0];
    assert_eq!((port.link, port.error.as_deref()), (None, Some("could not open network device gone0")));
    assert!(stage.reader.links.is_empty());
}

#[test]
fn a_database_that_says_nothing_is_told_after_five_seconds_and_its_connection_is_kept() {
    let mut stage = Stage::new();
    // The clock of what is heard is the true one.
    stage.now_ns = crate::now_ns();
    stage.read(2 * SECOND_NS);
    let (mut stream, _) = stage.listener.accept().expect("the reader connects");
    stage.read(4 * SECOND_NS);
    assert!(stage.reader.problems().next().is_none(), "the first answer may take a moment");
    stage.read(2 * SECOND_NS);
    let expected = "has not answered for 5 s: no ports known; check ovsdb-server";
    assert!(stage.reported().contains(expected), "{}", stage.reported());
    (0..100).for_each(|_| drop(stage.read(SECOND_NS)));
    stage.listener.set_nonblocking(true).expect("it may");
    assert!(stage.listener.accept().is_err(), "nobody connects a second time");
    let facts = json!({"id": "facts", "error": null, "result": facts(&patches())});
    say(&mut stream, &facts.to_string());
    assert_eq!(stage.read(0).len(), 1, "late is not never");
    assert_eq!(stage.reported(), "", "it is over");
}

#[test]
fn a_database_that_falls_silent_is_as_old_as_its_last_word_and_counts_nothing_meanwhile() {
    let mut stage = Stage::new();
    stage.now_ns = crate::now_ns();
    let mut stream = stage.serve(&patches(), &json!({IDS[1]: counted(100), IDS[2]: counted(7)}));
    stage.read(0);
    assert_eq!(stage.reader.counters.len(), 2, "it counts");
    (0..10).for_each(|_| drop(stage.read(SECOND_NS)));
    let reported = stage.reader.problems().next().expect("a sentence").text.clone();
    assert!(reported.contains(" s: its data is stale; check ovsdb-server"), "{reported}");
    assert_eq!(stage.read(0).len(), 1, "it is shown all the same");
    assert!(stage.reader.counters.is_empty(), "what nobody counts is not known, not 0");
    let update =
        json!({"method": "update", "id": null, "params": ["statistics", {"Interface": {IDS[1]: counted(90_000)}}]});
    say(&mut stream, &update.to_string());
    stage.read(0);
    assert!(stage.reader.problems().next().is_none(), "it is over");
    assert!(stage.reader.counters.is_empty(), "its counters begin anew: the rate over the silence is not known");
    stage.read(SECOND_NS);
    assert_eq!(stage.reader.counters[0].rx_bytes, 90_000);
}
