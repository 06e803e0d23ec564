//! A comparison of networks: makes one after the other, sends through it, unpinned, pinned, and pinned and steered in turn, and takes it
//! away again. What it measured is plain data; nothing is computed from several measurements here.

mod load_programs;
mod measured_network;
mod order;
mod output;
mod progress;
mod round_trips;
mod treated;

use crate::clock::wall_ms;
use crate::networks::{NetworkKind, PrivateNetwork};
use crate::report::comparison::so_far;
use crate::sample::{
    COMPARISON_VERSION, ComparedPath, Comparison, ComparisonPlan, Load, Machine, Measurement, Treatment, Word,
};
use crate::source::SourceError;
use crate::source::feed::Feed;
use order::Visit;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub use load_programs::has_iperf3;
pub use order::{Selected, select};
pub use output::{CompareFileError, CompareOutput, read};
pub use progress::{Desk, LinesDesk, Progress, ScreenDesk};

/// What is compared, and how.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each was asked for by itself")]
pub struct ComparePlan {
    /// The paths, in the order asked for; one may stand there several times.
    pub paths: Vec<Selected>,
    /// The loads.
    pub loads: Vec<Load>,
    /// How often each path is measured.
    pub rounds: u32,
    /// How long each measurement is.
    pub length: Duration,
    /// What is left out before it.
    pub warm_up: Duration,
    /// Each load also with its threads pinned.
    pub pins: bool,
    /// TCP also with its packets steered, where its threads are pinned.
    pub steers: bool,
    /// TCP also with its packets steered and nothing pinned; `steers` too then.
    pub steers_alone: bool,
    /// Whoever asked is root, outside of any user namespace of vnettop's own.
    pub is_root: bool,
}

/// Opens the feed on the namespaces of these processes; watched are the loads.
pub type OpensFeed<'a> = &'a dyn Fn(&[u32]) -> Result<Feed, SourceError>;

/// What a comparison needs of the world.
pub struct CompareWorld<'a> {
    /// Where it happens.
    pub machine: Machine,
    /// Where what is measured comes from.
    pub open: OpensFeed<'a>,
    /// Who is told, and may ask for an end.
    pub desk: &'a mut dyn Desk,
}

/// Measures until everything is measured or an end is asked for.
#[must_use]
pub fn compare(plan: &ComparePlan, world: CompareWorld<'_>) -> Comparison {
    let CompareWorld { machine, open, desk } = world;
    let began = Instant::now();
    let mut comparison = Comparison {
        version: COMPARISON_VERSION,
        vnettop: env!("CARGO_PKG_VERSION").to_owned(),
        began_ms: wall_ms(),
        machine,
        plan: ComparisonPlan {
            seconds: plan.length.as_secs_f64(),
            warm_up_s: plan.warm_up.as_secs_f64(),
            rounds: plan.rounds,
            loads: plan.loads.clone(),
            pins: plan.pins,
            steers: plan.steers && plan.pins,
            steers_alone: plan.steers && plan.steers_alone,
            unsteered: unsteered(plan),
            iperf3: None,
            is_root: plan.is_root,
        },
        interrupted: false,
        paths: plan.paths.iter().map(|selected| path(selected, &plan.loads)).collect(),
    };
    try_all(plan, &mut comparison, desk);
    let possible: Vec<bool> = comparison.paths.iter().map(|path| path.skipped.is_none()).collect();
    let visits = order::visits(plan, &possible);
    let mut course = Course { desk, progress: Progress::new(plan, &visits), open, began, unsteerable: BTreeSet::new() };
    for visit in &visits {
        if course.desk.is_over() {
            break;
        }
        visit_one(plan, visit, &mut comparison, &mut course);
        if let Some(line) = so_far(&comparison, &plan.paths[visit.path].name, visit.round) {
            course.desk.ends(&line);
        }
    }
    comparison.interrupted = course.desk.is_over();
    comparison
}

/// What goes on from visit to visit.
struct Course<'a> {
    desk: &'a mut dyn Desk,
    progress: Progress,
    open: OpensFeed<'a>,
    began: Instant,
    /// Loads on paths that have nothing to steer: they are not tried again.
    unsteerable: BTreeSet<(usize, Load, Treatment)>,
}

/// Why nothing is steered where pins are measured.
fn unsteered(plan: &ComparePlan) -> Option<String> {
    let is_left_out = plan.pins && !plan.steers && !plan.is_root && plan.loads.iter().any(|load| load.is_bulk());
    is_left_out.then(|| "rps_cpus takes root of the machine, in a user namespace too".to_owned())
}

fn path(selected: &Selected, loads: &[Load]) -> ComparedPath {
    let carried = selected.kind.loads();
    let carries_none = carried.is_some_and(|carried| !loads.iter().any(|load| carried.contains(&load.word())));
    let useless = || carries_none.then(|| "it carries none of these loads".to_owned());
    ComparedPath {
        name: selected.name.clone(),
        what: selected.kind.what().to_owned(),
        skipped: useless().or_else(|| selected.kind.missing()),
        links: Vec::new(),
        measurements: Vec::new(),
    }
}

/// Sets each path up once: what cannot be made here is known before anything is measured, and how long the rest takes too.
fn try_all(plan: &ComparePlan, comparison: &mut Comparison, desk: &mut dyn Desk) {
    let mut tried: Vec<(NetworkKind, Option<String>)> = Vec::new();
    for (selected, path) in plan.paths.iter().zip(&mut comparison.paths) {
        if path.skipped.is_some() || desk.is_over() {
            continue;
        }
        let known = tried.iter().find(|(kind, _)| *kind == selected.kind).map(|(_, failed)| failed.clone());
        path.skipped = known.unwrap_or_else(|| {
            desk.tries(&selected.name);
            let failed = PrivateNetwork::build(selected.kind).err().map(|error| error.to_string());
            tried.push((selected.kind, failed.clone()));
            failed
        });
    }
}

/// Sets a path up, runs its loads, takes it away.
fn visit_one(plan: &ComparePlan, visit: &Visit, comparison: &mut Comparison, course: &mut Course<'_>) {
    let selected = &plan.paths[visit.path];
    let began = course.began;
    let is_left = |&(load, treatment): &(Load, Treatment)| !course.unsteerable.contains(&(visit.path, load, treatment));
    let (left, out): (Vec<_>, Vec<_>) = visit.measurements.iter().copied().partition(is_left);
    for _ in &out {
        course.progress.leave_out();
    }
    let failed = |why: String| {
        let missing = |&(load, treatment): &(Load, Treatment)| Measurement {
            missing: Some(why.clone()),
            at_s: began.elapsed().as_secs_f64(),
            ..Measurement::begun(visit.round, load, treatment)
        };
        left.iter().map(missing).collect::<Vec<_>>()
    };
    let network = match PrivateNetwork::build(selected.kind) {
        Ok(network) => network,
        Err(error) => return comparison.paths[visit.path].measurements.extend(failed(error.to_string())),
    };
    let mut running = match measured_network::RunningVisit::start(plan, &network, course.open) {
        Ok(running) => running,
        Err(error) => return comparison.paths[visit.path].measurements.extend(failed(error.to_string())),
    };
    let others_cores = running.rest(course.desk);
    let idle_round_trips = running.idle_round_trips(course.desk);
    for &(load, treatment) in &left {
        if course.desk.is_over() {
            break;
        }
        course.progress.next(selected, visit.round, load, treatment);
        course.desk.begins(&course.progress);
        let measured = running.measure((visit.round, load, treatment), course.desk);
        let Some(mut measured) = measured else { break };
        measured.at_s = began.elapsed().as_secs_f64();
        (measured.others_cores, measured.idle_round_trips) = (others_cores, idle_round_trips);
        comparison.paths[visit.path].measurements.push(measured);
    }
    course.unsteerable.extend(running.unsteerable.drain(..).map(|(load, treatment)| (visit.path, load, treatment)));
    if comparison.plan.iperf3.is_none() {
        comparison.plan.iperf3 = running.iperf3.take();
    }
    if running.size.0 > 0 {
        (comparison.machine.cores, comparison.machine.nodes) = running.size;
    }
    let path = &mut comparison.paths[visit.path];
    if running.links.len() > path.links.len() {
        path.links = std::mem::take(&mut running.links);
    }
}
