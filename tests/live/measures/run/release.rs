//! What takes long: tests of others beside, and searches.

use super::*;

mod beside;
mod search;
