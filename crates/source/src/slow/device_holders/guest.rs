//! A process that holds a tun, tap or macvtap → who that is: a guest by the command line of its virtual machine, any other
//! program by its name and number. It reads no file.

use vnettop_sample::text::clean;
use vnettop_sample::{Owner, OwnerBy, OwnerKind};

/// What a name may be long, characters.
const LONGEST: usize = 64;

/// Other programs of virtual machines, with the option that names their guest, as in `--id NAME`.
static OTHERS: [(&str, OwnerBy, Option<&str>); 4] = [
    ("firecracker", OwnerBy::Firecracker, Some("id")),
    ("cloud-hypervisor", OwnerBy::CloudHypervisor, None),
    ("crosvm", OwnerBy::Crosvm, Some("name")),
    ("lkvm", OwnerBy::Lkvm, Some("name")),
];

/// Who holds it: its command line (arguments with a zero byte behind each), its name for the kernel, its number.
pub(super) fn owner(cmdline: &[u8], comm: &[u8], pid: u32) -> Owner {
    let arguments: Vec<&[u8]> = cmdline.split(|&byte| byte == 0).filter(|argument| !argument.is_empty()).collect();
    let program = arguments.first().map_or(&[][..], |path| path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    if is_qemu(program) {
        return guest(OwnerBy::Qemu, program, qemu_name(&arguments), pid, after(&arguments, b"uuid").map(clean));
    }
    if let Some((_, by, option)) = OTHERS.iter().find(|(known, ..)| known.as_bytes() == program) {
        let name = option.and_then(|option| after(&arguments, option.as_bytes()));
        return guest(by.clone(), program, name.map(<[u8]>::to_vec), pid, None);
    }
    let comm = comm.trim_ascii_end();
    let name = numbered(if comm.is_empty() { program } else { comm }, pid);
    Owner { kind: OwnerKind::Process, name, id: None, by: OwnerBy::Tun, guess: false, pod_namespace: None }
}

fn is_qemu(program: &[u8]) -> bool {
    program.starts_with(b"qemu-system-") || matches!(program, b"qemu-kvm" | b"kvm" | b"qemu")
}

fn guest(by: OwnerBy, program: &[u8], name: Option<Vec<u8>>, pid: u32, id: Option<String>) -> Owner {
    let name = name.map(|name| short(&name)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| numbered(program, pid));
    let id = id.map(|id| short(id.as_bytes()));
    Owner { kind: OwnerKind::Vm, name, id, by, guess: false, pod_namespace: None }
}

fn short(name: &[u8]) -> String {
    clean(name).chars().take(LONGEST).collect()
}

fn numbered(program: &[u8], pid: u32) -> String {
    match short(program) {
        program if program.is_empty() => format!("pid {pid}"),
        program => format!("{program} {pid}"),
    }
}

/// The argument behind `-option` or `--option`; the last one, as qemu has it.
fn after<'a>(arguments: &[&'a [u8]], option: &[u8]) -> Option<&'a [u8]> {
    let is_it = |argument: &[u8]| {
        let word = argument.strip_prefix(b"-").map(|word| word.strip_prefix(b"-").unwrap_or(word));
        word == Some(option)
    };
    arguments.windows(2).rev().find(|two| is_it(two[0])).map(|two| two[1])
}

/// `-name NAME`, `-name guest=NAME,debug-threads=on`: the first value needs no key, a comma within one is doubled.
fn qemu_name(arguments: &[&[u8]]) -> Option<Vec<u8>> {
    let values = values(after(arguments, b"name")?);
    let keyed = |value: &Vec<u8>| value.strip_prefix(b"guest=").map(<[u8]>::to_vec);
    let first = || values.first().filter(|value| !value.contains(&b'=')).cloned();
    values.iter().find_map(keyed).or_else(first)
}

/// Apart at single commas; two are one comma of the value.
fn values(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut values, mut value, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte != b',' {
            value.push(byte);
        } else if let Some(more) = rest.strip_prefix(b",") {
            value.push(b',');
            rest = more;
        } else {
            values.push(std::mem::take(&mut value));
        }
    }
    values.push(value);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An argument a line, as `tr '\0' '\n' </proc/PID/cmdline` writes it.
    fn of(lines: &str) -> Owner {
        owner(&lines.replace('\n', "\0").into_bytes(), b"qemu\n", 4711)
    }

    #[test]
    fn the_guest_is_named_by_its_command_line() {
        let libvirt = of(include_str!("../../../../../tests/fixtures/owners/qemu-libvirt.cmdline"));
        assert_eq!((libvirt.kind, &*libvirt.name), (OwnerKind::Vm, "web-1"), "libvirt names the guest");
        assert_eq!(libvirt.id.as_deref(), Some("8d1f4a52-6f0e-4b6b-9a63-0c1f3f6a2d11"), "and gives it a uuid");
        assert_eq!(libvirt.by, OwnerBy::Qemu, "qemu says so");
        let proxmox = of(include_str!("../../../../../tests/fixtures/owners/qemu-proxmox.cmdline"));
        assert_eq!(proxmox.name, "bench,a", "Proxmox gives the name without a key; a comma in it is doubled");
        let plain = of(include_str!("../../../../../tests/fixtures/owners/qemu-plain.cmdline"));
        assert_eq!(plain.name, "qemu-system-aarch64 4711", "a guest without a name is its program and number");
        assert_eq!(plain.kind, OwnerKind::Vm, "and still a machine");
        let hostile = of("qemu-system-x86_64\n-name\nguest=\x1b[2J,debug-threads=on\n");
        assert_eq!(hostile.name, "?[2J", "no escape code gets through");
    }

    #[test]
    fn other_machines_and_other_programs_have_names_too() {
        let firecracker = of("/usr/bin/firecracker\n--id\nvm7\n--api-sock\n/run/x\n");
        assert_eq!((firecracker.kind, &*firecracker.name), (OwnerKind::Vm, "vm7"), "firecracker has an id");
        let openvpn = owner(b"/usr/sbin/openvpn\0--config\0a.conf\0", b"openvpn\n", 812);
        assert_eq!((openvpn.kind, &*openvpn.name), (OwnerKind::Process, "openvpn 812"), "program and number");
        assert_eq!(owner(b"", b"", 9).name, "pid 9", "a process that tells nothing has a number");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, comm: Vec<u8>) {
            let _ = owner(&bytes, &comm, 1);
            let _ = owner(&[&b"qemu-kvm\0-name\0"[..], &bytes].concat(), &comm, 1);
        }
    }
}
