//! The threads of a backup and the queues between them.

use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use windlass_io::BufferPool;
use windlass_io::queue::Queue;

use super::governor::Governor;
use super::read::{Frame, Reader, Schedule};
use super::stripes::Stripes;
use super::transform::{Chunk, Transform};
use super::write::Family;
use crate::control::{Control, timed};
use crate::live::Meter;
use crate::report::{Adapted, Stage, StageCounters, Stages};

/// Names of the threads in errors.
pub(super) const READER: &str = "reader of the database";
const COMPRESSOR: &str = "stage that checks and compresses";
pub(super) const WRITER: &str = "writer of the media";

/// Where frames end up.
pub(super) enum Sink<'a> {
    Media(&'a mut [Family]),
    /// Dropped after the transform stage: `NOWRITE`.
    Transformed,
    /// Dropped after reading: `NOCOMPRESSWRITE`.
    Read,
}

/// What all stages of a run share.
pub(super) struct Movement<'a> {
    pub(super) transform: &'a Transform<'a>,
    pub(super) schedule: &'a Schedule,
    pub(super) frames: &'a BufferPool,
    pub(super) control: &'a Control<'a>,
}

impl Movement<'_> {
    /// Starts all threads of all stages and waits for them.
    pub(super) fn run(&self, mut sink: Sink<'_>) -> (Stages, Adapted) {
        let (plan, control, transform) = (self.transform.plan, self.control, self.transform);
        let (frame_sender, frames) = bounded(plan.frame_buffers.value);
        let families = match sink {
            Sink::Media(ref mut families) => std::mem::take(families),
            Sink::Transformed | Sink::Read => &mut [],
        };
        let chunks_max = plan.frame_buffers.value + plan.output_buffers.value;
        let (stripes, chunks) = Stripes::new(families.len(), plan.even.is_some(), chunks_max);
        let stripes = Arc::new(stripes);
        let governor = Governor::new(plan, &control.live);
        let governor = &governor;
        let mut stages = Stages::default();
        std::thread::scope(|scope| {
            let queue = Queue::new(plan.depth.value, plan.reads_by.method, &[self.frames]);
            let (snapshot, schedule, pool) = (transform.snapshot, self.schedule, self.frames);
            let reader = Reader::new(snapshot, schedule, pool, frame_sender, control, queue);
            let reader = reader.within(plan.limits.read);
            let reader = control.spawn(scope, READER, move || reader.run());
            let transforms: Vec<_> = (0..plan.threads.value)
                .map(|thread| {
                    let (frames, stripes) = (frames.clone(), Arc::clone(&stripes));
                    let only_count = matches!(sink, Sink::Read);
                    let work = move || match only_count {
                        true => Ok(count(&frames, control)),
                        false => transform.run(thread, &frames, &stripes, control, governor),
                    };
                    control.spawn(scope, COMPRESSOR, work)
                })
                .collect();
            drop((frames, stripes));
            if families.is_empty() {
                let chunks = chunks.clone();
                control.spawn(scope, WRITER, move || {
                    chunks.iter().flatten().for_each(drop::<Chunk>);
                    Ok(())
                });
            }
            let writers: Vec<_> = families
                .iter_mut()
                .zip(chunks)
                .map(|(family, chunks)| {
                    control.spawn(scope, WRITER, move || family.run(&chunks, control))
                })
                .collect();
            stages.read.add(&control.join(reader));
            for transform in transforms {
                stages.transform.add(&control.join(transform));
            }
            for writer in writers {
                stages.write.add(&control.join(writer));
            }
        });
        (stages, governor.adapted())
    }
}

/// Receives frames and drops them, so that reading shows its own rate.
fn count(frames: &Receiver<Frame>, control: &Control<'_>) -> StageCounters {
    let mut meter = Meter::begin(&control.live, Stage::Transform);
    while !control.is_stopped() {
        let Ok(frame) = timed(&mut meter.counters.wait_input, || frames.recv()) else {
            break;
        };
        let bytes = frame.bytes as u64;
        meter.counters.calls += 1;
        meter.counters.bytes_in += bytes;
        meter.counters.bytes_out += bytes;
        meter.announce();
        control.advance(bytes, bytes);
    }
    meter.end()
}
