//! A demo that a test started, and everything that belongs to it.

use super::*;

/// A demo held by a process without a screen, and everything it consists of.
pub struct Held {
    pub child: Child,
    pub line: String,
    pub _program: TempDir,
}

impl Held {
    /// Starts it; the error is why the machine does not allow it.
    pub fn start(user: User, options: &[&str], standin: bool) -> Result<Self, String> {
        if user == User::Root && !geteuid().is_root() {
            return Err("this needs root".to_owned());
        }
        // The build's own directory may be closed to other users.
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = directory.path().join("vnettop");
        fs::copy(PROGRAM, &program).unwrap();
        let mut command = Command::new(&program);
        command.args(["demo-child", "hold", "--streams", "2"]).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/");
        if standin {
            command.env("VNETTOP_DEMO_STANDIN", "1");
        }
        if user == User::RealtimeRefusal && geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.starts_with("watch ") {
            let mut why = String::new();
            child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            child.wait().unwrap();
            let refused = why.starts_with("vnettop: cannot make a private network namespace");
            assert!(refused, "the demo must start where namespaces are allowed, but says: {why}");
            return Err(why.trim().to_owned());
        }
        Ok(Self { child, line, _program: directory })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn has_tun(&self) -> bool {
        self.line.contains("through tun0")
    }

    /// The demo's processes below the holder.
    pub fn family(&self) -> Vec<Member> {
        let parents = parents();
        let mut ancestors = BTreeSet::from([self.pid()]);
        let mut family = Vec::new();
        // A child's id is not always above its parent's, so until nothing is added.
        loop {
            let found: Vec<u32> = parents
                .iter()
                .filter(|(pid, parent)| ancestors.contains(parent) && !ancestors.contains(pid))
                .map(|(&pid, _)| pid)
                .collect();
            if found.is_empty() {
                return family;
            }
            family.extend(found.iter().filter_map(|&pid| Member::of(pid)));
            ancestors.extend(found);
        }
    }

    /// Waits until every one of `links` has moved `bytes` in each direction; tells how long that took.
    pub fn wait_for_traffic(&self, links: &[&str], bytes: u64, within: Duration) -> Duration {
        let began = Instant::now();
        loop {
            let counters = counters(self.pid());
            let moved = |link: &&str| counters.get(*link).is_some_and(|&(rx, tx)| rx >= bytes && tx >= bytes);
            if links.iter().all(moved) {
                return began.elapsed();
            }
            assert!(
                began.elapsed() < within,
                "{links:?} must move {bytes} bytes each way within {within:?}, but moved {counters:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process of the demo and a handle that outlives it.
pub struct Member {
    pub pid: u32,
    pub command: String,
    pub namespace: u64,
    pub handle: OwnedFd,
}

impl Member {
    pub fn of(pid: u32) -> Option<Self> {
        let handle = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(Self { pid, command, namespace: namespace(pid)?, handle })
    }

    pub fn is_gone_within(&self, patience: Duration) -> bool {
        let left = Timespec::try_from(patience).unwrap();
        poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&left)).unwrap() == 1
    }
}

pub fn namespace(pid: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.ino())
}

pub fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

pub fn parents() -> BTreeMap<u32, u32> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()
    };
    pids().filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// Link → (rx bytes, tx bytes) as the process sees them.
pub fn counters(pid: u32) -> BTreeMap<String, (u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    let link = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        Some((name.trim().to_owned(), (*numbers.first()?, *numbers.get(8)?)))
    };
    text.lines().filter_map(link).collect()
}
