//! Last stage of a restore: writes verified frames to their places in the target, in any order.

use crossbeam_channel::Receiver;
use windlass_source::RestoreTarget;

use super::transform::Restored;
use crate::control::{Control, timed};
use crate::error::Error;
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::report::{Stage, StageCounters};

/// Writes frames until the queue is closed. One call per write in flight.
pub(super) fn run(
    target: &dyn RestoreTarget,
    restored: &Receiver<Restored>,
    control: &Control<'_>,
) -> Result<StageCounters, Error> {
    let mut meter = Meter::begin(&control.live, Stage::Write);
    while !control.is_stopped() {
        let Ok(frame) = timed(&mut meter.counters.wait_input, || restored.recv()) else {
            break;
        };
        if !control.goes_on(FaultPoint::RestoreWrite)? {
            break;
        }
        let mut start = 0;
        for run in &frame.runs {
            let end = start + run.bytes as usize;
            let bytes = frame.bytes.get(start..end).unwrap_or_default();
            timed(&mut meter.counters.busy, || {
                target.write(frame.file_id, run.offset, bytes)
            })?;
            control.coverage.write(frame.file_id, bytes.len() as u64);
            meter.counters.calls += 1;
            meter.counters.bytes_in += bytes.len() as u64;
            meter.counters.bytes_out += bytes.len() as u64;
            start = end;
        }
        // One blocking write per thread.
        meter.counters.in_flight = meter.counters.busy;
        meter.announce();
    }
    Ok(meter.end())
}
