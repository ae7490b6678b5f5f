//! CPU and I/O priority of the calling thread.

use std::io;

/// The nice value of low-priority threads: the lowest priority.
const NICEST: i32 = 19;

/// The nice value of threads that give way to others, but get a quarter of a core that another thread wants too.
const GIVES_WAY: i32 = 5;

/// `IOPRIO_CLASS_IDLE` in the class bits: served only if there are no other requests.
const IDLE_CLASS: libc::c_long = 3 << 13;

/// `IOPRIO_WHO_PROCESS`; with 0, the calling thread.
const WHO_THREAD: libc::c_long = 1;

/// Gives the calling thread, and threads that it starts later, the lowest CPU priority and the idle
/// I/O class. This cannot be undone, so call it on a thread that ends with the work.
///
/// Which disks honour the class depends on the kernel's I/O scheduler.
///
/// # Errors
/// If the kernel refuses one of them; the other stays in effect.
pub fn lower_priority() -> io::Result<()> {
    let nice = be_nice(NICEST);
    #[expect(unsafe_code, reason = "libc has no function for it")]
    // SAFETY: three numbers, as the call takes them.
    let idle = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, 0_i64, IDLE_CLASS) };
    nice.and(outcome(idle))
}

/// Lets other threads have a core first that both want: of the calling thread, and of threads that it starts later. This
/// cannot be undone, so call it on a thread that ends with the work.
///
/// # Errors
/// If the kernel refuses it.
pub fn give_way() -> io::Result<()> {
    #[expect(unsafe_code, reason = "std does not read the weight of threads")]
    // SAFETY: two numbers; on Linux 0 is the calling thread.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    be_nice(now.max(GIVES_WAY))
}

fn be_nice(value: i32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "std does not set the weight of threads")]
    // SAFETY: two numbers; on Linux 0 is the calling thread.
    let nice = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) };
    outcome(nice.into())
}

fn outcome(returned: libc::c_long) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nice value and I/O class of the calling thread.
    fn standing() -> (i32, libc::c_long) {
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: two numbers.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: two numbers.
        let class = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0_i64) };
        (nice, class >> 13)
    }

    #[test]
    fn a_thread_and_those_it_starts_give_way_and_others_do_not() {
        let before = standing();
        let (own, started) = std::thread::spawn(|| {
            lower_priority().unwrap();
            (standing(), std::thread::spawn(standing).join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(own, (NICEST, 3));
        assert_eq!(started, (NICEST, 3));
        let gave_way = std::thread::spawn(|| {
            give_way().unwrap();
            let first = standing();
            lower_priority().unwrap();
            give_way().unwrap();
            (first, standing().0)
        });
        let (gave_way, lowest) = gave_way.join().unwrap();
        assert_eq!(gave_way, (before.0.max(GIVES_WAY), before.1));
        assert_eq!(lowest, NICEST);
        assert_eq!(standing(), before);
    }
}
