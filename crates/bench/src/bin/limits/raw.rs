//! The limit of the device: direct reads and copies, without processing the bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use windlass_io::queue::{Direction, IoMethod, Memory, Queue, Transfer};
use windlass_io::{Access, AlignedBuffer, DirectFile};

/// Reads a file with `depth` reads of `block` bytes in flight, and writes the data to `to`.
pub(crate) fn raw(
    from: &Path,
    to: Option<&Path>,
    block: usize,
    depth: usize,
) -> Result<f64, String> {
    copy(from, to, block, depth).map_err(|error| error.to_string())
}

fn copy(from: &Path, to: Option<&Path>, block: usize, depth: usize) -> std::io::Result<f64> {
    let begun = Instant::now();
    let source = Arc::new(DirectFile::open(from, Access::Read)?);
    let length = source.len()?;
    let target = match to {
        Some(path) => {
            drop(std::fs::remove_file(path));
            let target = DirectFile::open(path, Access::CreateNew)?;
            target.reserve(0, length)?;
            Some(Arc::new(target))
        }
        None => None,
    };
    let mut queue = Queue::new(depth, IoMethod::Ring, &[]);
    let mut spare: Vec<_> = (0..depth).map(|_| AlignedBuffer::new(block)).collect();
    let mut next = 0;
    let submit = |queue: &mut Queue, file: &Arc<DirectFile>, direction, offset, memory, bytes| {
        let transfer = Transfer {
            file: Arc::clone(file),
            direction,
            offset,
            memory,
            range: 0..bytes,
            tag: 0,
        };
        queue
            .submit(transfer)
            .map_err(|_| std::io::Error::other("the queue is full"))
    };
    loop {
        while next < length
            && let Some(buffer) = spare.pop()
        {
            let bytes = (length - next).min(block as u64) as usize;
            submit(
                &mut queue,
                &source,
                Direction::Read,
                next,
                Memory::Own(buffer),
                bytes,
            )?;
            next += bytes as u64;
        }
        let Some(done) = queue.wait()? else {
            break;
        };
        let bytes = done.result?;
        let (offset, direction) = (done.transfer.offset, done.transfer.direction);
        match (direction, &target) {
            (Direction::Read, Some(target)) => {
                submit(
                    &mut queue,
                    target,
                    Direction::Write,
                    offset,
                    done.transfer.memory,
                    bytes,
                )?;
            }
            _ => {
                if let Memory::Own(buffer) = done.transfer.memory {
                    spare.push(buffer);
                }
            }
        }
    }
    if let Some(target) = target {
        target.sync()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}
