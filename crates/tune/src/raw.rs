//! The limit of the devices: direct writes of bytes that are already in memory, without a backup around them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_io::queue::{Direction, IoMethodChoice, Memory, Queue, Transfer, io_method_for};
use windlass_io::{Access, AlignedBuffer, DirectFile};

/// Writes in flight to a file. More than a backup has, so that its own number is no part of the ceiling.
const DEPTH: usize = 8;

/// Writes `bytes` to new files at the same time, in pieces of `transfer_bytes`, and syncs them. The caller
/// removes them. Returns how many bytes were written: whole pieces.
pub(crate) fn write(
    paths: &[PathBuf],
    bytes: u64,
    transfer_bytes: usize,
    cancel: &AtomicBool,
) -> std::io::Result<u64> {
    let share = bytes.div_ceil(paths.len().max(1) as u64);
    let share = share.next_multiple_of(transfer_bytes as u64);
    std::thread::scope(|scope| {
        let writers: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(move || write_one(path, share, transfer_bytes, cancel)))
            .collect();
        let written = writers.into_iter().map(std::thread::ScopedJoinHandle::join);
        written
            .into_iter()
            .try_for_each(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(share * paths.len() as u64)
}

fn write_one(
    path: &Path,
    bytes: u64,
    transfer_bytes: usize,
    cancel: &AtomicBool,
) -> std::io::Result<()> {
    let file = Arc::new(DirectFile::open(path, Access::CreateNew)?);
    file.reserve(0, bytes)?;
    let (method, _) = io_method_for(IoMethodChoice::Auto, file.is_direct());
    let mut queue = Queue::new(DEPTH, method, &[]);
    let mut spare = AlignedBuffer::several(DEPTH, transfer_bytes);
    fill(&mut spare);
    let mut next = 0;
    loop {
        while next < bytes
            && !cancel.load(Ordering::Relaxed)
            && let Some(buffer) = spare.pop()
        {
            let transfer = Transfer {
                file: Arc::clone(&file),
                direction: Direction::Write,
                offset: next,
                range: 0..transfer_bytes,
                memory: Memory::Own(buffer),
                tag: 0,
            };
            let submitted = queue.submit(transfer);
            submitted.map_err(|_| std::io::Error::other("the queue is full"))?;
            next += transfer_bytes as u64;
        }
        let Some(done) = queue.wait()? else {
            break;
        };
        done.result?;
        if let Memory::Own(buffer) = done.transfer.memory {
            spare.push(buffer);
        }
    }
    match cancel.load(Ordering::Relaxed) {
        true => Err(std::io::ErrorKind::Interrupted.into()),
        false => file.sync(),
    }
}

/// Something that a device cannot store as zeros, or once for all.
fn fill(buffers: &mut [AlignedBuffer]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for word in buffers
        .iter_mut()
        .flat_map(|buffer| buffer.chunks_exact_mut(8))
    {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gets_its_share_of_the_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [0, 1, 2].map(|number| folder.path().join(number.to_string()));
        let written = write(&paths, 100_000, 8192, &AtomicBool::new(false));
        assert_eq!(written.unwrap(), 3 * 40_960);
        for path in &paths {
            let content = std::fs::read(path).unwrap();
            assert_eq!(content.len(), 40_960, "a third, in whole transfers");
            assert!(content.chunks_exact(8).all(|word| word != [0; 8]));
        }
        let stopped = write(
            &[folder.path().join("3")],
            1 << 30,
            8192,
            &AtomicBool::new(true),
        );
        assert!(stopped.is_err());
    }
}
