//! Restores in sequences: a full backup, a differential upon it, and the end of both.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use windlass_base::{EXTENT_BYTES, Guid, Lsn};
use windlass_source::sqlite::{
    Existing, RequiredBase, RestoreRequest, SqliteTarget, forget, recover, restoring,
};
use windlass_source::{Error, Recovery, RestoreTarget, Sealing};

use crate::locks::notes;
use crate::process::Process;
use crate::restoring::{other_content, replacing};
use crate::support::{names, request, restore};

/// Extents of a differential, by their index in the file.
type Changed = Vec<(usize, Vec<u8>)>;

/// Content, a differential of it that grows or shrinks it, and the result.
fn differential(to_extents: usize) -> (Vec<u8>, Changed, Vec<u8>) {
    let base: Vec<u8> = (0..6 * EXTENT_BYTES + 777)
        .map(|index| (index % 251) as u8)
        .collect();
    let mut result = base.clone();
    result.resize(to_extents * EXTENT_BYTES + 100, 0);
    result[EXTENT_BYTES + 5] ^= 0xFF;
    let last = result.len() - 1;
    result[last] = 0xAB;
    let changed = result
        .chunks(EXTENT_BYTES)
        .enumerate()
        .filter(|(index, extent)| base.chunks(EXTENT_BYTES).nth(*index) != Some(extent))
        .map(|(index, extent)| (index, extent.to_vec()))
        .collect();
    (base, changed, result)
}

fn apply(
    request: &RestoreRequest,
    changed: &[(usize, Vec<u8>)],
    recovery: Recovery,
) -> Result<(), Error> {
    let target = Box::new(SqliteTarget::begin(request)?);
    for (index, extent) in changed {
        target.write(1, (index * EXTENT_BYTES) as u64, extent)?;
    }
    target.finish(recovery)
}

#[test]
fn a_differential_grows_or_shrinks_the_full_backup_it_belongs_on() {
    for extents in [3, 6, 11] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seq.db");
        let (base, changed, result) = differential(extents);
        let full = request(&path, base.len() as u64);
        restore(&full, &base, Recovery::NoRecovery);
        assert!(!path.exists(), "nothing to open yet");
        let state = restoring(&path).unwrap().unwrap();
        assert_eq!(
            (state.set_guid, state.is_differential),
            (full.set_guid, false)
        );
        let base = RequiredBase {
            set_guid: full.set_guid,
            checkpoint_lsn: full.checkpoint_lsn,
        };
        let next = RestoreRequest {
            base: Some(base),
            ..request(&path, result.len() as u64)
        };
        apply(&next, &changed, Recovery::Recovery).unwrap();
        assert!(fs::read(&path).unwrap() == result);
        assert_eq!(names(folder.path()), ["seq.db"]);
        assert_eq!(restoring(&path).unwrap(), None);
    }
}

#[test]
fn a_sequence_keeps_to_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seq.db");
    let (base, changed, result) = differential(7);
    let full = request(&path, base.len() as u64);
    let on = |set_guid| RestoreRequest {
        base: Some(RequiredBase {
            set_guid,
            checkpoint_lsn: Lsn::ZERO,
        }),
        ..request(&path, result.len() as u64)
    };
    let error = apply(&on(full.set_guid), &changed, Recovery::Recovery).unwrap_err();
    assert!(matches!(error, Error::NotRestoring { .. }), "{error}");
    let error = recover(&path, Existing::Refuse, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::NotRestoring { .. }), "{error}");

    restore(&full, &base, Recovery::NoRecovery);
    let error = apply(&on(Guid::random()), &changed, Recovery::Recovery).unwrap_err();
    assert!(matches!(error, Error::WrongBase { .. }), "{error}");
    apply(&on(full.set_guid), &changed, Recovery::NoRecovery).unwrap();
    let error = apply(&on(full.set_guid), &changed, Recovery::Recovery).unwrap_err();
    assert!(
        matches!(error, Error::WrongBase { .. }),
        "one differential per full: {error}"
    );
    recover(&path, Existing::Refuse, &AtomicBool::new(false)).unwrap();
    assert!(fs::read(&path).unwrap() == result);
    assert_eq!(names(folder.path()), ["seq.db"]);
}

#[test]
fn a_sequence_over_an_existing_database_replaces_it_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let old = fs::read(&path).unwrap();
    let new = other_content();
    restore(&replacing(&path, &new), &new, Recovery::NoRecovery);
    assert!(fs::read(&path).unwrap() == old, "until RECOVERY");
    let error = recover(&path, Existing::Refuse, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::TargetExists { .. }), "{error}");
    let idle = Process::start("idle", &path);
    let error = recover(&path, Existing::Replace, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(idle);
    recover(&path, Existing::Replace, &AtomicBool::new(false)).unwrap();
    assert!(fs::read(&path).unwrap() == new);

    restore(&replacing(&path, &old), &old, Recovery::NoRecovery);
    // Another database's sequence is not ended.
    let waiting = names(folder.path());
    assert!(forget(&path, Guid::random()).unwrap().is_some());
    assert_eq!(names(folder.path()), waiting);
    assert_eq!(forget(&path, Guid::NIL).unwrap(), None);
    assert_eq!(names(folder.path()), ["notes.db"]);
    assert!(fs::read(&path).unwrap() == new);
}

#[test]
fn a_differential_that_was_given_up_ends_the_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seq.db");
    let (base, _, _) = differential(7);
    let full = request(&path, base.len() as u64);
    restore(&full, &base, Recovery::NoRecovery);
    let on = RequiredBase {
        set_guid: full.set_guid,
        checkpoint_lsn: full.checkpoint_lsn,
    };
    let next = RestoreRequest {
        base: Some(on),
        ..request(&path, 5)
    };
    // Nothing was written: the base is unchanged.
    drop(SqliteTarget::begin(&next).unwrap());
    assert_eq!(restoring(&path).unwrap().unwrap().set_guid, full.set_guid);
    let begun = SqliteTarget::begin(&next).unwrap();
    begun.write(1, 0, b"half").unwrap();
    drop(begun);
    assert!(names(folder.path()).is_empty());
    let error = SqliteTarget::begin(&next).unwrap_err();
    assert!(matches!(error, Error::NotRestoring { .. }), "{error}");
}

/// A full backup restored WITH NORECOVERY, and the request for a differential upon it.
fn begun(path: &Path, full: &RestoreRequest, content: &[u8], bytes: usize) -> RestoreRequest {
    restore(full, content, Recovery::NoRecovery);
    RestoreRequest {
        base: Some(RequiredBase {
            set_guid: full.set_guid,
            checkpoint_lsn: full.checkpoint_lsn,
        }),
        ..request(path, bytes as u64)
    }
}

#[test]
fn a_differential_that_finds_its_name_taken_waits_for_recovery_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seq.db");
    let (base, changed, result) = differential(7);
    let next = begun(
        &path,
        &request(&path, base.len() as u64),
        &base,
        result.len(),
    );
    let target = Box::new(SqliteTarget::begin(&next).unwrap());
    for (index, extent) in &changed {
        let offset = (index * EXTENT_BYTES) as u64;
        target.write(1, offset, extent).unwrap();
    }
    fs::write(&path, "mine").unwrap();
    let error = target.finish(Recovery::Recovery).unwrap_err();
    assert!(matches!(error, Error::TargetExists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    fs::remove_file(&path).unwrap();
    recover(&path, Existing::Refuse, &AtomicBool::new(false)).unwrap();
    assert!(fs::read(&path).unwrap() == result);
}

#[test]
fn a_less_protected_differential_needs_to_be_allowed() {
    let (base, changed, result) = differential(7);
    for allowed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seq.db");
        let full = RestoreRequest {
            protection: Sealing::Passphrase.into(),
            ..request(&path, base.len() as u64)
        };
        let next = RestoreRequest {
            allow_less_protected: allowed,
            ..begun(&path, &full, &base, result.len())
        };
        match apply(&next, &changed, Recovery::Recovery) {
            Ok(()) => assert!(allowed),
            Err(error) => {
                assert!(!allowed && matches!(error, Error::LessProtected { .. }));
                // As well protected, it is taken without being allowed.
                let next = RestoreRequest {
                    protection: Sealing::Passphrase.into(),
                    ..next
                };
                apply(&next, &changed, Recovery::Recovery).unwrap();
            }
        }
        assert!(fs::read(&path).unwrap() == result);
    }
}

#[test]
fn content_is_taken_as_it_is_when_either_of_a_sequence_was() {
    let (base, changed, result) = differential(7);
    for (of_full, of_differential) in [(true, false), (false, true), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seq.db");
        let full = RestoreRequest {
            as_is: of_full,
            ..request(&path, base.len() as u64)
        };
        let next = RestoreRequest {
            as_is: of_differential,
            ..begun(&path, &full, &base, result.len())
        };
        let finished = apply(&next, &changed, Recovery::Recovery);
        let is_taken = of_full || of_differential;
        assert_eq!(finished.is_ok(), is_taken, "{finished:?}");
        assert_eq!(path.exists(), is_taken);
    }
}
