//! Accounts for everything that a backup was to store.

use std::ops::Range;

use windlass_source::{FileKind, Snapshot};

use super::movement::READER;
use crate::coverage::{Coverage, CoveredFile, FileRanges};
use crate::error::Error;

/// The files of a snapshot, to be accounted for.
pub(super) fn open(snapshot: &dyn Snapshot) -> Coverage {
    Coverage::new(snapshot.files().iter().map(|file| CoveredFile {
        file_id: file.id,
        is_log: file.kind == FileKind::Log,
        name: file.logical_name.clone(),
        // The log keeps growing.
        size_bytes: match file.kind {
            FileKind::Data => file.size_bytes,
            FileKind::Log => u64::MAX,
        },
    }))
}

/// Checks that everything scheduled is on the media or was skipped on purpose; otherwise the set
/// gets no end.
pub(super) fn check(snapshot: &dyn Snapshot, coverage: &Coverage) -> Result<(), Error> {
    if !coverage.is_source_ended() {
        return Err(Error::EndedEarly { worker: READER });
    }
    let (mut missing, mut unexpected) = (FileRanges::default(), FileRanges::default());
    for file in snapshot.files() {
        let wanted: Vec<_> = match file.kind {
            FileKind::Data => snapshot.ranges(file.id),
            FileKind::Log => log(coverage, file.id).collect(),
        };
        coverage.missing(file.id, wanted.iter().cloned(), &mut missing);
        coverage.unexpected(file.id, wanted.into_iter(), &mut unexpected);
    }
    match (missing.is_empty(), unexpected.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::StoredTwice(unexpected)),
        (false, _) => Err(Error::NotStored(missing)),
    }
}

/// The log that the source delivered for a file.
pub(super) fn log(
    coverage: &Coverage,
    file_id: u16,
) -> impl Iterator<Item = Range<u64>> + Clone + use<> {
    let bytes = coverage.log_bytes(file_id);
    (bytes > 0).then_some(0..bytes).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_no_bytes_is_no_range() {
        let coverage = Coverage::default();
        assert_eq!(log(&coverage, 2).next(), None, "before the source ended");
        coverage.end_source(Some((2, 0)));
        assert_eq!(log(&coverage, 2).next(), None);
        coverage.end_source(Some((2, 7)));
        assert_eq!(log(&coverage, 2).next(), Some(0..7));
        assert_eq!(log(&coverage, 3).next(), None, "of another file");
    }
}
