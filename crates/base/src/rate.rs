//! Rate limit: a token bucket without a clock.
//!
//! The caller passes the time, relative to any fixed moment, so that the arithmetic can be tested
//! without waiting.

use std::time::Duration;

/// How long an unused allowance is kept: long enough to cover the gap between two calls, but too short
/// for a noticeable burst.
const CREDIT: Duration = Duration::from_millis(100);

/// A limit on bytes per second.
///
/// Invariant: in any period, no more bytes are taken than the rate allows in that period plus a
/// tenth of a second, plus one call.
#[derive(Debug, Clone)]
pub struct RateLimit {
    bytes_per_second: u64,
    /// When the next bytes may move.
    next: Duration,
}

impl RateLimit {
    /// A limit of at least one byte per second.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            next: Duration::ZERO,
        }
    }

    /// How long bytes have to wait at the time `now`; zero if they may move.
    pub fn wait(&self, now: Duration) -> Duration {
        self.next.saturating_sub(now)
    }

    /// Counts bytes that move at the time `now`.
    pub fn take(&mut self, bytes: u64, now: Duration) {
        let nanoseconds =
            (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bytes_per_second));
        let cost = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.next = self
            .next
            .max(now.saturating_sub(CREDIT))
            .saturating_add(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Takes pieces as fast as the limit allows until `end`; returns the bytes taken.
    fn busily(limit: &mut RateLimit, piece: u64, begin: Duration, end: Duration) -> u64 {
        let (mut now, mut taken) = (begin, 0);
        while now < end {
            let wait = limit.wait(now);
            if wait.is_zero() {
                limit.take(piece, now);
                taken += piece;
            } else {
                now += wait;
            }
        }
        taken
    }

    #[test]
    fn a_busy_taker_gets_the_rate_whatever_its_pieces() {
        for piece in [1, 4096, 1_000_003, 8 << 20] {
            let mut limit = RateLimit::new(50_000_000);
            let taken = busily(&mut limit, piece, SECOND, SECOND * 11);
            let allowed = 500_000_000 + 5_000_000 + piece;
            assert!(
                taken <= allowed && taken >= 500_000_000,
                "{taken} in pieces of {piece}"
            );
        }
    }

    #[test]
    fn what_was_not_used_is_not_saved_up() {
        let mut limit = RateLimit::new(1000);
        assert_eq!(busily(&mut limit, 1, Duration::ZERO, SECOND), 1000);
        let after_a_pause = SECOND * 1000;
        let taken = busily(&mut limit, 1, after_a_pause, after_a_pause + SECOND);
        assert!((1000..=1101).contains(&taken), "{taken}");
    }

    #[test]
    fn a_large_piece_is_paid_for_afterwards() {
        let mut limit = RateLimit::new(100);
        limit.take(1000, SECOND);
        assert_eq!(limit.wait(SECOND), (SECOND * 10).saturating_sub(CREDIT));
        assert_eq!(limit.wait(SECOND * 11), Duration::ZERO);
        limit.take(u64::MAX, SECOND * 11);
        assert!(limit.wait(SECOND * 12) > SECOND, "no overflow");
    }
}
