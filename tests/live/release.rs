//! What measures for long: it runs before a release, and where what it is about was changed (`tests/run --all`, or by name). So do the parts
//! called `release` of files of `measures`.

mod beside;
mod compare;
pub mod dropped;
mod planted;
mod programs;
