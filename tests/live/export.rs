//! `vnettop export` against the real thing: Prometheus scrapes two instances, its own tools read the answers, and the numbers that it
//! computes are iperf3's and the kernel's.

use crate::ground::line::Line;
use crate::ground::{Kept, Netns, VNETTOP, await_that, needs};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

const PROGRAMS: &[&str] = &["iperf3", "ip", "nsenter", "nft", "prometheus", "promtool", "python3", "setpriv"];
const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
/// Asks for each URL of the list on standard input; prints what came, as a list.
const FETCH: &str = "
import json, sys, urllib.request
def get(url):
    request = urllib.request.Request(url, headers={'Accept': sys.argv[1]} if len(sys.argv) > 1 else {})
    with urllib.request.urlopen(request, timeout=20) as answer: return answer.read().decode()
print(json.dumps([get(url) for url in json.load(sys.stdin)]))";
/// A datagram every 2 ms to a port where nobody listens: there is an answer to some.
const SEND: &str = "
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sender.sendto(bytes(1000), ('198.18.2.1', 9))
    time.sleep(0.002)";
/// Scrapes of Prometheus before anything is asked of it; five minutes of them where `VNETTOP_SCRAPED_S` says so.
const SCRAPED_S: u64 = 24;

/// Two hosts and the router between them, where Prometheus runs: an exporter in each host, 198.18.1.1 and 198.18.2.1.
struct Pair {
    line: Line,
    _exporters: [Kept; 2],
}

const EXPORTERS: [&str; 2] = ["198.18.1.1:9782", "198.18.2.1:9782"];

impl Pair {
    fn new() -> Self {
        let line = Line::new();
        let start = |netns: &Netns, address: &str| {
            let options = ["export", "--netns", "self", "--watch", line.name(), "--web.listen-address", address];
            netns.keep(VNETTOP, &options)
        };
        let exporters = [start(&line.near, EXPORTERS[0]), start(&line.far, EXPORTERS[1])];
        for netns in [&line.near, &line.far] {
            // Port 9782 in state LISTEN.
            await_that("the exporter listens", 10, || {
                netns.output("cat /proc/net/tcp").contains(":2636 00000000:0000 0A")
            });
        }
        Self { line, _exporters: exporters }
    }

    /// What the URLs answer, asked from the router.
    fn get_all(&self, urls: &[String], accept: Option<&str>) -> Vec<String> {
        let mut command = self.line.router.command("python3");
        let command = command.args(["-c", FETCH]).args(accept).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 runs");
        let list = serde_json::to_vec(urls).expect("a list");
        child.stdin.take().expect("piped").write_all(&list).expect("read");
        let out = child.wait_with_output().expect("it ends");
        assert!(out.status.success(), "{urls:?} answer");
        serde_json::from_slice(&out.stdout).expect("a list")
    }

    fn scrape(&self, exporter: &str, accept: Option<&str>) -> String {
        self.get_all(&[format!("http://{exporter}/metrics")], accept).remove(0)
    }

    /// What Prometheus answers to each query.
    fn queries(&self, queries: &[String]) -> Vec<Value> {
        let escaped = |query: &String| -> String {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric();
            query
                .bytes()
                .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
                .collect()
        };
        let url = |query| format!("http://127.0.0.1:9090/api/v1/query?query={}", escaped(query));
        let urls: Vec<String> = queries.iter().map(url).collect();
        let answers = self.get_all(&urls, None);
        answers.iter().map(|answer| serde_json::from_str(answer).expect("JSON")).collect()
    }

    /// The single value of a query; none where it has no result.
    fn value(&self, query: &str) -> Option<f64> {
        let answer = self.queries(&[query.to_owned()]).remove(0);
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

/// The value of a sample; `series` is its name and labels as written.
fn sample(scrape: &str, series: &str) -> f64 {
    let line = scrape.lines().find(|line| line.starts_with(series) && line[series.len()..].starts_with(' '));
    let line = line.unwrap_or_else(|| panic!("{series} is in\n{scrape}"));
    line[series.len()..].trim().parse().expect("a number")
}

fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
    let out = child.wait_with_output().expect("it ends");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "promtool {arguments:?}: {said}");
}

/// Counters of a link as `ip` reads them.
fn counted(netns: &Netns, link: &str) -> [f64; 4] {
    let text = netns.output(&format!("ip -s -j link show {link}"));
    let links: Value = serde_json::from_str(&text).expect("ip's JSON");
    let count = |way: &str, what: &str| links[0]["stats64"][way][what].as_f64().expect("a counter");
    [count("rx", "bytes"), count("tx", "bytes"), count("rx", "packets"), count("tx", "packets")]
}

/// What of the dashboard is asked: every expression of every panel, its variables replaced.
fn dashboard() -> Vec<(String, String)> {
    let text = fs::read_to_string(format!("{ASSETS}/grafana/vnettop.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let mut found = Vec::new();
    let mut panels: Vec<&Value> = dashboard["panels"].as_array().expect("panels").iter().collect();
    while let Some(panel) = panels.pop() {
        panels.extend(panel["panels"].as_array().into_iter().flatten());
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            let expression = expression.replace("$__rate_interval", "10s").replace("$__range", "20s");
            let mut replaced = String::new();
            let mut rest = expression.as_str();
            // Each variable stands in a matcher of its own: whatever it is, everything matches.
            while let Some(at) = rest.find('$') {
                replaced += &rest[..at];
                let after = rest[at + 1..].trim_start_matches('{');
                let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
                replaced += ".*";
                rest = after[end..].trim_start_matches(":regex").trim_start_matches('}');
            }
            replaced += rest;
            found.push((panel["title"].as_str().expect("a title").to_owned(), replaced));
        }
    }
    assert!(found.len() > 10, "the dashboard asks: {found:?}");
    found
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn prometheus_reads_two_instances_and_its_rates_are_iperf3s() {
    needs(PROGRAMS);
    let pair = Pair::new();
    let line = &pair.line;
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("prometheus.yml");
    let [near, far] = EXPORTERS;
    let text = format!(
        "global: {{scrape_interval: 2s, evaluation_interval: 2s}}\nrule_files: [{ASSETS}/prometheus/rules.yml]\nscrape_configs:\n\
         - job_name: vnettop\n  static_configs: [{{targets: ['{near}', '{far}']}}]\n"
    );
    fs::write(&config, text).expect("written");
    let (config, data) = (format!("--config.file={}", config.display()), folder.path().join("data"));
    let data = format!("--storage.tsdb.path={}", data.display());
    let _prometheus = line.router.keep("prometheus", &[&config, &data, "--web.listen-address=127.0.0.1:9090"]);
    let _server = line.serve();
    let scraped_s: u64 = std::env::var("VNETTOP_SCRAPED_S").ok().and_then(|s| s.parse().ok()).unwrap_or(SCRAPED_S);
    let seconds = (scraped_s + 120).to_string();
    let _client = line.near.keep(line.program(), &["-c", "198.18.2.1", "-b", "400M", "-t", &seconds]);
    let ready = "python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:9090/-/ready')\" && echo yes";
    await_that("prometheus listens", 30, || line.router.output(ready).ends_with("yes\n"));
    await_that("both instances were scraped", scraped_s + 60, || {
        let count = pair.value("min(count_over_time(up{job='vnettop'}[10m]))");
        count.is_some_and(|count| count >= (scraped_s / 2) as f64)
    });
    assert_eq!(pair.value("min(min_over_time(up{job='vnettop'}[10m]))"), Some(1.0), "no scrape has failed");

    // iperf3 sends what it was asked to: payload of 400 Mbit/s, to which the link adds headers.
    let payload = pair.value("max(rate(vnettop_test_bytes_total[20s])) * 8").expect("a rate");
    assert!((payload / 4e8 - 1.0).abs() < 0.02, "the test's rate is {payload}, 4e8 was asked for");
    let carried = pair.value("rate(vnettop_link_receive_bytes_total{instance='198.18.2.1:9782',link='b0'}[20s]) * 8");
    let carried = carried.expect("a rate");
    assert!(
        (1.0..1.05).contains(&(carried / payload)),
        "the link carries that and its headers: {carried} beside {payload}"
    );

    // What the receiver's firewall drops is lost there, and every panel has something to show.
    let drops =
        "table ip t { chain c { type filter hook input priority 0; tcp dport 5201 numgen random mod 200 0 drop; }; }";
    line.far.run(&format!("echo '{drops}' | nft -f -"));
    let lost = "max(increase(vnettop_test_lost_packets_total[20s])) > 0";
    await_that("losses are counted", 60, || pair.value(lost).is_some());
    let place =
        "sum(increase(vnettop_lost_packets_total{netns='own',place='firewall',instance='198.18.2.1:9782'}[20s])) > 0";
    await_that("at their place", 20, || pair.value(place).is_some());
    let panels = dashboard();
    let expressions: Vec<String> = panels.iter().map(|(_, expression)| expression.clone()).collect();
    let mut empty = String::new();
    let has_data = || {
        let answers = pair.queries(&expressions);
        let is_empty = |answer: &Value| answer["data"]["result"].as_array().is_none_or(Vec::is_empty);
        let without = panels.iter().zip(&answers).filter(|(_, answer)| is_empty(answer));
        let each = |((title, expression), answer): (&(String, String), &Value)| {
            format!("{title}: {expression}: {}", answer["error"])
        };
        empty = without.map(each).collect::<Vec<_>>().join("\n");
        empty.is_empty()
    };
    let all_have =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| await_that("every panel has data", 40, has_data)));
    assert!(all_have.is_ok(), "panels without data:\n{empty}");

    // And who lost packets is the worst of the fleet.
    let fleet = line.router.output(&format!("{VNETTOP} fleet --prometheus http://127.0.0.1:9090 --window 30s"));
    let hosts: Vec<&str> =
        fleet.lines().filter_map(|line| line.split_whitespace().next()).filter(|word| word.contains(':')).collect();
    assert_eq!(hosts, [far, near], "the receiver's host counts the losses:\n{fleet}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_scrape_is_what_the_kernel_counts_and_what_promtool_accepts() {
    needs(PROGRAMS);
    let pair = Pair::new();
    let near = &pair.line.near;
    let _sender = near.keep("python3", &["-c", SEND]);
    await_that("packets are sent", 10, || counted(near, "a0")[3] > 100.0);
    let before = counted(near, "a0");
    let scrape = pair.scrape(EXPORTERS[0], None);
    let after = counted(near, "a0");
    for (at, name) in ["receive_bytes", "transmit_bytes", "receive_packets", "transmit_packets"].iter().enumerate() {
        let series = format!("vnettop_link_{name}_total{{netns=\"own\",link=\"a0\",kind=\"veth\",owner=\"\"}}");
        let value = sample(&scrape, &series);
        assert!(
            (before[at]..=after[at]).contains(&value),
            "{name}: {value} is between {} and {}",
            before[at],
            after[at]
        );
    }
    promtool(&["check", "metrics"], &scrape);
    let rules = format!("{ASSETS}/prometheus/rules.yml");
    promtool(&["check", "rules", &rules], "");
    promtool(&["test", "rules", &format!("{ASSETS}/prometheus/rules.test.yml")], "");
    let open = pair.scrape(EXPORTERS[0], Some("application/openmetrics-text;version=1.0.0,*/*;q=0.1"));
    assert!(open.ends_with("# EOF\n"), "Prometheus itself gets OpenMetrics");
}

/// Memory of its own, without the pages of its program, bytes.
fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// One on 127.0.0.1 with more arguments, its address, and the lines that it says from then on.
fn local(more: &[&str]) -> (Kept, String, Receiver<String>) {
    crate::ground::turn::take();
    let mut exporter = Command::new(VNETTOP);
    exporter.args(["export", "--netns", "self", "--web.listen-address", "127.0.0.1:0"]).args(more);
    let mut exporter = Kept(exporter.stderr(Stdio::piped()).spawn().expect("it starts"));
    let mut lines = BufReader::new(exporter.0.stderr.take().expect("piped")).lines();
    let line = lines.next().expect("a line").expect("text");
    let (sender, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let address = line.split_once("://").expect("an address").1.trim().trim_end_matches("/metrics").to_owned();
    (exporter, address, said)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_renewed_certificate_is_shown_without_a_restart() {
    needs(&["openssl", "curl"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run = |command: &str| {
        let shell = Command::new("sh").args(["-c", command]).current_dir(folder.path()).output().expect("sh");
        (shell.status.success(), String::from_utf8_lossy(&shell.stderr).into_owned())
    };
    let make = |name: &str| {
        let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        let names = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1";
        let made = run(&format!("openssl req -x509 {curve} {names} -keyout {name}.key -out {name}.pem"));
        assert!(made.0, "openssl: {}", made.1);
    };
    make("old");
    make("new");
    assert!(run("cp old.pem web.pem; cp old.key web.key").0);
    let web = folder.path().join("web.yml");
    fs::write(&web, "tls_server_config: {cert_file: web.pem, key_file: web.key}\n").expect("written");
    let (_exporter, address, said) = local(&["--web.config.file", web.to_str().expect("text")]);
    let trusts =
        |name: &str| run(&format!("curl -sf --cacert {name}.pem https://{address}/metrics | grep -q ^vnettop_links")).0;
    await_that("the first certificate is shown", 20, || trusts("old"));
    assert!(!trusts("new"), "and no other");
    // A certificate is there before its key for a moment: nobody is locked out.
    assert!(run("cp new.pem tmp; mv tmp web.pem").0);
    let mut refused = None;
    await_that("it is looked at", 20, || {
        assert!(trusts("old"), "the old one serves on");
        refused = said.try_recv().ok();
        refused.is_some()
    });
    assert!(
        refused.as_ref().is_some_and(|news| news.contains("web.pem") && news.contains("stay as they were")),
        "{refused:?}"
    );
    assert!(run("cp new.key tmp; mv tmp web.key").0);
    await_that("the new one is shown", 20, || trusts("new"));
    assert!(said.recv().is_ok_and(|news| news.ends_with("web.yml: read anew")), "which is said");
    assert!(!trusts("old"), "and the old one no longer");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_thousand_slow_clients_harm_neither_a_scrape_nor_memory() {
    needs(PROGRAMS);
    let (exporter, address, _said) = local(&[]);
    let connect = || std::net::TcpStream::connect(&address).expect("accepted");
    let scrape = || {
        let mut stream = connect();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("vnettop_links "), "{answer}");
    };
    // What is loaded at the start, the kernel's own description of its types among it, is no memory of clients.
    let mut settled = (0, std::time::Instant::now());
    await_that("its memory has settled", 40, || {
        scrape();
        let now = resident(exporter.0.id());
        if now.abs_diff(settled.0) > 256 << 10 {
            settled = (now, std::time::Instant::now());
        }
        settled.1.elapsed().as_secs() >= 3
    });
    let before = resident(exporter.0.id());
    let requests: [&[u8]; 4] = [b"", b"GET /met", b"\xff\xfe\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"];
    let slow: Vec<_> = (0..1000)
        .map(|number| {
            let mut stream = connect();
            // Whoever has given way to others already is refused.
            let _closed = stream.write_all(requests[number % requests.len()]);
            stream
        })
        .collect();
    let began = std::time::Instant::now();
    scrape();
    let taken = began.elapsed();
    assert!(taken.as_secs_f64() < 3.0, "a scrape beside {} slow clients took {taken:?}", slow.len());
    let more = resident(exporter.0.id()).saturating_sub(before);
    assert!(more < 8 << 20, "memory grew by {more} bytes");
}
