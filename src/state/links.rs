//! Which links are shown, in which order and shape, and which one is selected.

use super::columns::LinkColumn;
use super::lately::Lately;
use super::link_activity::{LinkActivity, Standing};
use super::link_hierarchy::LinkHierarchy;
use super::selection::Selection;
use super::tree::{LinkRow, Tree};
use crate::action::{LinkId, LinkSort};
use crate::derive::links::LinkRates;
use crate::derive::{LinkMetrics, Metrics};
use crate::sample::LinkState;
use std::cmp::{Ordering, Reverse};
use strum::{IntoStaticStr, VariantArray};

/// What a link is sorted by: the larger, the earlier.
fn sort_key(sort: LinkSort, link: &LinkMetrics) -> f64 {
    let rates = link.rates.as_ref();
    let errors = |rates: &LinkRates| rates.rx_errors_per_s.unwrap_or(0.0) + rates.tx_errors_per_s.unwrap_or(0.0);
    let value = match sort {
        LinkSort::Name => None,
        LinkSort::Rx => rates.and_then(|rates| rates.rx_bits_per_s),
        LinkSort::Tx => rates.and_then(|rates| rates.tx_bits_per_s),
        LinkSort::Pps => rates.and_then(LinkRates::packets_per_s),
        LinkSort::Drops => rates.and_then(|rates| Some(rates.dropped_per_s()? + errors(rates))),
        LinkSort::Errors => rates.map(errors),
        LinkSort::Times => link.times_label(),
        LinkSort::Mean => rates.and_then(LinkRates::mean_packet_bytes),
    };
    value.unwrap_or(-1.0)
}

/// Ports under their master, or one flat list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "the words of the key")]
pub enum ListShape {
    #[default]
    Tree,
    Flat,
}

/// What happens to links that move nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Idle {
    /// Idle links are hidden once there are many links.
    #[default]
    Auto,
    /// Idle links are shown.
    Shown,
    /// Idle links are hidden.
    Hidden,
}

/// How links are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct LinkChoices {
    /// Columns that may be shown, in their order.
    pub columns: Vec<LinkColumn>,
    pub sort: LinkSort,
    pub reversed: bool,
    pub shape: ListShape,
    pub idle: Idle,
}

impl Default for LinkChoices {
    fn default() -> Self {
        Self {
            columns: LinkColumn::VARIANTS.to_vec(),
            sort: LinkSort::default(),
            reversed: false,
            shape: ListShape::default(),
            idle: Idle::default(),
        }
    }
}

/// Which links are shown and how.
#[derive(Debug, Default)]
pub struct LinkList {
    pub(crate) chosen: LinkChoices,
    /// There were more links than a few.
    are_many: bool,
    pub(crate) filter: String,
    pub(crate) selection: Selection<LinkId>,
    rows: Vec<LinkRow>,
    /// How many links are shown for their own sake.
    pub(crate) matched: usize,
    /// What is not shown because it stands still.
    pub(crate) hidden: Hidden,
    /// Some row is of a link that is neither up nor of unknown state.
    pub(crate) any_down: Lately,
    family: LinkHierarchy,
    /// Some link has errors, or an owner.
    pub(crate) erred: Lately,
    pub(crate) owned: Lately,
}

/// What is not shown because it stands still.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Links that the filter would show.
    pub links: usize,
    /// Namespaces of which no link is shown.
    pub namespaces: usize,
}

/// More links than a screen of 80 by 24 has rows for: from there on those that matter come first.
const LINKS_AT_A_GLANCE: usize = 7;
/// From more links than this on, those that move nothing are hidden until they are asked for.
const FEW_LINKS: usize = LINKS_AT_A_GLANCE;
/// When all links are idle, up to so many of them are shown all the same.
const MOST_IDLE: usize = 30;
/// Masters of masters of masters that still take part in the order.
const MOST_NESTED: usize = 3;

impl LinkList {
    /// The rows, top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[LinkRow] {
        &self.rows
    }

    /// How many ports the link at this index has.
    #[must_use]
    pub fn ports(&self, index: usize) -> u32 {
        self.family.ports.get(index).copied().unwrap_or(0)
    }

    /// The link that the one at this index stands under in the tree.
    #[must_use]
    pub fn master(&self, index: usize) -> Option<usize> {
        self.family.master.get(index).copied().flatten().map(|above| above as usize)
    }

    /// Links of several namespaces are shown.
    #[must_use]
    pub fn several_namespaces(&self) -> bool {
        self.family.several_namespaces
    }

    /// Among more links than a small screen shows, sorted by name, links on the path of a benchmark come first, then busy ones.
    #[must_use]
    pub fn busy_first(&self) -> bool {
        self.chosen.sort == LinkSort::Name && self.family.stirs.len() > LINKS_AT_A_GLANCE
    }

    /// Links that move nothing are shown.
    pub(crate) fn shows_idle(&self) -> bool {
        self.chosen.idle == Idle::Shown || self.chosen.idle == Idle::Auto && !self.are_many
    }

    /// The identity of a row.
    #[must_use]
    pub fn id(metrics: &Metrics, row: &LinkRow) -> LinkId {
        let facts = &metrics.machine.links[row.index].facts;
        LinkId { key: facts.key(), born: facts.born }
    }

    /// Which links there are, which of them moved, and whether there ever were many.
    pub(super) fn memory(&self) -> (LinkHierarchy, bool) {
        (self.family.clone(), self.are_many)
    }

    /// Remembers that instead.
    pub(super) fn remember(&mut self, links: LinkHierarchy, are_many: bool) {
        (self.family, self.are_many) = (links, are_many);
    }

    /// Takes in which links there are and which of them move.
    pub(super) fn follow(&mut self, metrics: &Metrics) {
        self.family.follow(metrics);
        self.are_many |= metrics.machine.links.len() > FEW_LINKS;
        LinkActivity::observe(&mut self.family.stirs, metrics);
    }

    /// Makes the rows anew.
    pub(super) fn arrange(&mut self, metrics: &Metrics) {
        self.family.filter(&self.filter);
        let selected = self.find_selected(metrics);
        let order = self.order(metrics);
        let mut wanted: Vec<bool> =
            (0..metrics.machine.links.len()).map(|index| self.wanted(metrics, index, selected)).collect();
        let matching = self.family.matches.iter().filter(|matches| **matches).count();
        // The line that counts hidden links takes as much room as one link; and an empty list shows nothing.
        let shown = wanted.iter().filter(|wanted| **wanted).count();
        let is_all_idle = matching <= MOST_IDLE && shown == usize::from(selected.is_some_and(|index| wanted[index]));
        if self.chosen.idle == Idle::Auto && (matching == shown + 1 || is_all_idle) {
            wanted.clone_from(&self.family.matches);
        }
        self.matched = wanted.iter().filter(|wanted| **wanted).count();
        self.rows.clear();
        match self.chosen.shape {
            ListShape::Flat => {
                let flat = |&index: &u32| LinkRow { index: index as usize, depth: 0, last: 0, context: false };
                self.rows.extend(order.iter().filter(|&&index| wanted[index as usize]).map(flat));
            }
            ListShape::Tree => Tree::of(&order, &self.family.master, &wanted).walk(&mut self.rows),
        }
        let down =
            |row: &LinkRow| !matches!(metrics.machine.links[row.index].facts.state, LinkState::Up | LinkState::Unknown);
        let now_ns = metrics.machine.at_ns;
        self.any_down.note(self.rows.iter().any(down), now_ns);
        let errs = |row: &LinkRow| {
            let rates = metrics.machine.links[row.index].rates.as_ref();
            rates.is_some_and(|rates| rates.rx_errors_per_s.unwrap_or(0.0) + rates.tx_errors_per_s.unwrap_or(0.0) > 0.0)
        };
        self.erred.note(self.rows.iter().any(errs), now_ns);
        self.owned.note(!metrics.machine.owners.is_empty(), now_ns);
        self.hidden = self.count_hidden(metrics);
        let row = selected.and_then(|index| self.rows.iter().position(|row| row.index == index));
        self.selection.settle(selected.is_some(), row, self.rows.len());
    }

    /// What the rows leave out of what the filter lets through; links are sorted by namespace.
    fn count_hidden(&self, metrics: &Metrics) -> Hidden {
        let mut hidden = Hidden::default();
        if self.shows_idle() {
            return hidden;
        }
        let mut shown = vec![false; metrics.machine.links.len()];
        self.rows.iter().for_each(|row| shown[row.index] = true);
        let mut first = 0;
        for space in metrics.machine.links.chunk_by(|one, next| one.facts.netns == next.facts.netns) {
            let of = first..first + space.len();
            let left_out = of.clone().filter(|&index| self.family.matches[index] && !shown[index]).count();
            hidden.links += left_out;
            hidden.namespaces += usize::from(left_out > 0 && !shown[of.clone()].contains(&true));
            first = of.end;
        }
        hidden
    }

    /// Index of the selected link; none when it is gone.
    fn find_selected(&self, metrics: &Metrics) -> Option<usize> {
        let id = self.selection.id()?;
        let at = metrics.machine.links.binary_search_by_key(&id.key, |link| link.facts.key()).ok()?;
        Some(at).filter(|&at| metrics.machine.links[at].facts.born == id.born)
    }

    fn wanted(&self, metrics: &Metrics, index: usize, selected: Option<usize>) -> bool {
        let idle = || self.family.stirs[index].is_idle(&metrics.machine.links[index], metrics.machine.at_ns);
        self.family.matches[index] && (self.shows_idle() || selected == Some(index) || !idle())
    }

    fn order(&self, metrics: &Metrics) -> Vec<u32> {
        let mut order = self.family.by_name.clone();
        if self.chosen.sort != LinkSort::Name {
            let keys = metrics.machine.links.iter().map(|link| sort_key(self.chosen.sort, link)).collect();
            let keys: Vec<f64> = self.lifted(keys);
            let rank = &self.family.rank;
            let compare = |&a: &u32, &b: &u32| -> Ordering {
                let (a, b) = (a as usize, b as usize);
                keys[b].total_cmp(&keys[a]).then(rank[a].cmp(&rank[b]))
            };
            order.sort_unstable_by(compare);
        }
        if self.chosen.reversed {
            order.reverse();
        }
        if self.busy_first() {
            let standings = self.family.stirs.iter().map(|stir| stir.standing(metrics.machine.at_ns)).collect();
            let standings: Vec<Standing> = self.lifted(standings);
            order.sort_by_key(|&index| Reverse(standings[index as usize]));
        }
        order
    }

    /// A master ranks with its largest port: on many kernels what crosses a bridge is counted on its ports only.
    fn lifted<T: Copy + PartialOrd>(&self, mut keys: Vec<T>) -> Vec<T> {
        if self.chosen.shape == ListShape::Flat {
            return keys;
        }
        for _ in 0..MOST_NESTED {
            for index in 0..keys.len() {
                let above = self.family.master[index].map(|above| above as usize);
                if let Some(above) = above.filter(|&above| keys[above] < keys[index]) {
                    keys[above] = keys[index];
                }
            }
        }
        keys
    }
}
