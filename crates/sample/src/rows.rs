//! Looking up a row in a list that is sorted by a key.

/// The row of a list, which is sorted by `key_of`, that has this key.
pub fn row_of<'a, T, K: Ord>(sorted: &'a [T], key: &K, key_of: impl FnMut(&'a T) -> K) -> Option<&'a T> {
    sorted.binary_search_by_key(key, key_of).ok().map(|at| &sorted[at])
}
