//! Reports of recordings.
