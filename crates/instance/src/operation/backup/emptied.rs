//! A SQLite file that is empty although a backup of it holds something.
//!
//! SQLite never shrinks a database to nothing, so its content is lost: the file was cut, or a program has made
//! it again. As with a file that is shorter than its header says, the backup is refused, or its set counts as damaged.

use windlass_base::message::table;
use windlass_catalog::provenance::databases;
use windlass_catalog::{DatabaseRecord, Provenance};
use windlass_device::DeviceAddress;
use windlass_pipeline::{MediaRequest, MediaSet, OnDamage};
use windlass_source::Content;

use super::BackupOperation;
use crate::chain::is_empty;
use crate::provenance::of_set;
use crate::{Failure, Session, Sink};

/// An earlier backup that holds something.
pub(in crate::operation) struct Earlier {
    backup: String,
    bytes: u64,
}

impl Earlier {
    /// That what it is a backup of has lost its content.
    pub(in crate::operation) fn warning(&self, file: &str) -> windlass_base::Message {
        table::emptied_database_read(file, &self.backup, self.bytes)
    }
}

impl BackupOperation<'_> {
    /// What the content of an empty database is, after what the history, and the media that the options name, hold
    /// of it.
    ///
    /// # Errors
    /// If it has lost its content, unless the backup continues after errors.
    pub(super) fn empty(
        &self,
        media: &MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<Content, Failure> {
        let copies = std::iter::once(&media.devices).chain(&media.mirrors);
        let named = self.options.base.iter().chain(copies.flatten());
        let Some(earlier) = earlier(self.session, &self.record, named)? else {
            let file = self.record.path.display();
            sink.message(table::database_file_empty(file));
            return Ok(Content::Empty);
        };
        let file = self.record.path.display().to_string();
        if self.options.on_damage == OnDamage::Stop {
            let Earlier { backup, bytes } = earlier;
            return Err(table::database_emptied(file, backup, bytes).into());
        }
        sink.message(earlier.warning(&file));
        Ok(Content::Cut {
            expected_bytes: earlier.bytes,
            found_bytes: 0,
        })
    }
}

/// The newest backup of a database that holds something, in the history or else on some media.
pub(in crate::operation) fn earlier<'d>(
    session: &Session,
    record: &DatabaseRecord,
    media: impl Iterator<Item = &'d DeviceAddress>,
) -> Result<Option<Earlier>, Failure> {
    let Some(own) = session.provenance_of(record) else {
        return Ok(None);
    };
    let past = session.instance.catalog().past_backups(None)?;
    let known = past.into_iter().filter_map(|backup| {
        let bytes = backup.database_bytes.filter(|bytes| *bytes > 0)?;
        let finished = backup
            .finished
            .map_or_else(String::new, |at| at.to_string());
        let name = format!("the backup of {finished} ({})", backup.devices.join(", "));
        Some((backup.of, name, bytes))
    });
    if let Some(found) = last_of(&own, known.collect()) {
        return Ok(Some(found));
    }
    for device in media.filter(|device| !device.discards()) {
        // What cannot be read as a medium says nothing here.
        let Ok(media) = MediaSet::open_any(std::slice::from_ref(device)) else {
            continue;
        };
        let held = media.sets().into_iter().map(|entry| entry.configuration);
        let held = held.filter(|set| !is_empty(set)).map(|set| {
            let bytes = set.files.iter().map(|file| file.size_bytes).sum();
            let name = format!("backup set {} on '{}'", set.position, device.name);
            (of_set(&set), name, bytes)
        });
        if let Some(found) = last_of(&own, held.collect()) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The last backup that is of a database, or of what was in its place: a file made again may have another identity.
fn last_of(own: &Provenance, known: Vec<(Provenance, String, u64)>) -> Option<Earlier> {
    let all = known.iter().map(|(of, ..)| of).chain([own]);
    let groups = databases(all);
    let same = groups.iter().find(|group| group.contains(&known.len()));
    let is_own = |index: usize, of: &Provenance| {
        same.is_some_and(|same| same.contains(&index))
            || (&of.path, &of.machine) == (&own.path, &own.machine)
    };
    let mut known = known.into_iter().enumerate().rev();
    let found = known.find(|(index, (of, ..))| is_own(*index, of))?;
    let (_, (_, backup, bytes)) = found;
    Some(Earlier { backup, bytes })
}
