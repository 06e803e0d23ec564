//! Two hosts and a desk: three machines, each with its wires, and an sshd on the hosts that lets the desk in. Behind each host
//! is one container on a bridge, as Docker has it. Keys, configs and logs are in one folder; all of it ends with the value.
//!
//! ```text
//! desk 10.8.1.1 -kp1---desk0- 10.8.1.2 a 10.9.0.1 -wire0---wire0- 10.9.0.2 b 10.8.2.2 -desk0---kp2- 10.8.2.1 desk
//! a: docker0 172.17.0.1/16, c1 eth0 172.17.0.2        b: docker0 172.18.0.1/16, c1 eth0 172.18.0.2
//! ```

use super::machine::{HOST, Machine};
use super::{Kept, VNETTOP, Watching, await_that, listening};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What the tests need beside what every live test needs.
pub const PROGRAMS: &[&str] = &[
    "ip",
    "iperf3",
    "iptables",
    "nsenter",
    "pgrep",
    "pkill",
    "setpriv",
    "ssh",
    "ssh-keygen",
    "sshd",
    "sysctl",
    "unshare",
];

/// The namespace of a host's container.
pub const CONTAINER: &str = "/run/netns/c1";

/// Where a vnettop keeps its state and what its user's home is, on each machine; /run is the machine's own.
const STATE: &str = "/run/vnettop-state";
const HOME: &str = "/run/home";

/// What ssh asks of either host.
const SSH: &str = "Host kp1 kp2
    User root
    IdentityFile FOLDER/client_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile FOLDER/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
";

/// The sshd of a host. A program is looked for in its own folder first, where vnettop is.
const SSHD: &str = "ListenAddress 0.0.0.0
Port 22
HostKey OWN/host_key
AuthorizedKeysFile OWN/authorized_keys
PidFile OWN/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
PrintLastLog no
SetEnv XDG_STATE_HOME=STATE HOME=HOME_THERE PATH=OWN/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
";

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// `kp1`.
    A,
    /// `kp2`.
    B,
}

impl Host {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Its hostname, which is also its name for ssh, and that of the desk's link to it.
    pub fn name(self) -> &'static str {
        ["kp1", "kp2"][self as usize]
    }

    /// The other one.
    pub fn other(self) -> Self {
        Self::BOTH[1 - self as usize]
    }

    /// The first half of its containers' addresses.
    fn net(self) -> &'static str {
        ["172.17", "172.18"][self as usize]
    }

    /// Its address on the wire between the two.
    pub fn wire(self) -> &'static str {
        ["10.9.0.1", "10.9.0.2"][self as usize]
    }

    /// Its address for the desk.
    pub fn address(self) -> &'static str {
        ["10.8.1.2", "10.8.2.2"][self as usize]
    }
}

/// The three machines. What is started first ends last.
pub struct Pair {
    sshd: [Option<Kept>; 2],
    /// Where vnettop runs that asks the others.
    pub desk: Machine,
    /// `kp1`.
    pub a: Machine,
    /// `kp2`.
    pub b: Machine,
    nat: bool,
    folder: TempDir,
}

impl Pair {
    /// All of it, and both answer ssh. Without `nat` the containers have routes to each other. With it, what leaves one is
    /// masqueraded, and port 5201 of a host is its container's.
    pub fn new(nat: bool) -> Self {
        let [desk, a, b] = [Machine::new(), Machine::new(), Machine::new()];
        let folder = tempfile::Builder::new().prefix("vnettop-pair-").tempdir().expect("a temporary folder");
        let mut pair = Self { sshd: [None, None], desk, a, b, nat, folder };
        for (machine, name) in [(&pair.desk, "desk"), (&pair.a, Host::A.name()), (&pair.b, Host::B.name())] {
            machine.run(&format!("echo {name} > /proc/sys/kernel/hostname; mkdir -m 700 {STATE} {HOME}"));
        }
        wire((&pair.a, "wire0", Host::A.wire()), (&pair.b, "wire0", Host::B.wire()));
        wire((&pair.desk, Host::A.name(), "10.8.1.1"), (&pair.a, "desk0", Host::A.address()));
        wire((&pair.desk, Host::B.name(), "10.8.2.1"), (&pair.b, "desk0", Host::B.address()));
        pair.keys();
        for host in Host::BOTH {
            pair.containers(host);
            pair.start_sshd(host);
        }
        pair
    }

    /// That machine.
    pub fn host(&self, host: Host) -> &Machine {
        match host {
            Host::A => &self.a,
            Host::B => &self.b,
        }
    }

    /// The ssh config that knows both; on the desk ssh reads it without being told.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("ssh_config")
    }

    /// A host's own files: `sshd_config`, `sshd.pid`, and `bin`, where ssh looks for vnettop first.
    pub fn own(&self, host: Host) -> PathBuf {
        self.folder.path().join(host.name())
    }

    /// The bridge of a host, its container, and the way to the other's.
    fn containers(&self, host: Host) {
        let (machine, net, other) = (self.host(host), host.net(), host.other());
        machine.space("c1");
        machine.run(&format!(
            "sysctl -qw net.ipv4.ip_forward=1
             ip link add docker0 type bridge; ip addr add {net}.0.1/16 dev docker0; ip link set docker0 up
             ip link add vethc1 type veth peer name eth0 netns c1
             ip link set vethc1 master docker0 up
             ip -n c1 addr add {net}.0.2/16 dev eth0; ip -n c1 link set eth0 up
             ip -n c1 route add default via {net}.0.1"
        ));
        if !self.nat {
            machine.run(&format!("ip route add {}.0.0/16 via {}", other.net(), other.wire()));
            return;
        }
        machine.run(&format!("iptables -t nat -A POSTROUTING -s {net}.0.0/16 -o wire0 -j MASQUERADE"));
        for protocol in ["tcp", "udp"] {
            machine.run(&format!(
                "iptables -t nat -A PREROUTING -i wire0 -p {protocol} --dport 5201 -j DNAT --to-destination {net}.0.2:5201"
            ));
        }
    }

    /// The keys of the desk and of both hosts, and the configs that name them.
    fn keys(&self) {
        let folder = self.folder.path();
        let public = key(&folder.join("client_key"));
        let (mut known, mut config) = (String::new(), String::new());
        for host in Host::BOTH {
            let own = self.own(host);
            std::fs::create_dir_all(own.join("bin")).expect("a folder");
            let (name, address) = (host.name(), host.address());
            known += &[name, ",", address, " ", &key(&own.join("host_key"))].concat();
            config += &["Host ", name, "\n    HostName ", address, "\n"].concat();
            write(&own.join("authorized_keys"), &public);
            let sshd =
                SSHD.replace("OWN", path(&own)).replace("HOME_THERE", HOME).replace("=STATE", &format!("={STATE}"));
            write(&own.join("sshd_config"), &sshd);
            self.install(host, Some(Path::new(VNETTOP)));
        }
        write(&folder.join("known_hosts"), &known);
        write(&self.config(), &(config + &SSH.replace("FOLDER", path(folder))));
        self.desk.run(&format!("mount --bind {} /etc/ssh/ssh_config", self.config().display()));
    }

    /// Which program `vnettop` is for ssh on that host. With none it is not installed there, unless the real machine has one.
    pub fn install(&self, host: Host, program: Option<&Path>) {
        let link = self.own(host).join("bin/vnettop");
        let _ = std::fs::remove_file(&link);
        if let Some(program) = program {
            std::os::unix::fs::symlink(program, link).expect("a link");
        }
    }

    /// Starts the sshd of a host, again or for the first time; it listens.
    pub fn start_sshd(&mut self, host: Host) {
        let (machine, own) = (self.host(host), self.own(host));
        let _ = std::fs::remove_file(own.join("sshd.pid"));
        machine.run("mkdir -p /run/sshd");
        // It starts itself anew for each session, so it wants to know its whole path.
        let program = machine.run("command -v sshd");
        let mut command = machine.inside(HOST, program.trim());
        command.args(["-D", "-e", "-f"]).arg(own.join("sshd_config"));
        // Since 9.8 it would refuse the desk for a while after sessions of its were killed.
        let lenient = "PerSourcePenalties=no";
        if machine.can(&format!("sshd -t -f {}/sshd_config -o {lenient}", own.display())) {
            command.args(["-o", lenient]);
        }
        let kept = machine.keep("sshd", command);
        // It writes its pid when it listens.
        let listens = || std::fs::read(own.join("sshd.pid")).is_ok_and(|text| text.ends_with(b"\n"));
        await_that(&format!("the sshd of {} listens", host.name()), 10, listens);
        self.sshd[host as usize] = Some(kept);
    }

    /// How many vnettops run on a host, its containers among it.
    pub fn vnettops(&self, host: Host) -> usize {
        self.count(host, "-x vnettop")
    }

    fn count(&self, host: Host, what: &str) -> usize {
        self.host(host).run(&format!("pgrep -c {what} || true")).trim().parse().expect("a number")
    }

    /// Every vnettop on a host stands still: ssh lives, and nothing comes from it.
    pub fn stand_still(&self, host: Host) {
        self.host(host).run("pkill -STOP -x vnettop");
    }

    /// And goes on.
    pub fn go_on(&self, host: Host) {
        self.host(host).run("pkill -CONT -x vnettop");
    }

    /// Nothing arrives on either end of the desk's link to a host any more, and neither is told: as a cable cut further off.
    pub fn wire_silent(&self, host: Host) {
        self.drops(host, "-I");
    }

    /// Everything arrives again; TCP may take its time until it tries.
    pub fn wire_heard(&self, host: Host) {
        self.drops(host, "-D");
    }

    fn drops(&self, host: Host, how: &str) {
        for (machine, link) in [(&self.desk, host.name()), (self.host(host), "desk0")] {
            machine.run(&format!("iptables {how} INPUT -i {link} -j DROP"));
        }
    }

    /// Runs shell lines on a host through ssh, from the desk; every one must succeed. What they printed.
    pub fn ssh(&self, host: Host, script: &str) -> String {
        let out = self.desk.inside(HOST, "ssh").args([host.name(), script]).output().expect("ssh runs");
        assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Vnettop on the desk, with a state and a home of the desk's own.
    pub fn vnettop(&self, arguments: &[&str]) -> Command {
        let mut command = self.desk.vnettop(arguments);
        command.env("XDG_STATE_HOME", STATE).env("HOME", HOME).env_remove("XDG_CONFIG_HOME");
        command
    }

    /// The same as a line for a shell; what it says on standard error goes to a file of the desk's, to be read with [`Pair::said`].
    pub fn line(&self, arguments: &[&str]) -> String {
        let command = self.vnettop(arguments);
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        format!("env XDG_STATE_HOME={STATE} HOME={HOME} {} 2>{}", words.join(" "), self.errors().display())
    }

    /// Vnettop on the desk, watched line by line, with what it says on standard error in a file.
    pub fn watch_errors(&self, arguments: &[&str]) -> Watching {
        let mut command = self.vnettop(&[&["-d", "0.25"], arguments].concat());
        command.stderr(std::fs::File::create(self.errors()).expect("a file"));
        Watching::start(command)
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.errors()).unwrap_or_default()
    }

    fn errors(&self) -> PathBuf {
        self.folder.path().join("errors")
    }

    /// Vnettop on the desk, watched line by line.
    pub fn watch(&self, arguments: &[&str]) -> Watching {
        Watching::start(self.vnettop(&[&["-d", "0.25"], arguments].concat()))
    }

    /// The address under which the container of a host is reached from the other host's.
    pub fn target(&self, host: Host) -> String {
        if self.nat { host.wire().to_owned() } else { format!("{}.0.2", host.net()) }
    }

    /// An iperf3 server in the container of a host; it listens.
    pub fn server(&self, host: Host, more: &[&str]) -> Kept {
        listening(self.host(host).inside(CONTAINER, "iperf3"), more)
    }

    /// An iperf3 client in the container of a host, for the server in the other's.
    pub fn client(&self, host: Host, more: &[&str]) -> Command {
        let mut command = self.host(host).inside(CONTAINER, "iperf3");
        command.args(["-c", &self.target(host.other())]).args(more);
        command
    }
}

/// A cable between two machines: each with the name and the address of its end.
fn wire(near: (&Machine, &str, &str), far: (&Machine, &str, &str)) {
    // Outside, where the pids of both are known; only the network is that of one.
    let (from, to) = (near.0.pid().to_string(), far.0.pid().to_string());
    let out = Command::new("nsenter")
        .args(["-t", &from, "-n", "--", "ip", "link", "add", near.1, "mtu", "1500"])
        .args(["type", "veth", "peer", "name", far.1, "mtu", "1500", "netns", &to])
        .output()
        .expect("nsenter runs");
    assert!(out.status.success(), "a wire: {}", String::from_utf8_lossy(&out.stderr));
    for (machine, link, address) in [near, far] {
        machine.run(&format!("ip addr add {address}/24 dev {link}; ip link set {link} up"));
    }
}

/// A new key in a file; its public half, one line.
fn key(file: &Path) -> String {
    let out = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(file).output();
    assert!(out.is_ok_and(|out| out.status.success()), "ssh-keygen writes {}", file.display());
    std::fs::read_to_string(file.with_extension("pub")).expect("it is written")
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a file in the folder");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of ASCII")
}
