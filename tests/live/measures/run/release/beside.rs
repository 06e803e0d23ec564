//! Whose benchmark it is that `vnettop run` measures and pins, where others run beside it.

use super::*;
use crate::ground::{needs, needs_two_cores};

/// A test of somebody else's, beside the one that is measured: in namespaces of its own, with the same addresses.
struct OtherTraffic {
    server: Kept,
    client: Kept,
    _ends: (Netns, Netns),
}

impl OtherTraffic {
    /// It runs for as long as this is kept.
    fn run(rate: &str) -> Self {
        let ends = veth_pair();
        let server = iperf3_server(&ends.1, &[]);
        let client = ends.0.keep("iperf3", &["-c", "198.18.0.2", "-t", "600", "-b", rate]);
        await_that("the test beside runs", 20, || has_sent(&ends.0));
        Self { server, client, _ends: ends }
    }

    fn masks(&self) -> [Vec<String>; 2] {
        [masks(self.client.0.id()), masks(self.server.0.id())]
    }
}

fn has_sent(netns: &Netns) -> bool {
    let sent = netns.output("awk '/v0:/ { print $10 }' /proc/net/dev");
    sent.trim().parse::<u64>().is_ok_and(|bytes| bytes > 1 << 20)
}

/// `vnettop run` on a command, recorded, with its card; the card is the same when it is made again.
fn recorded(options: &[&str], command: &[&str]) -> (Value, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (card, record) = (path("card.json"), path("run.jsonl"));
    let options = [options, &["--format", "json", "--card", &card, "--record", &record]].concat();
    let mut vnettop = run(&options, command);
    vnettop.env("XDG_STATE_HOME", dir.path());
    let (code, out, err) = output(vnettop);
    assert_eq!(code, Some(0), "the command ran: {out}{err}");
    let printed = fs::read_to_string(card).expect("a card");
    assert_eq!(made_again(Path::new(&record)), printed, "the recording gives the same card");
    (json(&printed), out)
}

/// The same of a test of 5 s whose own report is read by `theirs`. That holds the start and the end too, which the card leaves
/// out, and bins in which the machine kept everybody from its cores are unknown: where that makes more than 1 %, once more.
fn well_seen(command: &[&str], theirs: fn(&str) -> f64) -> (Value, String) {
    let off = |seen: &(Value, String)| {
        let mean = seen.0["jitter"]["mean_bits_per_s"].as_f64().unwrap_or_else(|| panic!("a rate: {}", seen.0));
        let off = (mean / theirs(&seen.1) - 1.0) * 100.0;
        eprintln!("card {mean:.0}, its own report {:.0} bits/s, {off:+.2} %", theirs(&seen.1));
        off.abs()
    };
    let once = || recorded(&["--settle", "0.5"], command);
    let seen = (0..5).map(|_| once()).find(|seen| off(seen) < 1.0);
    seen.expect("the card's rate is the command's own within 1 %, not everybody's")
}

/// What iperf3 received, by its own report.
fn received(out: &str) -> f64 {
    printed_rate(out, "receiver")
}

fn roles(card: &Value) -> Vec<(&str, u64)> {
    let list = card["watched"].as_array().expect("a list");
    list.iter().map(|of| (of["role"].as_str().unwrap_or(""), of["threads"].as_u64().unwrap_or(0))).collect()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_card_is_of_the_commands_own_test_while_another_runs_beside() {
    needs(&["iperf3", "ip", "nsenter"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = OtherTraffic::run("300M");
    let (near, far) = veth_pair();
    let _server = iperf3_server(&far, &[]);
    let inside = near.pid().to_string();
    let client = ["nsenter", "-t", &inside, "-n", "iperf3", "-c", "198.18.0.2", "-f", "k", "-t", "5", "-b", "100M"];
    let shell = [&["sh", "-c", "sleep 0.5; \"$@\"; exit $?", "sh"][..], &client].concat();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("iperf3").display().to_string();
    // The parent of the client is gone before anybody could have looked.
    let detached = "rm -f $0.end; setsid sh -c '(\"$@\" > $0.out; echo $? > $0.end) &' \"$0\" \"$@\"; \
        while [ ! -s $0.end ]; do sleep 0.1; done; cat $0.out";
    let timed = [&["timeout", "60"][..], &client].concat();
    let orphaned = [&["sh", "-c", detached, &file][..], &client].concat();
    for command in [&client[..], &shell, &timed, &orphaned] {
        let (card, _) = well_seen(command, received);
        assert_eq!(card["measured"]["of"], "command", "{card}");
        assert_eq!(card["basis"]["connections"], 1, "one stream: {card}");
        assert!(roles(&card).iter().all(|(_, threads)| *threads == 1), "one client, one server: {card}");
    }
    drop(beside);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_beside_is_not_pinned() {
    needs(&["iperf3", "ip", "nsenter"]);
    needs_two_cores();
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = OtherTraffic::run("2G");
    let before = beside.masks();
    let (near, far) = veth_pair();
    let _server = iperf3_server(&far, &[]);
    let dir = tempfile::tempdir().expect("a directory");
    let (card, record) = (dir.path().join("card.json"), dir.path().join("run.jsonl"));
    let paths = ["--card", card.to_str().expect("text"), "--record", record.to_str().expect("text")];
    let options = [&["--pin", "compare", "--phase", "1", "--format", "json"][..], &paths].concat();
    let inside = near.pid().to_string();
    let client = ["nsenter", "-t", &inside, "-n", "iperf3", "-c", "198.18.0.2", "-t", "12"];
    // Before the command has its test another one is busy for longer than a stretch.
    let late = [&["sh", "-c", "sleep 3; \"$@\"; exit $?", "sh"][..], &client].concat();
    let mut vnettop = run(&options, &late);
    vnettop.env("XDG_STATE_HOME", dir.path());
    let mut vnettop = kept(vnettop);
    let mut untouched = true;
    await_that("the run ends", 60, || {
        untouched &= beside.masks() == before;
        vnettop.0.try_wait().expect("a child").is_some()
    });
    let printed = fs::read_to_string(card).expect("a card");
    assert_eq!(made_again(&record), printed, "the recording gives the same card");
    let card = json(&printed);
    let pinned: Vec<u64> = events(&record)
        .iter()
        .filter(|event| event["kind"] == "pinned")
        .filter_map(|event| event["thread"]["pid"].as_u64())
        .collect();
    let foreign = [beside.server.0.id(), beside.client.0.id()].map(u64::from);
    assert!(!pinned.is_empty() && !pinned.iter().any(|pid| foreign.contains(pid)), "only its own: {pinned:?}");
    assert!(untouched, "and nothing else has changed the masks of the test beside");
    let pins = card["comparison"]["pins"].as_array().map_or(0, Vec::len);
    assert!(pins > 0, "and the card names whom: {card}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_command_without_a_test_pins_nobody_and_says_so() {
    needs(&["iperf3", "ip", "nsenter"]);
    needs_two_cores();
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = OtherTraffic::run("2G");
    let before = beside.masks();
    let cases = [("compare", "not compared: nothing was pinned: "), ("propose", "proposal  nothing is proposed: ")];
    for (pin, says) in cases {
        let dir = tempfile::tempdir().expect("a directory");
        let record = dir.path().join("run.jsonl");
        let record = ["--record", record.to_str().expect("text")];
        let mut vnettop = run(&[&["--pin", pin, "--phase", "1"][..], &record].concat(), &["sleep", "4"]);
        vnettop.env("XDG_STATE_HOME", dir.path());
        let (code, _, err) = output(vnettop);
        let says = format!("{says}the command has no benchmark connection");
        assert_eq!((code, err.matches(&says).count()), (Some(0), 1), "--pin {pin} says why, once: {err}");
        let pinned = events(Path::new(record[1])).iter().filter(|event| event["kind"] == "pinned").count();
        assert_eq!((pinned, beside.masks()), (0, before.clone()), "--pin {pin} has pinned nobody");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_that_runs_elsewhere_for_the_command_is_measured_with_all_that_is_watched_and_the_card_says_so() {
    needs(&["iperf3", "ip", "nsenter"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let (near, far) = veth_pair();
    let _server = iperf3_server(&far, &[]);
    let dir = tempfile::tempdir().expect("a directory");
    // Of this machine are those of one process namespace: nobody else's iperf3 is there. As a container's daemon does, the
    // first shell runs what the command only asks for.
    let script = format!(
        "mkfifo ask
        (read line < ask; iperf3 -c 198.18.0.2 -f k -t 5 -b 100M > part; mv part out) &
        {VNETTOP} run --settle 0.5 --format json --card card --record run.jsonl -- \
            sh -c 'echo go > ask; while [ ! -e out ]; do sleep 0.1; done'"
    );
    let mut shell = near.command("unshare");
    shell.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", &script]).current_dir(dir.path());
    let (code, _, err) = output(shell);
    assert_eq!(code, Some(0), "the command ran: {err}");
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (printed, out) = (read("card"), read("out"));
    assert_eq!(made_again(&dir.path().join("run.jsonl")), printed, "the recording gives the same card");
    let card = json(&printed);
    assert_eq!(card["measured"]["of"], "everything", "{card}");
    let says = card["measured"]["text"].as_str().expect("a sentence");
    assert!(says.contains("every iperf3 and iperf of this machine"), "{says}");
    let (mean, theirs) = (card["jitter"]["mean_bits_per_s"].as_f64().expect("a rate"), received(&out));
    assert!((mean / theirs - 1.0).abs() < 0.1, "the rate of the one test there is: {mean}, its own report {theirs}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_the_user_names_is_what_counts() {
    needs(&["iperf3", "ip", "nsenter"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = OtherTraffic::run("100M");
    let (server, client) = (beside.server.0.id().to_string(), beside.client.0.id().to_string());
    let (card, _) = recorded(&["--settle", "0.5", "--watch", &server, "--watch", &client], &["sleep", "4"]);
    assert_eq!(card["measured"]["of"], "named", "{card}");
    let mean = card["jitter"]["mean_bits_per_s"].as_f64().expect("a rate");
    assert!((mean / 100e6 - 1.0).abs() < 0.05, "the test that was named: {mean}");
}

/// iperf 2 prints the rate of its server's report last; bits/s.
fn iperf2_rate(out: &str) -> f64 {
    let words: Vec<&str> = out.lines().last().unwrap_or("").split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Kbits/sec").unwrap_or_else(|| panic!("a rate: {out}"));
    words[at - 1].parse::<f64>().expect("a number") * 1e3
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn of_a_server_of_two_the_commands_connection_counts_alone() {
    needs(&["iperf", "ip", "nsenter"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let (near, far) = veth_pair();
    let server = far.keep("iperf", &["-s"]);
    await_that("the server listens", 10, || far.output("cat /proc/net/tcp*").contains(":1389 "));
    let _beside = near.keep("iperf", &["-c", "198.18.0.2", "-t", "60", "-b", "300M"]);
    await_that("the test beside runs", 20, || has_sent(&near));
    let inside = near.pid().to_string();
    let client = ["nsenter", "-t", &inside, "-n", "iperf", "-c", "198.18.0.2", "-f", "k", "-t", "5", "-b", "100M"];
    let (card, _) = well_seen(&client, iperf2_rate);
    let says = card["measured"]["text"].as_str().expect("a sentence");
    assert!(says.contains(&format!("of process {}", server.0.id())), "the server of both is told: {says}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_card_is_of_the_commands_own_udp_while_another_runs_in_the_same_namespace() {
    needs(&["iperf3", "ip", "nsenter"]);
    let _alone = IPERF3.lock().unwrap_or_else(PoisonError::into_inner);
    let (near, far) = veth_pair();
    let _servers = [iperf3_server(&far, &[]), iperf3_server(&far, &["-p", "5202"])];
    let _beside = near.keep("iperf3", &["-u", "-c", "198.18.0.2", "-p", "5202", "-b", "40M", "-t", "600"]);
    await_that("the test beside runs", 20, || has_sent(&near));
    let inside = near.pid().to_string();
    let client =
        ["nsenter", "-t", &inside, "-n", "iperf3", "-u", "-c", "198.18.0.2", "-b", "20M", "-f", "k", "-t", "5"];
    let (card, _) = well_seen(&client, received);
    assert_eq!(card["measured"]["of"], "command", "{card}");
}

#[test]
fn orphans_of_the_command_are_let_go_of() {
    // At once, not with the next sample.
    let mut vnettop = kept(run(&["-d", "60"], &["sh", "-c", "for i in 1 2 3; do (sleep 0.1 &); done; exec sleep 60"]));
    let pid = vnettop.0.id();
    let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let sleeps = || children().split_whitespace().filter(|pid| name(pid) == "sleep\n").count();
    await_that("the command has become its sleep, and its orphans are gone", 20, || sleeps() == 1);
    signal(pid, "-TERM");
    assert_eq!(vnettop.0.wait().expect("it ends").code(), Some(143));
}
