//! Who may ask: users and the bcrypt hashes of their passwords, as HTTP's basic authentication gives them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// To check a password takes long by design: one at a time, and nobody waits longer for his turn than this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Headers that were right and are known again at once.
const MOST_KNOWN: usize = 16;
/// What stands behind the cost in a hash of no password.
const NO_PASSWORD: &str = "7EqJtq98hPqEX7fNZaFWoOhi5dIu8yFq5rKJ6ICQdM5sTHN/c0W0e";

/// What became of somebody who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Allowed,
    Refused,
    /// Too many others are being checked.
    Busy,
}

/// Nobody is refused where there are no users.
pub(super) struct AccessRules {
    users: BTreeMap<String, String>,
    /// For users that do not exist, who take as long as the others.
    nobody: String,
    known: Mutex<Vec<String>>,
    turn: Arc<Semaphore>,
}

impl Default for AccessRules {
    fn default() -> Self {
        Self::of(BTreeMap::new(), 10)
    }
}

impl AccessRules {
    /// Of these users, each with the bcrypt hash of his password, and the highest cost among them.
    pub fn of(users: BTreeMap<String, String>, cost: u32) -> Self {
        let nobody = format!("$2b${cost:02}${NO_PASSWORD}");
        Self { users, nobody, known: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }

    pub fn is_open(&self) -> bool {
        self.users.is_empty()
    }

    /// Whether the other has the same users with the same passwords.
    pub fn has_users_of(&self, other: &Self) -> bool {
        self.users == other.users
    }

    /// Whether the header lets its sender in.
    pub async fn check(&self, authorization: Option<&str>) -> Admission {
        if self.is_open() {
            return Admission::Allowed;
        }
        let Some(authorization) = authorization else { return Admission::Refused };
        if self.knows(authorization) {
            return Admission::Allowed;
        }
        let Some((user, password)) = decoded(authorization) else { return Admission::Refused };
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.turn).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Admission::Busy };
        let hash = self.users.get(&user);
        let against = hash.unwrap_or(&self.nobody).clone();
        // The turn lasts as long as the check, also where whoever asked has gone meanwhile.
        let checked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            bcrypt::verify(password, &against).unwrap_or(false)
        });
        if hash.is_none() | !checked.await.unwrap_or(false) {
            return Admission::Refused;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.remove(0);
        }
        known.push(authorization.to_owned());
        Admission::Allowed
    }

    /// It was right before.
    fn knows(&self, authorization: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|one| bool::from(one.as_bytes().ct_eq(authorization.as_bytes())))
    }
}

/// User and password of a header of basic authentication.
fn decoded(authorization: &str) -> Option<(String, String)> {
    let (scheme, encoded) = authorization.split_once(' ')?;
    let bytes = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(bytes).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    #[test]
    fn the_right_password_is_let_in_and_every_other_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let hash = bcrypt::hash("secret", 4).expect("hashed");
        let access = AccessRules::of(BTreeMap::from([("ada".to_owned(), hash)]), 4);
        let check = |header: Option<&str>| runtime.block_on(access.check(header));
        assert!(access.nobody.parse::<bcrypt::HashParts>().is_ok(), "nobody has a hash too");
        for wrong in [header("ada", "guess"), header("bob", "secret"), "Basic %%%".to_owned(), "Bearer x".to_owned()] {
            assert_eq!(check(Some(&wrong)), Admission::Refused, "{wrong}");
        }
        assert_eq!(check(None), Admission::Refused, "without a header");
        assert_eq!(check(Some(&header("ada", "secret"))), Admission::Allowed);
        assert!(access.knows(&header("ada", "secret")), "and is known again");
        assert!(!access.knows(&header("ada", "secres")), "which another is not");
        assert_eq!(
            runtime.block_on(AccessRules::default().check(None)),
            Admission::Allowed,
            "without users everybody is"
        );
    }
}
