//! vnettop.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        Some((first, rest)) if first == "demo-child" => vnettop::demo::run_child(rest),
        _ => ExitCode::SUCCESS,
    }
}
