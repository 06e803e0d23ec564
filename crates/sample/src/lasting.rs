//! What keeps a setting of a link over a restart: lines of the files that udev and sysctl read. A link that udev renames is met under
//! its new name. Links of other network namespaces are made by whoever makes the namespace, where udev does not look.

use super::{SpaceEntry, SteerRequest, SteerSetting, shell_word};

impl SteerRequest {
    /// Lines of files, each behind the name of its file; a comment where no file keeps it.
    #[must_use]
    pub fn lasting_lines(&self, entry: &SpaceEntry) -> Vec<String> {
        let (name, text) = (&self.name, self.value.to_text());
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        match self.setting {
            SteerSetting::NetdevMaxBacklog => {
                vec![format!("/etc/sysctl.d/90-vnettop.conf: net.core.netdev_max_backlog = {text}")]
            }
            _ if *entry != SpaceEntry::Own => {
                vec![format!("# udev does not see {name} in its namespace: run the line where that is set up")]
            }
            _ if !is_plain => {
                vec![format!("# the name {} has no place in a rule: match the link otherwise", shell_word(name))]
            }
            _ => {
                // udev would read `$` and `%` itself.
                let line = self.shell_line(&SpaceEntry::Own).replace('$', "$$").replace('"', "\\\"");
                let rule =
                    format!("ACTION!=\"remove\", SUBSYSTEM==\"net\", KERNEL==\"{name}\", RUN+=\"/bin/sh -c '{line}'\"");
                vec![format!("/etc/udev/rules.d/90-vnettop.rules: {rule}")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreSet, Ifindex, LinkKey, SteerValue};

    fn lines(setting: SteerSetting, value: SteerValue, name: &str, entry: &SpaceEntry) -> String {
        let link = LinkKey { netns: 1, ifindex: Ifindex(2) };
        SteerRequest { link, name: name.to_owned(), setting, value }.lasting_lines(entry).join("\n")
    }

    #[test]
    fn each_setting_has_the_file_that_keeps_it() {
        let own = SpaceEntry::Own;
        let rps = lines(SteerSetting::RpsCpus, SteerValue::Cores(CoreSet::single(1)), "eth0", &own);
        assert_eq!(
            rps,
            "/etc/udev/rules.d/90-vnettop.rules: ACTION!=\"remove\", SUBSYSTEM==\"net\", KERNEL==\"eth0\", \
             RUN+=\"/bin/sh -c 'echo 2 | tee /sys/class/net/eth0/queues/rx-*/rps_cpus'\""
        );
        let gro = lines(SteerSetting::Gro, SteerValue::Number(1), "eth0", &own);
        assert!(gro.contains("KERNEL==\"eth0\", RUN+=\"/bin/sh -c 'ethtool -K eth0 gro on'\""), "{gro}");
        let backlog = lines(SteerSetting::NetdevMaxBacklog, SteerValue::Number(10_000), "lo", &SpaceEntry::Unknown);
        assert_eq!(backlog, "/etc/sysctl.d/90-vnettop.conf: net.core.netdev_max_backlog = 10000");
        let named = lines(SteerSetting::Tso, SteerValue::Number(1), "w0", &SpaceEntry::Named("blue".to_owned()));
        assert!(named.starts_with("# udev does not see w0"), "{named}");
        let hostile = lines(SteerSetting::Gro, SteerValue::Number(1), "a\"b'; rm", &own);
        assert!(hostile.starts_with("# the name"), "no file is given a name that it could misread: {hostile}");
    }
}
