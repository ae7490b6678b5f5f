//! RESTORE from backups that SQL Server wrote: recognized by their content, described in the same
//! columns.
//!
//! SQL Server databases do not run here: RESTORE DATABASE writes data files, and registers the database as offline.

mod files;
mod restore;

use std::path::Path;

use windlass_bak::columns::{self, Cell};
use windlass_bak::{Finding, Listing, SetListing, Verified, Verifier};
use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::word::Algorithm;
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_pipeline::OnDamage;
use windlass_sqlserver::{BackupInput, is_sql_server};

pub(super) use self::files::restore as restore_files;
pub(super) use self::restore::recover;
use super::columns::headings;
use super::inspect::{Inspect, Inspection};
use super::media::{MediaOptions, Required};
use super::media_rows;
use super::restore::{outside_folders, placed};
use super::{DeviceName, Store, resolve};
use crate::message_of::{os_error, stripes_missing};
use crate::{Failure, ResultSet, Session, Sink, Value};

/// Maximum number of damages listed individually.
const DAMAGES_LISTED: usize = 100;

/// `SourceProduct` of these sets.
const PRODUCT: &str = "SQL Server";

/// Devices of which the first contains a SQL Server backup.
pub(super) struct Media<'a> {
    devices: &'a [DeviceAddress],
    options: &'a MediaOptions,
}

impl<'a> Media<'a> {
    pub(super) fn new(devices: &'a [DeviceAddress], options: &'a MediaOptions) -> Self {
        Self { devices, options }
    }

    /// Reads the headers on the first device.
    fn listing(&self) -> Result<(Listing, Vec<Message>), Failure> {
        let Some(device) = self.devices.first() else {
            return Err(table::device_needed().into());
        };
        let input = open(device)?;
        let listing = Listing::read(input).map_err(|error| unreadable(device, &error))?;
        let mut notes = Vec::new();
        if let Some(media) = &listing.media {
            if let Some(given) = &self.options.media_name
                && *given != media.name
            {
                return Err(table::media_name_differs(given, &media.name, &device.name).into());
            }
            if let Some(given) = self.options.block_bytes()?
                && given != media.block_bytes
            {
                let found = media.block_bytes;
                return Err(table::block_size_incompatible(&device.name, found, given).into());
            }
            if media.has_password {
                notes.push(table::media_password_ignored(&device.name));
            }
        }
        for finding in listing.findings.iter().take(DAMAGES_LISTED) {
            notes.push(table::found_on_device(&device.name, finding));
        }
        Ok((listing, notes))
    }

    /// Describes the media.
    pub(super) fn inspect(&self, what: Inspect) -> Result<Inspection, Failure> {
        let (listing, notes) = self.listing()?;
        let (shown, rows, positions) = match what {
            Inspect::Label => {
                let Some(media) = &listing.media else {
                    let messages = notes.into_iter().chain([table::set_damaged()]);
                    return Err(messages.collect::<Vec<_>>().into());
                };
                let row = values(columns::label(media, listing.is_compressed()));
                (
                    headings(&media_rows::label_columns()),
                    vec![row],
                    Vec::new(),
                )
            }
            Inspect::Headers => {
                let sets = self.wanted(&listing)?;
                let row = |set: &&SetListing| header_row(set, listing.algorithm());
                let positions = sets.iter().map(|set| set.header.position).collect();
                let rows = sets.iter().map(row).collect();
                (headings(&media_rows::header_columns()), rows, positions)
            }
            Inspect::Files => {
                let position = self.position()?;
                let set = listing.set(position).map_err(|_| self.no_set(position))?;
                let rows = columns::file_list(set).into_iter().map(values).collect();
                (headings(&media_rows::file_columns()), rows, vec![position])
            }
        };
        Ok(Inspection {
            rows: ResultSet {
                columns: shown,
                rows,
            },
            intact: positions.last().copied().unwrap_or(0),
            positions,
            before: notes,
            after: Vec::new(),
            trouble: damage(&listing).err(),
        })
    }

    /// The requested sets.
    fn wanted<'l>(&self, listing: &'l Listing) -> Result<Vec<&'l SetListing>, Failure> {
        let wanted = self.options.position()?;
        let is_wanted =
            |set: &&SetListing| wanted.is_none_or(|wanted| wanted == set.header.position);
        let sets: Vec<&SetListing> = listing.sets.iter().filter(is_wanted).collect();
        match wanted.filter(|_| sets.is_empty()) {
            Some(position) => Err(self.no_set(position)),
            None => Ok(sets),
        }
    }

    fn position(&self) -> Result<u16, Failure> {
        Ok(self.options.position()?.unwrap_or(1))
    }

    /// Verifies the set, and everything before it on the media; returns its position.
    pub(super) fn verify(
        &self,
        required: &Required,
        on_damage: OnDamage,
        sink: &mut dyn Sink,
    ) -> Result<u16, Failure> {
        self.check_protection(required)?;
        let position = self.position()?;
        let mut verifier = Verifier::new(position);
        for device in self.devices {
            let input = open(device)?;
            verifier
                .family(input)
                .map_err(|error| unreadable(device, &error))?;
        }
        let verified = verifier.finish();
        let set = verified.set.as_ref().and_then(SetListing::configuration);
        if self.options.needs_checksums && set.is_some_and(|found| !found.has_checksums()) {
            return Err(table::set_has_no_checksums().into());
        }
        report_checks(&verified, sink);
        if verified.is_valid() {
            sink.message(table::set_valid(position));
            return Ok(position);
        }
        Err(self.damages(&verified, on_damage))
    }

    /// The findings, as messages.
    pub(super) fn damages(&self, verified: &Verified, on_damage: OnDamage) -> Failure {
        let found = verified.findings.iter().map(|found| &found.finding);
        let missing = Finding::missing_families(found).filter(|_| verified.more_findings == 0);
        if let Some((missing, count)) = missing {
            return stripes_missing(&missing, count).into();
        }
        let listed = match on_damage {
            OnDamage::Stop => 1,
            OnDamage::Continue => DAMAGES_LISTED,
        };
        let mut messages = vec![table::set_damaged()];
        for found in verified.findings.iter().take(listed) {
            let device = self.devices.get(found.input);
            let device = device.map_or("", |device| &device.name);
            messages.push(table::found_on_device(device, &found.finding));
        }
        let all = verified.findings.len() as u64 + verified.more_findings;
        if all > listed as u64 {
            let more = all - listed as u64;
            messages.push(table::and_more(more));
        }
        Failure::from(messages)
    }

    /// Anyone who can write to the folder can put a SQL Server backup in place of a signed one.
    fn check_protection(&self, required: &Required) -> Result<(), Failure> {
        let device = self.devices.first().map_or("", |device| &device.name);
        required.refuse_unprotected(device)
    }

    fn no_set(&self, position: u16) -> Failure {
        let device = self.devices.first().map_or("", |device| &device.name);
        table::file_id_malformed(position, device).into()
    }
}

impl Session {
    /// The devices with backups or data files of SQL Server, if their contents may be written to `target`: as for a
    /// restore, the settings may confine it to folders, and require signed or encrypted backups.
    ///
    /// # Errors
    /// The reason, in messages.
    pub fn permit_extraction(
        &mut self,
        names: &[DeviceName],
        target: &Path,
    ) -> Result<Vec<DeviceAddress>, Failure> {
        let required = Required::of_restore(self, &KeyRing::default(), &[])?;
        let devices = self.sql_server_devices(names)?;
        for device in &devices {
            required.refuse_unprotected(&device.name)?;
        }
        match outside_folders(self, &placed(target)?)? {
            Some(cause) => Err(cause.into()),
            None => Ok(devices),
        }
    }

    /// The devices with these names, of backups or data files of SQL Server.
    ///
    /// # Errors
    /// The reason, in messages.
    pub fn sql_server_devices(
        &mut self,
        names: &[DeviceName],
    ) -> Result<Vec<DeviceAddress>, Failure> {
        let (tags, store) = (self.instance.tags(), Store::default());
        let mut devices = Vec::with_capacity(names.len());
        for name in names {
            devices.extend(resolve(self, std::slice::from_ref(name), &tags, &store)?);
        }
        Ok(devices)
    }
}

/// Whether the first device contains a SQL Server backup.
pub(super) fn is_backup(devices: &[DeviceAddress]) -> bool {
    devices.first().is_some_and(is_sql_server)
}

fn open(device: &DeviceAddress) -> Result<BackupInput, Failure> {
    BackupInput::open(device)
        .map_err(|error| table::cannot_open_device(&device.name, os_error(&error)).into())
}

fn unreadable(device: &DeviceAddress, error: &windlass_bak::Error) -> Failure {
    Failure::from(vec![
        table::set_damaged(),
        table::found_on_device(&device.name, error),
    ])
}

/// Damage among the headers is a failure, no matter how many sets were read.
fn damage(listing: &Listing) -> Result<(), Failure> {
    if listing.findings.is_empty() {
        Ok(())
    } else {
        Err(table::set_damaged().into())
    }
}

/// The row of a set. Columns are looked up by name: a set without configuration has fewer of them, and
/// only two of Windlass's own have a value.
fn header_row(set: &SetListing, compression: Option<Algorithm>) -> Vec<Value> {
    let reported = columns::header(set, compression);
    let value_of = |name: &str| match name {
        "SourceProduct" => Value::text(PRODUCT),
        "BackupSetComplete" => Value::Bit(set.is_complete),
        _ => {
            let cell = reported.iter().find(|(reported, _)| *reported == name);
            cell.map_or(Value::Null, |(_, cell)| value(cell.clone()))
        }
    };
    let columns = media_rows::header_columns();
    columns.iter().map(|column| value_of(column.name)).collect()
}

fn values(row: columns::Row) -> Vec<Value> {
    row.into_iter().map(|(_, cell)| value(cell)).collect()
}

pub(super) fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bit(bit) => Value::Bit(bit),
        Cell::Integer(number) => Value::Integer(number),
        Cell::Lsn(lsn) => Value::lsn(lsn),
        Cell::Text(text) => Value::Text(text),
        Cell::Guid(guid) => Value::Guid(guid),
        Cell::Moment(moment) => Value::optional_moment(Some(moment)),
    }
}

/// Reports what was checked, and what could not be.
pub(super) fn report_checks(verified: &Verified, sink: &mut dyn Sink) {
    sink.message(table::checked(counts(verified)));
    for text in &verified.notes {
        sink.message(table::noticed(text));
    }
    for text in &verified.unchecked {
        sink.message(table::not_checked(text));
    }
}

/// What was checked, in numbers.
fn counts(verified: &Verified) -> String {
    let checked = &verified.checked;
    format!(
        "{} block headers, {} stream headers, {} compressed records, {} backup checksums, {} extents, \
         {} page checksums, {} torn-page patterns, {} allocated pages, {} files against their allocation map, \
         {} log blocks with {} records, {} virtual log files",
        checked.blocks,
        checked.streams,
        checked.records,
        checked.backup_checksums,
        checked.extents,
        checked.page_checksums,
        checked.torn_pages,
        checked.allocated_pages,
        checked.mapped_files,
        checked.log_blocks,
        checked.log_records,
        checked.virtual_logs
    )
}
