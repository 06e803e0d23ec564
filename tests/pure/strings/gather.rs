//! The string literals of the sources that people read, by a real lexer: no comments, no tests, no messages of panics.

use crate::rooms::files;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::fs;

/// What only its developer reads: the messages of these methods and macros.
const OF_PANICS: &[&str] =
    &["expect", "panic", "assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "unreachable"];

/// Files whose strings are no text: lists of the kernel's names, a helper of tests.
const NOT_READ: &[&str] = &["derive/losses/place_of_drop.rs", "source/sandbox.rs"];

/// Rooms whose single words are read as well: headings, roles, units.
const SINGLE_WORDS: &[&str] =
    &["view/", "view.rs", "action/keys.rs", "derive/doctor", "report/card", "report/run/rows.rs", "report/page"];

/// Each file that has such strings, by its place, and them in order, each as one line.
pub fn strings() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (name, file) in files() {
        if name.ends_with("tests.rs") || name.contains("/tests/") || NOT_READ.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut found = Vec::new();
        walk(tokens, &mut found);
        let words = SINGLE_WORDS.iter().any(|room| name.starts_with(room));
        let lines: Vec<String> = found.iter().filter(|text| is_read(text, words)).map(|text| one_line(text)).collect();
        if !lines.is_empty() {
            all.push((name, lines));
        }
    }
    all
}

/// The values of the string literals of `tokens`, in order, without attributes, items of tests and messages of panics.
fn walk(tokens: TokenStream, found: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut of_tests = false;
    let mut last = String::new();
    let mut before = ' ';
    // What is compared is not shown.
    let mut is_compared = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) => {
                if punct.as_char() == '#' {
                    if tokens.peek().is_some_and(|next| matches!(next, TokenTree::Punct(bang) if bang.as_char() == '!'))
                    {
                        tokens.next();
                    }
                    if let Some(TokenTree::Group(group)) = tokens.next_if(|next| matches!(next, TokenTree::Group(_))) {
                        of_tests |= group.stream().to_string() == "cfg (test)";
                        attribute(&group, found);
                    }
                } else if punct.as_char() == ';' {
                    of_tests = false;
                }
                if punct.as_char() != '!' {
                    last.clear();
                }
                is_compared = punct.as_char() == '=' && matches!(before, '=' | '!');
                before = punct.as_char();
                continue;
            }
            TokenTree::Ident(ident) => last = ident.to_string(),
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == Delimiter::Brace;
                if !of_tests && (is_body || !OF_PANICS.contains(&last.as_str())) {
                    walk(group.stream(), found);
                }
                of_tests &= !is_body;
                last.clear();
            }
            TokenTree::Literal(literal) => {
                if !of_tests
                    && !is_compared
                    && let syn::Lit::Str(text) = syn::Lit::new(literal)
                {
                    found.push(text.value());
                }
                last.clear();
            }
        }
        (before, is_compared) = (' ', false);
    }
}

/// The words of `#[error("…")]` and `#[strum(to_string = "…")]`; other attributes are not read by people (the command line's are, see `help`).
fn attribute(group: &Group, found: &mut Vec<String>) {
    let mut inside = group.stream().into_iter();
    if let Some(TokenTree::Ident(name)) = inside.next()
        && let Some(TokenTree::Group(words)) = inside.next()
        && (name == "error" || name == "strum" && words.stream().to_string().starts_with("to_string"))
    {
        walk(words.stream(), found);
    }
}

/// Is `text` for people? It has letters outside of braces, and a space, or is a single word in a room of such words.
fn is_read(text: &str, words: bool) -> bool {
    let plain = without_braces(text);
    let letters = plain.chars().filter(|c| c.is_alphabetic()).count();
    letters > 1 && (words || plain.trim().contains(' ')) && !plain.trim_start().starts_with('/')
}

/// `text` without what is put into it: `{rate}` is no word.
pub fn without_braces(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
        if c == '{' && depth == 1 {
            plain.push('_');
        }
    }
    plain
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}
