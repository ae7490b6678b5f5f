//! A restore that somebody overtakes.

use std::path::{Path, PathBuf};

use windlass_catalog::Origin;

use crate::instance::new_record;
use crate::outcome::Collected;
use crate::{Event, Instance, Session, Sink};

/// Registers a database of the same name while the set is read.
struct Overtaker {
    instance: PathBuf,
    said: Collected,
    is_done: bool,
}

impl Sink for Overtaker {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Progress(_)) && !self.is_done {
            let mut instance = Instance::open(Some(&self.instance)).unwrap();
            let path = self.instance.join("elsewhere.db");
            let record = new_record("t", &path, Origin::Attached);
            instance.register(&record).unwrap();
            self.is_done = true;
        }
        self.said.event(event);
    }
}

fn run(instance: &Path, text: &str, sink: &mut dyn Sink) {
    let mut session = Session::new(Instance::open(Some(instance)).unwrap());
    for batch in text.split("GO\n") {
        let _end = session.execute_batch(batch, 1, sink);
    }
}

fn succeed(instance: &Path, text: &str) {
    let mut said = Collected::default();
    run(instance, text, &mut said);
    assert!(!said.has_failed(), "{text}: {:?}", said.messages);
}

#[test]
fn a_restore_of_a_new_name_that_was_taken_meanwhile_replaces_no_file() {
    for is_engine in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let instance = folder.path().join("instance");
        let create = match is_engine {
            true => format!(
                "CREATE DATABASE s ON (NAME = d, FILENAME = '{}') LOG ON (NAME = l, FILENAME = '{}')",
                at("s.mdf"),
                at("s.ldf")
            ),
            false => {
                let source = rusqlite::Connection::open(at("s.db")).unwrap();
                source
                    .execute_batch("CREATE TABLE x(a); INSERT INTO x VALUES (randomblob(100000))")
                    .unwrap();
                format!(
                    "CREATE DATABASE s ON (FILENAME = '{}') FOR ATTACH",
                    at("s.db")
                )
            }
        };
        let backup = format!("BACKUP DATABASE s TO DISK = '{}'", at("s.bak"));
        succeed(&instance, &format!("{create}\nGO\n{backup}"));
        let targets = match is_engine {
            true => vec![("d", at("t.mdf")), ("l", at("t.ldf"))],
            false => vec![("s", at("t.db"))],
        };
        for (_, target) in &targets {
            std::fs::write(target, "theirs").unwrap();
        }
        let moves: Vec<String> = targets
            .iter()
            .map(|(logical, target)| format!("MOVE '{logical}' TO '{target}'"))
            .collect();
        let mut overtaker = Overtaker {
            instance: instance.clone(),
            said: Collected::default(),
            is_done: false,
        };
        let restore = format!(
            "RESTORE DATABASE t FROM DISK = '{}' WITH REPLACE, {}",
            at("s.bak"),
            moves.join(", ")
        );
        run(&instance, &restore, &mut overtaker);
        assert!(overtaker.is_done);
        let said = &overtaker.said;
        assert!(said.numbers().contains(&1801), "{:?}", said.messages);
        for (_, target) in &targets {
            assert_eq!(std::fs::read(target).unwrap(), b"theirs", "{target}");
        }
        let names = std::fs::read_dir(folder.path()).unwrap().flatten();
        let left: Vec<_> = names
            .filter(|entry| entry.file_name().to_string_lossy().contains(".windlass-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let mut instance = Instance::open(Some(&instance)).unwrap();
        let registered = instance.database("t").unwrap().unwrap();
        assert!(registered.path.ends_with("elsewhere.db"));
        assert!(instance.forget("t").unwrap());
    }
}
