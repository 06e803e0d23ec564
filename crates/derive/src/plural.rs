//! A number and what it counts, as people write it.

use std::fmt::Display;

/// A number and what it counts: `1 core`, `2 cores`.
pub fn plural<N: Display + PartialEq + From<u8> + Copy>(count: N, one: &str) -> String {
    if count == N::from(1) { format!("1 {one}") } else { format!("{count} {one}s") }
}
