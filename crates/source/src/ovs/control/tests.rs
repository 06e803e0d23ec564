//! An ovs-vswitchd that the test plays itself, over a true socket.

use super::*;
use crate::now_ns;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// What ovs-appctl 3.1.0 prints of `dpctl/show`.
const SHOWN: &str = "netdev@ovs-netdev:\n  lookups: hit:152340 missed:71 lost:3\n  flows: 4\n  port 0: ovs-netdev (tap)\n  port 1: br0 (tap)\n";

struct Stage {
    _directory: tempfile::TempDir,
    listener: UnixListener,
    control: Control,
    now_ns: u64,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("ovs-vswitchd.7.ctl");
        let listener = UnixListener::bind(&path).expect("it binds");
        Self { _directory: directory, listener, control: Control::new(path, 7), now_ns: 10 * SECOND_NS }
    }

    fn tick(&mut self) {
        self.now_ns += SECOND_NS;
        self.control.receive(self.now_ns);
        self.control.ask(self.now_ns);
    }

    /// Time does not pass until something is so.
    fn until(&mut self, what: &str, is: impl Fn(&Control) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !is(&self.control) {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(1));
            self.control.receive(self.now_ns);
        }
    }

    /// It is asked; the other end of the connection.
    fn asked(&mut self) -> UnixStream {
        self.tick();
        let (mut stream, _) = self.listener.accept().expect("it connects");
        let mut asked = [0; 512];
        let length = stream.read(&mut asked).expect("it asks");
        let question: Value = serde_json::from_slice(&asked[..length]).expect("one question");
        assert_eq!((&question["method"], &question["params"]), (&json!("dpctl/show"), &json!(["netdev@ovs-netdev"])));
        stream
    }

    fn problem(&self) -> String {
        self.control.problem.as_ref().map(|problem| problem.text.clone()).unwrap_or_default()
    }
}

fn answer(stream: &mut UnixStream, result: &str) {
    let answer = json!({"id": 0, "result": result, "error": null}).to_string();
    stream.write_all(answer.as_bytes()).expect("it is taken");
}

#[test]
fn what_dpctl_show_says_is_understood() {
    let (kind, name) = ("netdev".into(), "ovs-netdev".to_owned());
    let expected = OvsDatapath { kind, name, hit: 152_340, missed: 71, lost: 3, flows: 4, ..OvsDatapath::default() };
    assert_eq!(counters(SHOWN), Some(expected.clone()));
    let both = format!("system@ovs-system:\n  lookups: hit:1 missed:1 lost:1\n  flows: 1\n{SHOWN}");
    assert_eq!(counters(&both), Some(expected), "the kernel's is not its");
    for broken in ["", "netdev@ovs-netdev:\n", "netdev@ovs-netdev:\n  lookups: hit:-1 missed:2 lost:3\n  flows: 0\n"] {
        assert_eq!(counters(broken), None, "no counters in {broken:?}");
    }
}

#[test]
fn each_answer_is_followed_by_another_question_and_keeps_its_time() {
    let mut stage = Stage::new();
    let mut stream = stage.asked();
    assert_eq!(stage.control.reported, None, "nobody has answered yet");
    let before_ns = now_ns();
    answer(&mut stream, SHOWN);
    stage.until("it has answered", |control| control.reported.as_ref().is_some_and(|reported| reported.lost == 3));
    let reported_at_ns = stage.control.reported.as_ref().map_or(0, |reported| reported.at_ns);
    assert!((before_ns..=now_ns()).contains(&reported_at_ns), "when it was answered");
    stage.tick();
    let mut asked = [0; 512];
    assert!(stream.read(&mut asked).expect("it asks again") > 0);
    answer(&mut stream, &SHOWN.replace("lost:3", "lost:9"));
    stage.until("it counts on", |control| control.reported.as_ref().is_some_and(|reported| reported.lost == 9));
}

#[test]
fn one_that_does_not_answer_is_told_after_five_seconds_and_over_when_it_does() {
    let mut stage = Stage::new();
    let mut stream = stage.asked();
    (0..4).for_each(|_| stage.tick());
    assert_eq!(stage.problem(), "", "it may be busy");
    (0..3).for_each(|_| stage.tick());
    assert!(stage.problem().contains("for 5 s: datapath drops unknown; see its log"), "{}", stage.problem());
    assert_eq!(stage.control.reported, None);
    stage.listener.set_nonblocking(true).expect("it may");
    assert!(stage.listener.accept().is_err(), "nobody connects a second time");
    answer(&mut stream, SHOWN);
    stage.until("it is over", |control| control.problem.is_none() && control.reported.is_some());
}

#[test]
fn whatever_answers_there_is_left_alone_in_one_sentence() {
    let unasked = "{\"id\":0,\"result\":\"x\",\"error\":null}".repeat(2);
    let refusal = r#"{"id":0,"result":null,"error":"\"dpctl/show\" is not a valid command"}"#;
    for text in ["SSH-2.0-OpenSSH\r\n", "{\"id\":0}", &unasked, refusal, "[]"] {
        let mut stage = Stage::new();
        let mut stream = stage.asked();
        stream.write_all(text.as_bytes()).expect("it is taken");
        stage.until("it is told", |control| control.problem.is_some());
        let problem = stage.problem();
        assert!(problem.contains("cannot query ") && !problem.contains('\n') && problem.len() < 400, "{problem}");
        assert!(stage.control.conversation.is_none() && stage.control.reported.is_none(), "it is left alone");
    }
}

#[test]
fn one_that_is_not_there_is_asked_again_less_and_less_often() {
    let mut control = Control::new(PathBuf::from("/nonexistent/ovs-vswitchd.7.ctl"), 7);
    let mut tries = Vec::new();
    for second in 0..40 {
        control.problem = None;
        control.ask(second * SECOND_NS);
        tries.extend(control.problem.as_ref().map(|_| second));
    }
    assert_eq!(tries, [0, 1, 3, 7, 15, 31], "its absence is no reason to look all the time");
}

proptest! {
    #[test]
    fn no_answer_breaks_it(
        text in "(netdev@ovs-netdev:\n)?(  (lookups|flows):( (hit|missed|lost):[0-9]{0,25}){0,4}\n){0,3}",
        word in ".{0,100}",
    ) {
        let _ = counters(&text);
        let _ = understand(&json!({"id": 0, "result": text, "error": word}));
    }
}
