//! Closes a gap: a differential backup, from which log backups and restores go on.
//!
//! It goes to a file of its own, in the folder (or below the URL) of the full backup that it counts from, and is never
//! less protected than that one, nor readable for fewer: it is encrypted for the same certificates, or not made.

use windlass_base::local_now;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, PastBackup};

use super::Factory;
use crate::operation::{BackupOptions, DeviceName, recipients_of};
use crate::{Failure, Session, Silent};

/// Whether a gap is closed.
pub(super) enum Closed {
    /// Those up to this time, in microseconds since 1970.
    Yes(u64),
    NotYet,
}

/// Makes a differential backup of a database, unless a backup was made since the gap ended.
pub(super) fn close(factory: &Factory, database: &str, gap_us: u64) -> Closed {
    let closed = factory().and_then(|mut session| back_up(&mut session, database, gap_us));
    match closed {
        Ok(Some(how)) => {
            tracing::info!(database, how, "a gap in the log is closed");
            Closed::Yes(gap_us)
        }
        Ok(None) => {
            tracing::warn!(database, "a gap in the log waits for a full backup");
            Closed::NotYet
        }
        Err(failure) => {
            for message in &failure.messages {
                tracing::error!(database, number = message.number, text = %message.text, "a gap in the log is not closed");
            }
            Closed::NotYet
        }
    }
}

/// How the gap is closed; `None` if no full backup is known.
fn back_up(
    session: &mut Session,
    database: &str,
    gap_us: u64,
) -> Result<Option<&'static str>, Failure> {
    let record = session.readable(database)?;
    let behind = windlass_source::sqlite::lsn_of_time(gap_us);
    if session.earlier(&record)?.lead_between(behind, None) {
        return Ok(Some("by a backup that was made since"));
    }
    let Some(base) = base(session, &record)? else {
        return Ok(None);
    };
    let Some(device) = base
        .devices
        .first()
        .and_then(|device| beside(device, &record.name))
    else {
        return Err(table::no_differential_base(&record.name).into());
    };
    let options = BackupOptions {
        is_differential: true,
        recipients: recipients_of(session, &base)?,
        // The key of a signature, and a passphrase, are not the server's: then the gap stays open, and is told.
        is_as_protected: true,
        devices: vec![DeviceName::physical(device)],
        name: Some("closes a gap in the log".to_owned()),
        ..BackupOptions::default()
    };
    session.backup(database, &options, &mut Silent)?;
    Ok(Some("by a differential backup"))
}

/// The full backup that a differential counts from.
fn base(session: &Session, record: &DatabaseRecord) -> Result<Option<PastBackup>, Failure> {
    let Some(base) = session.base_of(record)? else {
        return Ok(None);
    };
    let past = session.instance.catalog().past_backups(None)?;
    let mut past = past.into_iter().rev();
    Ok(past.find(|backup| backup.set_guid == Some(base.set_guid)))
}

/// A new file in the folder of `device`.
fn beside(device: &str, database: &str) -> Option<String> {
    let (folder, _) = device.rsplit_once('/')?;
    let letter = |letter: char| {
        if letter.is_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    let name: String = database.chars().map(letter).collect();
    let time = local_now().strftime("%Y%m%d_%H%M%S");
    Some(format!("{folder}/{name}_gap_{time}.bak"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backup_goes_beside_that_which_it_counts_from() {
        let name = beside("/srv/backup/full.bak", "My/App").unwrap();
        assert!(name.starts_with("/srv/backup/My_App_gap_2"), "{name}");
        let name = beside("s3://host/bucket/app/full.bak", "app").unwrap();
        assert!(name.starts_with("s3://host/bucket/app/app_gap_"), "{name}");
        assert_eq!(beside("NUL", "app"), None);
    }
}
