//! What is true on a test's machine, by `ip` and `ethtool` in every namespace of it, and whether vnettop says the same.
//! Namespaces are told apart by inode; a link's other end is found through the ids that the kernel gives namespaces.

use super::machine::Machine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Looks into every namespace once: by process, by name, by Docker's mounts.
const LOOK: &str = r#"
mkdir -p /run/looked && mount --rbind /run/netns /run/looked && mount -t tmpfs tmpfs /run/netns
for at in /proc/1/ns/net /run/looked/* /run/docker*/netns/* /proc/[0-9]*/ns/net; do
  [ "$(stat -f -c %T "$at" 2>/dev/null)" = nsfs ] && inode=$(stat -L -c %i "$at" 2>/dev/null) || continue
  echo "path $inode $at"
  [ -e /run/netns/$inode ] && continue
  touch /run/netns/$inode && mount --bind $at /run/netns/$inode || rm -f /run/netns/$inode
done
for at in /run/netns/*; do
  echo "space ${at##*/}"
  nsenter --net=$at sh -c '
    echo "ids $(ip -j netns list-id 2>/dev/null | tr -d "\n")"
    echo "links $(ip -d -s -j link | tr -d "\n")"
    ip -br link | while read name rest; do
      name=${name%%@*}
      echo "speed $name $(ethtool $name 2>/dev/null | sed -n "s/.*Speed: //p")"
    done'
done"#;

/// One link as `ip` and `ethtool` tell it.
#[derive(Debug, Clone)]
pub struct TrueLink {
    /// Inode of its namespace.
    pub netns: u64,
    /// Its index there.
    pub ifindex: u64,
    /// Its name.
    pub name: String,
    /// Its kind in vnettop's words.
    pub kind: String,
    /// Its other end, if it has one: namespace and index.
    pub peer: Option<(u64, u64)>,
    /// What it stands on, if anything: namespace and index.
    pub lower: Option<(u64, u64)>,
    /// The bridge or bond it is a port of.
    pub master: Option<String>,
    /// What `ethtool` says, Mb/s.
    pub speed: Option<u64>,
    /// Received and sent bytes.
    pub bytes: (u64, u64),
    /// All of what `ip` says.
    pub ip: Value,
}

/// Everything that is true at one time.
#[derive(Debug, Default)]
pub struct Truth {
    /// Every link of every namespace.
    pub links: Vec<TrueLink>,
    /// Path of a namespace → inode.
    pub spaces: BTreeMap<String, u64>,
}

impl Truth {
    /// Looks now.
    pub fn of(machine: &Machine) -> Self {
        let said = machine.run(&format!("unshare --mount sh -ec '{}'", LOOK.replace('\'', r"'\''")));
        let mut looked = Looked::default();
        for line in said.lines() {
            looked.line(line);
        }
        looked.truth()
    }

    /// The link of that name in the namespace of that path.
    pub fn link(&self, space: &str, name: &str) -> &TrueLink {
        let netns = self.spaces.get(space).unwrap_or_else(|| panic!("a namespace {space} among {:?}", self.spaces));
        let found = self.links.iter().find(|link| link.netns == *netns && link.name == name);
        found.unwrap_or_else(|| panic!("a link {name} in {space}"))
    }

    /// The link at the other end of one.
    pub fn peer(&self, of: &TrueLink) -> &TrueLink {
        let peer = of.peer.unwrap_or_else(|| panic!("{} has another end", of.name));
        self.links.iter().find(|link| (link.netns, link.ifindex) == peer).expect("the other end is on this machine")
    }

    fn name(&self, at: (u64, u64)) -> Option<&str> {
        self.links.iter().find(|link| (link.netns, link.ifindex) == at).map(|link| &*link.name)
    }

    /// What vnettop says otherwise, a sentence each.
    pub fn differences(&self, object: &Value) -> Vec<String> {
        let links = object["links"].as_array().expect("links are listed");
        let theirs =
            |link: &TrueLink| links.iter().find(|row| row["netns"] == link.netns && row["ifindex"] == link.ifindex);
        let mut all = Vec::new();
        for link in &self.links {
            match theirs(link) {
                None => all.push(format!("{} (index {} of {}) is missing", link.name, link.ifindex, link.netns)),
                Some(row) => self.compare(link, row, &mut all),
            }
        }
        let known =
            |row: &&Value| self.links.iter().any(|link| row["netns"] == link.netns && row["ifindex"] == link.ifindex);
        // What only Open vSwitch knows has no index of the kernel's.
        let kernels = |row: &&Value| row["ifindex"].as_u64().is_some_and(|index| index < 1 << 31);
        let strays = links.iter().filter(kernels).filter(|row| !known(row));
        all.extend(strays.map(|row| format!("{} of {} is not there", row["name"], row["netns"])));
        all
    }

    fn compare(&self, link: &TrueLink, row: &Value, all: &mut Vec<String>) {
        let mut same = |what: &str, ours: Value, theirs: &Value| {
            if ours != *theirs {
                all.push(format!("{what} of {} in {} is {ours}, vnettop says {theirs}", link.name, link.netns));
            }
        };
        same("the name", link.name.clone().into(), &row["name"]);
        same("the kind", link.kind.clone().into(), &row["kind"]);
        same("the MTU", link.ip["mtu"].clone(), &row["mtu"]);
        same("the state", link.ip["operstate"].as_str().map(str::to_lowercase).into(), &row["state"]);
        same("the master", link.master.clone().into(), &row["master"]);
        same("the claim", link.speed.into(), &row["claim_mbps"]);
        for (what, at, said) in [("the peer", link.peer, &row["peer"]), ("the lower link", link.lower, &row["lower"])] {
            let ours = at.map(|at| serde_json::json!({"netns": at.0, "ifindex": at.1, "name": self.name(at)}));
            same(what, ours.into(), said);
        }
    }
}

/// Awaits that vnettop says what is true, for every link of every namespace. The truth it agreed with.
pub fn agrees(machine: &Machine, watching: &mut super::Watching) -> Truth {
    agrees_within(12, machine, watching)
}

/// The same within so many seconds: what happened just before is shown by then.
pub fn agrees_within(seconds: u64, machine: &Machine, watching: &mut super::Watching) -> Truth {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let truth = Truth::of(machine);
        let differences = truth.differences(&present(watching));
        if differences.is_empty() {
            return truth;
        }
        assert!(
            Instant::now() < end,
            "after {seconds} s vnettop differs from ip and ethtool:\n{}",
            differences.join("\n")
        );
    }
}

/// This moment as objects write theirs.
pub fn now() -> String {
    let now = std::process::Command::new("date").args(["-u", "+%FT%T.%3NZ"]).output().expect("date runs").stdout;
    String::from_utf8_lossy(&now).trim().to_owned()
}

/// The first object of a sample that was taken after this call; what waited in the pipe is from before.
pub fn present(watching: &mut super::Watching) -> Value {
    let now = now();
    loop {
        let object = watching.next();
        if object["ts"].as_str().expect("a time") > &*now {
            return object;
        }
    }
}

/// What was read, not yet joined.
#[derive(Default)]
struct Looked {
    spaces: BTreeMap<String, u64>,
    at: u64,
    /// (namespace, id there) → namespace.
    ids: BTreeMap<(u64, u64), u64>,
    links: Vec<(u64, Value)>,
    speeds: BTreeMap<(u64, String), u64>,
}

impl Looked {
    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').expect("a word and more");
        let list = || match rest {
            "" => Vec::new(),
            list => serde_json::from_str(list).unwrap_or_else(|error| panic!("{word} of {}: {error}: {list}", self.at)),
        };
        match word {
            "path" => {
                let (inode, path) = rest.split_once(' ').expect("an inode and a path");
                let path = path.replace("/run/looked/", "/run/netns/");
                self.spaces.insert(path, inode.parse().expect("a number"));
            }
            "space" => self.at = rest.parse().expect("an inode"),
            "ids" => {
                let named = |id: &Value| Some((id["nsid"].as_u64()?, id["name"].as_str()?.parse().ok()?));
                self.ids.extend(list().iter().filter_map(named).map(|(id, inode)| ((self.at, id), inode)));
            }
            "links" => self.links.extend(list().into_iter().map(|link| (self.at, link))),
            _ => {
                let speed = rest.split_once(' ').and_then(|(name, speed)| Some((name, speed.strip_suffix("Mb/s")?)));
                let Some((name, Ok(speed))) = speed.map(|(name, speed)| (name, speed.parse())) else { return };
                self.speeds.insert((self.at, name.to_owned()), speed);
            }
        }
    }

    fn truth(self) -> Truth {
        let links = self.links.iter().map(|(netns, ip)| self.link(*netns, ip)).collect();
        Truth { links, spaces: self.spaces }
    }

    fn link(&self, netns: u64, ip: &Value) -> TrueLink {
        let name = ip["ifname"].as_str().expect("a name").to_owned();
        let kind = kind(ip);
        let linked = self.linked(netns, ip, &kind);
        let (peer, lower) = if kind == "veth" { (linked, None) } else { (None, linked) };
        let bytes = |way: &str| ip["stats64"][way]["bytes"].as_u64().expect("bytes");
        TrueLink {
            netns,
            ifindex: ip["ifindex"].as_u64().expect("an index"),
            peer,
            lower,
            master: ip["master"].as_str().map(ToOwned::to_owned),
            speed: self.speeds.get(&(netns, name.clone())).copied(),
            bytes: (bytes("rx"), bytes("tx")),
            ip: ip.clone(),
            name,
            kind,
        }
    }

    /// The link behind one: by name in the same namespace, by index in another.
    fn linked(&self, netns: u64, ip: &Value, kind: &str) -> Option<(u64, u64)> {
        // A vxlan's own attribute tells; what IFLA_LINK says after a move to another namespace is its own index.
        let vxlan = ip["linkinfo"]["info_data"]["link"].as_str();
        let name = if kind == "vxlan" { vxlan } else { ip["link"].as_str() };
        let there = ip["link_netnsid"].as_u64().map(|id| self.ids.get(&(netns, id)).copied());
        match (name, there) {
            (Some(name), there) => {
                let netns = there.unwrap_or(Some(netns))?;
                let is = |(at, link): &&(u64, Value)| *at == netns && link["ifname"] == name;
                Some((netns, self.links.iter().find(is)?.1["ifindex"].as_u64()?))
            }
            (None, _) if kind == "vxlan" => None,
            (None, there) => Some((there.unwrap_or(Some(netns))?, ip["link_index"].as_u64()?)),
        }
    }
}

/// A link's kind in vnettop's words.
fn kind(ip: &Value) -> String {
    let word = match (ip["linkinfo"]["info_kind"].as_str(), ip["link_type"].as_str()) {
        (Some("tun"), _) => ip["linkinfo"]["info_data"]["type"].as_str(),
        (Some(kind), _) => Some(kind),
        (None, other) => other,
    };
    word.expect("a kind").to_owned()
}
