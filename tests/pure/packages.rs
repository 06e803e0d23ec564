//! What a package says of the command line is what the command line is: every option and command stands in the man pages and in
//! each completion.

#[path = "../../packaging/pages/text.rs"]
mod text;

use clap::Command;
use std::collections::BTreeMap;

fn files() -> BTreeMap<String, String> {
    let pages = text::pages("2026-01-01").into_iter();
    pages.map(|(name, page)| (name, String::from_utf8(page).expect("pages are text"))).collect()
}

/// Every long option of a command, as typed; those that take part in no help are for nobody.
fn options(command: &Command) -> impl Iterator<Item = String> {
    let seen = command.get_arguments().filter(|option| !option.is_hide_set());
    seen.filter_map(|option| option.get_long()).map(|name| format!("--{name}"))
}

#[test]
fn the_man_pages_name_every_option_and_command() {
    let files = files();
    // Roff writes a hyphen that is one as \-.
    let page = |name: &str| files.get(name).unwrap_or_else(|| panic!("there is {name}")).replace("\\-", "-");
    let command = vnettop::cli::command();
    let main = page("vnettop.1");
    for option in options(&command) {
        assert!(main.contains(&option), "vnettop.1 names {option}");
    }
    for command in command.get_subcommands() {
        let name = format!("vnettop-{}", command.get_name());
        assert!(main.contains(&format!("{name}(1)")), "vnettop.1 leads to {name}(1)");
        let own = page(&format!("{name}.1"));
        for option in options(command) {
            assert!(own.contains(&option), "{name}.1 names {option}");
        }
    }
    assert!(main.contains("setcap cap_sys_admin,"), "a manual without rights helps nobody who has none");
}

#[test]
fn the_example_of_settings_is_that_of_this_version() {
    let files = files();
    let example = files.get("config.toml").expect("there is an example");
    let chosen: String = example
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned() + "\n")
        .collect();
    let mut configuration = vnettop::config::Configuration::default();
    let default = configuration.preferences.clone();
    configuration.apply(&chosen, "config.toml").expect("every line of it is right");
    assert_eq!(configuration.preferences, default, "each value in it is the default");
    assert!(
        chosen.contains(&configuration.plain().lines().next_back().expect("a last line").to_owned()),
        "and none is missing"
    );
    let page = files["vnettop.1"].replace("\\-", "-");
    assert!(page.contains("/etc/vnettop/config.toml") && page.contains("/usr/share/doc/vnettop/examples/config.toml"));
}

#[test]
fn the_completions_name_every_option_and_command() {
    let files = files();
    for (name, is_long) in [("vnettop.bash", "--"), ("_vnettop", "--"), ("vnettop.fish", "-l ")] {
        let script = files.get(name).unwrap_or_else(|| panic!("there is {name}"));
        let command = vnettop::cli::command();
        for part in command.get_subcommands().chain([&command]) {
            assert!(script.contains(part.get_name()), "{name} names {}", part.get_name());
            for option in options(part) {
                let typed = option.replacen("--", is_long, 1);
                assert!(script.contains(&typed), "{name} completes {option} of {}", part.get_name());
            }
        }
    }
}
