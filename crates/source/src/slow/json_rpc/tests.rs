//! The conversation with another end that the test plays itself, over a true socket.

use super::*;
use proptest::prelude::*;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

/// A conversation and its other end.
fn pair() -> (Conversation, UnixStream) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("db.sock");
    let listener = UnixListener::bind(&path).expect("it binds");
    let conversation = Conversation::open(&path, &Arc::default()).expect("it connects");
    let (stream, _) = listener.accept().expect("it has connected");
    (conversation, stream)
}

/// What is heard next, within ten seconds.
fn next(conversation: &Conversation) -> Result<Value, Over> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(arrived) = conversation.arrived().next() {
            return arrived.map(|message| message.value);
        }
        assert!(Instant::now() < end, "something is heard");
        sleep(Duration::from_millis(1));
    }
}

/// What is heard of someone who says this and goes.
fn end(text: &[u8]) -> Over {
    let (conversation, mut stream) = pair();
    let text = text.to_vec();
    let sender = std::thread::spawn(move || drop(stream.write_all(&text)));
    let over = loop {
        if let Err(over) = next(&conversation) {
            break over;
        }
    };
    drop(conversation);
    sender.join().expect("it ends");
    over
}

#[test]
fn messages_are_told_apart_wherever_the_stream_is_cut() {
    let stream = br#"{"a":"}\"{","b":[{}]}{"c":{}} {"d":"\\"}"#;
    let expected = [json!({"a": "}\"{", "b": [{}]}), json!({"c": {}}), json!({"d": "\\"})];
    let (conversation, mut there) = pair();
    for cut in 0..stream.len() {
        let before_ns = now_ns();
        for part in [&stream[..cut], &stream[cut..]] {
            there.write_all(part).expect("it is taken");
            sleep(Duration::from_micros(200));
        }
        let found =
            [next(&conversation), next(&conversation), next(&conversation)].map(|arrived| arrived.expect("good JSON"));
        assert_eq!(found, expected, "cut after {cut} bytes the same messages come out");
        assert!((before_ns..=now_ns()).contains(&conversation.received_at_ns()), "with the time at which they came");
    }
}

#[test]
fn an_echo_is_answered_with_its_own_words_and_nobody_has_to_listen() {
    let (conversation, mut there) = pair();
    there.write_all(br#"{"id":"echo","method":"echo","params":["x",1]}"#).expect("it is taken");
    let answer = Deserializer::from_reader(&there).into_iter::<Value>().next().expect("an answer").expect("JSON");
    assert_eq!(answer, json!({"id": "echo", "result": ["x", 1], "error": null}));
    assert!(conversation.arrived().next().is_none(), "that is all");
}

#[test]
fn what_is_no_such_program_is_refused_in_words() {
    let wrong = |sentence: &str| Over::Wrong(sentence.to_owned());
    let echo = json!({"id": 1, "method": "echo", "params": ["y".repeat(100_000)]}).to_string();
    let refused: [(&[u8], &str); 7] = [
        (b"HTTP/1.1 400 Bad Request", "it does not send JSON"),
        (b"{\"a\":}", "it does not send JSON"),
        (b"{\"a\":\"\xff\"}", "it does not send JSON"),
        (b"1 ", "it does not send JSON"),
        (b"[1]", "it does not send objects"),
        (&[b'['; 1000], "it nests more than 128 deep"),
        (echo.as_bytes(), "it asks for an echo of more than 64 KiB"),
    ];
    for (text, sentence) in refused {
        assert_eq!(end(text), wrong(sentence), "{}", String::from_utf8_lossy(&text[..text.len().min(40)]));
    }
    for cut in [&b""[..], b"{\"a\":", b"{\"a\":1}"] {
        assert_eq!(end(cut), Over::Closed, "who says {} and goes has gone", String::from_utf8_lossy(cut));
    }
}

#[test]
fn a_message_that_does_not_end_is_refused() {
    let endless = format!("{{\"id\":\"{}", "x".repeat(2000)).into_bytes();
    let mut text = endless.as_slice().take(1000);
    let error = Value::deserialize(&mut Deserializer::from_reader(&mut text)).expect_err("it does not end");
    let refused = Over::Wrong("it sends a message of more than 16 MiB".to_owned());
    assert_eq!(over(&error, text.limit() == 0), refused);
}

#[test]
fn what_the_budget_does_not_allow_stays_in_the_socket() {
    let (socket, mut there) = UnixStream::pair().expect("a pair");
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        while there.write_all(&vec![b'x'; PIECE]).is_ok() {
            sent += PIECE;
        }
        sent
    });
    let connection = RpcConnection::new(socket.into(), &Arc::default());
    let mut incoming = Incoming { connection: &connection, paid_ns: clock_ns(ClockId::ThreadCPUTime) };
    let (began, mut buffer, mut received) = (Instant::now(), vec![0; PIECE], 0);
    while began.elapsed() < Duration::from_secs(2) {
        received += incoming.read(&mut buffer).expect("it goes on");
    }
    assert!(connection.budget.was_exceeded(now_ns()), "it sends too much");
    assert!((18 << 20..22 << 20).contains(&received), "as much as is allowed at once and a second: {received}");
    drop(connection);
    assert!(sender.join().expect("it ends") < received + (1 << 20), "what was not read could not be sent");
}

#[test]
fn who_does_not_take_answers_does_not_hold_up_who_asks() {
    let (conversation, _there) = pair();
    let began = Instant::now();
    (0..10_000).for_each(|_| conversation.say(&[b' '; 1000]));
    assert!(began.elapsed() < Duration::from_secs(2), "what is not taken is left out");
}

#[test]
fn the_connection_ends_with_the_conversation() {
    let (conversation, mut there) = pair();
    drop(conversation);
    assert_eq!(there.read(&mut [0; 8]).expect("it is told"), 0, "the other end hears it at once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_that_is_received_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..80), text in r#"[{}\[\]",:\\ a1]{0,200}"#) {
        let _ = end(&bytes);
        let _ = end(text.as_bytes());
    }
}
