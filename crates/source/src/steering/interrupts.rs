//! The cores that take the interrupts by which a link's device says that something has come: which interrupts are its own
//! (sysfs), which of them are for what it receives (the names that its driver gave them), who takes these (/proc/irq).

use super::queues::SysfsTree;
use crate::proc_file;
use std::io;
use std::path::Path;
use vnettop_sample::{CoreSet, Interrupts, Kind, LinkFacts};

/// Most interrupts of a device; with more of them its cores are unknown rather than half known.
const MOST: usize = 1024;

/// The cores that take the interrupts of a link with hardware behind it; `None` for other links.
pub(super) fn read(
    tree: &SysfsTree,
    proc: &Path,
    link: &LinkFacts,
    buffer: &mut Vec<u8>,
) -> (Option<Interrupts>, Vec<u32>) {
    if !matches!(link.kind, Kind::Physical | Kind::Virtio) {
        return (None, Vec::new());
    }
    let irqs = receiving(tree, &link.name, link.kind == Kind::Virtio, buffer);
    let cores = irqs.clone().and_then(|irqs| cores(proc, &irqs));
    let irqs = irqs.into_iter().flatten().filter_map(|irq| u32::try_from(irq).ok()).collect();
    (Some(cores.map_or_else(Interrupts::Unknown, Interrupts::Cores)), irqs)
}

/// Whether an interrupt is one of the link's device, whatever it is for, requested or not.
pub(super) fn has(tree: &SysfsTree, link: &str, irq: u32, buffer: &mut Vec<u8>) -> bool {
    let device = format!("class/net/{link}/device");
    let name = irq.to_string();
    let above = if is_virtio(tree, link, buffer) { "/.." } else { "" };
    tree.entries(&format!("{device}{above}/msi_irqs")).contains(&name)
        || tree.number(&format!("{device}{above}/irq"), buffer) == Some(u64::from(irq))
}

/// A link whose device is on the virtio bus.
pub(super) fn is_virtio(tree: &SysfsTree, link: &str, buffer: &mut Vec<u8>) -> bool {
    let kind = tree.text(&format!("class/net/{link}/device/modalias"), buffer);
    kind.is_some_and(|kind| kind.starts_with(b"virtio:"))
}

/// Numbers of the link's interrupts for received packets.
pub(super) fn receiving(
    tree: &SysfsTree,
    link: &str,
    is_virtio: bool,
    buffer: &mut Vec<u8>,
) -> Result<Vec<u64>, String> {
    let device = format!("class/net/{link}/device");
    if tree.entries(&format!("{device}/net")).len() > 1 {
        return Err("its device has other links too".to_owned());
    }
    // A virtio device sits on the device that interrupts; above other devices are bridges with interrupts of their own.
    let device = if is_virtio { format!("{device}/..") } else { device };
    let mut irqs: Vec<u64> =
        tree.entries(&format!("{device}/msi_irqs")).iter().filter_map(|name| name.parse().ok()).collect();
    if irqs.is_empty() {
        irqs.extend(tree.number(&format!("{device}/irq"), buffer).filter(|&irq| irq != 0));
    }
    if irqs.is_empty() {
        return Err("sysfs shows no interrupt of its device".to_owned());
    }
    if irqs.len() > MOST {
        return Err(format!("its device has more than {MOST} interrupts"));
    }
    // Interrupts that no driver has requested have no name.
    let mut name = |irq: u64| {
        let names = tree.text(&format!("kernel/irq/{irq}/actions"), buffer).filter(|names| !names.is_empty())?;
        Some((irq, String::from_utf8_lossy(names).into_owned()))
    };
    let named: Vec<(u64, String)> = irqs.into_iter().filter_map(&mut name).collect();
    let receives = |(_, names): &&(u64, String)| names.split(',').any(|name| receives(name, link));
    let found: Vec<u64> = named.iter().filter(receives).map(|(irq, _)| *irq).collect();
    match named.as_slice() {
        [] => Err("the kernel does not name its device's interrupts".to_owned()),
        // A single interrupt is for everything.
        [(irq, _)] => Ok(vec![*irq]),
        _ if found.is_empty() => {
            Err("the names of its device's interrupts do not show which are for receiving".to_owned())
        }
        _ => Ok(found),
    }
}

/// Whether a driver calls an interrupt so that is for what the link receives: `virtio2-input.0`, `eth0-TxRx-3`, `eth0-rx-0`,
/// `hns3-0000:7d:00.0-TxRx-0`, `eth0-Tx-Rx-0`, `mlx5_comp4@pci:0000:03:00.0`; all queues of a virtio device may have one
/// together, `virtio2-virtqueues`.
pub(super) fn receives(name: &str, link: &str) -> bool {
    const WORDS: [&str; 6] = ["rx", "txrx", "rxtx", "input", "virtqueues", "comp"];
    // A link may be called `rx0`.
    let words = name.strip_prefix(link).unwrap_or(name).split(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
        .any(|word| WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

/// The cores that take these interrupts.
fn cores(proc: &Path, irqs: &[u64]) -> Result<CoreSet, String> {
    let mut all = CoreSet::new();
    for irq in irqs {
        let read = |file: &str| {
            let text = proc_file::text(&proc.join(format!("irq/{irq}/{file}")))?;
            Ok(text.parse::<CoreSet>().ok().filter(|cores| !cores.is_empty()))
        };
        // Before Linux 4.13, and where the interrupt controller does not say, only where they may go is known.
        let cores = match read("effective_affinity_list") {
            Ok(Some(cores)) => Some(cores),
            _ => read("smp_affinity_list")
                .map_err(|error: io::Error| format!("/proc/irq/{irq}/smp_affinity_list cannot be read: {error}"))?,
        };
        let cores = cores.ok_or_else(|| format!("/proc/irq/{irq} does not say which core takes it"))?;
        cores.iter().for_each(|core| all.insert(core));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
