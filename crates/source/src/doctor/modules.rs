//! Which parts of the kernel that may be modules are there: by lists, because asking the kernel for one would load it.

use super::words;
use crate::{Roots, proc_file};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use vnettop_sample::text::clean;
use vnettop_sample::{KnownFact, ModuleState};

/// Where modules are, below the name of the running kernel.
const MODULES: &str = "/lib/modules";

/// What the lists say of each of these.
pub(super) fn find<const N: usize>(roots: &Roots, names: [&str; N]) -> [KnownFact<ModuleState>; N] {
    let release = clean(rustix::system::uname().release().to_bytes());
    find_in(&roots.proc, &Path::new(MODULES).join(release), names)
}

fn find_in<const N: usize>(proc: &Path, modules: &Path, names: [&str; N]) -> [KnownFact<ModuleState>; N] {
    let loaded = proc_file::text(&proc.join("modules")).ok();
    let builtin = proc_file::text(&modules.join("modules.builtin")).unwrap_or_default();
    let files = proc_file::text(&modules.join("modules.dep")).ok();
    // A kernel without modules has no list of them.
    let is_enabled = proc_file::text(&proc.join("sys/kernel/modules_disabled")).is_ok_and(|disabled| disabled == "0");
    let may_load = loaded.is_some() && is_enabled;
    let loaded = loaded.unwrap_or_default();
    let otherwise = if may_load && files.is_none() { ModuleState::NotLoaded } else { ModuleState::Absent };
    let files = files.unwrap_or_default();
    let is_loaded = |name: &str| loaded.lines().any(|line| line.split(' ').next() == Some(name));
    let is_file = |list: &str, name: &str| list.lines().any(|line| is_module(line, name));
    let by_lists = names.map(|name| {
        if is_loaded(name) || is_file(&builtin, name) {
            Some(ModuleState::Present)
        } else {
            (may_load && is_file(&files, name)).then_some(ModuleState::Loadable)
        }
    });
    // The kernel takes a tenth of a second to write this one.
    let is_reported = by_lists.iter().all(Option::is_some);
    let symbols = if is_reported { Ok([false; N]) } else { has_symbols(&proc.join("kallsyms"), names) };
    std::array::from_fn(|at| match (by_lists[at], &symbols) {
        (Some(state), _) => Ok(state),
        (None, Ok(symbols)) => Ok(if symbols[at] { ModuleState::Present } else { otherwise }),
        (None, Err(why)) => Err(why.clone()),
    })
}

/// A line of `modules.builtin` or `modules.dep` begins with the module's file, which may be packed.
fn is_module(line: &str, name: &str) -> bool {
    let file = line.split(':').next().unwrap_or(line);
    file.rsplit('/')
        .next()
        .and_then(|file| file.split_once(".ko"))
        .is_some_and(|(stem, _)| stem.replace('-', "_") == name)
}

/// Whether the kernel has functions that begin with these names; anybody may read the names.
fn has_symbols<const N: usize>(kallsyms: &Path, names: [&str; N]) -> Result<[bool; N], String> {
    let unread = |error| format!("{}: {}", kallsyms.display(), words(error));
    let mut lines = BufReader::with_capacity(64 * 1024, File::open(kallsyms).map_err(unread)?);
    let (mut line, mut any, mut found) = (Vec::new(), false, [false; N]);
    while lines.read_until(b'\n', &mut line).map_err(unread)? > 0 {
        any = true;
        // Address, kind, name.
        let symbol = line.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
        for (found, name) in found.iter_mut().zip(names) {
            *found |= symbol.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'_'));
        }
        line.clear();
    }
    if any { Ok(found) } else { Err(format!("{} is empty", kallsyms.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(files: &[(&str, &str)]) -> [KnownFact<ModuleState>; 2] {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (file, content) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("in a directory")).expect("writable");
            fs::write(path, content).expect("writable");
        }
        find_in(&root.path().join("proc"), &root.path().join("modules"), ["tcp_diag", "udp_diag"])
    }

    #[test]
    fn a_module_is_found_loaded_built_in_or_as_a_file() {
        use ModuleState::{Absent, Loadable, NotLoaded, Present};
        let loaded = ("proc/modules", "tcp_diag 16384 0 - Live 0x0\nudp_diag 1 0 - Live 0x0\n");
        assert_eq!(found(&[loaded]), [Ok(Present), Ok(Present)], "loaded");
        let builtin = ("modules/modules.builtin", "kernel/net/ipv4/tcp_diag.ko\nkernel/net/ipv4/inet_diag.ko\n");
        let file = ("modules/modules.dep", "kernel/net/ipv4/udp_diag.ko.xz: kernel/net/ipv4/inet_diag.ko.xz\n");
        let may_load = ("proc/sys/kernel/modules_disabled", "0\n");
        let none = ("proc/modules", "");
        assert_eq!(found(&[builtin, file, may_load, none]), [Ok(Present), Ok(Loadable)], "built in, and a packed file");
        let symbols = ("proc/kallsyms", "0000000000000000 t tcp_diag_dump\n0000000000000000 t udp_diagonal\n");
        assert_eq!(
            found(&[symbols]),
            [Ok(Present), Ok(Absent)],
            "by the names of its functions where there are no lists"
        );
        let locked = ("proc/sys/kernel/modules_disabled", "1\n");
        assert_eq!(found(&[builtin, file, locked, symbols]), [Ok(Present), Ok(Absent)], "nothing is loaded any more");
        assert_eq!(
            found(&[symbols, may_load, none]),
            [Ok(Present), Ok(NotLoaded)],
            "as in a container without /lib/modules"
        );
    }

    #[test]
    fn without_any_list_it_is_not_known() {
        let [tcp, _] = found(&[]);
        assert!(tcp.is_err_and(|why| why.contains("kallsyms")), "the reason names what could not be read");
        let [tcp, _] = found(&[("proc/kallsyms", "")]);
        assert!(tcp.is_err_and(|why| why.contains("empty")), "an empty list says nothing");
    }
}
