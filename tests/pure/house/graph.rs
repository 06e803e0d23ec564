//! Which file names what of which other file, read from the text: imports, re-exports followed to the definition, and
//! paths written out. Unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};

/// A file's place in the tree: `derive/links` for `crates/derive/src/links.rs`.
pub type Module = String;

/// What a file defines, imports and names.
#[derive(Default)]
struct File {
    definitions: BTreeSet<String>,
    /// Names of types defined here; those of a trait's `type` are not.
    types: Vec<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: Vec<Vec<String>>,
}

/// All files, by place.
pub struct Graph(BTreeMap<Module, File>);

impl Graph {
    /// Of the files' places (`rooms.rs`) and their code.
    pub fn of(sources: &BTreeMap<String, String>) -> Self {
        let place = |file: &str| file.trim_end_matches(".rs").to_owned();
        let only_tests: BTreeSet<Module> = sources
            .iter()
            .flat_map(|(file, text)| {
                let after = text.split("#[cfg(test)]\n").skip(1);
                let declared = after.filter_map(|rest| rest.split_once(';')?.0.rsplit_once("mod "));
                let named = declared.filter(|(visible, name)| !visible.contains('{') && !name.contains('{'));
                named.map(move |(_, name)| format!("{}/{name}", place(file)))
            })
            .collect();
        let is_code = |file: &&String| {
            let ends = ["lib", "main"].contains(&&*place(file));
            !ends && !format!("/{file}").contains("/tests/") && !only_tests.contains(&place(file))
        };
        let files = sources.iter().filter(|(file, _)| is_code(file));
        Self(files.map(|(file, text)| (place(file), File::of(&place(file), &tokens(&super::code(text))))).collect())
    }

    /// Every type's name and the files that define one of that name.
    pub fn types(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (module, file) in &self.0 {
            for name in &file.types {
                all.entry(name).or_default().push(module);
            }
        }
        all
    }

    /// The files that each file names something of.
    pub fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let of = |(module, file): &(&Module, &File)| -> BTreeSet<&str> {
            let named = file.imports.values().chain(&file.globs).cloned();
            let written = file.paths.iter().filter_map(|path| {
                self.absolute(module, path).or_else(|| {
                    let import = file.imports.get(&path[0])?;
                    self.absolute(module, &[import, &path[1..]].concat())
                })
            });
            let to = named.filter_map(|path| self.absolute(module, &path)).chain(written);
            to.filter_map(|path| self.definer(&path, 8)).filter(|there| there != module).collect()
        };
        self.0.iter().map(|entry| (entry.0.as_str(), of(&entry))).collect()
    }

    /// A path from the root of the crate; none of another crate's.
    fn absolute(&self, module: &str, path: &[String]) -> Option<Vec<String>> {
        let here: Vec<String> = module.split('/').map(str::to_owned).collect();
        let ups = path.iter().take_while(|word| *word == "super").count();
        match path[0].as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([&here, &path[1..]].concat()),
            "super" => Some([&here[..here.len().checked_sub(ups)?], &path[ups..]].concat()),
            child if self.0.contains_key(&format!("{module}/{child}")) => Some([&here, path].concat()),
            _ => None,
        }
    }

    /// The file that defines what a path from the root leads to, behind re-exports.
    fn definer(&self, path: &[String], depth: usize) -> Option<&str> {
        let depth = depth.checked_sub(1)?;
        let known = (1..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length].join("/")))?;
        let (module, file) = self.0.get_key_value(&path[..known].join("/"))?;
        let Some(name) = path.get(known).filter(|name| !file.definitions.contains(*name)) else { return Some(module) };
        if let Some(import) = file.imports.get(name)
            && let Some(import) = self.absolute(module, import)
        {
            return self.definer(&[&import, &path[known + 1..]].concat(), depth);
        }
        let of_glob = file.globs.iter().find_map(|glob| {
            let there = self.definer(&[self.absolute(module, glob)?, path[known..].to_vec()].concat(), depth)?;
            self.0[there].definitions.contains(name).then_some(there)
        });
        of_glob.or(Some(module))
    }
}

impl File {
    fn of(module: &str, tokens: &[&str]) -> Self {
        let mut file = Self::default();
        let (mut at, mut depth) = (0, 0);
        while let Some(&token) = tokens.get(at) {
            let next = tokens.get(at + 1).copied().unwrap_or("");
            match token {
                "{" => depth += 1,
                "}" => depth -= 1,
                "use" if next != "<" => {
                    let end = at + tokens[at..].iter().position(|token| *token == ";").unwrap_or(0);
                    file.import(&[], &tokens[at + 1..end]);
                    at = end;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static" if is_name(next) => {
                    file.definitions.insert(next.to_owned());
                    let is_type =
                        ["struct", "enum", "union", "trait"].contains(&token) || token == "type" && depth == 0;
                    file.types.extend(is_type.then(|| next.to_owned()));
                    at += 1;
                }
                // Who may see it is nobody that it names.
                "pub" if next == "(" => {
                    at += tokens[at..].iter().position(|token| *token == ")").unwrap_or(0);
                }
                _ if is_name(token) && next == "::" => {
                    let mut path = vec![token.to_owned()];
                    while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|token| is_name(token)) {
                        path.push(tokens[at + 2].to_owned());
                        at += 2;
                    }
                    file.paths.extend((path.len() > 1).then_some(path));
                }
                _ => {}
            }
            at += 1;
        }
        assert_eq!(depth, 0, "the brackets of {module}.rs are understood");
        file
    }

    /// One tree of an import, below these words.
    fn import(&mut self, below: &[String], tree: &[&str]) {
        let list = tree.iter().position(|token| *token == "{");
        let head = tree[..list.unwrap_or(tree.len())].iter().take_while(|token| **token != "as");
        let words = head.filter(|token| is_name(token)).map(|&word| word.to_owned());
        let mut path: Vec<String> = below.iter().cloned().chain(words).collect();
        let Some(list) = list else {
            if tree.last() == Some(&"*") {
                return self.globs.push(path);
            }
            path.truncate(path.len() - usize::from(path.len() > 1 && path[path.len() - 1] == "self"));
            let name = tree.last().filter(|name| tree.contains(&"as") || **name != "self");
            let name = name.map_or_else(|| path[path.len() - 1].clone(), |&name| name.to_owned());
            self.imports.insert(name, path);
            return;
        };
        let (mut depth, mut begin) = (0, list + 1);
        for (at, token) in tree.iter().enumerate().skip(list + 1) {
            match *token {
                "{" => depth += 1,
                "}" | "," if depth == 0 => {
                    if begin < at {
                        self.import(&path, &tree[begin..at]);
                    }
                    begin = at + 1;
                }
                "}" => depth -= 1,
                _ => {}
            }
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single signs; without comments, texts and lifetimes.
fn tokens(code: &str) -> Vec<&str> {
    let (mut all, mut rest) = (Vec::new(), code);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => text_length(rest),
            'r' if rest.starts_with("r#\"") => rest[3..].find("\"#").map_or(rest.len(), |end| end + 5),
            'r' if rest.starts_with("r\"") => rest[2..].find('"').map_or(rest.len(), |end| end + 3),
            'b' if rest.starts_with("b'") => 1,
            '\'' => quoted_length(rest),
            ':' if rest.starts_with("::") => 2,
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let token = &rest[..length];
        if !first.is_whitespace() && !['"', '\''].contains(&first) && !token.starts_with("//") && !token.contains('"') {
            all.push(token);
        }
        rest = &rest[length..];
    }
    all
}

fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.map_or(rest.len(), |(at, _)| at + 1)
}

/// Of a character between quotes; one of a lifetime's.
fn quoted_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(rest.len(), |end| end + 4),
        _ => chars.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
    }
}

#[test]
fn the_graph_sees_imports_re_exports_and_paths() {
    let sources = [
        ("a.rs", "pub use self::one::Thing;\npub mod one; mod two;\npub fn of() {}"),
        ("a/one.rs", "use super::{of, two};\npub struct Thing(two::Other<'static>);"),
        ("a/two.rs", "pub type Other<'a> = &'a str; // crate::b::no\nconst S: &str = \"crate::b::no\";"),
        ("b.rs", "use crate::a::Thing;\nimpl X for Thing { type Item = crate::a::two::Other; }"),
    ];
    let sources = sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
    let graph = Graph::of(&sources);
    let arrows = graph.arrows();
    assert_eq!(arrows["a/one"], ["a", "a/two"].into(), "up for a function, sideways for a module");
    assert_eq!(arrows["b"], ["a/one", "a/two"].into(), "behind the re-export, and where the path is written out");
    assert!(arrows["a/two"].is_empty(), "comments and texts name nothing");
    assert_eq!(graph.types().into_keys().collect::<Vec<_>>(), ["Other", "Thing"], "a trait's own type is none");
}
