//! Helpers of all tests here: a folder, an image, a restore.

use std::path::{Path, PathBuf};

use windlass_base::{EXTENT_BYTES, Guid};
use windlass_io::AlignedBuffer;
use windlass_source::sqlite::{
    Existing, RestoreRequest, SnapshotOptions, SqliteSnapshot, SqliteTarget,
};
use windlass_source::{Recovery, RestoreTarget, Snapshot};

/// The folder of shared test data; reports loudly if it is missing.
pub(crate) fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = folder.join("data/sqlite");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no test databases at {}", folder.display());
    None
}

pub(crate) fn open(path: &Path) -> SqliteSnapshot {
    SqliteSnapshot::open(path, &SnapshotOptions::default()).unwrap()
}

/// The whole content of a snapshot, read in pieces of `extents`, checked and closed.
pub(crate) fn image(snapshot: SqliteSnapshot, extents: usize) -> Vec<u8> {
    let mut content = Vec::new();
    let mut buffer = AlignedBuffer::new(extents * EXTENT_BYTES);
    for range in snapshot.ranges(1) {
        let mut offset = range.start;
        while offset < range.end {
            let bytes = (range.end - offset).min(buffer.len() as u64) as usize;
            buffer.fill(0xEE);
            snapshot.read(1, offset, &mut buffer[..bytes]).unwrap();
            content.extend_from_slice(&buffer[..bytes]);
            offset += bytes as u64;
        }
    }
    assert_eq!(content.len() as u64, snapshot.files()[0].size_bytes);
    snapshot.close().unwrap();
    drop(snapshot);
    content
}

/// The request for a full restore of `size_bytes`.
pub(crate) fn request(target: &Path, size_bytes: u64) -> RestoreRequest {
    RestoreRequest {
        target: target.to_owned(),
        existing: Existing::Refuse,
        database_name: "test".to_owned(),
        family_guid: Guid::random(),
        set_guid: Guid::random(),
        checkpoint_lsn: windlass_base::Lsn {
            vlf: 1_800_000_000,
            block: 0,
            slot: 1,
        },
        size_bytes,
        as_is: true,
        ..RestoreRequest::default()
    }
}

/// Writes `bytes` in pieces, from two threads.
pub(crate) fn fill(target: &dyn RestoreTarget, bytes: &[u8]) {
    let mut aligned = AlignedBuffer::new(bytes.len());
    aligned[..bytes.len()].copy_from_slice(bytes);
    let pieces: Vec<_> = aligned[..bytes.len()]
        .chunks(2 * EXTENT_BYTES)
        .enumerate()
        .collect();
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let pieces = &pieces;
            scope.spawn(move || {
                for (index, piece) in pieces.iter().skip(worker).step_by(2) {
                    target
                        .write(1, (index * 2 * EXTENT_BYTES) as u64, piece)
                        .unwrap();
                }
            });
        }
    });
}

pub(crate) fn restore(request: &RestoreRequest, bytes: &[u8], recovery: Recovery) {
    let target = Box::new(SqliteTarget::begin(request).unwrap());
    fill(&*target, bytes);
    target.finish(recovery).unwrap();
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
