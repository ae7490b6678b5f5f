//! The entry point for fuzzing: runs hostile scripts that touch no files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Event, Instance, Session, Sink};

/// How many statements of a script run: a loop may have no end.
const STEPS: u32 = 300;

/// How long a script may run: a query may have no end either.
const LIMIT: Duration = Duration::from_millis(500);

/// Looks at what it is sent, as a client does.
struct Reader;

impl Sink for Reader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => drop(message.visible_text().into_owned()),
            Event::Row(values) => values.iter().for_each(|value| drop(value.to_string())),
            _ => {}
        }
    }
}

/// Runs the batches of the script `data`: parses, binds and executes them.
///
/// # Panics
///
/// If the session is not as before after a batch: a TRY or a nested batch is still open.
pub fn fuzz_flow(data: &[u8]) {
    let Ok(instance) = Instance::open(None) else {
        return;
    };
    let script = String::from_utf8_lossy(data);
    let mut session = Session::new(instance).confined(STEPS);
    let (cancel, ended) = (session.cancel_flag(), Arc::new(AtomicBool::new(false)));
    let watch = watch(Arc::clone(&cancel), Arc::clone(&ended));
    for batch in windlass_tsql::batch::split(&script) {
        session.execute_batch(batch.text, 1, &mut Reader);
        session.assert_outermost();
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    session.close(&mut Reader);
    ended.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    // The thread only waits.
    let _joined = watch.join();
}

/// Cancels what runs longer than the limit.
fn watch(cancel: Arc<AtomicBool>, ended: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::park_timeout(LIMIT);
        if !ended.load(Ordering::Relaxed) {
            cancel.store(true, Ordering::Relaxed);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_an_end_end_and_files_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let path = path.display();
        for script in [
            "WHILE 1 = 1 SELECT 1".to_owned(),
            "a: GOTO a".to_owned(),
            "CREATE PROCEDURE p AS EXEC p\nGO\nEXEC p".to_owned(),
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 0 FROM n) SELECT COUNT(*) FROM n"
                .to_owned(),
            format!("EXEC('ATTACH ''{path}'' AS x CREATE TABLE x.t (a)')"),
            format!("BACKUP DATABASE master TO DISK = '{path}'"),
            format!(
                "BEGIN TRY CREATE DATABASE d ON (NAME = d, FILENAME = '{path}') END TRY BEGIN CATCH END CATCH"
            ),
            format!("EXEC xp_create_subdir '{path}'"),
        ] {
            fuzz_flow(script.as_bytes());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
