//! Slows down who guesses passwords: each failed login of an address is answered later than the one before.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
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

#[cfg(test)]
mod tests {
    use super::*;

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
