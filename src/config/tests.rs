//! Files of settings: what they change, what they are refused for, and that nothing in them can do harm.

use super::*;
use crate::action::{Action, Key, KeyContext};
use crate::state::{Idle, LinkColumn, LinkSort, Part, ThreadSort};
use crate::ui::{Color, Palette};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// One of every kind of setting.
const SAMPLE: &str = "\
# mine
interval = 0.2   # faster
units = \"bytes\"
theme = \"light\"
watch = [\"nginx\", \"iperf3\"]
readonly = true

[layout]
panes = [\"links\", \"threads\"]

[links]
columns = [\"name\", \"rx\", \"tx\"]
sort = \"drops\"
idle = \"hidden\"

[threads]
sort = \"migrations\"

[keys]
quit = [\"Q\", \"F10\"]
sort = \"o\"
";

fn applied(text: &str) -> Result<Configuration, ConfigError> {
    let mut configuration = Configuration::default();
    configuration.apply(text, "x.toml").map(|()| configuration)
}

fn refused(text: &str) -> String {
    applied(text).expect_err("it is wrong").to_string()
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let all = applied(SAMPLE).expect("it is right").preferences;
    assert_eq!((all.interval, all.units), (Duration::from_millis(200), Units::Bytes));
    assert_eq!((all.watch, all.readonly, all.ascii), (vec!["nginx".to_owned(), "iperf3".to_owned()], true, false));
    let choices = all.choices;
    assert_eq!(choices.parts, [Part::Links, Part::Threads]);
    assert_eq!(choices.links.columns, [LinkColumn::Name, LinkColumn::Rx, LinkColumn::Tx]);
    assert_eq!(
        (choices.links.sort, choices.links.idle, choices.threads.sort),
        (LinkSort::Drops, Idle::Hidden, ThreadSort::Moves)
    );
    assert_eq!(all.keys.action_for(Key::F(10), KeyContext::Main), Some(Action::Quit));
    assert_eq!(all.keys.action_for(Key::Char('o'), KeyContext::Main), Some(Action::NextSort));
}

#[test]
fn what_is_wrong_is_one_sentence_with_file_line_and_what_was_meant() {
    for (text, wanted) in [
        ("\nintervall = 1", "x.toml, line 2: intervall is not known: did you mean 'interval'?"),
        ("[links]\nsrot = \"rx\"", "x.toml, line 2: links.srot is not known: did you mean 'sort'?"),
        ("[link]\nsort = \"rx\"", "x.toml, line 1: link is not known: did you mean 'links'?"),
        ("sort = \"rx\"", "x.toml, line 1: sort is not known: sort belongs below [links]"),
        ("[links]\nwatch = []", "x.toml, line 2: links.watch is not known: watch belongs above the first section"),
        ("[links]\nsort = \"rxx\"", "x.toml, line 2: links.sort cannot be 'rxx': did you mean 'rx'?"),
        ("interval = \"fast\"", "x.toml, line 1: interval must be a number of seconds, such as 0.5"),
        ("interval = 0", "x.toml, line 1: interval must be between 0.01 and 3600 seconds"),
        ("interval = nan", "x.toml, line 1: interval must be between 0.01 and 3600 seconds"),
        ("ascii = 1", "x.toml, line 1: ascii must be true or false"),
        ("links = 3", "x.toml, line 1: links is a section: write [links] and its settings below"),
        ("[interval]\na = 1", "x.toml, line 1: interval is a value, not a section"),
        ("[layout]\npanes = [\"test\"]", "x.toml, line 1: layout.panes needs links, cores or threads"),
        ("[links]\ncolumns = [\"rx\", \"rx\"]", "x.toml, line 2: links.columns has 'rx' twice"),
        ("[keys]\nquitt = \"x\"", "x.toml, line 2: keys.quitt is not known: did you mean 'quit'?"),
        (
            "units = \"bits\"\n[keys]\nunits = \"s\"",
            "x.toml, line 2: keys: s means both units and sort: give sort another key, or none (sort = [])",
        ),
    ] {
        assert_eq!(refused(text), wanted);
    }
    assert!(refused("a = = 1").starts_with("x.toml, line 1: this is not valid TOML: "), "{}", refused("a = = 1"));
    assert!(refused("interval = 1\ninterval = 2").starts_with("x.toml, line 2: this is not valid TOML: "));
    assert!(refused("[keys]\nquit = \"F99\"").contains("'F99' is not a key"));
    assert!(refused("theme = \"../x\"").contains("letters, digits"));
}

#[test]
fn what_is_printed_reads_as_the_same_settings() {
    for text in ["", SAMPLE] {
        let one = applied(text).expect("it is right");
        for printed in [one.plain(), one.explained()] {
            assert_eq!(applied(&printed).expect("what is printed is right").preferences, one.preferences, "{printed}");
        }
    }
    let default = Configuration::default();
    let chosen: Vec<&str> = example_lines().collect();
    assert_eq!(applied(&chosen.join("\n")).expect("the example is right").preferences, default.preferences);
    assert_eq!(
        applied(&example()).expect("as it is").preferences,
        default.preferences,
        "and so is the example untouched"
    );
}

/// The example with every value switched on.
fn example_lines() -> impl Iterator<Item = &'static str> {
    let text: &'static str = Box::leak(example().into_boxed_str());
    text.lines().map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
}

#[test]
fn each_value_says_where_it_comes_from() {
    let mut one = applied(SAMPLE).expect("it is right");
    let option = |key: &str, value, option| Override { key: key.to_owned(), value, option };
    let options = [
        option("interval", 1.0.into(), "--delay"),
        option("links.sort", typed("tx"), "--set"),
        option("keys.mark", typed("[\"M\"]"), "--set"),
    ];
    one.override_by(&options).expect("they exist");
    let text = one.explained();
    for line in [
        "interval = 1.0  # option --delay",
        "units = \"bytes\"  # x.toml",
        "mouse = true  # default",
        "sort = \"tx\"  # option --set",
        "quit = [\"Q\", \"F10\"]  # x.toml",
        "mark = [\"M\"]  # option --set",
    ] {
        let line = if line.starts_with("mark") { "mark = \"M\"  # option --set" } else { line };
        assert!(text.lines().any(|other| other == line), "{line} is in:\n{text}");
    }
    let wrong = [option("links.sotr", typed("tx"), "--set")];
    let why = one.override_by(&wrong).expect_err("it is wrong").to_string();
    assert_eq!(why, "--set: links.sotr is not known: did you mean 'links.sort'?");
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).expect("small")
    }
}

#[test]
fn five_hundred_damaged_files_each_give_settings_or_one_sentence() {
    let whole = [SAMPLE.to_owned(), Configuration::default().plain(), Configuration::default().explained()];
    let snippets: [&[u8]; 16] = [
        b"\"",
        b"'''",
        b"[",
        b"]]",
        b"=",
        b"\n",
        b"\0",
        b"\x1b[2J",
        b"\xff\xfe",
        b"1e999",
        b"-0",
        b"{a={a={",
        b"\xe2\x80\xae",
        b"#",
        b"9999999999999999999",
        b"[[links]]\n",
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("config.toml");
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut right, mut wrong) = (0, 0);
    for round in 0..500 {
        let mut bytes = whole[round % whole.len()].clone().into_bytes();
        for _ in 0..=dice.below(2) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = u8::try_from(dice.below(256)).expect("a byte"),
                1 => drop(bytes.drain(at..(at + dice.below(20)).min(bytes.len()))),
                2 => drop(bytes.splice(at..at, snippets[dice.below(snippets.len())].iter().copied())),
                _ => {
                    let part = bytes[at..(at + 30).min(bytes.len())].to_vec();
                    bytes.extend(part);
                }
            }
        }
        fs::write(&path, &bytes).expect("writable");
        match Configuration::load(&ConfigFiles::only(Some(&path))) {
            Ok(one) => {
                right += 1;
                assert_eq!(applied(&one.plain()).expect("printed").preferences, one.preferences, "round {round}");
            }
            Err(error) => {
                wrong += 1;
                let sentence = error.to_string();
                assert!(sentence.contains("config.toml"), "{round}: it says which file: {sentence}");
                assert!(!sentence.chars().any(char::is_control), "{round}: one line that steers nothing: {sentence:?}");
            }
        }
    }
    assert!(right > 50 && wrong > 300, "both happen: {right} settings, {wrong} sentences");
}

#[test]
fn the_user_s_file_wins_over_that_of_the_machine_and_the_given_one_over_both() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (machine, user, given) = (root.path().join("etc"), root.path().join("user"), root.path().join("given.toml"));
    for folder in [&machine, &user] {
        fs::create_dir(folder).expect("new");
    }
    fs::write(machine.join("config.toml"), "interval = 5\nunits = \"bytes\"\nreadonly = true\n[keys]\nmark = \"M\"")
        .expect("writable");
    fs::write(user.join("config.toml"), "interval = 2\nunits = \"packets\"").expect("writable");
    fs::write(&given, "interval = 1").expect("writable");
    let mut places = ConfigFiles { folders: vec![machine, user.clone()], given: Some(given.clone()) };
    let all = Configuration::load(&places).expect("all are right").preferences;
    assert_eq!((all.interval, all.units, all.readonly), (Duration::from_secs(1), Units::Packets, true));
    assert_eq!(all.keys.key("mark"), "M", "keys come from any of them");
    assert_eq!(places.saved_to(), Some(given), "what was asked for is what is saved to");
    places.given = Some(root.path().join("none.toml"));
    let missing = Configuration::load(&places).expect_err("it was asked for");
    assert!(matches!(missing, ConfigError::Missing(path) if path == root.path().join("none.toml")));
    places.given = None;
    assert_eq!(places.saved_to(), Some(user.join("config.toml")));
}

#[test]
fn a_file_that_others_may_write_to_or_that_makes_wait_is_refused_at_once() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = root.path().join("config.toml");
    let refused = || Configuration::load(&ConfigFiles::only(Some(&path))).expect_err("it is refused").to_string();
    fs::write(&path, "interval = 1").expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("one's own");
    assert!(
        refused().contains("is writable by others (mode 666)") && refused().contains("chmod go-w"),
        "{}",
        refused()
    );
    fs::remove_file(&path).expect("there");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .expect("a fifo");
    assert!(refused().contains("is not a regular file"), "{}", refused());
    fs::remove_file(&path).expect("there");
    fs::write(&path, vec![b'#'; 300 << 10]).expect("writable");
    assert!(refused().contains("larger than 256 KiB"), "{}", refused());
    fs::write(&path, b"interval = 1\n# \xff").expect("writable");
    assert!(refused().contains("not UTF-8 in line 2"), "{}", refused());
}

#[test]
fn saving_changes_what_has_changed_and_keeps_the_rest_as_it_stands() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = root.path().join("vnettop/config.toml");
    let saved = |to: &mut SaveSource, now: &Preferences| save(to, now).expect("it can be saved");
    let mut to = SaveSource { path: path.clone(), before: Preferences::default() };
    let mut now = Preferences::default();
    assert_eq!(saved(&mut to, &now), 0, "nothing has changed");
    assert!(!path.exists(), "so nothing is written");
    now.choices.links.sort = LinkSort::Rx;
    now.theme = "light".to_owned();
    assert_eq!(saved(&mut to, &now), 2, "the folder is made");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);

    let mine = "# mine\ninterval = 2 # slow\n\n[links] # my links\nsort   = 'tx'  # by sending\n\n[keys]\nquit = 'Q'\n";
    fs::write(&path, mine).expect("writable");
    let before = Configuration::load(&ConfigFiles::only(Some(&path))).expect("it is right").preferences;
    let mut to = SaveSource { path: path.clone(), before };
    let mut now = to.before.clone();
    (now.choices.links.sort, now.choices.threads.reversed) = (LinkSort::Rx, true);
    assert_eq!(saved(&mut to, &now), 2);
    let expected = mine.replace("'tx'", "\"rx\"") + "\n[threads]\nreversed = true\n";
    assert_eq!(fs::read_to_string(&path).expect("written"), expected, "comments and spaces stay");
    assert_eq!(Configuration::load(&ConfigFiles::only(Some(&path))).expect("it is right").preferences, now);
    assert_eq!(saved(&mut to, &now), 0, "a second time there is nothing to do");
    assert_eq!(fs::read_dir(root.path().join("vnettop")).expect("there").count(), 1, "nothing is left beside it");

    let link = root.path().join("link.toml");
    symlink(&path, &link).expect("a link");
    now.ascii = true;
    assert_eq!(saved(&mut SaveSource { path: link.clone(), before: to.before.clone() }, &now), 1);
    assert!(
        link.is_symlink() && fs::read_to_string(&path).expect("there").contains("ascii = true"),
        "a link stays one"
    );

    fs::write(&path, "interval = = 2").expect("writable");
    now.ascii = false;
    let why =
        save(&mut SaveSource { path: path.clone(), before: to.before }, &Preferences::default()).expect_err("broken");
    assert!(why.to_string().starts_with("nothing was saved: "), "{why}");
    assert!(matches!(why, SaveError::Text(ConfigError::Line(_, 1, _))), "{why:?}");
    assert_eq!(fs::read_to_string(&path).expect("there"), "interval = = 2", "what somebody is writing is not lost");
}

#[test]
fn a_folder_that_another_user_has_linked_elsewhere_is_not_written_to() {
    use std::os::unix::fs::lchown;
    let root = tempfile::tempdir().expect("a temporary folder");
    let (elsewhere, link) = (root.path().join("elsewhere"), root.path().join("config"));
    fs::create_dir(&elsewhere).expect("new");
    symlink(&elsewhere, &link).expect("a link");
    let now = Preferences { ascii: true, ..Preferences::default() };
    let save_there =
        || save(&mut SaveSource { path: link.join("vnettop/config.toml"), before: Preferences::default() }, &now);
    assert_eq!(save_there().expect("one's own link is followed"), 1);
    fs::remove_dir_all(elsewhere.join("vnettop")).expect("it was made");
    // Only root can make such a link.
    if rustix::process::geteuid().is_root() {
        lchown(&link, Some(65534), Some(65534)).expect("root may");
        let why = save_there().expect_err("another user's").to_string();
        assert!(why.contains("belongs to another user") && why.contains("/config: "), "{why}");
        assert_eq!(fs::read_dir(&elsewhere).expect("there").count(), 0, "nothing is made there");
    }
}

#[test]
fn a_theme_file_names_colours_and_is_told_when_they_are_weak() {
    let theme =
        |text: &str| theme::of_text("mine", text).map_err(|wrong| wrong.reported(text, "mine.toml").to_string());
    let one = theme("base = \"dark\"\ngood = \"#00ff00\"\nkey = 220").expect("it is right");
    assert_eq!(one.palette, Palette { good: Color::Rgb(0, 255, 0), key: Color::Indexed(220), ..Palette::usual(true) });
    assert_eq!(one.weak, None);
    let weak = theme("muted = \"#333333\"").expect("it is used all the same").weak.expect("and told");
    assert!(weak.starts_with("theme mine: muted has a contrast of 1."), "{weak}");
    for (text, wanted) in [
        ("godo = 3", "mine.toml, line 1: godo is not known: did you mean 'good'?"),
        ("good = \"green\"", "mine.toml, line 1: good must be a colour such as \"#87d787\", or a number from 0 to 255"),
        (
            "good = \"#é1234\"",
            "mine.toml, line 1: good must be a colour such as \"#87d787\", or a number from 0 to 255",
        ),
        (
            "good = \"#+1+2+3\"",
            "mine.toml, line 1: good must be a colour such as \"#87d787\", or a number from 0 to 255",
        ),
        ("nodes = [1, 2]", "mine.toml, line 1: nodes must be a list of six colours"),
        ("base = \"grey\"", "mine.toml, line 1: base is \"dark\" or \"light\""),
    ] {
        assert_eq!(theme(text).expect_err("it is wrong"), wanted);
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(root.path().join("themes")).expect("new");
    for (name, text) in
        [("b.toml", "good = 3"), ("a.toml", "x = 3"), ("dark.toml", ""), ("not a name.toml", ""), ("c.txt", "")]
    {
        fs::write(root.path().join("themes").join(name), text).expect("writable");
    }
    let all = ThemeFiles::read(&[root.path().to_owned()]);
    assert_eq!(all.themes.iter().map(|theme| theme.name.as_str()).collect::<Vec<_>>(), ["b"], "those that can be used");
    assert_eq!(all.problems.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a"], "and those that cannot");
}
