//! Terminal events → keys and mouse of `action`. It decides nothing.

mod background;

use crate::action::{Key, Mouse};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

pub use background::{Background, BackgroundReply, QUESTION};

/// What a person or the terminal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// The mouse did something that has a meaning.
    Mouse(Mouse),
}

/// What a terminal event means; none for those that have no meaning here (key releases, focus, mouse movement, another size, which is asked for each frame).
#[must_use]
pub fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(event) if event.kind != KeyEventKind::Release => key(*event).map(Input::Key),
        Event::Mouse(event) => mouse(*event).map(Input::Mouse),
        _ => None,
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    match event.code {
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Ctrl(c.to_ascii_lowercase())),
        KeyCode::Char(_) if event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER) => None,
        KeyCode::Char(c) => Some(Key::Char(c)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Esc),
        KeyCode::BackTab => Some(Key::BackTab),
        KeyCode::Tab if shift => Some(Key::BackTab),
        KeyCode::Tab => Some(Key::Tab),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Left => Some(Key::Left),
        KeyCode::Right => Some(Key::Right),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Insert => Some(Key::Insert),
        KeyCode::Delete => Some(Key::Delete),
        KeyCode::F(number @ 1..=12) => Some(Key::F(number)),
        _ => None,
    }
}

fn mouse(event: MouseEvent) -> Option<Mouse> {
    let (x, y) = (event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click { x, y }),
        MouseEventKind::ScrollUp => Some(Mouse::ScrollUp { x, y }),
        MouseEventKind::ScrollDown => Some(Mouse::ScrollDown { x, y }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> Option<Input> {
        input(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn keys_keep_their_meaning() {
        let none = KeyModifiers::NONE;
        assert_eq!(
            press(KeyCode::Char('U'), KeyModifiers::SHIFT),
            Some(Input::Key(Key::Char('U'))),
            "shift is in the letter"
        );
        assert_eq!(
            press(KeyCode::Char('C'), KeyModifiers::CONTROL),
            Some(Input::Key(Key::Ctrl('c'))),
            "Ctrl-C in any case"
        );
        assert_eq!(
            press(KeyCode::Tab, KeyModifiers::SHIFT),
            Some(Input::Key(Key::BackTab)),
            "both ways to say Shift-Tab"
        );
        assert_eq!(press(KeyCode::F(13), none), None, "a key without a meaning is none");
        assert_eq!(press(KeyCode::Char('q'), KeyModifiers::ALT), None, "Alt-q is not q");
    }

    #[test]
    fn a_release_is_not_a_second_press() {
        let release = KeyEvent::new_with_kind(KeyCode::Char('p'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(input(&Event::Key(release)), None, "p pressed once must not apply the proposal");
    }
}
