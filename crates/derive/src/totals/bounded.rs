//! A map that keeps at most so many: what was asked for least lately makes room.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
pub(super) struct Bounded<K, V> {
    most: usize,
    /// Each with the round in which it was asked for last.
    map: BTreeMap<K, (u64, V)>,
    round: u64,
    /// What found no room in this round, because all others were asked for in it.
    refused: BTreeSet<K>,
}

impl<K: Ord + Clone, V: Default> Bounded<K, V> {
    pub fn new(most: usize) -> Self {
        Self { most, map: BTreeMap::new(), round: 0, refused: BTreeSet::new() }
    }

    /// Begins a round: keys asked for in one round do not make room for each other.
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.refused.clear();
    }

    /// The value of this key, made where there is none.
    pub fn entry(&mut self, key: K) -> Option<&mut V> {
        if !self.map.contains_key(&key) && self.map.len() >= self.most {
            let quiet = self.map.iter().filter(|(_, (round, _))| *round < self.round);
            let Some(oldest) = quiet.min_by_key(|(_, (round, _))| *round).map(|(key, _)| key.clone()) else {
                self.refused.insert(key);
                return None;
            };
            self.map.remove(&oldest);
        }
        let (round, value) = self.map.entry(key).or_insert_with(|| (0, V::default()));
        *round = self.round;
        Some(value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter().map(|(key, (_, value))| (key, value))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.map.values_mut().map(|(_, value)| value)
    }

    /// How many found no room in this round.
    pub fn left_out(&self) -> usize {
        self.refused.len()
    }

    /// Leaves only what was asked for in this round.
    pub fn drop_quiet(&mut self) {
        let now = self.round;
        self.map.retain(|_, (round, _)| *round == now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_quiet_longest_makes_room_and_what_is_busy_does_not() {
        let mut map: Bounded<&str, u32> = Bounded::new(2);
        for round in [["a", "b"], ["b", "c"]] {
            map.begin_round();
            for key in round {
                *map.entry(key).expect("room") += 1;
            }
        }
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&"b", &2), (&"c", &1)], "a was quiet longest");
        for _ in 0..2 {
            assert_eq!(map.entry("d"), None, "b and c are busy");
        }
        assert_eq!(map.left_out(), 1, "and that is counted once");
        map.begin_round();
        assert_eq!(map.left_out(), 0, "as long as it is so");
        assert_eq!(Bounded::<u8, u8>::new(0).entry(1), None, "where there is no room at all");
    }
}
