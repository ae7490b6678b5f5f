//! Bases that are overwritten, missing or of another kind, and what a dry run says of them.

use windlass_catalog::{DatabaseState, Origin};

use super::*;
use crate::Instance;
use crate::outcome::Collected;
use crate::presence::tests::Place;

fn session() -> Session {
    Session::new(Instance::open(None).unwrap())
}

/// The database of a place, with a base that the history may know.
fn record(place: &Place, base: Option<Guid>) -> DatabaseRecord {
    DatabaseRecord {
        database_id: 0,
        name: "db".to_owned(),
        logical_name: "db".to_owned(),
        path: place.path("db"),
        log_path: None,
        is_as_is: true,
        family_guid: None,
        state: DatabaseState::Online,
        origin: Origin::Attached,
        create_date: Moment::now().0,
        base: base.map(|set_guid| Base {
            set_guid,
            lsn: Lsn::ZERO,
            finished: Moment::now().0,
        }),
        made_for: Guid::random(),
    }
}

/// What a dry run says of a differential to `target`, based on the media `named`.
fn rehearsed(place: &Place, target: &str, named: &[&str]) -> Result<(), String> {
    let record = record(place, None);
    let options = BackupOptions {
        base: place.devices(named),
        ..BackupOptions::default()
    };
    let wanted = Wanted {
        record: &record,
        own: None,
        target: &place.devices(&[target]),
        options: &options,
    };
    let result = rehearse(&mut session(), &wanted, &mut Collected::default());
    result
        .map(drop)
        .map_err(|failure| failure.messages[0].text.clone())
}

#[test]
fn a_dry_run_finds_the_base_on_the_media_and_says_where_there_is_none() {
    let place = Place::new();
    let none = "a current database backup does not exist";
    let refused = rehearsed(&place, "new", &[]).unwrap_err();
    assert!(refused.contains(none), "{refused}");
    std::fs::write(place.path("empty"), "").unwrap();
    let refused = rehearsed(&place, "empty", &[]).unwrap_err();
    assert!(refused.contains(none), "{refused}");
    place.back_up(&["full"], true);
    assert_eq!(rehearsed(&place, "full", &[]), Ok(()));
    assert_eq!(rehearsed(&place, "new", &["full"]), Ok(()));

    place.copy_only(&["copy"]);
    let refused = rehearsed(&place, "copy", &[]).unwrap_err();
    assert!(refused.contains(none), "{refused}");
    let refused = rehearsed(&place, "new", &["copy"]).unwrap_err();
    assert!(
        refused.contains("the media given as base have no full backup"),
        "{refused}"
    );
}

#[test]
fn a_base_that_was_overwritten_is_missing_whatever_its_media_hold_now() {
    let place = Place::new();
    let mut past = place.back_up(&["1"], true);
    let record = record(&place, past.set_guid);
    let says = |past: &PastBackup, missing_base| {
        let options = BackupOptions {
            missing_base,
            ..BackupOptions::default()
        };
        let wanted = Wanted {
            record: &record,
            own: None,
            target: &[],
            options: &options,
        };
        let mut told = Collected::default();
        let result = check_media(&mut session(), Guid::NIL, Some(past), &wanted, &mut told);
        let refused = result.err().map(|failure| failure.messages[0].clone());
        let message = refused.or(told.messages.pop());
        message.map(|message| (message.number, message.text))
    };
    for missing_base in [MissingBase::Refuses, MissingBase::Warns] {
        assert_eq!(says(&past, missing_base), None);
    }
    past.is_overwritten = true;
    for (missing_base, number) in [(MissingBase::Refuses, 50012), (MissingBase::Warns, 50013)] {
        let (found, text) = says(&past, missing_base).unwrap();
        assert_eq!(found, number);
        assert!(text.contains("a later backup has overwritten it"), "{text}");
    }
    // Also if they cannot be looked at.
    past.media[0].device = "relative".to_owned();
    let (found, _) = says(&past, MissingBase::Refuses).unwrap();
    assert_eq!(found, 50012);
    past.is_overwritten = false;
    let (found, _) = says(&past, MissingBase::Refuses).unwrap();
    assert_eq!(found, 50014);
}

#[test]
fn only_a_full_backup_that_was_kept_and_is_no_copy_becomes_the_base() {
    let place = Place::new();
    let record = record(&place, None);
    let full = SetConfiguration {
        set_guid: Guid::random(),
        set_type: SetType::Full,
        ..SetConfiguration::default()
    };
    let base = |set: &SetConfiguration, is_discarded| {
        let base = backed_up(&record, set, is_discarded).base;
        base.map(|base| base.set_guid)
    };
    assert_eq!(base(&full, false), Some(full.set_guid));
    assert_eq!(base(&full, true), None);
    for is_copy_only in [false, true] {
        for set_type in [SetType::Full, SetType::Differential, SetType::Log] {
            let set = SetConfiguration {
                set_type,
                is_copy_only,
                ..full.clone()
            };
            let is_base = set_type == SetType::Full && !is_copy_only;
            assert_eq!(base(&set, false).is_some(), is_base, "{set_type:?}");
            assert_eq!(base(&set, true), None, "{set_type:?}");
        }
    }
}
