//! sysfs → where every core sits. Read when the set of online cores changes, never on a quiet tick. A level that the
//! machine does not tell stays unknown; numbers that differ by firmware (package and cache ids) are counted anew.
//!
//! A kernel without NUMA has no `node` directory: the whole machine is then its node 0. A cluster that is never more
//! than one physical core (what kernels print where the firmware knows none) is no cluster.

use crate::proc_file::text;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use vnettop_sample::{CoreId, CorePlace, CoreSet, Topology};

/// The topology of the machine below `sys`; `online` are the cores of `/proc/stat`, for what sysfs does not tell.
///
/// # Errors
/// When there is no `devices/system/cpu` at all.
pub(super) fn read(sys: &Path, online: &CoreSet) -> Result<Topology, (PathBuf, io::Error)> {
    let system = sys.join("devices/system");
    let cpus = system.join("cpu");
    std::fs::read_dir(&cpus).map_err(|error| (cpus.clone(), error))?;
    let online = list(&cpus.join("online")).unwrap_or_else(|| online.clone());
    let present = list(&cpus.join("present")).unwrap_or_else(|| online.clone());
    let mut cores: Vec<CorePlace> = present.iter().map(|core| place(core, online.contains(core))).collect();
    let directory = |core: CoreId| cpus.join(format!("cpu{core}"));
    fill(&mut cores, |core| siblings(&directory(core)), |place, group, _| place.physical = group.first());
    fill(&mut cores, |core| cluster(&directory(core)), |place, _, order| place.cluster = Some(order));
    forget_single_cores(&mut cores);
    fill(&mut cores, |core| last_level_cache(&directory(core)), |place, _, order| place.llc = Some(order));
    sockets(&mut cores, |core| text(&directory(core).join("topology/physical_package_id")).ok()?.parse().ok());
    capacities(&mut cores, |core| text(&directory(core).join("cpu_capacity")).ok()?.parse().ok());
    nodes(&mut cores, &system.join("node"));
    Ok(Topology {
        nodes: count(cores.iter().filter_map(|place| place.node)),
        isolated: list(&cpus.join("isolated")).unwrap_or_default(),
        cores,
    })
}

/// What is left where there is no sysfs: the cores that `/proc/stat` lists, without any level.
pub(super) fn flat(online: &CoreSet) -> Topology {
    Topology { cores: online.iter().map(|core| place(core, true)).collect(), ..Topology::default() }
}

fn place(core: CoreId, online: bool) -> CorePlace {
    CorePlace { core, online, ..CorePlace::default() }
}

/// A file in the kernel's list syntax.
fn list(path: &Path) -> Option<CoreSet> {
    text(path).ok()?.parse().ok()
}

/// Reads the group of each online core, once a group, and tells every member: the group, and its number in the order of
/// cores.
fn fill(
    cores: &mut [CorePlace],
    group_of: impl Fn(CoreId) -> Option<CoreSet>,
    set: impl Fn(&mut CorePlace, &CoreSet, u32),
) {
    let mut known: Vec<CoreSet> = Vec::new();
    for place in cores.iter_mut().filter(|place| place.online) {
        let seen = known.iter().rposition(|group| group.contains(place.core));
        let order = match seen {
            Some(order) => order,
            None => match group_of(place.core).filter(|group| group.contains(place.core)) {
                Some(group) => {
                    known.push(group);
                    known.len() - 1
                }
                None => continue,
            },
        };
        set(place, &known[order], u32::try_from(order).unwrap_or(u32::MAX));
    }
}

/// `core_cpus_list` since Linux 5.3, `thread_siblings_list` before and since.
fn siblings(directory: &Path) -> Option<CoreSet> {
    let topology = directory.join("topology");
    list(&topology.join("core_cpus_list")).or_else(|| list(&topology.join("thread_siblings_list")))
}

fn cluster(directory: &Path) -> Option<CoreSet> {
    list(&directory.join("topology/cluster_cpus_list"))
}

/// Clusters that nowhere hold two physical cores say nothing about this machine.
fn forget_single_cores(cores: &mut [CorePlace]) {
    let mut first_of: BTreeMap<u32, u32> = BTreeMap::new();
    let reported = cores.iter().any(|place| {
        let physical = place.physical.unwrap_or(place.core);
        place.cluster.is_some_and(|cluster| *first_of.entry(cluster).or_insert(physical) != physical)
    });
    if !reported {
        for place in cores {
            place.cluster = None;
        }
    }
}

/// The cores that share the cache of the highest level; instruction caches are none.
fn last_level_cache(directory: &Path) -> Option<CoreSet> {
    let index = |number: u32| directory.join(format!("cache/index{number}"));
    let level = |path: &PathBuf| text(&path.join("level")).ok()?.parse::<u32>().ok();
    let holds_data = |path: &PathBuf| text(&path.join("type")).is_ok_and(|kind| kind == "Unified" || kind == "Data");
    let caches = (0..).map(index).map_while(|path| Some((level(&path)?, path)));
    let mut by_level: Vec<(u32, PathBuf)> = caches.take(16).collect();
    by_level.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    by_level.into_iter().find_map(|(_, path)| holds_data(&path).then(|| list(&path.join("shared_cpu_list"))).flatten())
}

/// Package ids are the firmware's (0, 1, or 36 and 3418); −1 says that it does not know.
fn sockets(cores: &mut [CorePlace], package_of: impl Fn(CoreId) -> Option<i64>) {
    let mut packages: Vec<i64> = Vec::new();
    for place in cores.iter_mut().filter(|place| place.online) {
        let Some(package) = package_of(place.core).filter(|&id| id >= 0) else { continue };
        let order = packages.iter().position(|&known| known == package).unwrap_or_else(|| {
            packages.push(package);
            packages.len() - 1
        });
        place.socket = u32::try_from(order).ok();
    }
}

/// Capacities that are all the same say nothing.
fn capacities(cores: &mut [CorePlace], capacity_of: impl Fn(CoreId) -> Option<u32>) {
    cores.iter_mut().filter(|place| place.online).for_each(|place| place.capacity = capacity_of(place.core));
    if count(cores.iter().filter_map(|place| place.capacity)) < 2 {
        for place in cores {
            place.capacity = None;
        }
    }
}

fn nodes(cores: &mut [CorePlace], directory: &Path) {
    let numbered = |name: &str| name.strip_prefix("node").and_then(|number| number.parse::<u32>().ok());
    let Ok(entries) = std::fs::read_dir(directory) else {
        cores.iter_mut().filter(|place| place.online).for_each(|place| place.node = Some(0));
        return;
    };
    for entry in entries.flatten() {
        let Some(node) = entry.file_name().to_str().and_then(numbered) else { continue };
        let Some(members) = list(&entry.path().join("cpulist")) else { continue };
        cores.iter_mut().filter(|place| members.contains(place.core)).for_each(|place| place.node = Some(node));
    }
}

/// How many different ones.
fn count(numbers: impl Iterator<Item = u32>) -> u32 {
    let mut seen: Vec<u32> = numbers.collect();
    seen.sort_unstable();
    seen.dedup();
    u32::try_from(seen.len()).unwrap_or(u32::MAX)
}
