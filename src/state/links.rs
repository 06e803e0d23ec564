//! Which links are shown, in which order and shape, and which one is selected.

use super::family::Family;
use super::selection::Selection;
use super::tree::Tree;
use crate::action::LinkId;
use crate::derive::links::LinkRates;
use crate::derive::{LinkMetrics, Metrics};
use std::cmp::Ordering;

/// A link that moved no packet for this long is idle.
const IDLE_NS: u64 = 5_000_000_000;

/// The column that links are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the columns")]
pub enum LinkSort {
    Name,
    Rx,
    Tx,
    Pps,
    Drops,
}

impl LinkSort {
    /// The word in the title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Pps => "pps",
            Self::Drops => "drops",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::Name => Self::Rx,
            Self::Rx => Self::Tx,
            Self::Tx => Self::Pps,
            Self::Pps => Self::Drops,
            Self::Drops => Self::Name,
        }
    }

    fn key(self, link: &LinkMetrics) -> f64 {
        let rates = link.rates.as_ref();
        let value = match self {
            Self::Name => None,
            Self::Rx => rates.and_then(|rates| rates.rx_bits_per_s),
            Self::Tx => rates.and_then(|rates| rates.tx_bits_per_s),
            Self::Pps => rates.and_then(LinkRates::packets_per_s),
            Self::Drops => rates.and_then(|rates| {
                Some(
                    rates.dropped_per_s()?
                        + rates.rx_errors_per_s.unwrap_or(0.0)
                        + rates.tx_errors_per_s.unwrap_or(0.0),
                )
            }),
        };
        value.unwrap_or(-1.0)
    }
}

/// Ports under their master, or one flat list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the key")]
pub enum Shape {
    Tree,
    Flat,
}

/// What happens to links that move nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the key")]
pub enum Idle {
    Shown,
    Hidden,
}

/// One row of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRow {
    /// Index into `Metrics::links`.
    pub index: usize,
    /// How many masters it lies under.
    pub depth: u8,
    /// Bit `n`: at depth `n` this row or its ancestor is the last of its siblings.
    pub last: u16,
    /// Shown only because a link below it is.
    pub context: bool,
}

/// Which links are shown and how.
#[derive(Debug)]
pub struct LinkList {
    pub(crate) sort: LinkSort,
    pub(crate) reversed: bool,
    pub(crate) shape: Shape,
    pub(crate) idle: Idle,
    pub(crate) filter: String,
    pub(crate) selection: Selection<LinkId>,
    rows: Vec<LinkRow>,
    matched: usize,
    family: Family,
}

/// From more links than this on, those that move nothing are hidden until they are asked for.
const FEW_LINKS: usize = 24;
/// Masters of masters of masters that still take part in the order.
const MOST_NESTED: usize = 3;

impl Default for LinkList {
    fn default() -> Self {
        Self {
            sort: LinkSort::Name,
            reversed: false,
            shape: Shape::Tree,
            idle: Idle::Shown,
            filter: String::new(),
            selection: Selection::default(),
            rows: Vec::new(),
            matched: 0,
            family: Family::default(),
        }
    }
}

impl LinkList {
    /// The rows, top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[LinkRow] {
        &self.rows
    }

    /// How many links are shown for their own sake.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.matched
    }

    /// How many ports the link at this index has.
    #[must_use]
    pub fn ports(&self, index: usize) -> u32 {
        self.family.ports.get(index).copied().unwrap_or(0)
    }

    /// Links of several namespaces are shown.
    #[must_use]
    pub fn several_namespaces(&self) -> bool {
        self.family.several_namespaces
    }

    /// Some link is neither up nor of unknown state.
    #[must_use]
    pub fn any_down(&self) -> bool {
        self.family.any_down
    }

    /// The identity of a row.
    #[must_use]
    pub fn id(metrics: &Metrics, row: &LinkRow) -> LinkId {
        let facts = &metrics.links[row.index].facts;
        LinkId { key: facts.key(), born: facts.born }
    }

    /// Takes in which links there are and which of them move.
    pub(super) fn follow(&mut self, metrics: &Metrics) {
        let first = self.family.active_ns.is_empty();
        self.family.follow(metrics);
        if first && metrics.links.len() > FEW_LINKS {
            self.idle = Idle::Hidden;
        }
        for (active_ns, link) in self.family.active_ns.iter_mut().zip(&metrics.links) {
            let packets = link.rates.as_ref().and_then(LinkRates::packets_per_s);
            if packets.is_some_and(|packets| packets > 0.0) {
                *active_ns = metrics.at_ns;
            }
        }
    }

    /// Makes the rows anew.
    pub(super) fn arrange(&mut self, metrics: &Metrics) {
        self.family.filter(&self.filter);
        let selected = self.find_selected(metrics);
        let order = self.order(&metrics.links);
        let wanted: Vec<bool> = (0..metrics.links.len()).map(|index| self.wanted(metrics, index, selected)).collect();
        self.matched = wanted.iter().filter(|wanted| **wanted).count();
        self.rows.clear();
        match self.shape {
            Shape::Flat => {
                let flat = |&index: &u32| LinkRow { index: index as usize, depth: 0, last: 0, context: false };
                self.rows.extend(order.iter().filter(|&&index| wanted[index as usize]).map(flat));
            }
            Shape::Tree => Tree::of(&order, &self.family.master, &wanted).walk(&mut self.rows),
        }
        let row = selected.and_then(|index| self.rows.iter().position(|row| row.index == index));
        self.selection.settle(row, self.rows.len());
    }

    /// Index of the selected link; forgets it when it is gone.
    fn find_selected(&mut self, metrics: &Metrics) -> Option<usize> {
        let id = self.selection.id()?;
        let at = metrics.links.binary_search_by_key(&id.key, |link| link.facts.key()).ok();
        let at = at.filter(|&at| metrics.links[at].facts.born == id.born);
        if at.is_none() {
            self.selection.forget();
        }
        at
    }

    fn wanted(&self, metrics: &Metrics, index: usize, selected: Option<usize>) -> bool {
        let active_ns = self.family.active_ns[index];
        let busy = metrics.links[index].rates.is_none()
            || (active_ns > 0 && metrics.at_ns.saturating_sub(active_ns) < IDLE_NS);
        self.family.matches[index] && (self.idle == Idle::Shown || busy || selected == Some(index))
    }

    fn order(&self, links: &[LinkMetrics]) -> Vec<u32> {
        let mut order = self.family.by_name.clone();
        if self.sort != LinkSort::Name {
            let mut keys: Vec<f64> = links.iter().map(|link| self.sort.key(link)).collect();
            if self.shape == Shape::Tree {
                lift(&mut keys, &self.family.master);
            }
            let rank = &self.family.rank;
            let compare = |&a: &u32, &b: &u32| -> Ordering {
                let (a, b) = (a as usize, b as usize);
                keys[b].total_cmp(&keys[a]).then(rank[a].cmp(&rank[b]))
            };
            order.sort_unstable_by(compare);
        }
        if self.reversed {
            order.reverse();
        }
        order
    }
}

/// A master ranks with its largest port: on many kernels what crosses a bridge is counted on its ports only.
fn lift(keys: &mut [f64], master: &[Option<u32>]) {
    for _ in 0..MOST_NESTED {
        for index in 0..keys.len() {
            if let Some(above) = master[index] {
                keys[above as usize] = keys[above as usize].max(keys[index]);
            }
        }
    }
}
