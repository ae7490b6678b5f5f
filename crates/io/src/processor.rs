//! CPU time of threads.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time used by the calling thread so far, in user and kernel mode.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_takes_no_processor_time() {
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(50));
        assert!(thread_time() < before + Duration::from_millis(40));
    }
}
