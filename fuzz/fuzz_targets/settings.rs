//! `config.toml` and themes: settings, or one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vnettop::config::{Configuration, fuzz_theme};

fuzz_target!(|text: &str| {
    let mut configuration = Configuration::default();
    if let Err(error) = configuration.apply(text, "config.toml") {
        let sentence = error.to_string();
        assert!(!sentence.chars().any(char::is_control), "{sentence:?} is one sentence and steers no terminal");
    }
    fuzz_theme(text);
});
