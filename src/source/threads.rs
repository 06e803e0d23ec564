//! The watched threads. (to be written)
