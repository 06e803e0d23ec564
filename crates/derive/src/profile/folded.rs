//! Stacks as lines of text, the form that speedscope and tools for flame graphs read.

use super::fold::called;
use super::stacks::folded_name;
use vnettop_sample::CoreProfile;

/// A line a stack: program and functions from the outermost on, with `;` between them, and how many samples it had.
#[must_use]
pub fn folded(profile: &CoreProfile) -> Vec<String> {
    let line = |stack: &vnettop_sample::ProfiledStack| {
        let program = match &stack.program {
            Some(program) => folded_name(program, false),
            None if stack.pid == 0 => "idle".to_owned(),
            None => "[ended]".to_owned(),
        };
        let known = |at: &u32| profile.functions.get(usize::try_from(*at).ok()?);
        let functions = stack.functions.iter().rev().filter_map(known);
        let functions = functions.map(|one| format!(";{}", folded_name(&called(one), one.kernel)));
        format!("{program}{} {}", functions.collect::<String>(), stack.samples)
    };
    profile.stacks.iter().map(line).collect()
}
