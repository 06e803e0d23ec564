//! Panes that were left out.

use crate::world::scenes;
use crate::world::stage::Stage;
use vnettop::action::KeyMap;
use vnettop::state::{Choices, Part, ThemeList};

fn stage(parts: &[Part]) -> Stage {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.state.choose(
        Choices { parts: parts.to_vec(), ..Choices::default() },
        KeyMap::default(),
        ThemeList::default(),
    );
    stage.press("<tick>");
    stage
}

#[test]
fn what_was_left_out_is_on_no_screen_and_gets_no_focus() {
    let all = [Part::Test, Part::Links, Part::Cores, Part::Threads];
    let title = [" Test ", "Links ", "Cores ", "Threads "];
    for set in 1..16_usize {
        let parts: Vec<Part> = (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit| all[bit]).collect();
        if parts == [Part::Test] {
            continue;
        }
        for (width, height) in [(60, 15), (76, 17), (80, 24), (100, 33), (120, 40), (200, 60)] {
            let mut stage = stage(&parts);
            for tabs in 0..4 {
                let frame = stage.text(width, height);
                for (part, title) in all.iter().zip(title) {
                    let is_there = frame.contains(&format!("▸{title}"))
                        || frame.contains(title)
                            && frame.lines().any(|line| line.starts_with(['┌', '├']) && line.contains(title));
                    let wanted = parts.contains(part);
                    assert!(wanted || !is_there, "{part:?} was left out at {width}x{height}:\n{frame}");
                }
                let focus: Vec<&str> =
                    title.iter().copied().filter(|title| frame.contains(&format!("▸{title}"))).collect();
                assert_eq!(focus.len(), 1, "one pane has the focus after {tabs} tabs at {width}x{height}:\n{frame}");
                stage.press("<tab>");
            }
        }
    }
}

#[test]
fn the_panes_that_are_left_share_the_screen() {
    let frame = stage(&[Part::Links, Part::Threads]).text(120, 40);
    assert!(frame.contains("▸Links ") && frame.contains(" Threads ") && frame.contains(" Finding "), "{frame}");
    let frame = stage(&[Part::Cores]).text(80, 24);
    assert!(
        frame.contains("▸Cores ") && frame.contains(" Finding "),
        "the first pane that is there has the focus:\n{frame}"
    );
}
