//! The folder of one link in a sysfs of its namespace, found by its number whatever the link is called now. It is open in a mount
//! that may be written to; nothing is written here. The folder stays that of the link when the link is renamed.

use super::interrupts;
use super::link_controls::LinkControls;
use super::queues::SysfsTree;
use crate::netns::{NetnsPlace, cookie, find_by_inode, run_inside};
use crate::{proc_file, scan};
use rustix::fs::Dir;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use vnettop_sample::LinkKey;
use vnettop_sample::text::clean;

/// A link is renamed while it is looked for: how often it is looked for.
const TRIES: usize = 3;

/// The folder of one link.
#[derive(Debug)]
pub struct LinkFolder {
    /// Its `class/net/NAME`; files below it may be opened for writing.
    pub folder: OwnedFd,
    /// What the link is called now; control characters replaced.
    pub name: String,
    /// What tells its namespace from one that gets the same inode later (`SO_NETNS_COOKIE`); `None` before Linux 5.14.
    pub cookie: Option<u64>,
    /// Where its namespace was found.
    pub place: NetnsPlace,
    /// What of the link is not a file.
    pub controls: LinkControls,
    tree: SysfsTree,
    /// What the link is called, byte for byte.
    file_name: CString,
}

impl LinkFolder {
    /// Numbers of the interrupts for what its device receives; none where there is no hardware behind it, or it does not tell.
    #[must_use]
    pub fn interrupts(&self) -> Vec<u32> {
        let (name, mut buffer) = (self.file_name.to_string_lossy(), Vec::new());
        let is_virtio = interrupts::is_virtio(&self.tree, &name, &mut buffer);
        let irqs = interrupts::receiving(&self.tree, &name, is_virtio, &mut buffer).unwrap_or_default();
        irqs.into_iter().filter_map(|irq| u32::try_from(irq).ok()).collect()
    }

    /// Whether an interrupt is one of its device: a link that is down has it still, though its driver has given it up.
    #[must_use]
    pub fn has_interrupt(&self, irq: u32) -> bool {
        interrupts::has(&self.tree, &self.file_name.to_string_lossy(), irq, &mut Vec::new())
    }
}

/// Why a link's folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinkFolderError {
    /// No process and no mount keeps the namespace.
    #[error("the network namespace is gone")]
    NoNamespace,
    /// The namespace has no link of that number.
    #[error("the link is gone")]
    NoLink,
    /// The namespace cannot be looked for or entered, or its sysfs not be opened.
    #[error("the link's namespace cannot be entered: {0}")]
    Unentered(#[source] io::Error),
}

/// Opens the folder of a link (`CAP_SYS_ADMIN`).
///
/// # Errors
/// The link or its namespace is gone, or may not be looked at.
pub fn open_link_folder(link: LinkKey) -> Result<LinkFolder, LinkFolderError> {
    let unentered = LinkFolderError::Unentered;
    let found = find_by_inode(link.netns).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LinkFolderError::NoNamespace,
        _ => unentered(error),
    })?;
    let Some(ifindex) = link.ifindex.kernel() else { return Err(LinkFolderError::NoLink) };
    let here = move || Ok((SysfsTree::open_to_change()?, LinkControls::open(link.ifindex)?, cookie()));
    let opened = if found.place == NetnsPlace::Own { here() } else { run_inside(found.file, here) };
    let (tree, controls, cookie) = opened.map_err(unentered)?;
    for _ in 0..TRIES {
        if let Some((file_name, folder)) = folder_of(&tree, ifindex).map_err(unentered)? {
            let name = clean(file_name.as_bytes());
            return Ok(LinkFolder { folder, name, cookie, place: found.place, controls, tree, file_name });
        }
    }
    Err(LinkFolderError::NoLink)
}

/// The folder of the link with that number; `None` where no link has it.
fn folder_of(tree: &SysfsTree, ifindex: u32) -> io::Result<Option<(CString, OwnedFd)>> {
    let links = proc_file::open_directory_below(tree.root(), "class/net")?;
    let mut buffer = Vec::new();
    for entry in Dir::read_from(&links)?.flatten() {
        let Ok(folder) = proc_file::open_directory_below(&links, entry.file_name()) else { continue };
        if !is_special(entry.file_name()) && number(&folder, &mut buffer) == Some(u64::from(ifindex)) {
            return Ok(Some((entry.file_name().to_owned(), folder)));
        }
    }
    Ok(None)
}

fn is_special(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn number(folder: &OwnedFd, buffer: &mut Vec<u8>) -> Option<u64> {
    let file = proc_file::open_below(folder, "ifindex").ok()?;
    scan::number(proc_file::whole(&file, buffer).ok()?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns_of;
    use std::path::Path;
    use vnettop_sample::Ifindex;

    #[test]
    fn a_link_is_found_by_its_number() {
        let own = netns_of(Path::new("/proc/thread-self")).expect("there is a /proc");
        let link = |ifindex| open_link_folder(LinkKey { netns: own, ifindex: Ifindex(ifindex) });
        match link(1) {
            Err(LinkFolderError::Unentered(error)) => {
                eprintln!("NOT RUN: a_link_is_found_by_its_number: {error}");
            }
            lo => {
                assert_eq!(lo.expect("lo is the first of every namespace").name, "lo");
                assert!(matches!(link(0), Err(LinkFolderError::NoLink)), "no link has number 0");
            }
        }
    }
}
