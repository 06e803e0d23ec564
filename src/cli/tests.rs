//! What arguments mean, and what is refused.

use super::*;

fn parsed(line: &str) -> Result<Config, CliError> {
    parse(line.split_whitespace().map(OsString::from), true)
}

#[test]
fn every_wrong_argument_is_one_sentence() {
    let lines = "-d 0|-d x|-d nan|-d inf|-d -1|-d|--netns|-n 0|-n x|-n -1|--watch|--print 80|--print 0x24|--print 80x|--print axb\
        |--keys q|--speed 2|--json --print 80x24|--replay a --record b|--replay a --iperf3-json b|--iperf3-json|--docker-socket|--replay a demo|doctor --print 80x24|doctor --record a|doctor frob|config --json|frob|--frob|undo frob|--speed 0 --replay a";
    for line in lines.split('|') {
        match parsed(line) {
            Err(CliError::Usage(sentence)) => {
                assert!(!sentence.contains('\n') && sentence.len() > 10, "'{line}' gives one sentence: {sentence:?}");
            }
            other => panic!("'{line}' is refused, not {other:?}"),
        }
    }
}

#[test]
fn a_word_that_there_is_not_is_answered_with_the_one_that_was_meant() {
    let said = |line: &str| match parsed(line) {
        Err(CliError::Usage(sentence)) => sentence,
        other => panic!("'{line}' is refused, not {other:?}"),
    };
    for (line, words) in [
        ("topp", "unknown command 'topp': use one of demo, replay, doctor"),
        ("repaly", "did you mean 'replay'?"),
        ("--pin", "--pin is an option of vnettop run: vnettop run --pin VALUE -- COMMAND"),
        ("-i eth0", "/ filters by name"),
        ("--jsno", "did you mean --json?"),
        ("--print 10x5", "at least 60x15"),
        ("--speed 2", "vnettop replay FILE --speed 10"),
        ("replay --at 1:99", "as in 90, 1:30 or 1:02:03"),
        ("demo --at 1", "--at"),
        ("-n 0", "at least 1"),
        ("-d -1", "between 0.01 and 3600"),
        ("run --max-cv -1 -- true", "give a share"),
        ("run --max-drops x -- true", "give a number of packets"),
        ("run --pin comapre -- true", "--pin cannot be 'comapre': did you mean --pin compare? (try vnettop run -h)"),
        ("run --pin x -- true", "use never, propose, compare or search"),
        ("run --repeat 0 -- true", "--repeat cannot be '0': give a whole number from 1 to 1000"),
        ("run --workers x -- true", "give on or off"),
        ("run", "needs a command after --: vnettop run -- iperf3 -c HOST"),
        ("run --foo -- true", "put -- before the command"),
        ("run iperf3 -c h", "put -- before the command"),
        ("iperf3 -c h", "vnettop run -- iperf3"),
        ("run.zst", "vnettop replay run.zst"),
        ("compare veth", "did you mean --only veth?"),
        ("compare --load tpc", "did you mean --load tcp?"),
        ("compare --repeat 0", "from 1 to 1000 (try vnettop compare -h)"),
        ("export --listen :9", "did you mean --web.listen-address?"),
        ("export --port 9", "did you mean --web.listen-address"),
        ("export :9", "did you mean --web.listen-address :9?"),
        ("export --max-links x", "give a number of links"),
        ("fleet http://p", "did you mean --prometheus http://p?"),
        ("undo frob", "vnettop undo takes options only: remove 'frob'"),
        ("replay a b", "reads one recording"),
        ("--keys q", "give --print WxH too"),
        ("--json --print 80x24", "--json and --print cannot be combined"),
        ("-d", "--delay needs a value: SECONDS"),
        ("run --pin", "--pin needs a value: never, propose, compare or search"),
        ("replay --docker-socket x", "--docker-socket does not apply to vnettop replay (try vnettop replay -h)"),
        ("undo --watch x", "--watch does not apply to vnettop undo"),
        ("--watch x card a", "--watch does not apply to vnettop card"),
        ("--lines 0", "give seconds between lines"),
        ("--version --foo", "there is no option --foo"),
        ("--version --delay", "--delay needs a value"),
    ] {
        assert!(said(line).contains(words), "'{line}': {}", said(line));
    }
}

#[test]
fn a_replay_has_a_file_or_is_the_shipped_one_and_starts_where_it_is_told() {
    let origin = |line: &str| parsed(line).expect("good arguments").origin;
    let shipped = Origin::Replay { file: None, speed: Some(1.0), at: None };
    assert_eq!(origin("replay"), shipped);
    let file = Some(PathBuf::from("a.zst"));
    let reported = Origin::Replay { file: file.clone(), speed: None, at: Some(Duration::from_secs(3723)) };
    assert_eq!(origin("replay a.zst --speed max --at 1:02:03"), reported);
    assert_eq!(origin("--replay a.zst --speed max --at 1:02:03"), reported, "the option does the same");
    assert_eq!(
        origin("replay a.zst --at 1.5"),
        Origin::Replay { file, speed: Some(1.0), at: Some(Duration::from_millis(1500)) }
    );
}

#[test]
fn a_name_that_steers_the_terminal_is_refused_and_not_repeated() {
    let arguments = ["--netns", "a\u{1b}[2J"].map(OsString::from);
    let Err(CliError::Usage(sentence)) = parse(arguments, true) else { panic!("no namespace has such a name") };
    assert!(!sentence.contains(char::is_control) && sentence.contains("--netns"), "{sentence:?}");
}

#[test]
fn help_and_version_are_text_not_errors() {
    for line in ["--help", "-h", "--version", "-V", "demo --help", "-V demo", "run -h", "help run"] {
        assert!(matches!(parsed(line), Err(CliError::Text(_))), "'{line}' is answered on standard output");
    }
}

#[test]
fn the_short_help_has_ten_lines_and_the_long_one_all_options_that_the_command_takes() {
    let text = |line: &str| match parsed(line) {
        Err(CliError::Text(text)) => text,
        other => panic!("'{line}' is answered on standard output, not {other:?}"),
    };
    for line in ["-h", "run -h", "--ascii undo -h", "replay -h", "compare -h"] {
        assert!(text(line).lines().count() <= 10, "'{line}': {}", text(line));
    }
    assert!(text("--ascii undo -h").starts_with("vnettop undo: "), "the help is of the command");
    for (line, there, not_there) in [
        ("--help", "--docker-socket", "--pin"),
        ("help replay", "--at", "--docker-socket"),
        ("replay --help", "--theme", "--readonly"),
        ("undo --help", "--help", "--delay"),
        ("run --help", "--record", "--mouse"),
        ("-h --help", "--docker-socket", "--pin"),
    ] {
        let text = text(line);
        assert!(text.contains(there) && !text.contains(not_there), "'{line}': {text}");
    }
}

#[test]
fn an_alias_with_a_look_serves_every_command() {
    for line in ["--ascii --no-color --no-mouse undo", "--no-config --theme mono card a", "--readonly cut a -o b"] {
        assert!(parsed(line).is_ok(), "'{line}' is accepted: {:?}", parsed(line).err());
    }
}

#[test]
fn what_is_no_terminal_gets_json() {
    let config = parse([OsString::from("-d"), OsString::from("0.25")], false).expect("good arguments");
    assert_eq!(config.face, Face::Watch(Presentation::Json), "a pipe gets JSON lines");
    assert_eq!(config.interval, Duration::from_millis(250), "fractions of seconds are allowed");
    let [Override { key, value, option: "--delay" }] = &config.overrides[..] else { panic!("nothing else was given") };
    assert_eq!((key.as_str(), value.as_float()), ("interval", Some(0.25)));
}
