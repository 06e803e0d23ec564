//! A network to look at for someone with none: a bridge with two namespaces behind veth pairs, a tun device, and
//! traffic through all of them, in a private network namespace.
//! It measures nothing, writes no file, and leaves nothing behind: every link belongs to a namespace or descriptor of a
//! child, and the kernel kills the children when this process dies in whatever way.

mod child;
mod echo;
mod rtnl;

pub use child::run_child;

use crate::networks::{NamespaceError, READY, RoleError, end, enter_private, first_line};
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The bridge of the demo.
const BRIDGE: &str = "demo0";
/// Set to 1 it makes the demo use its own traffic generator even where iperf3 is installed.
const FORCE_STANDIN: &str = "VNETTOP_DEMO_STANDIN";
/// A child that has not set up its part by then never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the demo could not start.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// No private namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A link or an address of the demo was refused.
    #[error("the demo {0}")]
    Link(#[from] RoleError),
    /// A process of the demo could not be started.
    #[error("the demo cannot start its {role} process: {error}")]
    Spawn {
        /// Its part: server, client or tun.
        role: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A process of the demo could not do its part.
    #[error("the {role} process of the demo failed: {text}")]
    Child {
        /// Its part: server, client or tun.
        role: &'static str,
        /// Its own words.
        text: String,
    },
}

/// A running demo; dropping it ends it.
#[derive(Debug)]
pub struct Demo {
    /// The command names whose threads are worth watching.
    pub watch: Vec<String>,
    /// The processes at the two ends, each in a namespace of its own.
    pub ends: Vec<u32>,
    /// What runs, and what is missing, in one line for the screen.
    pub notice: String,
    children: Vec<Child>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(end);
    }
}

/// Who drives the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Generator {
    Iperf3,
    /// What replaces iperf3, and what its processes are called.
    Standin,
}

impl Generator {
    /// iperf3 where it runs, else the stand-in.
    fn available() -> Self {
        if std::env::var_os(FORCE_STANDIN).is_some_and(|value| value == "1") {
            return Self::Standin;
        }
        let mut version = Command::new("iperf3");
        version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if version.status().is_ok_and(|status| status.success()) { Self::Iperf3 } else { Self::Standin }
    }
}

/// Builds the demo with `streams` TCP connections across the bridge and moves this process into its namespace.
///
/// Call it from the main thread before any other thread is started: only the calling thread changes namespace, and the
/// children die with the thread that started them.
///
/// # Errors
/// Where namespaces, links or children are refused; the sentence says what to do. The process may then be in the
/// private namespace already and should end.
pub fn start(streams: usize) -> Result<Demo, DemoError> {
    let generator = Generator::available();
    enter_private()?;
    let mut rtnl = rtnl::Rtnl::open()?;
    rtnl.set_up("lo")?;
    rtnl.create_bridge(BRIDGE)?;
    let mut demo =
        Demo { watch: vec![generator.to_string()], ends: Vec::new(), notice: String::new(), children: Vec::new() };
    let tun = demo.add(child::PART_TUN, &[]);
    demo.add(child::PART_SERVER, &["--generator", generator.into()])?;
    demo.add(child::PART_CLIENT, &["--generator", generator.into(), "--streams", &streams.max(1).to_string()])?;
    demo.ends = demo.children.iter().rev().take(2).map(Child::id).collect();
    demo.notice = notice(generator, tun);
    Ok(demo)
}

impl Demo {
    /// Starts a child and waits until its part of the demo stands.
    fn add(&mut self, role: &'static str, options: &[&str]) -> Result<(), DemoError> {
        let mut child = child::command(role).args(options).spawn().map_err(|error| DemoError::Spawn { role, error })?;
        let line = first_line(&mut child, Instant::now() + PATIENCE);
        if line.as_ref().is_ok_and(|line| line == READY) {
            self.children.push(child);
            return Ok(());
        }
        end(&mut child);
        match line {
            Ok(text) if text.is_empty() => {
                Err(DemoError::Child { role, text: "it exited without a message".to_owned() })
            }
            Ok(text) => Err(DemoError::Child { role, text }),
            Err(error) => Err(DemoError::Spawn { role, error }),
        }
    }
}

fn notice(generator: Generator, tun: Result<(), DemoError>) -> String {
    let traffic = match generator {
        Generator::Iperf3 => "iperf3",
        Generator::Standin => "a stand-in for iperf3",
    };
    let bridge = format!("demo: {traffic} between two private namespaces on {BRIDGE}");
    match tun {
        Ok(()) => format!("{bridge}, 20 Mbit/s of UDP through {}", echo::NAME),
        Err(DemoError::Child { text, .. }) => format!("{bridge}; no {}: {text}", echo::NAME),
        Err(error) => format!("{bridge}; no {}: {error}", echo::NAME),
    }
}
