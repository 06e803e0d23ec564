//! The links of the fake machine: eight cores, masks of two digits, numbers of flows rounded up, as the kernel does it.

use super::{Fake, errno, text_of_the_journal};
use crate::effect::LinkSettings;
use crate::sample::{CoreSet, Ifindex, LinkKey, SettingPlace, SteerSetting, SteeredFile, Word};
use crate::source::steering::LinkFolderError;
use std::collections::BTreeMap;
use std::io;

/// A link of the fake machine.
#[derive(Clone)]
pub(super) struct FakeLink {
    pub(super) name: String,
    pub(super) cookie: Option<u64>,
    pub(super) files: BTreeMap<(SteerSetting, u32), String>,
    /// The errno that a write of this file meets.
    pub(super) refuses: Option<(SteerSetting, u32, i32)>,
    /// The file that cannot be read once it has another text than this.
    pub(super) hides: Option<(SteerSetting, u32, &'static str)>,
    /// Cores that the kernel leaves out of every mask.
    pub(super) isolated: CoreSet,
}

/// What a vnettop that is killed at a moment leaves: its journal and the files.
#[derive(Clone)]
pub(super) struct Moment {
    pub(super) journal: String,
    pub(super) links: BTreeMap<LinkKey, FakeLink>,
}

#[derive(Default)]
pub(super) struct Links {
    pub(super) by_key: BTreeMap<LinkKey, FakeLink>,
    /// No namespace can be found, for this reason.
    pub(super) unentered: Option<i32>,
    /// `file = text`, in the order they were written.
    pub(super) written: Vec<String>,
    /// Right before and right after each write.
    pub(super) moments: Vec<Moment>,
}

/// The link that `veth2` is.
pub(super) fn veth2() -> LinkKey {
    LinkKey { netns: 4_026_532_000, ifindex: Ifindex(7) }
}

/// Puts `veth2` with four receive queues and two transmit queues there.
pub(super) fn with_veth2() -> Fake {
    let fake = Fake::new();
    let mut files = BTreeMap::new();
    for queue in 0..4 {
        files.insert((SteerSetting::RpsCpus, queue), "00".to_owned());
        files.insert((SteerSetting::RpsFlowCnt, queue), "0".to_owned());
    }
    for queue in 0..2 {
        files.insert((SteerSetting::XpsCpus, queue), "00".to_owned());
    }
    files.insert((SteerSetting::Threaded, 0), "0".to_owned());
    let link = FakeLink {
        name: "veth2".to_owned(),
        cookie: Some(11),
        files,
        refuses: None,
        hides: None,
        isolated: CoreSet::new(),
    };
    fake.0.borrow_mut().links.by_key.insert(veth2(), link);
    fake
}

pub(super) fn open(fake: &Fake, link: LinkKey) -> Result<Box<dyn LinkSettings>, LinkFolderError> {
    let world = fake.0.borrow();
    if let Some(number) = world.links.unentered {
        return Err(LinkFolderError::Unentered(errno(number)));
    }
    if !world.links.by_key.keys().any(|known| known.netns == link.netns) {
        return Err(LinkFolderError::NoNamespace);
    }
    let there = world.links.by_key.get(&link).ok_or(LinkFolderError::NoLink)?;
    Ok(Box::new(OpenLink { fake: fake.clone(), link, name: there.name.clone(), cookie: there.cookie }))
}

struct OpenLink {
    fake: Fake,
    link: LinkKey,
    name: String,
    cookie: Option<u64>,
}

impl LinkSettings for OpenLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn cookie(&self) -> Option<u64> {
        self.cookie
    }

    fn entered_by(&self) -> Option<String> {
        Some("ip netns exec blue sh -c".to_owned())
    }

    fn queues(&mut self, setting: SteerSetting) -> io::Result<Vec<u32>> {
        let world = self.fake.0.borrow();
        let link = world.links.by_key.get(&self.link).ok_or_else(|| errno(libc::ENOENT))?;
        Ok(link.files.keys().filter(|(of, _)| *of == setting).map(|(_, queue)| *queue).collect())
    }

    fn read(&mut self, file: SteeredFile) -> io::Result<String> {
        let world = self.fake.0.borrow();
        let link = world.links.by_key.get(&self.link).ok_or_else(|| errno(libc::ENOENT))?;
        let files = &link.files;
        if let Some((.., shown)) = link.hides.filter(|of| (of.0, of.1) == (file.setting, file.queue))
            && files[&(file.setting, file.queue)] != shown
        {
            return Err(errno(libc::EIO));
        }
        if file.setting == SteerSetting::XpsCpus && !files.contains_key(&(file.setting, 1)) {
            return Err(errno(libc::ENOENT));
        }
        files.get(&(file.setting, file.queue)).cloned().ok_or_else(|| errno(libc::ENOENT))
    }

    fn write(&mut self, file: SteeredFile, text: &str) -> io::Result<()> {
        let journal = self.fake.0.borrow().dir.as_ref().map(|dir| text_of_the_journal(dir));
        let named = format!(r#""setting":"{}","queue":{}"#, file.setting.word(), file.queue);
        if let Some(journal) = &journal {
            assert!(journal.contains(&named), "the intention is on disk before {named} is written");
        }
        let moment =
            |links: &Links| Moment { journal: journal.clone().unwrap_or_default(), links: links.by_key.clone() };
        let mut world = self.fake.0.borrow_mut();
        let links = &mut world.links;
        links.moments.push(moment(links));
        let SettingPlace::LinkFile(path) = file.place() else { panic!("{} is a file of a link", file.setting.word()) };
        links.written.push(format!("{path} = {text}"));
        let link = links.by_key.get_mut(&self.link).ok_or_else(|| errno(libc::ENOENT))?;
        if let Some((.., number)) = link.refuses.filter(|of| (of.0, of.1) == (file.setting, file.queue)) {
            return Err(errno(number));
        }
        let now = formatted(file.setting, text, &link.isolated)?;
        *link.files.get_mut(&(file.setting, file.queue)).ok_or_else(|| errno(libc::ENOENT))? = now;
        links.moments.push(moment(links));
        Ok(())
    }
}

/// What the kernel makes of a text.
fn formatted(setting: SteerSetting, text: &str, isolated: &CoreSet) -> io::Result<String> {
    let number = || text.parse::<u32>().map_err(|_| errno(libc::EINVAL));
    Ok(match setting {
        SteerSetting::RpsCpus | SteerSetting::XpsCpus => {
            let cores = CoreSet::from_mask(text).ok_or_else(|| errno(libc::EINVAL))?;
            if cores.iter().any(|core| core >= 8) {
                return Err(errno(libc::EOVERFLOW));
            }
            let bits: u32 = cores.iter().filter(|core| !isolated.contains(*core)).map(|core| 1 << core).sum();
            format!("{bits:02x}")
        }
        SteerSetting::RpsFlowCnt if number()? == 0 => "0".to_owned(),
        SteerSetting::RpsFlowCnt => {
            number()?.checked_next_power_of_two().ok_or_else(|| errno(libc::EINVAL))?.to_string()
        }
        SteerSetting::Threaded if number()? > 1 => return Err(errno(libc::EINVAL)),
        _ => text.to_owned(),
    })
}

impl Fake {
    pub(super) fn on_veth2(&self, change: impl FnOnce(&mut FakeLink)) {
        change(self.0.borrow_mut().links.by_key.get_mut(&veth2()).expect("it is there"));
    }

    /// The texts of a setting, by queue.
    pub(super) fn texts(&self, setting: SteerSetting) -> String {
        let world = self.0.borrow();
        let files = world.links.by_key.get(&veth2()).map(|link| &link.files).into_iter().flatten();
        files.filter(|((of, _), _)| *of == setting).map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn written(&self) -> Vec<String> {
        self.0.borrow().links.written.clone()
    }
}
