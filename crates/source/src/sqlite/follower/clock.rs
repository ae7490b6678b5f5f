//! Notices that the system's clock was changed, by a clock that nobody sets.

use rustix::time::{ClockId, clock_gettime};

use super::super::spool::{ClockChange, now_us};

/// A difference that is not a change: clocks are adjusted in small steps all the time.
const TOLERANCE_US: u64 = 1_000_000;

/// The last readings of both clocks, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    wall_us: u64,
    boot_us: u64,
}

impl Clock {
    pub(super) fn read() -> Self {
        // Counts while the machine sleeps.
        let boot = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(boot.tv_nsec).unwrap_or(0);
        Self {
            wall_us: now_us(),
            boot_us: seconds * 1_000_000 + nanoseconds / 1000,
        }
    }

    /// The change between the last reading and `now`, if there was one.
    pub(super) fn change(&mut self, now: Self) -> Option<ClockChange> {
        let passed = now.boot_us.saturating_sub(self.boot_us);
        let expected = self.wall_us.saturating_add(passed);
        *self = now;
        change(expected, now.wall_us)
    }

    /// The change since a time that was the system's once.
    pub(super) fn change_since(&self, time_us: u64) -> Option<ClockChange> {
        let expected = time_us.max(self.wall_us);
        change(expected, self.wall_us)
    }
}

fn change(expected: u64, found: u64) -> Option<ClockChange> {
    let change = ClockChange {
        from_us: expected.min(found),
        to_us: expected.max(found),
    };
    (change.to_us - change.from_us > TOLERANCE_US).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_and_one_that_runs_is_not() {
        const SECOND: u64 = 1_000_000;
        let at = |wall: u64, boot: u64| Clock {
            wall_us: wall * SECOND,
            boot_us: boot * SECOND,
        };
        let mut clock = at(1000, 10);
        assert_eq!(clock.change(at(1100, 110)), None, "also after a sleep");
        let back = clock.change(at(500, 111)).unwrap();
        assert_eq!((back.from_us, back.to_us), (500 * SECOND, 1101 * SECOND));
        assert!(back.has(501 * SECOND) && !back.has(1102 * SECOND) && !back.has(500 * SECOND));
        let forward = clock.change(at(1102, 112)).unwrap();
        assert_eq!(
            (forward.from_us, forward.to_us),
            (501 * SECOND, 1102 * SECOND)
        );
        assert_eq!(clock.change_since(1102 * SECOND), None);
        assert!(clock.change_since(2000 * SECOND).is_some());
        assert_eq!(clock.change_since(0), None, "an old spool");
    }
}
