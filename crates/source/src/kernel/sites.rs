//! The places in the kernel's code that drop packets, and the functions they are in.

use crate::bpf::drops::{DropRow, FlowKey};
use std::collections::BTreeMap;
use std::sync::Arc;
use vnettop_sample::{DropCount, DropFlow, Ifindex, Proto};

/// A place in the kernel's code.
#[derive(Debug)]
struct Site {
    number: u32,
    function: Function,
}

/// The function that a place is in.
#[derive(Debug, Clone)]
enum Function {
    /// It is being looked up.
    Asked,
    /// The kernel does not name it.
    Unnamed,
    Named(Arc<str>),
}

/// Every place that was met.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// By address.
    known: BTreeMap<u64, Site>,
    /// How many functions were found out.
    pub named: usize,
}

impl Sites {
    /// Takes what was found out of the functions at these addresses.
    pub(super) fn name(&mut self, names: Vec<(u64, Option<String>)>) {
        for (address, name) in names {
            if let Some(site) = self.known.get_mut(&address) {
                site.function = name.map_or(Function::Unnamed, |name| Function::Named(Arc::from(name)));
                self.named += 1;
            }
        }
    }

    /// A row as the sample has it; `None` while its function is being looked up: what its packets mean may depend on it, and later
    /// counts have them all. An address met for the first time is added to `unknown`.
    pub(super) fn count(
        &mut self,
        row: &DropRow,
        usual: &impl Fn(u64) -> Option<Arc<str>>,
        unknown: &mut Vec<u64>,
    ) -> Option<DropCount> {
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let site = self.known.entry(row.address).or_insert_with(|| {
            let function = usual(row.address).map_or(Function::Asked, Function::Named);
            if matches!(function, Function::Asked) {
                unknown.push(row.address);
            }
            Site { number, function }
        });
        let function = match &site.function {
            Function::Asked => return None,
            Function::Unnamed => None,
            Function::Named(name) => Some(Arc::clone(name)),
        };
        Some(DropCount {
            site: site.number,
            flow: row.flow.map(named),
            netns: Some(u64::from(row.netns)).filter(|&netns| netns != 0),
            ifindex: Some(Ifindex(row.ifindex)).filter(|_| row.ifindex != 0),
            reason: row.reason.clone(),
            function,
            untracked: row.untracked,
            packets: row.packets,
        })
    }
}

/// A flow as the sample has it.
pub(super) fn named(FlowKey { proto, from, to }: FlowKey) -> DropFlow {
    let proto = if proto == Proto::Udp.number() { Proto::Udp } else { Proto::Tcp };
    DropFlow { proto, from, to }
}
