//! Checks the log of a log backup before it is applied.

use std::path::Path;

use crate::Error;
use crate::sqlite::log_description::LogDescription;
use crate::sqlite::spool::{Kind, Records, SpoolError};

/// Checks that the records are a log from the state that the description begins with to its end, without a gap, and that
/// nothing follows.
pub(super) fn check(
    records: &mut Records,
    description: &LogDescription,
    path: &Path,
) -> Result<(), Error> {
    let damaged = |offset, defect| {
        let path = path.to_owned();
        SpoolError::Damaged {
            path,
            offset,
            defect,
        }
        .told()
    };
    let mut end = description.begin;
    let mut commits = 0;
    while let Some(found) = records.next()? {
        match found.head.kind {
            Kind::Segment => {
                let state = records.segment().map(|segment| segment.state);
                if state.is_some_and(|state| state.inode != 0 && state != end) {
                    return Err(
                        records.damaged_at(&found, "it does not continue what is before it")
                    );
                }
            }
            Kind::Start | Kind::Seen => end = records.state(&found)?,
            Kind::Pages | Kind::Parts | Kind::Clock => {
                records.stored(&found)?;
            }
            Kind::Moment => {
                let moment = records.moment(&found)?;
                if !moment.from.is_same_state(&end.position) {
                    return Err(records.damaged_at(&found, "a moment is missing before it"));
                }
                commits += moment.commits();
                end.position = moment.to;
                end.time_us = moment.time_us;
                end.commit_number = moment.commit_number;
            }
            Kind::Gap => return Err(records.damaged_at(&found, "it has a gap")),
        }
    }
    if records.rest_bytes() > 0 {
        return Err(damaged(0, "bytes behind its end are no records"));
    }
    match end == description.end && commits == description.commits {
        true => Ok(()),
        false => Err(damaged(
            0,
            "it ends at another state than the backup set says",
        )),
    }
}
