//! The threads that carry a test's packets between its ends: of a guest, a switch, a proxy, and the kernel's own.

mod guest;
mod napi;
mod relay;
mod switch;

use crate::ground::{Kept, Netns, VNETTOP, Watching};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Vnettop that sees every namespace, with its first object behind it.
fn watch() -> Watching {
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.2", "--netns", "all"]);
    let mut watching = Watching::start(command);
    watching.next();
    watching
}

/// A client of iperf3 with these arguments.
fn client(netns: &Netns, arguments: &str) -> Kept {
    let mut command = netns.command("iperf3");
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::null());
    Kept(command.spawn().expect("iperf3 starts"))
}

/// The test of this client: other people's benchmarks are not the test's.
fn of_client<'a>(object: &'a Value, client: &Kept) -> Option<&'a Value> {
    let client = client.0.id();
    object["tests"].as_array()?.iter().find(|test| test["client"]["pid"] == client)
}

/// Every object until the client's test is over.
fn until_it_ends(watching: &mut Watching, client: &Kept) -> Vec<Value> {
    let mut objects = Vec::new();
    loop {
        let object = watching.next();
        let has_ended = of_client(&object, client).is_some_and(|test| !test["ended_t_ns"].is_null());
        objects.push(object);
        if has_ended {
            return objects;
        }
    }
}

/// The worker with this tid.
fn worker(test: &Value, tid: u32) -> Option<&Value> {
    test["workers"].as_array()?.iter().find(|worker| worker["tid"] == tid)
}
