//! What a reader who sees a screen for the first time needs: that every sign on it has its meaning beside it and no other, that figures
//! name the time that they are of, and that the path and the cores have figures where there is little room.

use crate::story::{played, seen_from};
use crate::world::stage::Stage;
use vnettop::view::Tone;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn lines(stage: &Stage, (width, height): (u16, u16)) -> Vec<String> {
    stage.text(width, height).lines().map(str::to_owned).collect()
}

/// The rows of the path, without the line above it.
fn path(stage: &Stage, size: (u16, u16)) -> Vec<String> {
    let is_border = |line: &String| line.starts_with(['├', '└']);
    let below = lines(stage, size).into_iter().skip_while(|line| !line.contains('▶') || !line.starts_with('│'));
    below.take_while(|line| !is_border(line)).collect()
}

fn line(stage: &Stage, size: (u16, u16), with: &str) -> String {
    lines(stage, size).into_iter().find(|line| line.contains(with)).unwrap_or_default()
}

/// How many words are rates in Gbit/s.
fn rates(path: &[String]) -> usize {
    let is_rate = |word: &&str| word.strip_suffix('G').is_some_and(|number| number.parse::<f64>().is_ok());
    path.iter().flat_map(|line| line.split_whitespace()).filter(is_rate).count()
}

#[test]
fn each_link_of_a_path_has_its_rate_and_the_path_its_losses() {
    for seconds in [6, 16, 30, 50, 56, 70] {
        let stage = played(seconds);
        for size in SIZES {
            let path = path(&stage, size);
            assert_eq!(rates(&path), 2, "{seconds} s, {size:?}: both ends of the bridge\n{path:?}");
            let text = stage.text(size.0, size.1);
            let has_line = text.contains("├ Path ") || size != (80, 24);
            assert!(text.contains("0 lost/s") == has_line, "{seconds} s, {size:?}: what is lost\n{text}");
        }
    }
}

#[test]
fn what_a_key_or_a_pin_has_done_hides_no_figure_of_the_path() {
    let mut seen = 0;
    seen_from(48, |stage| {
        let notices: Vec<String> = stage.state.notices().list().iter().map(|notice| notice.text.clone()).collect();
        let Some(notice) = notices.first() else { return };
        seen += 1;
        for size in SIZES {
            let first = notice.split(' ').take(6).collect::<Vec<_>>().join(" ");
            let text = stage.text(size.0, size.1);
            assert!(text.contains(&first), "{size:?}: {notice}\n{text}");
            assert_eq!(rates(&path(stage, size)), 2, "{size:?}: {notice}\n{text}");
        }
    });
    assert!(seen >= 4, "{seen} samples with a notice");
}

#[test]
fn the_legend_has_what_is_on_the_graph_and_nothing_else() {
    let legend = |seconds, size| line(&played(seconds), size, "0┼");
    let quiet = legend(6, (200, 60));
    for word in ["migration", "loss", "lowest", "median", "NUMA", "▄", "*", "pinned"] {
        assert!(!quiet.contains(word), "nothing of it has happened: {word} in {quiet}");
    }
    let wide = legend(34, (200, 60));
    for words in [
        "● • · migrations, far to near",
        "▒ range, lowest to highest",
        "█ dip, below half the median",
        "2▄▄ migrated to NUMA node 2",
    ] {
        assert!(wide.contains(words), "{words}: {wide}");
    }
    let narrow = legend(34, (80, 24));
    for words in ["● • · migrations", "▒ ", "█ dip"] {
        assert!(narrow.contains(words), "{words}: {narrow}");
    }
    assert!(!narrow.contains("node"), "there are no lanes: {narrow}");
    let pinned = legend(70, (200, 60));
    assert!(pinned.contains("░ pinned") && !pinned.contains('!'), "{pinned}");
}

#[test]
fn a_sign_of_the_legend_looks_as_it_does_on_the_graph() {
    let view = played(34).view(200, 60);
    let tones =
        |text: &str| view.timeline.spans().filter(|span| span.text == text).map(|span| span.tone).collect::<Vec<_>>();
    assert!(tones("█").contains(&Tone::Dip), "a dip: {:?}", tones("█"));
    assert!(tones("▒").contains(&Tone::CurveDim), "a range: {:?}", tones("▒"));
}

#[test]
fn lanes_start_where_the_rate_does() {
    for seconds in [2, 4, 8] {
        let stage = played(seconds);
        let first = |line: &str| line.chars().skip(8).position(|sign| !matches!(sign, ' ' | '┈')).unwrap_or(0);
        let size = (200, 60);
        let foot = lines(&stage, size).into_iter().rfind(|line| line.starts_with("│      │")).unwrap_or_default();
        for lane in ["│server ", "│client "] {
            assert_eq!(first(&line(&stage, size, lane)), first(&foot), "{seconds} s:\n{}", stage.text(200, 60));
        }
    }
}

#[test]
fn of_many_cores_those_that_matter_have_number_share_and_role() {
    let wanted = "core 6 97 % client, softirq · core 4 94 % server · 126 others up to 2 %";
    let stage = played(23);
    assert!(stage.text(120, 40).contains(wanted), "{}", stage.text(120, 40));
    let text = stage.text(200, 60);
    assert!(text.contains(wanted) && text.contains("cores   0-127 ▁▁▁▁█▁█▁▁"), "with all of them below:\n{text}");
    let mut panes = played(23);
    panes.press("b");
    let text = panes.text(120, 40);
    assert!(text.contains("core 6 97 % client, softirq") && text.contains("126 others up to 2 %"), "as panes:\n{text}");
    for frame in [panes.text(120, 40), panes.text(200, 60), text] {
        let has_t = frame.contains("█t") || frame.contains(" t[");
        assert_eq!(frame.contains("t your threads"), has_t, "t has a meaning where it is seen:\n{frame}");
    }
}

#[test]
fn figures_of_threads_and_of_the_path_name_the_time_that_they_are_of() {
    let mut stage = played(30);
    for text in [stage.text(120, 40), stage.text(200, 60)] {
        assert!(text.contains("MIGR/s over 10 s at most, shares over 0.5 s"), "threads:\n{text}");
        assert!(text.contains("× of nominal speed · over 0.5 s"), "path:\n{text}");
        for pane in ["├ 1 Links", "├ 2 Cores"] {
            let line = text.lines().find(|line| line.starts_with(pane)).unwrap_or_default();
            assert!(line.ends_with(" over 0.5 s ──┤"), "{pane}: {line}");
        }
    }
    stage.press("3");
    let text = stage.text(120, 40);
    assert!(text.contains("MIGR/s 10 s, shares 0.5 s"), "alone:\n{text}");
}
