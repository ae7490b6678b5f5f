//! The configuration of a new set, at its start and at its end.

use std::num::NonZeroU64;

use windlass_base::{EXTENT_BYTES, Guid, Lsn, Moment};
use windlass_codec::Level;
use windlass_media::{
    DatabaseFile, FileMode, HELD_BYTES_MAX, Held, Seen, SetConfiguration, SetType,
};
use windlass_source::{Content, FileKind, Snapshot};

use super::accounts;
use crate::coverage::Coverage;
use crate::error::Error;
use crate::plan::Plan;
use crate::request::{BackupKind, BackupRequest};
use crate::totals::Totals;

/// The configuration as known before the first chunk.
pub(super) fn configuration(
    request: &BackupRequest,
    snapshot: &dyn Snapshot,
    plan: &Plan,
    position: u16,
) -> SetConfiguration {
    let identity = snapshot.identity();
    let lsns = snapshot.position();
    let (started, time_zone) = Moment::now();
    let (set_type, base_guid, base_lsn) = match &request.kind {
        BackupKind::Full => (SetType::Full, Guid::NIL, Lsn::ZERO),
        BackupKind::Differential(base) => (SetType::Differential, base.set_guid, base.lsn),
        BackupKind::Log => (SetType::Log, Guid::NIL, Lsn::ZERO),
    };
    let version = |text: &str| text.parse().unwrap_or_default();
    let mut set = SetConfiguration {
        set_guid: Guid::random(),
        position,
        set_type,
        source_kind: identity.kind,
        is_copy_only: request.copy_only && set_type != SetType::Differential,
        name: request.name.clone().unwrap_or_default(),
        description: request.description.clone().unwrap_or_default(),
        user: request.requester.user.clone(),
        server: request.requester.server.clone(),
        machine: request.requester.machine.clone(),
        database: identity.name.clone(),
        database_version: identity.product_version,
        database_created: identity.created,
        started: Some(started),
        expires: request.expires,
        time_zone,
        compression: request.compression.algorithm.id(),
        compression_level: match plan.adapts_level {
            true => Level::AUTO_ID,
            false => Level::to_id(request.compression.level),
        },
        frame_bytes: plan.frame_bytes.value as u32,
        first_lsn: lsns.first_lsn,
        last_lsn: lsns.last_lsn,
        checkpoint_lsn: lsns.checkpoint_lsn,
        database_backup_lsn: request.database_backup_lsn,
        wal_position: snapshot.wal_position(),
        contradicted_until: contradicted_until(request, started.utc_seconds(time_zone.into())),
        differential_base_lsn: base_lsn,
        differential_base_guid: base_guid,
        family_guid: identity.family_guid,
        database_guid: identity.database_guid,
        recovery_fork_guid: identity.recovery_fork_guid,
        recovery_model: identity.recovery_model.to_string(),
        page_bytes: identity.page_bytes,
        is_read_only: identity.is_read_only,
        has_checksums: request.checksum,
        is_damaged: is_known_damaged(request),
        seen: Seen {
            is_as_is: request.content == Content::Unknown,
            integrity_check: request.integrity.map_or(0, |checked| checked.depth as u8),
            integrity_findings: request.integrity.map_or(0, |checked| checked.findings),
        },
        software_major: version(env!("CARGO_PKG_VERSION_MAJOR")),
        software_minor: version(env!("CARGO_PKG_VERSION_MINOR")),
        software_build: env!("CARGO_PKG_VERSION_PATCH").parse().unwrap_or_default(),
        files: snapshot
            .files()
            .iter()
            .map(|file| database_file(file, identity.database_guid, base_guid, base_lsn))
            .collect(),
        ..SetConfiguration::default()
    };
    describe_copy(&mut set, request, snapshot);
    set
}

/// A copy of a set says what the original said, unless the request says otherwise.
pub(super) fn describe_copy(
    set: &mut SetConfiguration,
    request: &BackupRequest,
    snapshot: &dyn Snapshot,
) {
    let Some(copied) = snapshot.copied_set() else {
        return;
    };
    let given = |given: &Option<String>, copied: &str| match given {
        Some(text) => text.clone(),
        None => copied.to_owned(),
    };
    set.original_guid = Some(copied.guid).filter(|guid| !guid.is_nil());
    set.set_type = copied.set_type;
    set.is_copy_only = copied.is_copy_only;
    set.has_checksums = copied.has_checksums;
    set.is_damaged = copied.is_damaged;
    set.name = given(&request.name, &copied.name);
    set.description = given(&request.description, &copied.description);
    set.user.clone_from(&copied.user);
    set.server.clone_from(&copied.server);
    set.machine.clone_from(&copied.machine);
    set.started = copied.started;
    set.expires = request.expires.or(copied.expires);
    set.time_zone = copied.time_zone;
    copied.recovery_model.clone_into(&mut set.recovery_model);
    set.database_backup_lsn = copied.database_backup_lsn;
    set.differential_base_lsn = copied.differential_base_lsn;
    set.differential_base_guid = copied.differential_base_guid;
    set.recovery_fork_guid = copied.recovery_fork_guid;
    if set.is_final {
        set.finished = copied.finished;
    }
}

fn database_file(
    file: &windlass_source::SourceFile,
    database_guid: Guid,
    base_guid: Guid,
    base_lsn: Lsn,
) -> DatabaseFile {
    DatabaseFile {
        file_id: file.id,
        is_log: file.kind == FileKind::Log,
        logical_name: file.logical_name.clone(),
        physical_name: file.physical_name.clone(),
        size_bytes: file.size_bytes,
        page_bytes: file.page_bytes,
        file_guid: Guid::named(database_guid, &file.id.to_le_bytes()),
        differential_base_lsn: base_lsn,
        differential_base_guid: base_guid,
        mode: file.mode().map(FileMode::of),
        created_ns: file.created_ns(),
        ..DatabaseFile::default()
    }
}

/// The end of the earlier backups if it is after the start of this one, in seconds since 1970, UTC.
fn contradicted_until(request: &BackupRequest, started: i64) -> Option<NonZeroU64> {
    let until = request.earlier_until.filter(|until| *until > started)?;
    NonZeroU64::new(u64::try_from(until).ok()?)
}

/// Whether the database was found damaged before it was read.
fn is_known_damaged(request: &BackupRequest) -> bool {
    let findings = request.integrity.map_or(0, |checked| checked.findings);
    findings > 0 || request.is_known_damaged || matches!(request.content, Content::Cut { .. })
}

/// Fills in what is known after the last chunk.
pub(super) fn complete(
    set: &mut SetConfiguration,
    totals: &Totals,
    coverage: &Coverage,
    snapshot: &dyn Snapshot,
) -> Result<(), Error> {
    if let Some(ending) = snapshot.ending()? {
        set.first_lsn = ending.position.first_lsn;
        set.last_lsn = ending.position.last_lsn;
        set.checkpoint_lsn = ending.position.checkpoint_lsn;
        set.source_description = ending.description;
        let (guid, base_guid, base_lsn) = (
            set.database_guid,
            set.differential_base_guid,
            set.differential_base_lsn,
        );
        set.files = (ending.files.iter())
            .map(|file| database_file(file, guid, base_guid, base_lsn))
            .collect();
    }
    set.is_final = true;
    set.finished = Some(Moment::now().0);
    set.backup_bytes = totals.raw_bytes();
    set.stored_bytes = totals.stored_bytes();
    set.narrowed_bytes = totals.narrowed_bytes();
    set.chunk_count = totals.chunks();
    set.set_checksum = totals.checksum();
    let mut room = HELD_BYTES_MAX;
    for file in &mut set.files {
        file.backup_bytes = coverage.held_bytes(file.file_id);
        file.held = held(coverage, file, room);
        room = room.saturating_sub(file.held.len());
    }
    Ok(())
}

/// The ranges of a file that the set contains; empty for a data file it contains entirely. For the
/// log it is the length the source delivered, not the length counted on the way.
fn held(coverage: &Coverage, file: &DatabaseFile, bytes_max: usize) -> Vec<u8> {
    if file.is_log {
        return Held::store(accounts::log(coverage, file.file_id), bytes_max);
    }
    let runs = coverage.held_extents(file.file_id);
    let all = file.size_bytes.div_ceil(EXTENT_BYTES as u64);
    match runs.as_slice() {
        [] if all == 0 => Vec::new(),
        [run] if *run == (0..all) => Vec::new(),
        runs => Held::store(runs.iter().cloned(), bytes_max),
    }
}
