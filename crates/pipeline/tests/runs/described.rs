//! All that is known of a backup stands on its media.

use std::os::unix::fs::PermissionsExt;

use windlass_base::{Guid, Lsn, Moment};
use windlass_codec::{Compression, Level};
use windlass_media::{DatabaseFile, FileMode, Held, Seen, SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{
    BackupKind, BackupRequest, DifferentialBase, Integrity, MediaSet, Requester, Unobserved, backup,
};
use windlass_source::{Content, DatabaseIdentity, Depth, Position, RecoveryModel, Snapshot as _};

use crate::coverage::{EXTENT, in_extents};
use crate::support::{Folder, devices, prepared, request, snapshot};
use crate::troubled::Troubled;

fn lsn(slot: u16) -> Lsn {
    Lsn {
        vlf: 7,
        block: 70,
        slot,
    }
}

/// An identity and a position of which nothing is what it would be by default.
fn strange(database: &std::path::Path) -> Troubled {
    let (now, _) = Moment::now();
    Troubled {
        identity: DatabaseIdentity {
            name: "Sales".to_owned(),
            family_guid: Guid::random(),
            database_guid: Guid::random(),
            recovery_fork_guid: Guid::random(),
            created: Some(now),
            page_bytes: 512,
            recovery_model: RecoveryModel::Full,
            kind: SourceKind::Engine,
            product_version: 3_045_001,
            user_version: 1,
            application_id: 2,
            journal_mode: "wal".to_owned(),
            is_read_only: true,
        },
        position: Position {
            first_lsn: lsn(1),
            last_lsn: lsn(3),
            checkpoint_lsn: lsn(2),
        },
        ranges: Some(std::iter::once(EXTENT..3 * EXTENT).collect()),
        ..Troubled::new(snapshot(database))
    }
}

#[test]
fn what_was_asked_and_what_the_database_is_stand_in_the_set() {
    let Folder { folder, database } = prepared(3000);
    std::fs::set_permissions(&database, PermissionsExt::from_mode(0o640)).unwrap();
    let devices = devices(folder.path(), &["1.bak"]);
    let base = DifferentialBase {
        set_guid: Guid::random(),
        lsn: lsn(4),
        digests: None,
    };
    let kinds = [
        BackupKind::Full,
        BackupKind::Full,
        BackupKind::Differential(base.clone()),
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        let is_differential = matches!(kind, BackupKind::Differential(_));
        let (base_guid, base_lsn) = match is_differential {
            true => (base.set_guid, base.lsn),
            false => (Guid::NIL, Lsn::ZERO),
        };
        let strange = strange(&database);
        let (identity, files) = (strange.identity.clone(), strange.files().to_vec());
        let expires = Moment::now().0.plus_days(3);
        let wanted = BackupRequest {
            kind,
            copy_only: index > 0,
            checksum: true,
            content: Content::Unknown,
            integrity: Some(Integrity {
                depth: Depth::Full,
                findings: 2,
            }),
            name: Some("a set".to_owned()),
            description: Some("of a night".to_owned()),
            expires: Some(expires),
            requester: Requester {
                user: "sa".to_owned(),
                server: "PROD".to_owned(),
                machine: "box".to_owned(),
            },
            database_backup_lsn: lsn(5),
            ..in_extents(request(&devices, Compression::ZSTD_LOW))
        };
        let report = backup(&wanted, Box::new(strange), &Unobserved).unwrap();
        let position = index as u16 + 1;
        let found = MediaSet::open(&devices).unwrap().set(position).unwrap();
        let found = found.configuration;
        let file = DatabaseFile {
            file_id: 1,
            is_log: false,
            logical_name: files[0].logical_name.clone(),
            physical_name: database.to_str().unwrap().to_owned(),
            size_bytes: std::fs::metadata(&database).unwrap().len(),
            page_bytes: 8192,
            backup_bytes: 2 * EXTENT,
            file_guid: Guid::named(identity.database_guid, &1_u16.to_le_bytes()),
            differential_base_lsn: base_lsn,
            differential_base_guid: base_guid,
            held: Held::store(std::iter::once(1..3), 100),
            mode: Some(FileMode::of(0o640)),
            created_ns: windlass_source::created_ns(&database),
            ..DatabaseFile::default()
        };
        let expected = SetConfiguration {
            position,
            set_type: match is_differential {
                true => SetType::Differential,
                false => SetType::Full,
            },
            source_kind: SourceKind::Engine,
            is_final: true,
            // A differential is no base in any case.
            is_copy_only: index == 1,
            name: "a set".to_owned(),
            description: "of a night".to_owned(),
            user: "sa".to_owned(),
            server: "PROD".to_owned(),
            machine: "box".to_owned(),
            database: identity.name,
            database_version: identity.product_version,
            database_created: identity.created,
            expires: Some(expires),
            time_zone: Moment::now().1,
            compression: Compression::ZSTD_LOW.algorithm.id(),
            compression_level: Level::to_id(Compression::ZSTD_LOW.level),
            frame_bytes: report.plan.frame_bytes.value as u32,
            first_lsn: lsn(1),
            last_lsn: lsn(3),
            checkpoint_lsn: lsn(2),
            database_backup_lsn: lsn(5),
            differential_base_lsn: base_lsn,
            differential_base_guid: base_guid,
            family_guid: identity.family_guid,
            database_guid: identity.database_guid,
            recovery_fork_guid: identity.recovery_fork_guid,
            recovery_model: "FULL".to_owned(),
            page_bytes: 512,
            is_read_only: true,
            has_checksums: true,
            is_damaged: true,
            seen: Seen {
                is_as_is: true,
                integrity_check: Depth::Full as u8,
                integrity_findings: 2,
            },
            software_minor: env!("CARGO_PKG_VERSION_MINOR").parse().unwrap(),
            backup_bytes: 2 * EXTENT,
            files: vec![file],
            // Random, of the clock, or sums.
            ..found.clone()
        };
        assert_eq!(found, expected);
        let (started, finished) = (found.started.unwrap(), found.finished.unwrap());
        assert!(started <= finished && finished <= Moment::now().0);
        assert!(!found.set_guid.is_nil() && found.stored_bytes > 0);
        assert_eq!(found.stored_bytes, report.set.stored_bytes);
        assert_eq!(finished, report.finished);
    }
}
