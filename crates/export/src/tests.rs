//! Scrapes over real sockets: who is answered, who is refused, who gives way.

use super::*;
use hyper::body::Bytes;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn started(place: &Place, web_config: Option<&PathBuf>) -> Exporter {
    Exporter::start(place, (web_config, |_| ()), SECOND).expect("it listens")
}

fn anywhere() -> Place {
    "127.0.0.1:0".parse().expect("an address")
}

fn address(exporter: &Exporter) -> String {
    let (_, rest) = exporter.welcome.split_once("://").expect("an address");
    rest.trim_end_matches("/metrics").to_owned()
}

fn answer_one(exporter: &Exporter, text: &str) {
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(&exporter.ready(), PollFlags::IN)], None).expect("a scrape comes");
    for scrape in exporter.waiting().expect("it runs") {
        scrape.answer(ScrapeAnswer { content_type: "text/plain", text: Bytes::from(text.to_owned()) });
    }
}

fn ask(stream: &mut (impl Read + Write), request: &str) {
    stream.write_all(request.as_bytes()).expect("sent");
}

fn read(stream: &mut impl Read) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn places_are_read_as_exporters_write_them() {
    for (text, place) in [(":9782", "[::]:9782"), ("localhost:1", "127.0.0.1:1"), ("unix:/run/x", "unix:/run/x")] {
        assert_eq!(text.parse::<Place>().expect("a place").to_string(), place);
    }
    for wrong in ["", "9782", "unix:", "host.example:1", "1.2.3.4"] {
        assert!(wrong.parse::<Place>().is_err(), "{wrong:?} is none");
    }
}

#[test]
fn a_scrape_is_answered_and_everything_else_says_what_is_wrong() {
    let exporter = started(&anywhere(), None);
    let connect = || TcpStream::connect(address(&exporter)).expect("it listens");
    let mut stream = connect();
    ask(&mut stream, SCRAPE);
    answer_one(&exporter, "vnettop_links 3\n");
    let answer = read(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nvnettop_links 3\n"), "{answer}");
    let wrong = [
        ("GET /other HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "405"),
        ("garbage\r\n\r\n", "400"),
    ];
    for (request, status) in wrong {
        let mut stream = connect();
        ask(&mut stream, request);
        let answer = read(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    assert!(exporter.waiting().expect("it runs").is_empty(), "none of them asks for a sample");
}

#[test]
fn whether_samples_come_is_said_without_a_password_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.yml");
    let hash = bcrypt::hash("secret", 4).expect("hashed");
    std::fs::write(&path, format!("basic_auth_users:\n  ada: {hash}\n")).expect("written");
    let exporter = started(&anywhere(), Some(&path));
    let probe = |exporter: &Exporter, method: &str| {
        let mut stream = TcpStream::connect(address(exporter)).expect("it listens");
        ask(&mut stream, &format!("{method} /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        read(&mut stream)
    };
    let before = probe(&exporter, "GET");
    assert!(before.starts_with("HTTP/1.1 503 ") && before.ends_with("\r\n\r\nno sample yet\n"), "{before}");
    exporter.sampled();
    let after = probe(&exporter, "GET");
    assert!(after.starts_with("HTTP/1.1 200 OK") && after.ends_with("\r\n\r\nsamples come\n"), "{after}");
    assert!(probe(&exporter, "HEAD").starts_with("HTTP/1.1 200 OK"));
    assert!(exporter.waiting().expect("it runs").is_empty(), "none of them asks for a sample");
}

#[test]
fn a_thousand_that_say_nothing_keep_nobody_out() {
    let exporter = started(&anywhere(), None);
    let held: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address(&exporter)).expect("accepted")).collect();
    for stream in &held {
        let mut stream: &TcpStream = stream;
        // A connection that was closed already refuses the write.
        let _closed = stream.write_all(b"GET /metr");
    }
    let mut stream = TcpStream::connect(address(&exporter)).expect("accepted");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    ask(&mut stream, SCRAPE);
    answer_one(&exporter, "x 1\n");
    assert!(read(&mut stream).ends_with("x 1\n"), "the newest is served");
    let closed = held.iter().filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
        let mut stream: &TcpStream = stream;
        match stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    });
    assert!(closed.count() >= 300 - 128, "the oldest have given way");
}

#[test]
fn those_that_read_no_answers_keep_no_scrape_out() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let exporter = started(&anywhere(), None);
    let (address, stops) = (address(&exporter), Arc::new(AtomicBool::new(false)));
    let answers = {
        let stops = Arc::clone(&stops);
        let text = Bytes::from("x 1\n".repeat(20_000));
        std::thread::spawn(move || {
            while !stops.load(Ordering::Relaxed) {
                for scrape in exporter.waiting().expect("it runs") {
                    scrape.answer(ScrapeAnswer { content_type: "text/plain", text: text.clone() });
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let hundred = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    let mut held = Vec::new();
    for nth in 0..280 {
        let mut stream = TcpStream::connect(&address).expect("accepted");
        let _closed = stream.write_all(hundred.as_bytes());
        held.push(stream);
        if nth % 20 == 19 {
            let mut scrape = TcpStream::connect(&address).expect("accepted");
            scrape.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            ask(&mut scrape, SCRAPE);
            let answer = read(&mut scrape);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("x 1\n"), "after {nth} of them");
        }
    }
    stops.store(true, Ordering::Relaxed);
    answers.join().expect("it ends");
}

#[test]
fn a_unix_socket_is_made_anew_and_one_in_use_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::Socket(folder.path().join("vnettop.sock"));
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("vnettop.sock")).expect("left behind"));
    let exporter = started(&place, None);
    let mut stream = UnixStream::connect(folder.path().join("vnettop.sock")).expect("it listens");
    ask(&mut stream, SCRAPE);
    answer_one(&exporter, "y 2\n");
    assert!(read(&mut stream).ends_with("y 2\n"));
    let error = Exporter::start(&place, (None, |_| ()), SECOND).map(drop).expect_err("it is in use").to_string();
    assert!(error.contains("vnettop.sock") && error.contains("--web.listen-address"), "{error}");
}

#[test]
fn a_wrong_file_is_one_sentence_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.yml");
    let cases = [
        ("basic_auth_users:\n  ada: secret\n", "bcrypt"),
        ("basic_auth_users:\n  ada: $2b$31$7EqJtq98hPqEX7fNZaFWoOhi5dIu8yFq5rKJ6ICQdM5sTHN/c0W0e\n", "cost 4 to 16"),
        ("basic_auth: {}\n", "basic_auth_users"),
        ("tls_server_config:\n  cert_file: none.pem\n  key_file: none.key\n", "none.pem"),
        (": : :\n", "web.yml"),
        ("", "it is empty"),
        ("# later\n", "no passwords and no TLS"),
        ("http_server_config: {http2: false}\n", "no passwords and no TLS"),
    ];
    for (text, expected) in cases {
        std::fs::write(&path, text).expect("written");
        let error =
            Exporter::start(&anywhere(), (Some(&path), |_| ()), SECOND).map(drop).expect_err("refused").to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
    }
    for (file, expected) in [("/dev/zero", "not a regular file"), ("fifo", "not a regular file"), ("long", "1 MiB")] {
        let path = folder.path().join(file);
        if file == "fifo" {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a fifo");
        } else if file == "long" {
            std::fs::write(&path, "#".repeat(2 << 20)).expect("written");
        }
        let error =
            Exporter::start(&anywhere(), (Some(&path), |_| ()), SECOND).map(drop).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let missing = folder.path().join("nothing.yml");
    let error =
        Exporter::start(&anywhere(), (Some(&missing), |_| ()), SECOND).map(drop).expect_err("not there").to_string();
    assert!(error.contains("nothing.yml"), "{error}");
}

#[test]
fn a_wrong_password_gets_no_scrape() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.yml");
    let hash = bcrypt::hash("secret", 4).expect("hashed");
    std::fs::write(&path, format!("basic_auth_users:\n  ada: {hash}\n")).expect("written");
    let exporter = started(&anywhere(), Some(&path));
    let with = |header: &str| format!("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n");
    for header in ["", "Authorization: Basic YWRhOmd1ZXNz\r\n"] {
        let mut stream = TcpStream::connect(address(&exporter)).expect("it listens");
        ask(&mut stream, &with(header));
        let answer = read(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("www-authenticate: Basic"), "{answer}");
    }
    assert!(exporter.waiting().expect("it runs").is_empty(), "nothing was asked for them");
    let mut stream = TcpStream::connect(address(&exporter)).expect("it listens");
    ask(&mut stream, &with("Authorization: Basic YWRhOnNlY3JldA==\r\n"));
    answer_one(&exporter, "z 3\n");
    assert!(read(&mut stream).ends_with("z 3\n"), "ada:secret is let in");
}

/// What was said of the file, by whoever is told.
static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

#[test]
fn a_file_that_has_changed_is_read_anew_and_a_wrong_one_locks_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("web.yml");
    let write = |text: &str| {
        // As a Secret of Kubernetes is replaced: another file under the same name.
        std::fs::write(folder.path().join("new"), text).expect("written");
        std::fs::rename(folder.path().join("new"), &path).expect("replaced");
    };
    let user = |name: &str| format!("basic_auth_users:\n  {name}: {}\n", bcrypt::hash("secret", 4).expect("hashed"));
    write(&user("ada"));
    let say = |news: &str| SAID.lock().expect("no panic").push(news.to_owned());
    let exporter = Exporter::start(&anywhere(), (Some(&path), say), SECOND).expect("it listens");
    // ada:secret and bob:secret.
    let [ada, bob] = ["YWRhOnNlY3JldA==", "Ym9iOnNlY3JldA=="];
    // No scrape, so that nobody has to answer: 404 is said to those who are let in.
    let other = |user: &str| format!("GET /other HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}\r\n");
    let status = |user: &str| {
        let mut stream = TcpStream::connect(address(&exporter)).expect("it listens");
        ask(&mut stream, &format!("{}Connection: close\r\n\r\n", other(user)));
        read(&mut stream)["HTTP/1.1 ".len()..][..3].to_owned()
    };
    let mut kept = TcpStream::connect(address(&exporter)).expect("it listens");
    ask(&mut kept, &format!("{}\r\n", other(ada)));
    assert!(kept.read(&mut [0; 512]).is_ok_and(|length| length > 0), "its first answer");
    let said = |part: &str| SAID.lock().expect("no panic").iter().filter(|news| news.contains(part)).count();
    assert_eq!([ada, bob].map(status), ["404", "401"], "ada alone is let in");
    let until = std::time::Instant::now() + 40 * SECOND;
    let await_that = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(std::time::Instant::now() < until, "{what}: {SAID:?}");
        }
    };
    for (text, why) in [("basic_auth_users: [\n", "web.yml"), ("# later\n", "no passwords and no TLS")] {
        let before = said("stay as they were");
        write(text);
        await_that(why, &|| status(ada) == "404" && said("stay as they were") > before);
        assert!(said(why) > 0, "{why}: {SAID:?}");
        assert_eq!(status(bob), "401", "whatever is in the file: {text:?}");
    }
    write(&user("bob"));
    await_that("the new user is known", &|| status(bob) == "404");
    assert_eq!(status(ada), "401", "and the old one no longer");
    ask(&mut kept, &format!("{}\r\n", other(ada)));
    let last = read(&mut kept);
    assert!(
        last.starts_with("HTTP/1.1 401 ") && last.contains("connection: close"),
        "on an open connection either: {last}"
    );
    assert_eq!([said("read anew"), said("stay as they were")], [1, 2], "each is said once: {SAID:?}");
}
