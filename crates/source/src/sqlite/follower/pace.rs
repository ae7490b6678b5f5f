//! When to let go of the log, so that it is restarted and does not grow. Pure: it sees counts and times only.
//!
//! Under steady writing the log can be restarted only by letting go: the automatic checkpoint runs in the connection
//! that has just committed, before any other process can renew its mark at that commit. So, once a checkpoint has come
//! as far as our mark allows, the log's length then is taken for the application's own limit, and past a small multiple
//! of that (or all of it, before the follower waits for its disk) the follower lets go. If nothing was restarted meanwhile (no commit came, another reader is in the way, or the
//! application checkpoints by a timer), it lets go for longer the next time, and waits longer before it; if the proof failed afterwards, the log may become longer before the next time,
//! so that an application that restarts its log at every commit does not make a gap of every one.

use std::time::{Duration, Instant};

/// Frames of a log that is never too long: `SQLite`'s own limit.
const FRAMES_MIN: u32 = 1000;

/// How much longer than the application's own limit a log may become: 3/2.
const NUMERATOR: u32 = 3;
const DENOMINATOR: u32 = 2;

/// How long to let go at first, if letting go for a moment was in vain, and at most.
const LOOSE_MIN: Duration = Duration::from_millis(500);
const LOOSE_MAX: Duration = Duration::from_secs(8);

/// How often letting go may be in vain before the waits become longer.
const VAIN_MAX: u32 = 4;

/// How often the limit is doubled after gaps.
const DOUBLINGS_MAX: u32 = 3;

/// The first and the longest wait after letting go in vain.
const WAIT_MIN: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(8);

/// A mark is renewed if nothing was committed for so long: a checkpoint may be waiting for it.
const QUIET: Duration = Duration::from_millis(12);

/// The state of the decision, for one generation of the log after the other.
#[derive(Debug)]
pub(super) struct Pace {
    /// The length at which a checkpoint was first seen.
    own_limit: Option<u32>,
    doublings: u32,
    wait: Duration,
    /// How often letting go was in vain since it succeeded.
    vain: u32,
    not_before: Option<Instant>,
    tip: (u64, u32),
    changed: Instant,
}

/// What a look at the log showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// First frame up to which checkpoints may copy: the mark.
    pub(super) mark: u32,
    pub(super) frames: u32,
    pub(super) backfilled: u32,
    /// Whether the follower is about to wait for its disk, while the log grows.
    pub(super) is_due: bool,
}

/// What to do about the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    Keep,
    /// Take a mark at the newest commit.
    Renew,
    /// All frames are in the database: take lock 0.
    Zero,
    LetGo,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            own_limit: None,
            doublings: 0,
            wait: WAIT_MIN,
            vain: 0,
            not_before: None,
            tip: (0, 0),
            changed: now,
        }
    }

    /// How long nothing was committed.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.changed)
    }

    /// Notes the newest commit.
    pub(super) fn note(&mut self, salt: [u8; 8], frame: u32, now: Instant) {
        let tip = (u64::from_le_bytes(salt), frame);
        if self.tip != tip {
            if self.tip.0 != tip.0 {
                self.own_limit = None;
            }
            self.tip = tip;
            self.changed = now;
        }
    }

    pub(super) fn advise(&mut self, look: Look, now: Instant) -> Advice {
        let Look {
            mark,
            frames,
            backfilled,
            is_due,
        } = look;
        if frames == 0 {
            return Advice::Keep;
        }
        if backfilled == frames {
            return Advice::Zero;
        }
        if mark == 0 {
            // A checkpoint that may copy nothing leaves no trace.
            return Advice::Renew;
        }
        if backfilled > 0 && self.own_limit.is_none() {
            self.own_limit = Some(frames);
        }
        if self.own_limit.is_some()
            && frames >= self.limit(is_due && self.idle(now) < QUIET)
            && self.not_before.is_none_or(|at| now >= at)
        {
            return Advice::LetGo;
        }
        match mark < frames && self.idle(now) >= QUIET {
            true => Advice::Renew,
            false => Advice::Keep,
        }
    }

    /// Frames past which the log is let go.
    fn limit(&self, grows_unwatched: bool) -> u32 {
        let own = self.own_limit.unwrap_or(FRAMES_MIN).max(FRAMES_MIN);
        let limit = match grows_unwatched {
            true => own,
            false => own.saturating_mul(NUMERATOR) / DENOMINATOR,
        };
        limit.saturating_mul(1 << self.doublings)
    }

    /// The log was restarted, and it is proven that nothing was missed.
    pub(super) fn succeeded(&mut self) {
        self.wait = WAIT_MIN;
        // An application that checkpoints by a timer goes on doing so.
        self.vain = self.vain.min(2).saturating_sub(1);
        self.not_before = None;
        self.doublings = self.doublings.saturating_sub(1);
    }

    /// Letting go had no effect.
    pub(super) fn in_vain(&mut self, now: Instant) {
        self.not_before = now.checked_add(self.wait);
        self.vain = self.vain.saturating_add(1);
        if self.vain > VAIN_MAX {
            self.wait = (self.wait * 2).min(WAIT_MAX);
        }
    }

    /// How long to let go after a moment that was in vain.
    pub(super) fn loose(&self) -> Duration {
        LOOSE_MIN
            .saturating_mul(1 << self.vain.min(VAIN_MAX))
            .min(LOOSE_MAX)
    }

    /// The proof failed.
    pub(super) fn failed(&mut self) {
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(mark: u32, frames: u32, backfilled: u32) -> Look {
        Look {
            mark,
            frames,
            backfilled,
            is_due: false,
        }
    }

    #[test]
    fn a_log_is_let_go_past_one_and_a_half_of_what_the_application_checkpoints_at() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        pace.note([1; 8], 900, now);
        assert_eq!(pace.advise(look(5, 900, 0), now), Advice::Keep);
        assert_eq!(
            pace.advise(look(5, 9000, 0), now),
            Advice::Keep,
            "no checkpoint yet"
        );
        assert_eq!(pace.advise(look(5, 1004, 5), now), Advice::Keep);
        assert_eq!(pace.advise(look(5, 1505, 5), now), Advice::Keep);
        assert_eq!(pace.advise(look(5, 1506, 5), now), Advice::LetGo);
        let before_a_wait = Look {
            is_due: true,
            ..look(5, 1004, 5)
        };
        assert_eq!(pace.advise(before_a_wait, now), Advice::LetGo);
        assert_ne!(
            pace.advise(before_a_wait, now + QUIET),
            Advice::LetGo,
            "nobody writes"
        );
        pace.in_vain(now);
        assert_eq!(
            pace.advise(look(5, 1600, 5), now),
            Advice::Keep,
            "not again at once"
        );
        assert_eq!(pace.advise(look(5, 1600, 5), now + WAIT_MIN), Advice::LetGo);
        pace.succeeded();
        pace.failed();
        assert_eq!(
            pace.advise(look(5, 1600, 5), now),
            Advice::Keep,
            "longer after a gap"
        );
        assert_eq!(pace.advise(look(5, 3012, 5), now), Advice::LetGo);
        pace.note([2; 8], 3, now);
        assert_eq!(
            pace.advise(look(1, 3012, 0), now),
            Advice::Keep,
            "another generation"
        );
    }

    #[test]
    fn letting_go_in_vain_lasts_longer_the_next_time() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let mut before = Duration::ZERO;
        for _ in 0..VAIN_MAX {
            assert!(pace.loose() > before);
            before = pace.loose();
            pace.in_vain(now);
            assert_eq!(pace.not_before, Some(now + WAIT_MIN), "no longer wait yet");
        }
        assert_eq!(pace.loose(), LOOSE_MAX);
        for _ in 0..10 {
            pace.in_vain(now);
        }
        assert_eq!(pace.wait, WAIT_MAX);
        pace.succeeded();
        assert_eq!((pace.loose(), pace.wait), (LOOSE_MIN * 2, WAIT_MIN));
    }

    #[test]
    fn nothing_is_let_go_where_a_newer_lock_is_enough() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        pace.note([1; 8], 2000, now);
        assert_eq!(pace.advise(look(0, 0, 0), now), Advice::Keep);
        assert_eq!(
            pace.advise(look(0, 7, 0), now),
            Advice::Renew,
            "a mark that can be reached"
        );
        assert_eq!(pace.advise(look(2000, 2000, 2000), now), Advice::Zero);
        assert_eq!(pace.advise(look(7, 500, 0), now), Advice::Keep);
        let later = now + QUIET;
        assert_eq!(
            pace.advise(look(7, 500, 0), later),
            Advice::Renew,
            "somebody may wait for it"
        );
        assert_eq!(
            pace.advise(look(500, 500, 7), later),
            Advice::Keep,
            "not for us"
        );
    }
}
