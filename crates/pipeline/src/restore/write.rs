//! Last stage of a restore: verified frames go to their places in the target, in any order.

use crossbeam_channel::Receiver;
use windlass_io::processor::thread_time;
use windlass_source::RestoreTarget;

use super::transform::Restored;
use crate::control::{Control, timed};
use crate::error::Error;
use crate::report::StageCounters;

/// Writes frames until no more come. One call per write in flight.
pub(super) fn run(
    target: &dyn RestoreTarget,
    restored: &Receiver<Restored>,
    control: &Control<'_>,
) -> Result<StageCounters, Error> {
    let mut counters = StageCounters::of_thread();
    while !control.is_stopped() {
        let Ok(frame) = timed(&mut counters.wait_input, || restored.recv()) else {
            break;
        };
        let mut start = 0;
        for run in &frame.runs {
            let end = start + run.bytes as usize;
            let octets = frame.octets.get(start..end).unwrap_or_default();
            timed(&mut counters.busy, || {
                target.write(frame.file_id, run.offset, octets)
            })?;
            counters.calls += 1;
            counters.bytes_in += octets.len() as u64;
            counters.bytes_out += octets.len() as u64;
            start = end;
        }
    }
    // One blocking write a thread.
    counters.in_flight = counters.busy;
    counters.cpu = thread_time();
    Ok(counters)
}
