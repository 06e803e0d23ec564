//! What a key changes on the screen of all hosts, and what it asks of the hosts: each does it with its own state and journal.

use crate::action::{Action, Motion, WorldAction};
use crate::state::AllHosts;

/// What is asked of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostsWish {
    /// Nothing.
    Nothing,
    /// Every host does this.
    Each(Action),
    /// Every host that has a test, or an end of one, does this.
    Ends(Action),
    /// The first host does this, for all.
    First(Action),
    /// The host that is open does this.
    Opened(Action),
}

/// Does what an action asks for, of so many hosts.
pub fn update_all(all: &mut AllHosts, hosts: usize, action: Action) -> HostsWish {
    let last = hosts.saturating_sub(1);
    match action {
        Action::NextHost => {
            all.open = match all.open {
                None => Some(0),
                Some(at) => Some(at + 1).filter(|next| *next < hosts),
            };
            all.selected = all.open.unwrap_or(all.selected);
        }
        Action::OpenHost(at) => all.open = Some(at.min(last)),
        Action::Details => all.open = Some(all.selected.min(last)),
        Action::Move(Motion::Up) if all.proposes => all.scroll = all.scroll.saturating_sub(1),
        Action::Move(Motion::Down) if all.proposes => all.scroll = all.scroll.saturating_add(1),
        Action::Move(Motion::Up) => all.selected = all.selected.saturating_sub(1),
        Action::Move(Motion::Down) => all.selected = (all.selected + 1).min(last),
        Action::Scroll(_, by) => all.scroll = all.scroll.saturating_add_signed(isize::from(by)),
        Action::Move(Motion::PageUp) => all.scroll = all.scroll.saturating_sub(10),
        Action::Move(Motion::PageDown) => all.scroll = all.scroll.saturating_add(10),
        Action::Move(Motion::Home) => all.scroll = 0,
        Action::Move(Motion::End) => all.scroll = usize::MAX,
        Action::Propose => {
            (all.proposes, all.scroll) = (true, 0);
            return HostsWish::Ends(action);
        }
        Action::Accept if all.proposes => {
            (all.proposes, all.scroll) = (false, 0);
            return HostsWish::Each(action);
        }
        Action::Cancel | Action::Undo => {
            (all.proposes, all.scroll) = (false, 0);
            return HostsWish::Each(action);
        }
        Action::Card | Action::Findings | Action::Paths | Action::Drops | Action::Latency | Action::Profile => {
            all.open = Some(all.selected.min(last));
            return HostsWish::Opened(action);
        }
        Action::Help | Action::Quit | Action::World(WorldAction::Suspend) => return HostsWish::First(action),
        Action::ToggleFreeze
        | Action::ToggleUnits
        | Action::Faster
        | Action::Slower
        | Action::World(WorldAction::Mark)
        | Action::NextTheme => return HostsWish::Each(action),
        _ => {}
    }
    HostsWish::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_host_after_the_last_is_all_of_them() {
        let mut all = AllHosts::default();
        let mut open = || {
            assert_eq!(update_all(&mut all, 2, Action::NextHost), HostsWish::Nothing);
            all.open()
        };
        assert_eq!([open(), open(), open(), open()], [Some(0), Some(1), None, Some(0)]);
    }

    #[test]
    fn a_proposal_is_answered_once() {
        let mut all = AllHosts::default();
        assert_eq!(update_all(&mut all, 2, Action::Accept), HostsWish::Nothing, "nothing is proposed");
        assert_eq!(update_all(&mut all, 2, Action::Propose), HostsWish::Ends(Action::Propose));
        assert_eq!(update_all(&mut all, 2, Action::Accept), HostsWish::Each(Action::Accept));
        assert_eq!(update_all(&mut all, 2, Action::Accept), HostsWish::Nothing);
    }
}
