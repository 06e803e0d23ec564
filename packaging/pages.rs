//! Writes the man pages, the completions for bash, zsh and fish, and the example of config.toml into a folder: `cargo run --example pages -- FOLDER DATE`.
//! An example, so that what it needs is built for packages and tests alone and never into the program.

#[path = "pages/text.rs"]
mod text;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, date] = arguments.as_slice() else {
        eprintln!("usage: pages FOLDER DATE");
        return ExitCode::from(2);
    };
    for (name, page) in text::pages(date) {
        let path = Path::new(folder).join(name);
        if let Err(error) = std::fs::write(&path, page) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}
