//! A SQL Server backup as the source of Windlass media: each of its sets is a snapshot.
//!
//! A set is verified first, and then read again by the pipeline. What is read again must be what was
//! verified: of plain families every extent has its checksum, in compressed ones every record.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_bak::page::{EXTENT_BYTES, PAGE_BYTES};
use windlass_bak::{
    BackupType, Configuration, Container, CopiedFamily, Finding, Original, Outline, SetListing,
    StreamReader, Verified, Verifier,
};
use windlass_base::{FilePage, Guid, Lsn};
use windlass_device::DeviceAddress;
use windlass_io::{DirectFile, FileState};
use windlass_media::{SetType, SourceKind};
use windlass_source::{
    CopiedSet, DatabaseIdentity, Ending, FileKind, FileRanges, Position, RecoveryModel, Snapshot,
    SourceFile, ranges_of,
};

use crate::input::path_of;
use crate::summing::Summing;
use crate::{BackupInput, Error};

/// The families of a SQL Server backup.
#[derive(Debug)]
pub struct BackupFiles {
    devices: Vec<DeviceAddress>,
    outlines: Vec<Outline>,
}

impl BackupFiles {
    /// Reads the headers of all families, in any order.
    ///
    /// # Errors
    /// A device cannot be read or has no set, or they do not belong together.
    pub fn open(devices: &[DeviceAddress]) -> Result<Self, Error> {
        let mut opened = Vec::new();
        for device in devices {
            if let Some(path) = device.file() {
                // It is read twice, and a FIFO might never be opened by another program.
                windlass_io::open_readable(path).map_err(|error| Error::file(path, error))?;
            }
            let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
            let outline = Outline::read(input).map_err(|error| Error::backup(device, error))?;
            opened.push((device.clone(), outline));
        }
        opened.sort_by_key(|(_, outline)| number(outline));
        check(&opened)?;
        let (devices, outlines) = opened.into_iter().unzip();
        Ok(Self { devices, outlines })
    }

    /// The devices, by family.
    pub fn devices(&self) -> &[DeviceAddress] {
        &self.devices
    }

    /// Damage of the headers.
    pub fn findings(&self) -> Vec<(PathBuf, Finding)> {
        let families = self.devices.iter().zip(&self.outlines);
        let findings = families.flat_map(|(device, outline)| {
            let findings = outline.findings.iter();
            findings.map(|finding| (path_of(device), finding.clone()))
        });
        findings.collect()
    }

    /// The sets, in order.
    pub fn sets(&self) -> impl Iterator<Item = &SetListing> {
        let first = self.outlines.iter().take(1);
        first.flat_map(|outline| outline.sets.iter().map(|set| &set.listing))
    }

    /// Verifies the set at `index`, and opens it as it was verified. A damaged set is opened only if
    /// its damage is accepted.
    ///
    /// # Errors
    /// A file cannot be read, or the set has too many files to be described.
    pub fn verified(
        &self,
        index: usize,
        accepts_damage: bool,
    ) -> Result<(Verified, Option<SetSnapshot>), Error> {
        let first = self.devices.first();
        let first = first.map_or_else(PathBuf::new, path_of);
        let described = Original::store(&self.outlines, index);
        let description = described.map_err(|damage| Error::Sequence {
            path: first.clone(),
            reason: damage.to_string(),
        })?;
        let original = Original::load(&description).ok_or_else(|| Error::Sequence {
            path: first.clone(),
            reason: "the description of the set cannot be read back".to_owned(),
        })?;
        let position = self.sets().nth(index).map_or(0, |set| set.header.position);
        let mut verifier = Verifier::new(position);
        let mut families = Vec::new();
        let all = self.devices.iter().zip(&self.outlines);
        for ((device, outline), part) in all.zip(&original.families) {
            families.push(Family::verified(device, outline, *part, &mut verifier)?);
        }
        let verified = verifier.finish();
        let is_open = verified.is_valid() || accepts_damage;
        let snapshot = is_open.then(|| {
            let is_damaged = !verified.is_valid();
            SetSnapshot::new(&original, description, families, is_damaged)
        });
        Ok((verified, snapshot))
    }
}

fn number(outline: &Outline) -> u16 {
    outline
        .media
        .as_ref()
        .map_or(1, |media| media.family_number)
}

/// Checks that the devices are families of one media set, with the same sets.
fn check(opened: &[(DeviceAddress, Outline)]) -> Result<(), Error> {
    let identity = |outline: &Outline| {
        let media = outline.media.as_ref().map(|media| media.media_set);
        let sets = outline.sets.iter().map(|set| set.listing.header.guid);
        (media, sets.collect::<Vec<Guid>>())
    };
    let Some((_, first)) = opened.first() else {
        return Ok(());
    };
    let mut before = None;
    for (device, outline) in opened {
        let refuse = |reason: &str| Error::Sequence {
            path: path_of(device),
            reason: reason.to_owned(),
        };
        if outline.sets.is_empty() {
            return Err(refuse("it contains no backup set"));
        }
        if identity(outline) != identity(first) {
            return Err(refuse(
                "it does not belong to the same backup sets as the other files",
            ));
        }
        if before == Some(number(outline)) {
            return Err(refuse("it is a media family that was given already"));
        }
        before = Some(number(outline));
    }
    Ok(())
}

/// The part of a family that belongs to a set.
#[derive(Debug)]
struct Family {
    device: DeviceAddress,
    part: CopiedFamily,
    reader: StreamReader<BackupInput>,
    /// What a plain copy has instead, by offset in the stream.
    patches: BTreeMap<u64, Vec<u8>>,
    /// The checksum of each extent of a plain family as it was verified.
    sums: Vec<u64>,
    state: State,
}

/// What differs if another backup takes the place of one.
#[derive(Debug, PartialEq, Eq)]
enum State {
    File(FileState),
    Object(String),
}

impl State {
    fn of(device: &DeviceAddress) -> io::Result<Self> {
        let Some(path) = device.file() else {
            let state = device.object_state();
            let state =
                state.ok_or_else(|| io::Error::other("the store does not say what it has there"));
            return state.map(Self::Object);
        };
        let metadata = File::open(path)?.metadata()?;
        Ok(Self::File(FileState::of(&metadata)))
    }
}

impl Family {
    fn verified(
        device: &DeviceAddress,
        outline: &Outline,
        part: CopiedFamily,
        verifier: &mut Verifier,
    ) -> Result<Self, Error> {
        let failed = |error| Error::device(device, error);
        let state = State::of(device).map_err(failed)?;
        let end = part.end().unwrap_or(part.offset);
        let range = match outline.container {
            Container::Tape => part.offset..end,
            Container::Compressed => 0..0,
        };
        let mut input = Summing::new(BackupInput::open(device).map_err(failed)?, range);
        let read = verifier.family(&mut input);
        read.map_err(|error| Error::backup(device, error))?;
        let patches = match outline.container {
            Container::Tape => outline.patches.range(0..0),
            Container::Compressed => outline.patches.range(part.offset..end),
        };
        Ok(Self {
            device: device.clone(),
            part,
            reader: StreamReader::new(BackupInput::open(device).map_err(failed)?, outline),
            patches: patches.map(|(at, bytes)| (*at, bytes.clone())).collect(),
            sums: input.finish(),
            state,
        })
    }

    fn is_plain(&self) -> bool {
        self.reader.is_plain()
    }

    /// Reads what was verified, as a plain copy has it.
    fn read(&mut self, offset: u64, buffer: &mut [u8], is_damaged: bool) -> io::Result<()> {
        let begins = self.part.offset + offset;
        let mut findings = Vec::new();
        let read = self.reader.read_at(begins, buffer, &mut findings);
        read.map_err(io::Error::other)?;
        if let Some(finding) = findings.first().filter(|_| !is_damaged) {
            return Err(io::Error::other(format!(
                "was not damaged when it was verified: {finding}"
            )));
        }
        if self.is_plain() {
            self.compare(offset, buffer)?;
        }
        let end = begins + buffer.len() as u64;
        // A patch is shorter than a block, and may begin before the buffer.
        for (at, bytes) in self.patches.range(begins.saturating_sub(1 << 16)..end) {
            for (at, byte) in (*at..).zip(bytes) {
                let inside = at.checked_sub(begins).map(|inside| inside as usize);
                if let Some(slot) = inside.and_then(|inside| buffer.get_mut(inside)) {
                    *slot = *byte;
                }
            }
        }
        Ok(())
    }

    /// Compares whole extents with the checksums of what was verified.
    fn compare(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let first = (offset / EXTENT_BYTES as u64) as usize;
        for (index, extent) in bytes.chunks(EXTENT_BYTES).enumerate() {
            let found = windlass_base::checksum::checksum(extent);
            if self.sums.get(first + index) != Some(&found) {
                let at = self.part.offset + offset + (index * EXTENT_BYTES) as u64;
                return Err(io::Error::other(format!(
                    "the bytes at {at} are not those that were verified"
                )));
            }
        }
        Ok(())
    }
}

/// A verified set, read as plain tape format: a file for each family.
#[derive(Debug)]
pub struct SetSnapshot {
    identity: DatabaseIdentity,
    position: Position,
    copied: CopiedSet,
    files: Vec<SourceFile>,
    families: Vec<Mutex<Family>>,
    ranges: Option<FileRanges>,
    description: Vec<u8>,
}

impl SetSnapshot {
    fn new(
        original: &Original,
        description: Vec<u8>,
        families: Vec<Family>,
        is_damaged: bool,
    ) -> Self {
        let listing = &original.listing;
        Self {
            identity: identity(listing),
            position: position(listing),
            copied: copied(listing, is_damaged),
            files: families
                .iter()
                .map(|family| file(original, family))
                .collect(),
            families: families.into_iter().map(Mutex::new).collect(),
            ranges: None,
            description,
        }
    }

    fn index(&self, file_id: u16) -> Option<usize> {
        self.files.iter().position(|file| file.id == file_id)
    }
}

fn file(original: &Original, family: &Family) -> SourceFile {
    let path = path_of(&family.device);
    let name = path.file_name().unwrap_or_default();
    SourceFile {
        id: family.part.number,
        logical_name: match original.family_count {
            1 => name.to_string_lossy().into_owned(),
            count => format!("family {} of {count}", family.part.number),
        },
        physical_name: path.display().to_string(),
        path,
        kind: FileKind::Data,
        size_bytes: family.part.bytes,
        page_bytes: PAGE_BYTES as u32,
        reserved_bytes: None,
    }
}

fn identity(listing: &SetListing) -> DatabaseIdentity {
    let found = listing.configuration();
    DatabaseIdentity {
        name: found.map_or_else(String::new, |found| found.database.clone()),
        family_guid: found.map_or(Guid::NIL, |found| found.family),
        database_guid: found.map_or(Guid::NIL, |found| found.binding),
        recovery_fork_guid: found.map_or(Guid::NIL, |found| found.family),
        created: found.and_then(|found| found.database_created),
        page_bytes: PAGE_BYTES as u32,
        // The set says it in SQL Server's words.
        recovery_model: RecoveryModel::Full,
        kind: SourceKind::SqlServer,
        product_version: found.map_or(0, |found| found.database_version.into()),
        user_version: 0,
        application_id: 0,
        journal_mode: String::new(),
        is_read_only: found.is_some_and(|found| found.status & STATUS_READ_ONLY != 0),
    }
}

/// Bit of the status of a database.
const STATUS_READ_ONLY: u32 = 0x400;

fn position(listing: &SetListing) -> Position {
    let found = listing.configuration();
    Position {
        first_lsn: found.map_or(Lsn::ZERO, |found| found.first_lsn),
        last_lsn: found.map_or(Lsn::ZERO, |found| found.last_lsn),
        checkpoint_lsn: found.map_or(Lsn::ZERO, |found| found.checkpoint_lsn),
    }
}

fn copied(listing: &SetListing, is_damaged: bool) -> CopiedSet {
    let (header, found) = (&listing.header, listing.configuration());
    let kind = found.map_or(BackupType::Database, |found| found.backup_type);
    CopiedSet {
        guid: header.guid,
        set_type: match kind {
            BackupType::Log => SetType::Log,
            kind if kind.is_differential() => SetType::Differential,
            _ => SetType::Full,
        },
        is_copy_only: found.is_some_and(Configuration::is_copy_only),
        has_checksums: found.is_some_and(Configuration::has_checksums),
        is_damaged,
        name: header.name.clone(),
        description: header.description.clone(),
        user: header.user.clone(),
        server: found.map_or_else(String::new, |found| found.server.clone()),
        machine: listing.machine.clone(),
        started: found.and_then(|found| found.started),
        finished: found.and_then(|found| found.finished),
        expires: header.expires,
        time_zone: header.time_zone,
        recovery_model: found.map_or("", |found| found.recovery_model()),
        database_backup_lsn: found.map_or(Lsn::ZERO, |found| found.database_backup_lsn),
        differential_base_lsn: found.map_or(Lsn::ZERO, |found| found.differential_base_lsn),
        differential_base_guid: found.map_or(Guid::NIL, |found| found.differential_base),
        recovery_fork_guid: found.map_or(Guid::NIL, |found| found.recovery_fork),
    }
}

impl Snapshot for SetSnapshot {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }

    fn position(&self) -> Position {
        self.position
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        if let Some(narrowed) = &self.ranges {
            return ranges_of(narrowed, file_id);
        }
        let file = self.files.iter().find(|file| file.id == file_id);
        let size_bytes = file.map_or(0, |file| file.size_bytes);
        (size_bytes > 0)
            .then_some(0..size_bytes)
            .into_iter()
            .collect()
    }

    fn narrow(&mut self, ranges: FileRanges) {
        self.ranges = Some(ranges);
    }

    fn located(
        &self,
        _file_id: u16,
        _offset: u64,
        _bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, windlass_source::Error> {
        Ok(None)
    }

    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        _outcome: io::Result<usize>,
    ) -> Result<(), windlass_source::Error> {
        let family = self
            .index(file_id)
            .and_then(|index| self.families.get(index));
        let Some(family) = family else {
            return Err(windlass_source::Error::OutOfRange {
                file_id,
                offset,
                bytes: buffer.len() as u64,
                size_bytes: 0,
            });
        };
        let mut family = family.lock().unwrap_or_else(PoisonError::into_inner);
        let read = family.read(offset, buffer, self.copied.is_damaged);
        read.map_err(|source| windlass_source::Error::Io {
            action: "read",
            path: path_of(&family.device),
            source,
        })
    }

    fn check_pages(
        &self,
        _file_id: u16,
        _offset: u64,
        _bytes: &[u8],
        _on_bad: &mut dyn FnMut(FilePage),
    ) {
        // They were verified before, with everything else that can be.
    }

    fn has_page_checksums(&self) -> bool {
        false
    }

    fn tracks_changes(&self) -> bool {
        // A copy is never a differential base, so it needs no digests.
        true
    }

    fn copied_set(&self) -> Option<&CopiedSet> {
        Some(&self.copied)
    }

    fn ending(&self) -> Result<Option<Ending>, windlass_source::Error> {
        Ok(Some(Ending {
            position: self.position,
            files: self.files.clone(),
            description: self.description.clone(),
        }))
    }

    fn close(&self) -> Result<(), windlass_source::Error> {
        for family in &self.families {
            let family = family.lock().unwrap_or_else(PoisonError::into_inner);
            if !State::of(&family.device).is_ok_and(|found| found == family.state) {
                let path = path_of(&family.device);
                return Err(windlass_source::Error::ChangedWhileReading { path });
            }
        }
        Ok(())
    }
}
