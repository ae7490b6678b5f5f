//! A database that is being created: nothing has its name before all of it is whole, and a crash at any
//! point leaves either nothing that is in the way or a database that opens.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_engine::storage::RealFileSystem;
use windlass_engine::storage::unnamed;
use windlass_engine::{
    CreateDatabase, EngineError, FileSpec, Instance, InstanceOptions, OpenDatabase,
};

fn instance() -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 64,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

const NAMES: [&str; 3] = ["a.mdf", "b.ndf", "a.ldf"];

fn request(folder: &Path) -> CreateDatabase {
    let mut request = CreateDatabase::new("a", folder.join(NAMES[0]), folder.join(NAMES[2]));
    let second = FileSpec::data("b", folder.join(NAMES[1]));
    request.data_files.push(second);
    request
}

fn found(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_have_their_names_only_when_all_are_whole_and_go_if_they_never_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance();
    let new = instance.prepare_database(&request(folder.path())).unwrap();
    let unnamed = [
        "a.ldf.windlass-new",
        "a.mdf.windlass-new",
        "b.ndf.windlass-new",
    ];
    assert_eq!(found(folder.path()), unnamed);
    let error = instance
        .prepare_database(&request(folder.path()))
        .unwrap_err();
    let is_told = error.to_string().contains("this process is making it");
    assert!(
        matches!(error, EngineError::BeingMade { .. }) && is_told,
        "{error}"
    );
    drop(new);
    assert!(found(folder.path()).is_empty());

    // Somebody took a name meanwhile: theirs stays, ours go.
    let new = instance.prepare_database(&request(folder.path())).unwrap();
    std::fs::write(folder.path().join("b.ndf"), "theirs").unwrap();
    assert!(instance.publish(new).is_err());
    assert_eq!(found(folder.path()), ["b.ndf"]);
    let error = instance
        .create_database(&request(folder.path()))
        .unwrap_err();
    assert!(error.to_string().contains("b.ndf"), "{error}");
    assert_eq!(found(folder.path()), ["b.ndf"]);
    assert_eq!(
        std::fs::read(folder.path().join("b.ndf")).unwrap(),
        b"theirs"
    );
}

/// What a killed creation leaves, with so many files renamed.
fn killed(folder: &Path, named: usize) -> Vec<PathBuf> {
    let paths = NAMES.map(|name| folder.join(name));
    let new = instance().prepare_database(&request(folder)).unwrap();
    let contents = paths
        .each_ref()
        .map(|path| std::fs::read(unnamed(path)).unwrap());
    drop(new);
    for (index, (path, content)) in paths.iter().zip(contents).enumerate() {
        let place = if index < named {
            path.clone()
        } else {
            unnamed(path)
        };
        std::fs::write(place, content).unwrap();
    }
    paths.to_vec()
}

#[test]
fn whoever_opens_a_database_whose_files_were_not_all_named_names_them() {
    for named in 0..=3 {
        let folder = tempfile::tempdir().unwrap();
        let paths = killed(folder.path(), named);
        let open = OpenDatabase::new("a", paths[2].clone());
        instance().open_database(&open).unwrap().close().unwrap();
        assert_eq!(found(folder.path()), ["a.ldf", "a.mdf", "b.ndf"], "{named}");
    }
}

#[test]
fn what_a_killed_creation_left_is_no_obstacle_and_half_a_log_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let paths = killed(folder.path(), 0);
    std::fs::write(unnamed(&paths[2]), vec![0; 4096]).unwrap();
    let open = OpenDatabase::new("a", paths[2].clone());
    assert!(instance().open_database(&open).is_err());
    assert!(paths.iter().all(|path| !path.exists()));
    let database = instance().create_database(&request(folder.path())).unwrap();
    database.close().unwrap();
    assert_eq!(found(folder.path()), ["a.ldf", "a.mdf", "b.ndf"]);
}

#[test]
fn an_added_file_that_a_killed_program_had_begun_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let database = instance().create_database(&request(folder.path())).unwrap();
    let spec = FileSpec::data("c", folder.path().join("c.ndf"));
    std::fs::write(unnamed(&spec.path), "half").unwrap();
    database.add_file(&spec).unwrap();
    database.close().unwrap();
    assert_eq!(found(folder.path()), ["a.ldf", "a.mdf", "b.ndf", "c.ndf"]);
}

#[test]
fn what_somebody_else_has_put_under_a_temporary_name_is_neither_named_nor_removed() {
    for replaced in NAMES {
        for theirs in [Some("theirs"), None] {
            let folder = tempfile::tempdir().unwrap();
            let temporary = unnamed(&folder.path().join(replaced));
            let instance = instance();
            let new = instance.prepare_database(&request(folder.path())).unwrap();
            std::fs::remove_file(&temporary).unwrap();
            if let Some(theirs) = theirs {
                std::fs::write(&temporary, theirs).unwrap();
            }
            let error = instance.publish(new).unwrap_err().to_string();
            assert!(error.contains("removed or replaced"), "{error}");
            let left: Vec<String> = theirs
                .map(|_| format!("{replaced}.windlass-new"))
                .into_iter()
                .collect();
            assert_eq!(found(folder.path()), left);
        }
    }
}

#[test]
fn a_database_whose_creation_is_under_way_is_completed_by_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let new = instance()
        .prepare_database(&request(folder.path()))
        .unwrap();
    let open = OpenDatabase::new("a", folder.path().join(NAMES[2]));
    let error = instance().open_database(&open).unwrap_err();
    assert!(matches!(error, EngineError::InUse { .. }), "{error}");
    assert_eq!(found(folder.path()).len(), 3);
    drop(new);
    assert!(found(folder.path()).is_empty());
}
