//! The machine, by name. (to be written)
