//! Slows down who guesses passwords: each failed login of an address is answered later than the one before, and one password
//! is checked at a time, of each address in turn. A check takes 64 MB and a part of a second, so many at once would keep
//! everybody else waiting.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time that a refusal takes.
const LEAST: Duration = Duration::from_millis(200);
/// The most.
const MOST: Duration = Duration::from_secs(5);
/// After this time without a failure, an address starts from the beginning.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 4096;

/// The failures of each address.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<Option<IpAddr>, (u32, Instant)>>,
}

impl Throttle {
    /// Notes a failed login; returns how long its answer is to wait.
    pub(crate) fn failed(&self, address: Option<IpAddr>, now: Instant) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&address) {
            failures.retain(|_, (_, last)| now.duration_since(*last) < FORGOTTEN_AFTER);
            if failures.len() >= ADDRESSES_MAX {
                return MOST;
            }
        }
        let (count, last) = failures.entry(address).or_insert((0, now));
        if now.duration_since(*last) >= FORGOTTEN_AFTER {
            *count = 0;
        }
        *last = now;
        *count = count.saturating_add(1);
        let doubled = 1_u32 << (*count - 1).min(8);
        LEAST.saturating_mul(doubled).min(MOST)
    }

    /// A login of the address succeeded.
    pub(crate) fn succeeded(&self, address: Option<IpAddr>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(&address);
    }
}

/// The turn of an address.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// Whose password is checked next. Who waits is served in the order of coming, as the locks of Tokio are.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    of_address: Mutex<HashMap<Option<IpAddr>, Turn>>,
    /// Held while a password is checked, after the turn of its address.
    pub(crate) check: tokio::sync::Mutex<()>,
}

impl Turns {
    /// The turn of an address, to be held while its password waits and is checked.
    pub(crate) fn of(&self, address: Option<IpAddr>) -> Turn {
        let mut turns = self
            .of_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(address).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_turn_while_somebody_holds_it_and_none_is_kept_after() {
        let turns = Turns::default();
        let one = Some(IpAddr::from([192, 0, 2, 1]));
        let turn = turns.of(one);
        let held = turn.try_lock().unwrap();
        assert!(turns.of(one).try_lock().is_err(), "the same address");
        assert!(turns.of(None).try_lock().is_ok(), "another one");
        drop(held);
        drop(turn);
        assert!(turns.of(None).try_lock().is_ok());
        assert_eq!(turns.of_address.lock().unwrap().len(), 1);
    }

    #[test]
    fn each_failure_waits_longer_until_a_success_or_a_pause() {
        let throttle = Throttle::default();
        let now = Instant::now();
        let one = Some(IpAddr::from([10, 0, 0, 1]));
        let waits: Vec<u64> = (0..7)
            .map(|_| throttle.failed(one, now).as_millis() as u64)
            .collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(throttle.failed(None, now), LEAST, "another address");
        assert_eq!(throttle.failed(one, now + FORGOTTEN_AFTER), LEAST);
        throttle.succeeded(one);
        assert_eq!(throttle.failed(one, now), LEAST);
    }

    #[test]
    fn addresses_are_not_collected_without_end() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for number in 0..10_000_u32 {
            throttle.failed(Some(IpAddr::from(number.to_be_bytes())), now);
        }
        assert!(throttle.failures.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
