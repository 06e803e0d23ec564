//! Metrics → text for other programs. The same numbers as on the screen; unknown is null.

pub mod json;
pub mod run;
