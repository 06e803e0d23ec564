//! Interrupts of devices made of files, as sysfs and /proc have them, and of this machine's own.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use vnettop_sample::{Ifindex, LinkKey};

/// A machine with one network card on PCI.
struct CardMachine {
    root: tempfile::TempDir,
    kind: Kind,
}

impl CardMachine {
    /// sysfs has the link's device as it is: of virtio one below that of the bus.
    fn with(kind: Kind) -> Self {
        let machine = Self { root: tempfile::tempdir().expect("writable"), kind };
        let device = machine.device();
        fs::create_dir_all(device.join("net/nic0")).expect("writable");
        fs::create_dir_all(machine.root.path().join("sys/class/net")).expect("writable");
        symlink(device.join("net/nic0"), machine.root.path().join("sys/class/net/nic0")).expect("writable");
        symlink(&device, device.join("net/nic0/device")).expect("writable");
        machine
    }

    fn bus(&self) -> std::path::PathBuf {
        self.root.path().join("sys/devices/pci0000:00/0000:00:03.0")
    }

    fn device(&self) -> std::path::PathBuf {
        if self.kind == Kind::Virtio { self.bus().join("virtio2") } else { self.bus() }
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root.path().join(file);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("writable");
        fs::write(path, format!("{text}\n")).expect("writable");
    }

    /// An interrupt that the kernel hands to these cores, of those that it may go to.
    fn irq(&self, number: u32, name: &str, effective: Option<&str>, allowed: &str) {
        self.write(&format!("sys/kernel/irq/{number}/actions"), name);
        self.write(&format!("proc/irq/{number}/smp_affinity_list"), allowed);
        if let Some(effective) = effective {
            self.write(&format!("proc/irq/{number}/effective_affinity_list"), effective);
        }
    }

    fn msi(self, number: u32, name: &str, cores: &str) -> Self {
        fs::create_dir_all(self.bus().join("msi_irqs")).expect("writable");
        fs::write(self.bus().join(format!("msi_irqs/{number}")), "msix\n").expect("writable");
        self.irq(number, name, Some(cores), "0-63");
        self
    }

    fn read(&self) -> Option<Interrupts> {
        let tree = SysfsTree::at(&self.root.path().join("sys"));
        read(&tree, &self.root.path().join("proc"), &nic(&self.kind), &mut Vec::new()).0
    }

    /// The cores, or why they are not known.
    fn reported(&self) -> String {
        match self.read().expect("it is hardware") {
            Interrupts::Cores(cores) => cores.to_string(),
            Interrupts::Unknown(why) => why,
        }
    }
}

fn nic(kind: &Kind) -> LinkFacts {
    LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(2) }, "nic0", kind.clone())
}

#[test]
fn a_virtio_card_interrupts_the_cores_of_its_input_queues() {
    let machine = CardMachine::with(Kind::Virtio)
        .msi(37, "virtio2-config", "5")
        .msi(38, "virtio2-input.0", "1")
        .msi(39, "virtio2-output.0", "0")
        .msi(40, "virtio2-input.1", "3")
        .msi(41, "virtio2-output.1", "2");
    assert_eq!(machine.reported(), "1,3", "not those of what it sends, nor of its configuration");
    let together = CardMachine::with(Kind::Virtio).msi(37, "virtio2-config", "5").msi(38, "virtio2-virtqueues", "7");
    assert_eq!(together.reported(), "7", "all queues may have one interrupt together");
    assert_eq!(CardMachine::with(Kind::Bridge).read(), None, "a bridge has no interrupts");
}

#[test]
fn cards_of_servers_interrupt_the_cores_of_their_queues() {
    let hns3 = CardMachine::with(Kind::Physical)
        .msi(200, "hns3-0000:7d:00.0-misc", "9")
        .msi(201, "hns3-0000:7d:00.0-TxRx-0", "24")
        .msi(202, "hns3-0000:7d:00.0-TxRx-1", "25");
    assert_eq!(hns3.reported(), "24-25", "of a Kunpeng's own card");
    let mlx5 = CardMachine::with(Kind::Physical)
        .msi(50, "mlx5_async0@pci:0000:03:00.0", "9")
        .msi(51, "mlx5_comp0@pci:0000:03:00.0", "1")
        .msi(52, "", "2");
    assert_eq!(mlx5.reported(), "1", "what nobody has asked for interrupts nobody");
    let apart =
        CardMachine::with(Kind::Physical).msi(60, "nic0-rx-0", "1").msi(61, "nic0-tx-0", "2").msi(62, "nic0", "3");
    assert_eq!(apart.reported(), "1", "those for sending are others");
    let alone = CardMachine::with(Kind::Physical).msi(70, "nic0", "6");
    assert_eq!(alone.reported(), "6", "the only one is for everything");
    let line = CardMachine::with(Kind::Physical);
    fs::write(line.bus().join("irq"), "11\n").expect("writable");
    line.irq(11, "uhci_hcd:usb1,nic0", None, "0-3");
    assert_eq!(line.reported(), "0-3", "a line of old, where only is known which cores may take it");
}

#[test]
fn what_cannot_be_told_is_unknown_with_its_reason() {
    let none = CardMachine::with(Kind::Virtio);
    assert_eq!(none.reported(), "sysfs shows no interrupt of its device");
    let above = CardMachine::with(Kind::Physical);
    fs::create_dir_all(above.bus().join("../msi_irqs")).expect("writable");
    above.write("sys/devices/pci0000:00/msi_irqs/24", "msi");
    above.irq(24, "pcie-rx", Some("1"), "0-3");
    assert_eq!(above.reported(), "sysfs shows no interrupt of its device", "a bridge's interrupts are not its own");
    let strange = CardMachine::with(Kind::Physical).msi(80, "nic0-0", "1").msi(81, "nic0-1", "2");
    assert_eq!(strange.reported(), "the names of its device's interrupts do not show which are for receiving");
    let unread = CardMachine::with(Kind::Virtio).msi(90, "virtio2-input.0", "1");
    fs::remove_dir_all(unread.root.path().join("proc")).expect("removable");
    let missing = "/proc/irq/90/smp_affinity_list cannot be read: No such file or directory (os error 2)";
    assert_eq!(unread.reported(), missing);
    let unnamed = CardMachine::with(Kind::Virtio).msi(90, "virtio2-input.0", "1");
    fs::remove_dir_all(unnamed.root.path().join("sys/kernel")).expect("removable");
    assert_eq!(unnamed.reported(), "the kernel does not name its device's interrupts");
    let shared = CardMachine::with(Kind::Physical).msi(95, "nic0-TxRx-0", "1");
    fs::create_dir(shared.device().join("net/nic1")).expect("writable");
    assert_eq!(shared.reported(), "its device has other links too");
}

#[test]
fn the_words_of_a_name_tell_not_its_letters() {
    for name in ["eth0-rx-0", "i40e-eth0-TxRx-12", "eth0-Tx-Rx-3", "eth0-rxtx-1", "virtio0-input.11", "cxgb4-eth0-Rx7"]
    {
        assert!(receives(name, "eth0"), "{name} is for receiving");
    }
    for name in ["eth0-tx-0", "proxy0", "virtio0-output.1", "virtio0-config", "mlx5_async0", "eth0", "ena-mgmnt@pci:0"]
    {
        assert!(!receives(name, "eth0"), "{name} is not, or does not say so");
    }
    assert!(!receives("rx0-tx-1", "rx0") && receives("rx0-rx-1", "rx0"), "a link's name is no word of it");
}

/// The own cards against /proc/interrupts, which needs neither sysfs nor names of actions.
#[test]
fn the_cores_of_this_machine_s_own_card_are_those_of_proc_interrupts() {
    let Ok(tree) = SysfsTree::open() else {
        eprintln!("NOT RUN: a sysfs of its own needs root");
        return;
    };
    let table = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let mut checked = 0;
    for name in tree.entries("class/net") {
        let Ok(device) = fs::read_link(format!("/sys/class/net/{name}/device")) else { continue };
        let device = device.file_name().expect("a device has a name").to_string_lossy().into_owned();
        let input = |line: &&str| {
            line.split_whitespace().last().is_some_and(|word| word.starts_with(&format!("{device}-input.")))
        };
        let irqs: Vec<&str> = table.lines().filter(input).filter_map(|line| line.trim().split(':').next()).collect();
        if irqs.is_empty() {
            continue;
        }
        let list =
            |irq: &&str| fs::read_to_string(format!("/proc/irq/{irq}/effective_affinity_list")).expect("readable");
        let expected: CoreSet = irqs
            .iter()
            .flat_map(|irq| list(irq).trim().parse::<CoreSet>().expect("a list").iter().collect::<Vec<_>>())
            .collect();
        let link = LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(2) }, &name, Kind::Virtio);
        let reported = read(&tree, Path::new("/proc"), &link, &mut Vec::new());
        assert_eq!(reported.0, Some(Interrupts::Cores(expected)), "{name} is {device}, whose rows are {irqs:?}");
        checked += 1;
    }
    if checked == 0 {
        eprintln!("NOT RUN: this machine has no virtio card whose queues have interrupts of their own");
    }
}

proptest! {
    #[test]
    fn any_name_is_survived(name: String, link: String) {
        receives(&name, &link);
    }
}
