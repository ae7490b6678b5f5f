//! The databases that are known to be damaged: by SQLite's own check, by a page that could not be read, or because
//! they were restored from a backup of a damaged one.
//!
//! A SQLite file has no checksums, so a backup copies damaged pages without noticing. Each backup of such a
//! database is marked as damaged, and retention keeps all its backups, until a check as deep finds nothing or a
//! restore replaces it. Damage of backups is the topic of [`crate::verified`].

use std::path::{Component, Path, PathBuf};

use windlass_base::message::table;
use windlass_base::word::Depth;
use windlass_base::{FilePage, Message, Moment};
use windlass_catalog::{
    Catalog, DamageRecord, DamageSource, DatabaseRecord, EndedDamage, Error, KnownDamage,
};
use windlass_media::{SetConfiguration, SetType};
use windlass_source::Recovery;

use crate::{Failure, Session, Sink};

/// `event_type` of a page that does not match its checksum, in `suspect_pages`.
const BAD_CHECKSUM: u8 = 2;

/// The message about a page that does not match its checksum.
const LOGICAL_CONSISTENCY: u32 = 824;

/// What is known of all databases.
#[derive(Debug, Default)]
pub struct Damages(Vec<KnownDamage>);

impl Damages {
    /// Reads all of it.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn read(catalog: &Catalog) -> Result<Self, Error> {
        Ok(Self(catalog.known_damage()?))
    }

    /// That of the database whose first file is there.
    pub fn at(&self, path: &str) -> Option<&KnownDamage> {
        self.0.iter().find(|known| known.path == path)
    }

    /// That of a registered database.
    pub fn of(&self, record: &DatabaseRecord) -> Option<&KnownDamage> {
        self.at(&place(record))
    }
}

/// The text about a damaged database for those who watch it.
pub fn summary(known: &KnownDamage) -> String {
    let (at, number) = (known.found, known.error_number);
    let message = known.message.trim_end_matches('.');
    let more = match known.count {
        ..=1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("the database is damaged, found on {at}: message {number}: {message}{more}")
}

/// Where a database is, as its backups say it.
pub(crate) fn place(record: &DatabaseRecord) -> String {
    // A backup follows links to a SQLite file.
    let path = match record.log_path {
        None => followed(&record.path),
        Some(_) => record.path.clone(),
    };
    path.to_string_lossy().into_owned()
}

/// The file behind links, also of one that is gone, alone or with its folders: a database on a share stays the same
/// while the share is not mounted.
fn followed(path: &Path) -> PathBuf {
    let followed = path.canonicalize();
    followed.unwrap_or_else(|_| led_to(path, LINKS_MAX))
}

/// Maximum number of chained links, as in Linux.
const LINKS_MAX: u32 = 40;

/// The absolute path behind the links that are there.
fn led_to(path: &Path, links_left: u32) -> PathBuf {
    let mut walked = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        if part == Component::ParentDir {
            walked.pop();
            continue;
        }
        let place = walked.join(part);
        if links_left > 0
            && let Ok(link) = place.read_link()
        {
            let onward = walked.join(link).join(rest.as_path());
            return led_to(&onward, links_left - 1);
        }
        walked = place;
    }
    walked
}

impl Session {
    /// What is known of a damaged database.
    pub(crate) fn known_damage(
        &self,
        record: &DatabaseRecord,
    ) -> Result<Option<KnownDamage>, Error> {
        let known = Damages::read(self.instance.catalog())?;
        Ok(known.of(record).cloned())
    }

    /// Records the result of SQLite's check. A failure to do so is reported: the check itself is done.
    pub(crate) fn note_check(
        &mut self,
        record: &DatabaseRecord,
        depth: Depth,
        findings: &[String],
        sink: &mut dyn Sink,
    ) {
        let noted = match findings.first() {
            None => self.end_damage(record, &EndedDamage::FoundBy(depth)),
            Some(finding) => {
                let message = table::integrity_finding(&record.name, finding);
                self.note_damage(record, DamageSource::Check, depth, &message)
            }
        };
        tell(noted, sink);
    }

    /// Records that SQLite found a database damaged while it ran a query.
    pub(crate) fn note_malformed(&mut self, record: &DatabaseRecord, message: &Message) {
        // Every check looks at what a query reads. If this fails, the error of the query is still reported.
        let _noted = self.note_damage(record, DamageSource::Check, Depth::Quick, message);
    }

    /// Records that a backup met a damaged page, and ended.
    pub(crate) fn note_failed_read(&mut self, database: &str, failure: &Failure) {
        let is_damage = |message: &&Message| message.number == LOGICAL_CONSISTENCY;
        if let Some(message) = failure.messages.iter().find(is_damage)
            && let Ok(Some(record)) = self.instance.database(database)
        {
            // If this fails, the error of the backup is still reported.
            let _noted = self.note_damage(&record, DamageSource::Check, Depth::Full, message);
        }
    }

    /// Records a page that does not match its checksum, also in `suspect_pages`.
    pub(crate) fn note_page(
        &mut self,
        record: &DatabaseRecord,
        page: FilePage,
        message: &Message,
    ) -> Result<(), Error> {
        let now = Moment::now().0;
        let catalog = self.instance.catalog_mut();
        catalog.suspect_page(record.database_id, page, BAD_CHECKSUM, now)?;
        self.note_damage(record, DamageSource::Page(page), Depth::Full, message)
    }

    /// Records that a set was restored over a database. `is_damaged` says that the set was made of a damaged one, or
    /// was not restored completely.
    pub(crate) fn note_restore(
        &mut self,
        record: &DatabaseRecord,
        set: &SetConfiguration,
        is_damaged: bool,
        recovery: Recovery,
        sink: &mut dyn Sink,
    ) {
        let is_full = set.set_type == SetType::Full;
        let ended = match recovery {
            // The files of a SQLite database stay until its recovery.
            Recovery::NoRecovery => is_full.then_some(EndedDamage::OfRestore),
            Recovery::Recovery if is_full => Some(EndedDamage::All),
            Recovery::Recovery => Some(EndedDamage::BeforeRestore),
        };
        let mut noted = ended.map_or(Ok(()), |ended| self.end_damage(record, &ended));
        if noted.is_ok() && is_damaged {
            noted = self.note_loss(record, set.started);
        }
        tell(noted, sink);
    }

    /// Records that the files of a SQL Server database were rewritten, and whether that lost something.
    pub(crate) fn note_files(
        &mut self,
        record: &DatabaseRecord,
        made: Option<Moment>,
        is_damaged: bool,
        sink: &mut dyn Sink,
    ) {
        let mut noted = self.end_damage(record, &EndedDamage::All);
        if noted.is_ok() && is_damaged {
            noted = self.note_loss(record, made);
        }
        tell(noted, sink);
    }

    fn note_loss(&mut self, record: &DatabaseRecord, made: Option<Moment>) -> Result<(), Error> {
        let made = made.map_or_else(String::new, |at| at.to_string());
        let message = Message {
            number: table::damaged_set_restored("").number,
            ..table::restored_from_damage(&record.name, made)
        };
        self.note_damage(record, DamageSource::Restore, Depth::Full, &message)
    }

    /// Forgets damage that is no longer there.
    pub(crate) fn end_damage(
        &mut self,
        record: &DatabaseRecord,
        ended: &EndedDamage,
    ) -> Result<(), Error> {
        let catalog = self.instance.catalog_mut();
        catalog.end_damage(&place(record), ended)
    }

    fn note_damage(
        &mut self,
        record: &DatabaseRecord,
        source: DamageSource,
        depth: Depth,
        message: &Message,
    ) -> Result<(), Error> {
        self.instance.catalog_mut().record_damage(&DamageRecord {
            path: &place(record),
            database: &record.name,
            found: Moment::now().0,
            source,
            depth,
            error_number: message.number,
            message: message.text.clone(),
        })
    }
}

fn tell(noted: Result<(), Error>, sink: &mut dyn Sink) {
    if let Err(error) = noted {
        tracing::warn!("what is known of the database's damage was not recorded: {error}");
        sink.message(table::history_not_written());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_database_behind_links_has_one_place_while_its_share_is_not_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let share = folder.join("share");
        std::fs::create_dir_all(share.join("db")).unwrap();
        std::fs::write(share.join("db/app.db"), "").unwrap();
        symlink("share/db", folder.join("data")).unwrap();
        symlink("../data/app.db", share.join("link.db")).unwrap();
        let named = [
            folder.join("data/app.db"),
            folder.join("share/link.db"),
            folder.join("share/../share/db/app.db"),
        ];
        for is_mounted in [true, false] {
            if !is_mounted {
                std::fs::remove_dir_all(share.join("db")).unwrap();
            }
            for path in &named {
                assert_eq!(
                    followed(path),
                    share.join("db/app.db"),
                    "{}",
                    path.display()
                );
            }
        }
        // A circle ends.
        let round = folder.join("round");
        symlink("round", &round).unwrap();
        assert_eq!(followed(&round), round);
    }
}
