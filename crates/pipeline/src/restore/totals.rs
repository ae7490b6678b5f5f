//! The end of a restore or verification: checks that the chunks seen are the complete set.

use std::ops::Range;

use windlass_base::EXTENT_BYTES;
use windlass_media::{DatabaseFile, Held, SetConfiguration};

use super::transform::Seen;
use crate::coverage::{Coverage, FileRanges};
use crate::error::Damage;
use crate::report::DamagedChunks;
use crate::request::OnDamage;

/// Compares what was seen with the set's configuration: each chunk once, the correct sum, and for each
/// file exactly the recorded ranges. Returns what is missing if that is tolerated.
pub(super) fn check(
    set: &SetConfiguration,
    seen: &Seen,
    coverage: &Coverage,
    on_damage: OnDamage,
) -> Result<DamagedChunks, Damage> {
    let mut damaged = seen.damaged();
    let found = seen.totals.chunks();
    damaged.missing_count = set.chunk_count.saturating_sub(found + damaged.known);
    let mut unexpected = FileRanges::default();
    for file in &set.files {
        match Held::parse(&file.held) {
            Some(held) => compare(file, held, coverage, &mut damaged, &mut unexpected)?,
            None => {
                let file = file.logical_name.clone();
                return Err(Damage::HeldUnreadable { file });
            }
        }
    }
    if !unexpected.is_empty() {
        return Err(Damage::Unexpected(unexpected));
    }
    if damaged.is_empty() {
        return sums(set, seen, coverage).map(|()| damaged);
    }
    match on_damage {
        OnDamage::Continue => Ok(damaged),
        OnDamage::Stop if damaged.missing.is_empty() => Err(Damage::MissingChunks {
            found,
            expected: set.chunk_count,
        }),
        OnDamage::Stop => Err(Damage::Missing(damaged.missing)),
    }
}

type Wanted<'a> = Box<dyn Iterator<Item = Range<u64>> + 'a>;

/// The missing and the unexpected ranges of a file.
fn compare(
    file: &DatabaseFile,
    held: Held<'_>,
    coverage: &Coverage,
    damaged: &mut DamagedChunks,
    unexpected: &mut FileRanges,
) -> Result<(), Damage> {
    let extent = EXTENT_BYTES as u64;
    let bytes = |run: Range<u64>| run.start.saturating_mul(extent)..run.end.saturating_mul(extent);
    let mut both = |wanted: Wanted<'_>, again: Wanted<'_>| {
        coverage.missing(file.file_id, wanted, &mut damaged.missing);
        coverage.unexpected(file.file_id, again, unexpected);
    };
    let whole = |bytes: u64| Box::new((bytes > 0).then_some(0..bytes).into_iter());
    match held {
        Held::Whole => both(whole(file.size_bytes), whole(file.size_bytes)),
        // The log is counted in bytes.
        Held::Runs(runs) if file.is_log => both(Box::new(runs.clone()), Box::new(runs)),
        Held::Runs(runs) => {
            both(Box::new(runs.clone().map(bytes)), Box::new(runs.map(bytes)));
        }
        Held::Sum { extents, sum } => {
            let found = Held::sum_of(coverage.held_extents(file.file_id).into_iter());
            if found.0 < extents {
                damaged.missing.add_unplaced((extents - found.0) * extent);
            } else if found != (extents, sum) {
                return Err(Damage::OtherExtents {
                    file: file.logical_name.clone(),
                    found: found.0,
                    expected: extents,
                });
            }
        }
    }
    Ok(())
}

/// The totals of a set whose chunks are all present and intact.
fn sums(set: &SetConfiguration, seen: &Seen, coverage: &Coverage) -> Result<(), Damage> {
    let checksum = seen.totals.checksum();
    if checksum != set.set_checksum {
        return Err(Damage::SetChecksum {
            found: checksum,
            expected: set.set_checksum,
        });
    }
    let files = set.files.iter();
    let totals = files.map(|file| (coverage.held_bytes(file.file_id), file.backup_bytes));
    let raw_bytes = seen.totals.raw_bytes();
    let wrong = totals
        .chain([(raw_bytes, set.backup_bytes)])
        .find(|(found, expected)| found != expected);
    match wrong {
        Some((found, expected)) => Err(Damage::Coverage { found, expected }),
        None => Ok(()),
    }
}
