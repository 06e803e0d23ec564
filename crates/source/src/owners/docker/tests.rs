//! Docker as it should answer, and as it should not: slowly, wrongly, endlessly, not at all.

use super::*;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

const SECOND: u64 = 1_000_000_000;
const CONTAINERS: &str = include_str!("../../../../../tests/fixtures/owners/containers.json");
const NETWORKS: &str = include_str!("../../../../../tests/fixtures/owners/networks.json");

/// Listens and answers each question by `answer`, which gets what was asked for.
fn serve(answer: impl Fn(UnixStream, &str) + Send + Sync + Copy + 'static) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("writable");
    let path = directory.path().join("docker.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut question = [0; 1024];
                let length = stream.read(&mut question).unwrap_or(0);
                let question = String::from_utf8_lossy(&question[..length]).into_owned();
                answer(stream, question.split(' ').nth(1).unwrap_or_default());
            });
        }
    });
    (directory, path)
}

fn good(mut stream: UnixStream, question: &str) {
    let body = if question == "/networks" { NETWORKS } else { CONTAINERS };
    let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}");
}

/// Asks, and listens until there is nothing more to wait for.
fn received(docker: &mut Docker, now_ns: u64) -> bool {
    docker.ask(now_ns);
    let mut news = false;
    while docker.is_asked() {
        news |= docker.listen();
        thread::sleep(std::time::Duration::from_millis(1));
    }
    news
}

#[test]
fn the_first_socket_that_answers_is_asked_and_one_that_was_named_is_missed() {
    let (_directory, path) = serve(good);
    let usual = SocketPlaces { paths: vec![PathBuf::from("/nonexistent/docker.sock"), path], named: false };
    let mut docker = Docker::new(usual);
    received(&mut docker, SECOND);
    assert!(!docker.networks.is_empty() && docker.problem().is_none(), "the second one: {:?}", docker.problem());
    let mut docker = Docker::new(SocketPlaces { paths: vec![PathBuf::from("/nonexistent/docker.sock")], named: true });
    received(&mut docker, SECOND);
    let text = docker.problem().expect("it was asked for").text;
    assert!(text.contains("/nonexistent/docker.sock") && text.contains("--docker-socket"), "one sentence: {text}");
}

#[test]
fn names_are_learned_and_kept() {
    let (directory, path) = serve(good);
    let mut docker = Docker::at(path);
    assert!(received(&mut docker, 0), "there is news");
    assert_eq!(docker.container("a51cac518006"), Some("container1"));
    assert_eq!(docker.networks.len(), 5, "and its networks");
    assert_eq!(docker.listener, Some(std::process::id()), "the kernel says who listens");
    assert_eq!(docker.problem(), None, "nothing is missing");
    docker.ask(SECOND / 2);
    assert!(!docker.is_asked(), "it is not asked twice a second");
    assert!(!received(&mut docker, SECOND), "the same answer is no news");
    drop(directory);
    assert!(!received(&mut docker, 10 * SECOND) && docker.problem().is_none(), "a Docker that is gone is no trouble");
    assert_eq!(docker.container("a51cac518006"), Some("container1"), "its names stay");
}

#[test]
fn where_there_is_none_it_is_asked_ever_less_often() {
    let mut docker = Docker::at(PathBuf::from("/nonexistent/docker.sock"));
    let mut asked = Vec::new();
    for second in 0..100 {
        if docker.next_ns() <= second * SECOND {
            asked.push(second);
            received(&mut docker, second * SECOND);
        }
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 95], "twice as long each time, up to half a minute");
    docker.ask_soon();
    assert_eq!(docker.next_ns(), 96 * SECOND, "unless something has changed");
}

/// What the person at the terminal is told of a Docker that answers so.
fn trouble(answer: impl Fn(UnixStream, &str) + Send + Sync + Copy + 'static) -> String {
    let (_directory, path) = serve(answer);
    let mut docker = Docker::at(path);
    received(&mut docker, 0);
    assert_eq!(docker.container("a51cac518006"), None, "nothing is learned");
    docker.problem().expect("trouble is told").text
}

#[test]
fn every_bad_answer_ends_in_one_sentence() {
    let say = |text: &'static str| move |mut stream: UnixStream, _: &str| drop(stream.write_all(text.as_bytes()));
    let cases = [
        (trouble(say("")), "incomplete"),
        (trouble(say("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n[")), "incomplete"),
        (trouble(say("SSH-2.0-OpenSSH_9\r\n")), "not HTTP"),
        (trouble(say("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n{}")), "status 403"),
        (trouble(say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), "not Docker's"),
    ];
    for (text, expected) in cases {
        assert!(text.contains(expected) && text.contains("run as root"), "it says '{expected}': {text}");
        assert!(!text.contains('\n'), "one sentence: {text}");
    }
}

#[test]
fn an_endless_one_is_given_up() {
    let text = trouble(|mut stream: UnixStream, _: &str| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
        while stream.write_all(&[b' '; 8192]).is_ok() {}
    });
    assert!(text.contains("longer than 16 MB"), "the flood is told: {text}");
}

#[test]
fn a_drop_at_a_time_is_an_answer_too() {
    let (_directory, path) = serve(|mut stream: UnixStream, question: &str| {
        let body = if question == "/networks" { NETWORKS } else { CONTAINERS };
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        for piece in text.as_bytes().chunks(40) {
            let _ = stream.write_all(piece);
            thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    let mut docker = Docker::at(path);
    assert!(received(&mut docker, 0), "there is news");
    assert_eq!(docker.container("b62dbd629117"), Some("sidecar"), "the whole answer");
}
