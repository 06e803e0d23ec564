//! vnettop.
fn main() {}
