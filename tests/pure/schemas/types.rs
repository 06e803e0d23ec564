//! What the name of a Rust type says: whether it may be nothing, whether it is a list, and what it is called.

/// A type by its name.
pub enum RustType {
    /// Null, or this.
    Option(String),
    /// A list of these.
    List(String),
    /// What it is in JSON.
    Plain(&'static str),
    /// Something of ours.
    Other,
}

/// Wrappers that are written as what is in them.
const WRAPPERS: [&str; 4] = ["alloc::boxed::Box<", "alloc::sync::Arc<", "alloc::rc::Rc<", "alloc::borrow::Cow<"];
/// Lists of ours, beside those of the standard library.
const LISTS: [&str; 4] = [
    "vnettop::report::json::Each<",
    "alloc::vec::Vec<",
    "smallvec::SmallVec<",
    "alloc::collections::btree::set::BTreeSet<",
];
/// Written by the word of the field `kind`: which fields there are depends on it.
const TOLD_BY_KIND: [&str; 3] = ["Event", "TracedMove", "OverriddenPin"];
/// Any names, and values of one type.
const MAPS: [&str; 1] = ["Numbers"];

/// The name without references, lifetimes and wrappers.
pub fn plain(name: &str) -> String {
    let name = name.replace("'_, ", "").replace("<'_>", "");
    let mut name = name.as_str();
    loop {
        let before = name;
        name = name.trim_start_matches("&mut ").trim_start_matches('&').trim();
        for wrapper in WRAPPERS {
            name = inner(name, wrapper).unwrap_or(name);
        }
        name = inner(name, "vnettop::report::json::InJson<").unwrap_or(name);
        if name == before {
            return name.to_owned();
        }
    }
}

/// What is between the brackets; the first of several.
fn inner<'a>(name: &'a str, begin: &str) -> Option<&'a str> {
    let inside = name.strip_prefix(begin)?.strip_suffix('>')?;
    let mut depth = 0;
    let end = inside.find(|c: char| {
        depth += i32::from("<([".contains(c)) - i32::from(">)]".contains(c));
        depth == 0 && c == ','
    });
    Some(&inside[..end.unwrap_or(inside.len())])
}

impl RustType {
    /// Of a name that [`plain`] gave.
    pub fn of(name: &str) -> Self {
        if let Some(inside) = inner(name, "core::option::Option<") {
            return Self::Option(plain(inside));
        }
        if let Some(inside) = LISTS.iter().find_map(|list| inner(name, list)) {
            let array = inside.strip_prefix('[').and_then(|of| of.split(';').next());
            return Self::List(plain(array.unwrap_or(inside)));
        }
        if let Some(inside) = name.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
            return Self::List(plain(inside.split(';').next().unwrap_or(inside)));
        }
        match name {
            "bool" => Self::Plain("boolean"),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => Self::Plain("integer"),
            "f32" | "f64" => Self::Plain("number"),
            "str" | "char" | "alloc::string::String" | "compact_str::CompactString" => Self::Plain("string"),
            _ => Self::Other,
        }
    }
}

/// The last word of a name: what its definition is called. Something of a host is called after what it is.
pub fn short(name: &str) -> String {
    let (outer, inside) = name.split_once('<').unwrap_or((name, ""));
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).trim_end_matches('>').to_owned();
    match last(outer) {
        of if of == "OfHostObject" => last(inside) + "OfHost",
        of => of,
    }
}

/// Its field `kind` says which fields there are.
pub fn is_told_by_kind(name: &str) -> bool {
    TOLD_BY_KIND.contains(&&*short(name)) && !name.contains('<')
}

/// It has whatever names.
pub fn is_map(name: &str) -> bool {
    MAPS.contains(&&*short(name))
}
