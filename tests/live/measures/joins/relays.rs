//! A program in the router between the two ends that copies from one connection to another.

use super::observed::{Observed, list, observe};
use crate::ground::line::Line;
use crate::ground::{Netns, await_that, iperf3_server, needs};
use serde_json::Value;
use std::fs;

/// The port that the program listens on, as /proc/net/tcp has it.
const LISTENS: &str = ":14B5 ";

impl Observed {
    /// One test through that program: what the second connection carries is not counted again.
    fn is_one_through(&self, name: &str) {
        self.is_one(name);
        let most = self.carrying().max_by_key(Vec::len).unwrap_or_default();
        assert_eq!(most.len(), 1, "{name}: one connection is counted: {most:?}");
        let named = self.tests().filter(|test| test["relay"]["name"] == name);
        assert!(
            named.count() > 5,
            "{name}: it is named: {:?}",
            self.tests().map(|test| test["relay"]["name"].as_str()).collect::<Vec<_>>()
        );
        let copied = |flow: &&Value| flow["relayed"] == true && flow["to"]["pid"] == self.server;
        let flows = self.tests().flat_map(|test| list(test, "flows"));
        let relays: Vec<&Value> = flows.filter(copied).map(|flow| &flow["relay"]["pid"]).collect();
        assert!(
            !relays.is_empty() && relays.iter().all(|pid| pid.is_u64()),
            "{name}: so is the second one: {relays:?}"
        );
    }
}

/// A test through that program, both ways; its client calls this address.
fn through(line: &Line, name: &str, address: &str) {
    let server = iperf3_server(&line.far, &[]);
    observe(&line.near, &server, &format!("-c {address} -p 5301 -b 200M")).is_one_through(name);
    observe(&line.near, &server, &format!("-c {address} -p 5301 -R -P 2 -b 50M")).is_one(name);
}

/// Waits until it listens.
fn listens(netns: &Netns) {
    await_that("the program listens", 10, || netns.output("cat /proc/net/tcp6 /proc/net/tcp").contains(LISTENS));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_through_socat_is_one() {
    needs(&["iperf3", "ip", "nsenter", "socat"]);
    let line = Line::new();
    let _relay = line.router.keep("socat", &["TCP-LISTEN:5301,fork,reuseaddr", "TCP:198.18.2.1:5201"]);
    listens(&line.router);
    through(&line, "socat", "198.18.1.254");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_through_haproxy_is_one() {
    needs(&["iperf3", "ip", "nsenter", "haproxy"]);
    let line = Line::new();
    let file = line.directory.path().join("haproxy.cfg");
    let lines = "defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
                 listen relay\n bind :5301\n server one 198.18.2.1:5201\n";
    fs::write(&file, lines).expect("writable");
    let _relay = line.router.keep("haproxy", &["-db", "-f", &file.display().to_string()]);
    listens(&line.router);
    through(&line, "haproxy", "198.18.1.254");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_through_nginx_is_one() {
    needs(&["iperf3", "ip", "nsenter", "nginx"]);
    let line = Line::new();
    let folder = line.directory.path().display().to_string();
    let lines = format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\nuser root;\npid {folder}/pid;\n\
         error_log {folder}/log;\nevents {{ }}\n\
         stream {{ server {{ listen 5301; proxy_pass 198.18.2.1:5201; }} }}\n"
    );
    let file = line.directory.path().join("nginx.conf");
    fs::write(&file, lines).expect("writable");
    let _relay = line.router.keep("nginx", &["-c", &file.display().to_string()]);
    listens(&line.router);
    through(&line, "nginx", "198.18.1.254");
    // Its workers end with it, and only when it is asked to; it takes its file away as the last.
    line.router.run(&format!("kill $(cat {folder}/pid)"));
    await_that("its workers have ended", 10, || !line.directory.path().join("pid").exists());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_test_through_ssh_is_one() {
    needs(&["iperf3", "ip", "nsenter", "unshare", "ssh", "ssh-keygen", "sshd"]);
    let line = Line::new();
    let folder = line.directory.path().display().to_string();
    line.router.run(&format!("ssh-keygen -q -t ed25519 -N '' -f {folder}/key; cp {folder}/key.pub {folder}/keys"));
    let options = [
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin yes",
        "PidFile none",
        &format!("AuthorizedKeysFile {folder}/keys"),
        &format!("HostKey {folder}/key"),
    ];
    let options: Vec<String> = options.iter().map(|option| format!("-o '{option}'")).collect();
    // The folder that it wants below /run is made where nobody else sees it.
    let serve = format!(
        "mount -t tmpfs none /run; mkdir /run/sshd; exec $(command -v sshd) -D -f /dev/null -p 2222 {}",
        options.join(" ")
    );
    let _server = line.router.keep("unshare", &["-m", "sh", "-ec", &serve]);
    await_that("sshd listens", 10, || line.router.output("cat /proc/net/tcp").contains(":08AE "));
    let known = format!("UserKnownHostsFile={folder}/known");
    let relay = ["-N", "-F", "none", "-i", &format!("{folder}/key"), "-p", "2222", "-L", "5301:198.18.2.1:5201"];
    let asked = ["-o", "StrictHostKeyChecking=no", "-o", &known, "-o", "BatchMode=yes", "root@198.18.1.254"];
    let _relay = line.near.keep("ssh", &[&relay[..], &asked[..]].concat());
    listens(&line.near);
    through(&line, "ssh", "127.0.0.1");
}
