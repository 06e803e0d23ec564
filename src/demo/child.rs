//! The processes that the demo consists of, re-executed from the own program: two ends with a namespace each, the tun
//! echo, and the stand-ins that tests also start alone. None outlives its parent, none keeps the terminal.

use super::rtnl::Rtnl;
use super::{BRIDGE, Generator, echo};
use crate::networks::{
    ClientRun, RoleError, RoleOptions, become_program, cannot, die_with, exit_code, leave_namespaces, pid, ready, say,
    standin,
};
use rustix::process::getpid;
use rustix::thread::UnshareFlags;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The word on the command line that leads here.
pub const SUBCOMMAND: &str = "demo-child";
/// The child with the receiving end.
pub const PART_SERVER: &str = "server";
/// The child with the sending end.
pub const PART_CLIENT: &str = "client";
/// The child behind the tun device.
pub const PART_TUN: &str = "tun";
/// The name of the processes that hold things but do no work; `comm` has 15 bytes.
const HOLDER: &str = "vnettop-demo";
/// iperf3's port, used by the stand-in too.
const PORT: u16 = 5201;
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The longest run that iperf3 accepts, s; then it is started again.
const IPERF3_SECONDS: &str = "86400";

/// Runs one child of the demo; `args` is what follows `demo-child` on the command line. Internal: its words may change.
#[must_use]
pub fn run_child(args: &[OsString]) -> ExitCode {
    // The children of `start` are heard by it; the others speak to a person or a test.
    let is_received =
        args.first().is_some_and(|role| [PART_SERVER, PART_CLIENT, PART_TUN].iter().any(|part| role == part));
    exit_code(SUBCOMMAND, dispatch(args), is_received)
}

fn dispatch(args: &[OsString]) -> Result<(), RoleError> {
    let (role, rest) = args.split_first().ok_or_else(|| RoleError::Usage("a role is missing".to_owned()))?;
    let role = role.to_string_lossy();
    if role == "exec" {
        return exec(rest);
    }
    let options = RoleOptions::parse(rest)?;
    match role.as_ref() {
        PART_SERVER => server(&options),
        PART_CLIENT => client(&options),
        PART_TUN => tun(&options),
        "standin-server" => standin_server(&options),
        "standin-client" => standin_client(&options),
        "hold" => hold(&options),
        other => Err(RoleError::Usage(format!("{other:?} is not a role"))),
    }
}

/// A command that runs this program again as a child of the demo.
pub fn command(role: &str) -> Command {
    crate::networks::command(SUBCOMMAND, role)
}

fn server(options: &RoleOptions) -> Result<(), RoleError> {
    end_of_veth(options, "veth-srv", SERVER)?;
    match options.required("--generator")? {
        Generator::Iperf3 => {
            ready()?;
            keep_running(&["-s"])
        }
        Generator::Standin => {
            let name = Generator::Standin.into();
            let listener = standin::listen((SERVER, PORT).into(), name)
                .map_err(cannot(format!("listen on {SERVER} port {PORT}")))?;
            ready()?;
            standin::serve(&listener, name).map_err(cannot("accept connections"))
        }
    }
}

fn client(options: &RoleOptions) -> Result<(), RoleError> {
    end_of_veth(options, "veth-cli", CLIENT)?;
    let streams: usize = options.required("--streams")?;
    let generator = options.required("--generator")?;
    ready()?;
    match generator {
        Generator::Iperf3 => {
            let (server, streams) = (SERVER.to_string(), streams.to_string());
            keep_running(&["-c", &server, "-t", IPERF3_SECONDS, "-P", &streams, "-i", "0"])
        }
        Generator::Standin => {
            let name = Generator::Standin.to_string();
            let run = ClientRun {
                server: (SERVER, PORT).into(),
                streams,
                name,
                duration: None,
                patience: Duration::from_mins(1),
            };
            loop {
                run.send().map_err(cannot(format!("send to {SERVER} port {PORT}")))?;
            }
        }
    }
}

/// Moves this process into a namespace of its own at the far end of a veth whose near end is a port of the bridge.
fn end_of_veth(options: &RoleOptions, near: &str, address: Ipv4Addr) -> Result<(), RoleError> {
    die_with(options.parent()?)?;
    standin::rename(HOLDER).map_err(cannot("name the process"))?;
    // Opened first, this socket stays with the namespace of the bridge.
    let mut outside = Rtnl::open()?;
    leave_namespaces(UnshareFlags::NEWNET).map_err(cannot(format!("make a network namespace for {near}")))?;
    outside.create_veth(near, BRIDGE, "eth0", getpid().as_raw_nonzero().get().unsigned_abs())?;
    let mut inside = Rtnl::open()?;
    inside.set_up("lo")?;
    inside.add_address("eth0", address, 24)?;
    inside.set_up("eth0")
}

fn tun(options: &RoleOptions) -> Result<(), RoleError> {
    die_with(options.parent()?)?;
    standin::rename(HOLDER).map_err(cannot("name the process"))?;
    let device = echo::open()?;
    ready()?;
    echo::run(device).map_err(cannot("send through the tun device"))
}

/// Runs iperf3 and runs it again when it ends: the client's first attempt may come before the server listens, and a
/// refused connection is no event to wait for, so attempts are spaced, at most a second apart.
fn keep_running(args: &[&str]) -> Result<(), RoleError> {
    let own = getpid().as_raw_nonzero().to_string();
    let mut pause = Duration::from_millis(25);
    loop {
        let began = Instant::now();
        let mut command = Command::new("/proc/self/exe");
        command.args([SUBCOMMAND, "exec", &own, "iperf3"]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map_err(cannot("start iperf3"))?;
        let held = began.elapsed() > Duration::from_secs(5);
        pause = if held { Duration::from_millis(25) } else { (pause * 2).min(Duration::from_secs(1)) };
        std::thread::sleep(pause);
    }
}

/// Becomes another program that dies with its parent: `exec PARENT PROGRAM ARGS...`.
fn exec(args: &[OsString]) -> Result<(), RoleError> {
    let [parent, program, args @ ..] = args else {
        return Err(RoleError::Usage("exec: PARENT and PROGRAM are missing".to_owned()));
    };
    die_with(pid(parent)?)?;
    become_program(program, args)
}

fn standin_server(options: &RoleOptions) -> Result<(), RoleError> {
    options.die_with_given_parent()?;
    let name: String = options.required("--name")?;
    let address: SocketAddr = options.required("--bind")?;
    let listener = standin::listen(address, &name).map_err(cannot(format!("listen on {address}")))?;
    say(format_args!("listening {}", listener.local_addr().map_err(cannot("read the port"))?))?;
    standin::serve(&listener, &name).map_err(cannot("accept connections"))
}

fn standin_client(options: &RoleOptions) -> Result<(), RoleError> {
    options.die_with_given_parent()?;
    let server: SocketAddr = options.required("--connect")?;
    let duration = options.seconds("--seconds")?;
    let streams = options.required("--streams")?;
    let name = options.required("--name")?;
    let run = ClientRun { server, streams, name, duration: Some(duration), patience: Duration::from_secs(5) };
    let began = Instant::now();
    let bytes = run.send().map_err(cannot(format!("connect to {server}")))?;
    say(format_args!("{{\"seconds\":{:.6},\"bytes\":{bytes}}}", began.elapsed().as_secs_f64()))
}

/// Holds a whole demo without a screen until standard input ends; `--end panic` then ends it by a panic.
fn hold(options: &RoleOptions) -> Result<(), RoleError> {
    let demo = super::start(options.required("--streams")?).map_err(|error| RoleError::Said(error.to_string()))?;
    say(format_args!("watch {}: {}", demo.watch.join(" "), demo.notice))?;
    io::stdin().read_to_end(&mut Vec::new()).map_err(cannot("wait for the end of standard input"))?;
    assert!(options.given("--end") != Some(OsStr::new("panic")), "the demo is asked to end by a panic");
    Ok(())
}
