//! The private namespace that a network of ours lives in: anonymous, held by processes alone, gone with the last of them.
//! It leaves no file anywhere and never touches the namespace it came from.

use super::sys;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};
use std::path::Path;
use std::{fs, io};

/// Why there is no private namespace, and what would help.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a private network namespace: {step}: {error}: {advice}")]
pub struct NamespaceError {
    step: &'static str,
    #[source]
    error: io::Error,
    advice: String,
}

/// Moves this process, which must have a single thread, into a network namespace of its own: directly where it may,
/// otherwise inside a user namespace in which the own user is root.
///
/// # Errors
/// The kernel refuses; the sentence says what would help.
pub fn enter_private() -> Result<(), NamespaceError> {
    if !is_capable_root() {
        return enter_as_user();
    }
    sys::leave_namespaces(UnshareFlags::NEWNET).map_err(|error| refused("unshare(CLONE_NEWNET)", error))
}

/// Only root keeps its capabilities through the exec of the demo's children, and in a container root may have none:
/// anyone else needs the user namespace.
#[must_use]
pub fn is_capable_root() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    geteuid().is_root() && capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

fn enter_as_user() -> Result<(), NamespaceError> {
    // Both numbers are of the old namespace: inside the new one they read as nobody until the maps are written.
    let (user, group) = (geteuid(), getegid());
    sys::leave_namespaces(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)
        .map_err(|error| refused("unshare(CLONE_NEWUSER | CLONE_NEWNET)", error))?;
    // The kernel accepts an unprivileged gid_map only after setgroups is denied (user_namespaces(7)). The own user is
    // mapped to 0 because an exec by any other user would drop the capabilities that configuring links takes.
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {} 1", user.as_raw())),
        ("/proc/self/gid_map", format!("0 {} 1", group.as_raw())),
    ] {
        fs::write(file, text).map_err(|error| refused(file, error))?;
    }
    Ok(())
}

fn refused(step: &'static str, error: io::Error) -> NamespaceError {
    NamespaceError { step, error, advice: advice(Path::new("/proc/sys"), geteuid().is_root()) }
}

/// What to do, from the switches by which distributions turn namespaces off.
fn advice(sys: &Path, root: bool) -> String {
    let set_to = |file: &str, value: &str| fs::read_to_string(sys.join(file)).is_ok_and(|text| text.trim() == value);
    let switch = if set_to("user/max_net_namespaces", "0") {
        "user.max_net_namespaces=1000"
    } else if set_to("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "kernel.apparmor_restrict_unprivileged_userns=0"
    } else if set_to("kernel/unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone=1"
    } else if set_to("user/max_user_namespaces", "0") {
        "user.max_user_namespaces=1000"
    } else if root {
        return "give this container CAP_SYS_ADMIN and CAP_NET_ADMIN, or run it outside".to_owned();
    } else {
        return "run it as root".to_owned();
    };
    if root {
        format!("allow it with: sysctl -w {switch}")
    } else {
        format!("run it as root, or allow it with: sysctl -w {switch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_with(switches: &[(&str, &str)]) -> String {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        for (file, value) in switches {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a joined path has a parent")).expect("the directory can be made");
            fs::write(path, value).expect("the switch can be written");
        }
        advice(root.path(), false)
    }

    #[test]
    fn advice_names_the_switch_that_is_off() {
        for (file, value, switch) in [
            ("kernel/apparmor_restrict_unprivileged_userns", "1\n", "kernel.apparmor_restrict_unprivileged_userns=0"),
            ("kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"),
            ("user/max_user_namespaces", "0\n", "user.max_user_namespaces=1000"),
            ("user/max_net_namespaces", "0\n", "user.max_net_namespaces=1000"),
        ] {
            let text = advice_with(&[(file, value)]);
            assert!(text.contains(switch), "the advice for {file} must name its switch, but says: {text}");
        }
    }

    #[test]
    fn advice_without_a_known_switch_names_the_rights() {
        let empty = tempfile::tempdir().expect("a temporary directory can be made");
        assert_eq!(advice(empty.path(), false), "run it as root", "an ordinary user is told the way that works");
        let text = advice(empty.path(), true);
        assert!(text.contains("CAP_SYS_ADMIN"), "root in a container is told what it lacks, but reads: {text}");
    }

    #[test]
    fn a_refusal_is_one_sentence_with_cause_and_advice() {
        let error = refused("unshare(CLONE_NEWNET)", io::Error::from_raw_os_error(28)).to_string();
        assert!(error.starts_with("cannot make a private network namespace"), "starts with what failed: {error}");
        assert!(error.contains("No space left"), "names the kernel's answer: {error}");
        assert!(!error.contains('\n'), "is one line: {error}");
    }
}
