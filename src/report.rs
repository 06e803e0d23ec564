//! Metrics → text for other programs. The same numbers as on the screen; unknown is null.

mod card;
pub mod json;
pub mod run;
