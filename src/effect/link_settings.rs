//! The seam between steering and a link's settings, and the real ones behind it: files of sysfs and /proc, switches, the root qdisc. It judges nothing: errors go up as
//! the kernel gave them, and it writes what it is given.

use crate::sample::{CoreSet, LinkKey, SettingPlace, SteerSetting, SteeredFile};
use crate::source::netns::NetnsPlace;
use crate::source::steering::{LinkFolder, LinkFolderError, open_link_folder};
use rustix::fs::{Dir, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No text of a setting is longer: a mask of 8,192 cores has 2,304 characters, and sysfs gives a page.
const LONGEST: u64 = 64 << 10;
/// Runs the script behind it where /sys is the sysfs of the present namespace.
const RUN_WITH_SYSFS: &str = r#"mount -t sysfs sysfs /sys && exec sh -c "$0""#;

/// The settings of one link that was found under its identity; tests put a recording fake in its place.
pub trait LinkSettings {
    /// What the link is called now.
    fn name(&self) -> &str;

    /// What tells its namespace from one that gets the same inode later (`SO_NETNS_COOKIE`); `None` before Linux 5.14.
    fn cookie(&self) -> Option<u64>;

    /// How a shell gets to the link's files: a command that runs the script behind it, as root; `None` in the own namespace.
    fn entered_by(&self) -> Option<String>;

    /// The queues that have this setting, the lowest number first; only 0 for one of the whole link.
    ///
    /// # Errors
    /// ENOENT and ENODEV when the link is gone.
    fn queues(&mut self, setting: SteerSetting) -> io::Result<Vec<u32>>;

    /// The text of a setting, without the end of its line.
    ///
    /// # Errors
    /// ENOENT where the queue is gone, or `xps_cpus` has no meaning for want of a second transmit queue.
    fn read(&mut self, file: SteeredFile) -> io::Result<String>;

    /// Writes the text in one write.
    ///
    /// # Errors
    /// As the kernel gives them: EPERM, EOVERFLOW for a mask beyond its cores, EOPNOTSUPP for a NAPI without threads.
    fn write(&mut self, file: SteeredFile, text: &str) -> io::Result<()>;

    /// The cores that really take an interrupt, which are some of those asked for (`/proc/irq/N/effective_affinity`, Linux 4.13);
    /// none of other settings.
    fn effective(&mut self, _: SteeredFile) -> Option<CoreSet> {
        None
    }
}

/// Opens the settings of a link of this machine.
pub(super) fn of_kernel(link: LinkKey) -> Result<Box<dyn LinkSettings>, LinkFolderError> {
    open_link_folder(link).map(|folder| Box::new(SysfsSettings(folder)) as Box<dyn LinkSettings>)
}

/// The files below a link's folder.
struct SysfsSettings(LinkFolder);

impl SysfsSettings {
    /// A file of the link's folder, or of an interrupt that its device has still.
    fn open(&self, file: SteeredFile, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = match file.place() {
            SettingPlace::LinkFile(path) => rustix::fs::openat(&self.0.folder, path, flags, Mode::empty()),
            // Numbers of interrupts are given to other devices once they are free.
            SettingPlace::Interrupt(_) if !self.0.has_interrupt(file.queue) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            SettingPlace::Interrupt(path) => rustix::fs::open(path, flags, Mode::empty()),
            SettingPlace::Feature(_) | SettingPlace::RootQdisc | SettingPlace::Backlog => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        };
        Ok(File::from(opened?))
    }

    fn text(&self, file: SteeredFile) -> io::Result<String> {
        let mut text = String::new();
        self.open(file, OFlags::RDONLY)?.take(LONGEST).read_to_string(&mut text)?;
        Ok(text.trim_end().to_owned())
    }
}

impl LinkSettings for SysfsSettings {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn cookie(&self) -> Option<u64> {
        self.0.cookie
    }

    fn entered_by(&self) -> Option<String> {
        // A sysfs shows the links of the namespace that it was mounted in: entering a namespace is not enough.
        let with_its_sysfs = |namespace: &str| format!("nsenter --net={namespace} unshare -m sh -c '{RUN_WITH_SYSFS}'");
        match &self.0.place {
            NetnsPlace::Own => None,
            NetnsPlace::Process(pid) => Some(with_its_sysfs(&format!("/proc/{pid}/ns/net"))),
            NetnsPlace::Mounted(path) if path.parent().is_some_and(is_of_ip) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Some(format!("ip netns exec {} sh -c", crate::sample::shell_word(&name)))
            }
            NetnsPlace::Mounted(path) => Some(with_its_sysfs(&crate::sample::shell_word(&path.to_string_lossy()))),
        }
    }

    fn queues(&mut self, setting: SteerSetting) -> io::Result<Vec<u32>> {
        let prefix = match setting {
            SteerSetting::RpsCpus | SteerSetting::RpsFlowCnt => "rx-",
            SteerSetting::XpsCpus => "tx-",
            SteerSetting::Interrupt => return Ok(self.0.interrupts()),
            SteerSetting::Threaded
            | SteerSetting::Gro
            | SteerSetting::Tso
            | SteerSetting::Qdisc
            | SteerSetting::NetdevMaxBacklog => return Ok(vec![0]),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let folder = rustix::fs::openat(&self.0.folder, "queues", flags, Mode::empty())?;
        let mut queues = Vec::new();
        for entry in Dir::new(folder)? {
            let entry = entry?;
            let number: Option<u32> =
                entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
            queues.extend(number);
        }
        queues.sort_unstable();
        Ok(queues)
    }

    fn read(&mut self, file: SteeredFile) -> io::Result<String> {
        match file.place() {
            SettingPlace::Feature(of) => self.0.controls.is_on(of).map(|on| u8::from(on).to_string()),
            SettingPlace::RootQdisc => self.0.controls.root_qdisc(),
            SettingPlace::Backlog => self.0.controls.backlog(),
            SettingPlace::LinkFile(_) | SettingPlace::Interrupt(_) => self.text(file),
        }
    }

    fn write(&mut self, file: SteeredFile, text: &str) -> io::Result<()> {
        match file.place() {
            SettingPlace::Feature(of) => return self.0.controls.set(of, text != "0"),
            SettingPlace::RootQdisc => return self.0.controls.set_root_qdisc(text),
            SettingPlace::Backlog => return self.0.controls.set_backlog(text),
            SettingPlace::LinkFile(_) | SettingPlace::Interrupt(_) => {}
        }
        let written = rustix::io::write(self.open(file, OFlags::WRONLY)?, text.as_bytes())?;
        if written == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn effective(&mut self, file: SteeredFile) -> Option<CoreSet> {
        if file.setting != SteerSetting::Interrupt {
            return None;
        }
        let path = format!("/proc/irq/{}/effective_affinity", file.queue);
        CoreSet::from_mask(std::fs::read_to_string(path).ok()?.trim()).filter(|cores| !cores.is_empty())
    }
}

/// Where `ip netns` keeps namespaces by name.
fn is_of_ip(folder: &Path) -> bool {
    ["/run/netns", "/var/run/netns"].iter().any(|known| folder == Path::new(known))
}
