//! Links as a tree: ports under their masters. Whatever a recording claims about masters, every link has one row.

/// Deeper nesting than the kernel allows (`MAX_NEST_DEV`) is a lie of the input.
const MOST_DEPTH: u8 = 8;

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

/// Ports under their masters, siblings in the given order; built with three passes over all links.
pub(super) struct Tree {
    roots: Vec<u32>,
    first_port: Vec<u32>,
    next_port: Vec<u32>,
    wanted: Vec<bool>,
    shown: Vec<bool>,
}

/// No link.
const NONE: u32 = u32::MAX;

impl Tree {
    pub fn of(order: &[u32], master: &[Option<u32>], wanted: &[bool]) -> Self {
        let mut shown = wanted.to_vec();
        for (index, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let mut above = master[index];
            let mut depth = 0;
            while let Some(at) = above.filter(|_| depth < MOST_DEPTH) {
                shown[at as usize] = true;
                above = master[at as usize];
                depth += 1;
            }
        }
        let mut tree = Self {
            roots: Vec::new(),
            first_port: vec![NONE; order.len()],
            next_port: vec![NONE; order.len()],
            wanted: wanted.to_vec(),
            shown,
        };
        for &index in order.iter().rev().filter(|&&index| tree.shown[index as usize]) {
            match master[index as usize].filter(|_| !in_a_ring(master, index)) {
                Some(above) => {
                    tree.next_port[index as usize] = tree.first_port[above as usize];
                    tree.first_port[above as usize] = index;
                }
                None => tree.roots.push(index),
            }
        }
        tree.roots.reverse();
        tree
    }

    /// The rows, top to bottom.
    pub fn walk(&self, rows: &mut Vec<LinkRow>) {
        self.roots.iter().for_each(|&root| self.visit(root, 0, 0, rows));
    }

    fn visit(&self, index: u32, depth: u8, last: u16, rows: &mut Vec<LinkRow>) {
        let at = index as usize;
        rows.push(LinkRow { index: at, depth, last, context: !self.wanted[at] });
        let mut port = self.first_port[at];
        while port != NONE {
            let next = self.next_port[port as usize];
            let bit = u16::from(next == NONE) << (depth + 1);
            self.visit(port, depth + 1, last | bit, rows);
            port = next;
        }
    }
}

/// Masters that lead round in a ring, or too deep: no kernel makes them, a recording may claim them.
fn in_a_ring(master: &[Option<u32>], index: u32) -> bool {
    let mut above = master[index as usize];
    for _ in 0..MOST_DEPTH {
        match above {
            None => return false,
            Some(at) => above = master[at as usize],
        }
    }
    true
}
