//! Where the samples come from: the kernel, the namespaces of the demo, or a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vnettop::app::{Player, Stream};
use vnettop::cli::{Config, Face, Origin, Presentation};
use vnettop::demo::Demo;
use vnettop::record::{Recorder, Recording, StoredIn};
use vnettop::source::feed::{Feed, Pace};
use vnettop::source::owners::SocketPlaces;
use vnettop::source::sampler::{self, Choice, ReadPolicy, ReadScope, SELF};
use vnettop::source::threads::Watch;
use vnettop::source::{Roots, ovs};

/// Where the items come from, and what becomes of them.
pub struct Opened {
    pub stream: Stream,
    pub feed: Feed,
    pub player: Option<Player>,
}

pub fn open(
    config: &Config,
    demo: Option<&Demo>,
    recorder: Option<Recorder>,
) -> Result<Opened, Box<dyn std::error::Error>> {
    let mut stream = Stream::new(recorder);
    let Origin::Replay { file, speed, at } = &config.origin else {
        let stream = stream.asking(config.preferences.on_request);
        return Ok(Opened { stream, feed: live_feed(config, demo)?, player: None });
    };
    let stored = file.clone().map_or(StoredIn::Program, StoredIn::File);
    let recording = Recording::open_stored(&stored)?;
    let pace = speed.map_or(Pace::Fast, Pace::Times);
    let shows_frames = !matches!(config.face, Face::Watch(Presentation::Json | Presentation::Lines(_)));
    let player =
        if stored.is_lasting() && (shows_frames || at.is_some()) { Player::open(stored.clone())? } else { None };
    let Some(player) = player else {
        if at.is_some() {
            return Err("--at needs a file with samples in it: a pipe plays from its start".into());
        }
        return Ok(Opened { stream, feed: Feed::replay(recording, pace)?, player: None });
    };
    // Frames are looked for by the app itself.
    let (feed, player) = match at {
        Some(at) if !shows_frames => {
            let start = player.start_at(after(player.first_ns(), *at), None)?;
            stream.derivation = start.derivation;
            (Feed::replay(start.reel, pace)?, None)
        }
        _ => (Feed::replay(recording, pace)?, Some(player)),
    };
    Ok(Opened { stream, feed, player })
}

fn after(first_ns: u64, at: Duration) -> u64 {
    first_ns.saturating_add(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX))
}

pub fn live_feed(config: &Config, demo: Option<&Demo>) -> Result<Feed, Box<dyn std::error::Error>> {
    // What somebody keeps may be added up later.
    let looked_at_only = config.face == Face::Watch(Presentation::Screen) && config.record.is_none();
    let scope = ReadScope {
        roots: Roots::default(),
        watch: watches(config, demo),
        netns: choice(config, demo),
        ovs: ovs_places(config),
        docker: docker(config),
        iperf3_json: config.iperf3_json.clone(),
        read_policy: if looked_at_only { ReadPolicy::IdleLinksLess } else { ReadPolicy::Everything },
        losses_at_rest: matches!(config.face, Face::Run(_)),
        on_request: config.preferences.on_request,
    };
    Ok(Feed::live(sampler::SamplerSettings {
        scope,
        interval: config.interval,
        realtime: config.preferences.realtime,
        count: config.count.map(|intervals| intervals + 1).filter(|_| config.face == Face::Watch(Presentation::Json)),
    })?)
}

/// What is named and not there would be an empty screen. A command may make its namespace itself.
pub fn missing_namespace(config: &Config) -> Option<String> {
    let is_looked_at =
        matches!(config.face, Face::Watch(_) | Face::Export(_) | Face::Agent) && config.origin == Origin::Live;
    if is_looked_at { choice(config, None).missing() } else { None }
}

/// The demo shows its own namespaces: nobody else's belong on its screen.
pub fn choice(config: &Config, demo: Option<&Demo>) -> Choice {
    let names = &config.preferences.netns;
    match (names.as_slice(), demo) {
        ([], Some(demo)) => {
            let processes = demo.ends.iter().map(u32::to_string);
            Choice::Named(std::iter::once(SELF.to_owned()).chain(processes).collect())
        }
        ([], None) => Choice::usual(),
        _ if names.iter().any(|name| name == "all") => Choice::All,
        _ if names.iter().all(|name| name == SELF) => Choice::Own,
        _ => Choice::Named(names.clone()),
    }
}

/// The demo shows its own processes: nobody else's belong on its screen either.
fn watches(config: &Config, demo: Option<&Demo>) -> Vec<Watch> {
    let own =
        |demo: &Demo| demo.watch.iter().map(|name| Watch::Own { name: name.clone(), of: demo.ends.clone() }).collect();
    demo.map_or_else(|| config.preferences.watch.iter().map(|name| Watch::from(name.as_str())).collect(), own)
}

pub fn watched(config: &Config, demo: Option<&Demo>) -> Vec<String> {
    demo.map_or_else(|| config.preferences.watch.clone(), |demo| demo.watch.clone())
}

pub fn docker(config: &Config) -> SocketPlaces {
    let socket = &config.preferences.docker_socket;
    SocketPlaces::find(environment, Some(Path::new(socket)).filter(|_| !socket.is_empty()))
}

pub fn ovs_places(config: &Config) -> Vec<ovs::SocketPlace> {
    let sockets: Vec<PathBuf> = config.preferences.ovs_sockets.iter().map(PathBuf::from).collect();
    ovs::places(environment, &sockets)
}

pub fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
